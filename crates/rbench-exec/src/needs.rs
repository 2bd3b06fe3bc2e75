//! What a run needs of the file system beyond reading and writing files in order, tried on
//! every host before anything of the run is made.
//!
//! Attempts are those of `rbench probe` (`sys::abilities`), in a directory of their own where
//! the run is to work, which is removed again. What could not be tried refuses nothing: the
//! run itself will tell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rbench_comm::Combine;
use rbench_core::operations::OpKind;
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Bytes, Call, OpenFlags, Rank};
use rbench_plan::meta::{Calls, MetaPlan, PhasePlan, Showing};
use rbench_plan::mix::{FileSet, MixPlan, Place, Role, SetKind, Step, Verb};
use rbench_plan::{Plan, Work};
use rbench_sys::engine::{Lack, lacking};
use rbench_sys::limits;
use rbench_sys::promises::Verdict;
use rbench_sys::promises::abilities::try_in;
use rbench_sys::standing::standing;
use rbench_sys::surroundings::without_credentials;

use crate::group::{ExecError, Group};
use crate::spots::Spot;
use crate::steps;
use crate::thread::in_thread;

/// Most refusals that are told.
const MOST: usize = 4;
/// How long an attempt may take that takes as long as it likes; none of these does.
const LONGEST: Duration = Duration::from_secs(60);

/// Something that a run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Direct,
    SharedMapping,
    RandomWrites,
    Trims,
    HardLinks,
    SymbolicLinks,
    ExtendedAttributes,
}

impl Need {
    const ALL: [Need; 7] = [
        Need::Direct,
        Need::SharedMapping,
        Need::RandomWrites,
        Need::Trims,
        Need::HardLinks,
        Need::SymbolicLinks,
        Need::ExtendedAttributes,
    ];

    /// The ability that is tried for it.
    fn ability(self) -> &'static str {
        match self {
            Need::Direct => "direct",
            Need::SharedMapping => "mmap-shared",
            Need::RandomWrites => "random-write",
            Need::Trims => "punch-hole",
            Need::HardLinks => "link",
            Need::SymbolicLinks => "symlink",
            Need::ExtendedAttributes => "xattr",
        }
    }

    /// In a sentence.
    fn about(self) -> &'static str {
        match self {
            Need::Direct => "O_DIRECT",
            Need::SharedMapping => "writing to a shared memory mapping",
            Need::RandomWrites => "writes at any offset",
            Need::Trims => "punching holes",
            Need::HardLinks => "hard links",
            Need::SymbolicLinks => "symbolic links",
            Need::ExtendedAttributes => "extended attributes",
        }
    }

    /// Whether a call that succeeds and does something else refuses the run too. An operation
    /// on names is measured all the same.
    fn is_of_data(self) -> bool {
        self <= Need::Trims
    }
}

/// What the plan needs, and for what.
fn of(plan: &Plan) -> BTreeMap<Need, String> {
    let mut needs = BTreeMap::new();
    let mut add = |condition: bool, need, what: &str| {
        if condition {
            needs.entry(need).or_insert_with(|| what.to_owned());
        }
    };
    match &plan.work {
        Work::Io(io) => {
            let writes = io.phases.iter().any(|rw| rw.writes());
            let random = io.phases.iter().find(|rw| rw.writes() && rw.random());
            add(io.direct, Need::Direct, "--direct");
            add(
                io.engine == "mmap" && writes,
                Need::SharedMapping,
                "--engine mmap",
            );
            if let Some(rw) = random {
                add(true, Need::RandomWrites, &format!("--rw {}", rw.name()));
            }
        }
        Work::Jobs(jobs) => jobs.rounds.iter().flatten().for_each(|job| {
            let (does, what) = (&job.pattern.directions, format!("job {}", job.name));
            add(job.direct, Need::Direct, &what);
            add(
                job.engine == "mmap" && does.changes(),
                Need::SharedMapping,
                &what,
            );
            add(does.write && does.random, Need::RandomWrites, &what);
            add(does.trim, Need::Trims, &what);
        }),
        Work::Meta(meta) => of_phases(meta, add),
        Work::Mix(mix) => {
            let steps = || mix.roles.iter().flat_map(|role| role.all_steps());
            let any = |wanted: fn(Verb) -> bool| steps().any(|step| wanted(step.verb));
            let of_links = |set: &FileSet| set.kind == SetKind::Links;
            let attributes = any(|verb| {
                let op = verb.word(false).map(|word| word.op);
                matches!(op, Some(OpKind::Setxattr | OpKind::Getxattr))
            });
            let random = any(|verb| matches!(verb, Verb::Write(_, Place::Random)));
            add(random, Need::RandomWrites, &mix.name);
            add(
                mix.sets.iter().any(of_links),
                Need::SymbolicLinks,
                &mix.name,
            );
            add(attributes, Need::ExtendedAttributes, &mix.name);
        }
        Work::Find(_) | Work::Replay(_) => {}
    }
    needs
}

/// A row of the per-operation table that fails says so itself.
fn of_phases(meta: &MetaPlan, mut add: impl FnMut(bool, Need, &str)) {
    if meta
        .phases
        .iter()
        .any(|p| matches!(p.showing, Showing::Row(_)))
    {
        return;
    }
    for phase in &meta.phases {
        let info = phase.kind.info();
        let need = match info.op {
            OpKind::Link => Need::HardLinks,
            OpKind::Symlink => Need::SymbolicLinks,
            OpKind::Setxattr => Need::ExtendedAttributes,
            _ => continue,
        };
        add(true, need, &format!("--phases {}", info.name));
    }
}

/// Tries on every host what the plan needs, in each of `spots` in which it makes something.
/// `name` is the run's.
///
/// # Errors
/// One sentence for each kind of refusal, the same on every rank; nothing of what was made
/// to find out is left.
pub(crate) async fn check(
    group: &Group<'_>,
    plan: &Plan,
    spots: &[Spot],
    name: &str,
) -> Result<(), ExecError> {
    match &plan.work {
        Work::Meta(meta) => {
            let calls = meta.kinds().flat_map(|kind| kind.info().timed);
            let calls = calls.copied().chain(AROUND).collect();
            names_in_flight(group, plan, (meta.in_flight, calls, data(meta))).await?;
        }
        Work::Mix(mix) => {
            let steps = mix.roles.iter().flat_map(Role::all_steps);
            let of_step = |step: &Step| {
                let directories = mix.sets[step.set].kind == SetKind::Directories;
                step.verb.call(directories)
            };
            let calls = steps.filter_map(of_step).chain(AROUND).collect();
            names_in_flight(group, plan, (mix.in_flight, calls, buffers(mix))).await?;
        }
        _ => {}
    }
    let needs = of(plan);
    if needs.is_empty() || spots.is_empty() || plan.leave.untried {
        return Ok(());
    }
    group.step("testing the features that the run needs");
    let scratch = format!(".{name}.needs-{}", group.rank().0);
    let me = group.host_of[group.rank().0 as usize];
    let paths: Vec<PathBuf> = spots
        .iter()
        .filter(|spot| group.is_leader() && spot.hosts(group).contains(&me))
        .filter(|spot| spot.makes_something())
        .map(|spot| spot.path.clone())
        .collect();
    let which: Vec<Need> = needs.keys().copied().collect();
    let tried = in_thread(move || {
        let at = |path: &PathBuf| refusals(path, &scratch, &which);
        paths.iter().flat_map(at).collect::<Vec<Refusal>>()
    });
    let tried = group.attend(tried, || 0).await?;
    let mine = group.agree(tried).await?;
    let any = vec![u64::from(!mine.is_empty())];
    let any = group.world.all_reduce(Combine::Max, any);
    if group.quietly(any).await?[0] == 0 {
        return Ok(());
    }
    let mut message = Writer::default();
    mine.iter().for_each(|refusal| refusal.encode(&mut message));
    let all = group.world.gather(Rank(0), message.finish());
    let all = group.quietly(all).await?;
    let text = all.map_or_else(String::new, |all| sentences(&needs, group, &all));
    let text = group.world.broadcast(Rank(0), text.into_bytes());
    let text = group.quietly(text).await?;
    Err(ExecError::Usage(
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

/// Whether the kernel of every host performs in a ring what the plan has in flight, and has room for it.
/// `data`: what an operation has for itself.
async fn names_in_flight(
    group: &Group<'_>,
    plan: &Plan,
    (depth, calls, data): (Option<u32>, Vec<Call>, Bytes),
) -> Result<(), ExecError> {
    let Some(depth) = depth else {
        return Ok(());
    };
    let lacking = lacking(&calls, depth).map_err(|lack| match lack {
        Lack::Ring(errno) => format!(
            "--engine io_uring: the kernel lacks or forbids io_uring (io_uring_setup: {errno:?}): use --engine sync"
        ),
        Lack::Threads => format!(
            "--iodepth {depth}: the limit on processes (ulimit -u) permits fewer of the kernel threads that make \
             the calls"
        ),
        Lack::Request { call, since } => format!(
            "--engine io_uring: this kernel does not support {call}, which needs Linux {since}: use \
             --engine sync"
        ),
    });
    let here = group.host_of[group.rank().0 as usize];
    let ranks = group.host_of.iter().zip(0..);
    let ranks = ranks.filter(|(host, _)| **host == here);
    let workers = ranks.map(|(_, rank)| u64::from(plan.workers_of(Rank(rank))));
    let room = Room {
        memory: limits::available_memory().ok(),
        threads: limits::processes().ok().flatten(),
    };
    let fits = lacking.and_then(|()| room.check(depth, workers.sum(), data));
    group.agree(fits).await.map_err(|error| match error {
        ExecError::SetUp(message) => ExecError::Usage(message),
        other => other,
    })
}

/// The most data that an operation of the plan writes or reads, which it has for itself as long as it is
/// in flight.
fn data(meta: &MetaPlan) -> Bytes {
    let data = |phase: &PhasePlan| Calls::of_phase(phase.kind.info(), meta, phase.who).data;
    Bytes(meta.phases.iter().map(data).max().unwrap_or(0))
}

/// What a host has for operations in flight; `None`: there is no limit, or it cannot be told.
struct Room {
    memory: Option<Bytes>,
    /// For all of them, where [`Lack::Threads`] is about those of one worker.
    threads: Option<u64>,
}

impl Room {
    /// Whether there is room for `depth` operations of each of so many workers, with that much data
    /// in each.
    fn check(&self, depth: u32, workers: u64, data: Bytes) -> Result<(), String> {
        let all = workers.saturating_mul(u64::from(depth));
        let bytes = all.saturating_mul(data.0);
        match (self.memory, self.threads) {
            (Some(Bytes(memory)), _) if bytes > memory => Err(format!(
                "--iodepth {depth}: {all} operations in flight on a host, with {data} each, need {} MiB \
                 of memory, but only {} MiB are available",
                bytes >> 20,
                memory >> 20
            )),
            (_, Some(limit)) if all > limit => Err(format!(
                "--iodepth {depth}: {all} operations in flight on a host need as many kernel threads, \
                 but the limit on processes is {limit} (ulimit -u)"
            )),
            _ => Ok(()),
        }
    }
}

/// The buffer that a round of a mix has for itself as long as it is in flight: the mean over the
/// kinds of workers.
fn buffers(mix: &MixPlan) -> Bytes {
    let bytes =
        |role: &Role| u64::from(role.threads) * steps::buffer_bytes(role.call_bytes()) as u64;
    let all: u64 = mix.roles.iter().map(bytes).sum();
    Bytes(all.div_ceil(u64::from(mix.threads()).max(1)))
}

/// What surrounds a call on a file that is open.
const AROUND: [Call; 2] = [Call::Open(OpenFlags::READ), Call::Close];

/// What a file system refuses, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    need: Need,
    /// `fuse.mergerfs (/a:/b) refuses it (openat: EINVAL)`
    how: String,
}

impl Refusal {
    fn encode(&self, w: &mut Writer) {
        w.number(self.need as u64).text(&self.how);
    }

    fn decode(r: &mut Reader<'_>) -> Option<Refusal> {
        let need = usize::try_from(r.number()?).ok()?;
        Some(Refusal {
            need: *Need::ALL.get(need)?,
            how: r.text()?,
        })
    }
}

/// Tries `which` below `path`.
fn refusals(path: &Path, scratch: &str, which: &[Need]) -> Vec<Refusal> {
    let names: Vec<&str> = which.iter().map(|need| need.ability()).collect();
    let found = try_in(&path.join(scratch), &names, LONGEST);
    let mount = standing(path).ok().and_then(|found| found.mount);
    let there = match mount {
        Some(mount) => format!("{} ({})", mount.fs_type, without_credentials(&mount.source)),
        None => path.display().to_string(),
    };
    let refused = |(need, verdict): (&Need, Verdict)| {
        let (Verdict::Broken(seen) | Verdict::Unsupported(seen)) = verdict else {
            return None;
        };
        let how = match seen.errno {
            Some(errno) => format!("{there} refuses it ({}: {errno:?})", seen.call),
            None if need.is_of_data() => {
                format!(
                    "{there} does not support it ({}: unexpected result)",
                    seen.call
                )
            }
            None => return None,
        };
        Some(Refusal { need: *need, how })
    };
    which.iter().zip(found).filter_map(refused).collect()
}

/// `O_DIRECT (--direct): fuse.mergerfs (/a:/b) refuses it (openat: EINVAL) on client2`
fn sentences(needs: &BTreeMap<Need, String>, group: &Group<'_>, all: &[Vec<u8>]) -> String {
    let mut hosts: BTreeMap<(Need, String), Vec<&str>> = BTreeMap::new();
    for (rank, bytes) in all.iter().enumerate() {
        let host = group.host_of.get(rank).map(|host| *host as usize);
        let host = host.and_then(|host| group.host_names.get(host));
        let mut reader = Reader::new(bytes);
        while let Some(Refusal { need, how }) = Refusal::decode(&mut reader) {
            let on = hosts.entry((need, how)).or_default();
            on.extend(host.map(String::as_str));
        }
    }
    let several = group.host_names.len() > 1;
    let sentence = |((need, how), mut on): ((Need, String), Vec<&str>)| {
        on.dedup();
        let what = needs.get(&need).map_or("", String::as_str);
        let more = on.len().saturating_sub(MOST);
        let mut on = on.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
        if more > 0 {
            on += &format!(" and {more} more");
        }
        let on = if several {
            format!(" on {on}")
        } else {
            String::new()
        };
        format!("{} ({what}): {how}{on}", need.about())
    };
    hosts
        .into_iter()
        .map(sentence)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn what_all_workers_of_a_host_have_in_flight_has_room_or_is_refused() {
        let room = |memory, threads| Room { memory, threads };
        let check = |room: &Room, depth| room.check(depth, 3, Bytes(1 << 20));
        let refused = |room: &Room, depth| check(room, depth).expect_err("there is no room");
        let memory = room(Some(Bytes(90 << 20)), None);
        assert_eq!(check(&memory, 30), Ok(()));
        assert_eq!(
            refused(&memory, 31),
            "--iodepth 31: 93 operations in flight on a host, with 1MiB each, need 93 MiB of memory, but only \
             90 MiB are available"
        );
        let threads = room(None, Some(90));
        assert_eq!(check(&threads, 30), Ok(()));
        assert_eq!(
            refused(&threads, 31),
            "--iodepth 31: 93 operations in flight on a host need as many kernel threads, but the limit on processes is 90 (ulimit -u)"
        );
        assert_eq!(check(&room(None, None), u32::MAX), Ok(()));
    }
}
