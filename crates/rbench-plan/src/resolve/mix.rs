//! Checks and completes `rbench mix`, from options or a profile.

use rbench_core::{Bytes, Nanos, OpKind, OpenFlags, linux};

use super::{PlanError, in_flight, nonzero_time, open_loop};
use crate::mix::list::{self, Written};
use crate::mix::profile::{self, Profile, SetText, WorkerText};
use crate::mix::sizes::Sizes;
use crate::mix::{FileSet, MixPlan, NAMES_MAX, Need, Per, Role, Row, Scale, SetKind, Step, Verb};
use crate::spec::{Common, Mix, MixText};

/// Default number of names of the set of `--ops` and `--list`.
const FILES: u64 = 1000;
/// Default size of its files.
const SIZE: Bytes = Bytes(4096);
/// Default percentage of its names that exist at the start.
const PREPARED: u32 = 80;
/// Default duration.
const TIME: Nanos = Nanos(10_000_000_000);

/// The default sets of steps on directories and links.
const IMPLIED: [(&str, SetKind); 2] = [("dirs", SetKind::Directories), ("links", SetKind::Links)];

pub(super) fn resolve(mix: &Mix, common: &Common, ranks: u32) -> Result<MixPlan, PlanError> {
    if common.shift.is_some() {
        refuse!("--shift has no effect on a mix, whose workers choose their files: remove it");
    }
    let (name, profile) = written(mix)?;
    let time = nonzero_time("--time", mix.time)?;
    refuse_if!(mix.rounds == Some(0) => "--rounds must be at least 1");
    let open_loop = open_loop(mix.rate, mix.arrival)?;
    let scale = scale(mix)?;
    let mut plan = MixPlan {
        name,
        shared: mix.shared(),
        sets: Vec::new(),
        roles: Vec::new(),
        time: time.or(mix.rounds.is_none().then_some(TIME)),
        rounds: mix.rounds,
        think: mix.think.unwrap_or(Nanos(0)),
        open_loop,
        scale,
        in_flight: in_flight::of(&mix.in_flight)?,
    };
    let mut sets = profile.sets.clone();
    imply(&mut sets, &profile.workers);
    plan.sets = sets.iter().map(|of| scaled(&of.set, scale)).collect();
    let threads = threads(&profile.workers, common.threads)?;
    let several = profile.workers.len() > 1;
    for (worker, threads) in profile.workers.iter().zip(threads) {
        let role = role(worker, (&sets, &profile.workers), threads, several);
        plan.roles
            .push(role.map_err(|error| located(&plan.name, worker.line, error))?);
    }
    let sharing = if mix.shared() { u64::from(ranks) } else { 1 };
    for (number, written) in sets.iter().enumerate() {
        // However small the scale, each worker that changes a set owns names of it.
        let least = 2 * rounds_of_owners(&plan, number) * sharing;
        let set = &mut plan.sets[number];
        set.number = set.number.max(least.min(written.set.number));
    }
    check(&plan, (&sets, &profile.workers), ranks)?;
    Ok(plan)
}

/// The name of the mix, and the mix as written.
fn written(mix: &Mix) -> Result<(String, Profile), PlanError> {
    let of_options = |worker: WorkerText| {
        let set = FileSet {
            name: "files".to_owned(),
            kind: SetKind::Files,
            number: mix.files.unwrap_or(FILES),
            sizes: mix.sizes.unwrap_or(Sizes::Fixed(SIZE)),
            width: mix.width,
            prepared: mix.prepared.unwrap_or(PREPARED),
        };
        Profile {
            title: String::new(),
            sets: vec![SetText { line: 0, set }],
            workers: vec![worker],
        }
    };
    let worker = WorkerText {
        name: "worker".to_owned(),
        threads: 1,
        ..WorkerText::default()
    };
    for (flag, number) in [("--files", mix.files), ("--width", mix.width)] {
        if number.is_some_and(|number| !(1..=NAMES_MAX).contains(&number)) {
            refuse!("{flag} must be from 1 to {NAMES_MAX}");
        }
    }
    match &mix.text {
        MixText::Ops(text) => {
            let (steps, weights) =
                profile::ops(text).map_err(|e| PlanError(format!("--ops: {e}")))?;
            let worker = WorkerText {
                text: format!("ops {text}"),
                steps,
                weights,
                ..worker
            };
            Ok(("--ops".to_owned(), of_options(worker)))
        }
        MixText::List(text) => {
            let steps = list::read(text).map_err(|e| PlanError(format!("--list: {e}")))?;
            let worker = WorkerText {
                text: format!("list {text}"),
                steps,
                ..worker
            };
            Ok(("--list".to_owned(), of_options(worker)))
        }
        MixText::Profile { name, text } => {
            for (flag, given) in [
                ("--files", mix.files.is_some()),
                ("--file-size", mix.sizes.is_some()),
                ("--width", mix.width.is_some()),
                ("--prepared", mix.prepared.is_some()),
            ] {
                refuse_if! {
                    given =>
                        "{flag} and --profile cannot be combined: use --scale or --scale-size, or your own \
                         profile file (--show {name} prints one)";
                }
            }
            let text = match (text, profile::built_in(name)) {
                (Some(Ok(text)), _) => text.as_str(),
                (Some(Err(why)), _) => refuse!("--profile {name} cannot be read: {why}"),
                (None, Some(text)) => text,
                (None, None) => refuse!("--profile {name} was not read"),
            };
            let read = profile::read(text);
            let read = read.map_err(|error| PlanError(format!("--profile {name}: {error}")))?;
            Ok((name.clone(), read))
        }
    }
}

fn located(name: &str, line: usize, message: String) -> PlanError {
    match line {
        0 => PlanError(format!("{name}: {message}")),
        _ => PlanError(format!("--profile {name}: line {line}: {message}")),
    }
}

fn scale(mix: &Mix) -> Result<Scale, PlanError> {
    let scale = Scale {
        files: mix.scale.unwrap_or(1.0),
        size: mix.scale_size.unwrap_or(1.0),
    };
    let given = [("--scale", scale.files), ("--scale-size", scale.size)];
    if let Some((flag, wrong)) = given.iter().find(|(_, by)| !(1e-9..=1e6).contains(by)) {
        refuse!("{flag} {wrong} is not a factor from 0.000000001 to 1,000,000");
    }
    Ok(scale)
}

/// Adds the missing sets that steps on directories and links need.
fn imply(sets: &mut Vec<SetText>, workers: &[WorkerText]) {
    for (name, kind) in IMPLIED {
        let steps = workers.iter().flat_map(|w| w.first.iter().chain(&w.steps));
        let wanted = steps
            .into_iter()
            .any(|step| step.set.as_deref() == Some(name));
        if !wanted || sets.iter().any(|of| of.set.name == name) {
            continue;
        }
        let mut implied = sets[0].clone();
        implied.set = FileSet {
            name: name.to_owned(),
            kind,
            sizes: Sizes::Fixed(Bytes(0)),
            ..implied.set
        };
        sets.push(implied);
    }
}

fn scaled(set: &FileSet, scale: Scale) -> FileSet {
    let number = (set.number as f64 * scale.files).round() as u64;
    FileSet {
        number: number.clamp(1, NAMES_MAX),
        sizes: set.sizes.scaled(scale.size),
        ..set.clone()
    }
}

/// Workers of each kind: as written, or the requested total in the same proportion.
fn threads(workers: &[WorkerText], asked: Option<u32>) -> Result<Vec<u32>, PlanError> {
    let Some(asked) = asked else {
        return Ok(workers.iter().map(|worker| worker.threads).collect());
    };
    let kinds = workers.len() as u32;
    if asked < kinds {
        refuse!("--threads {asked} is less than the {kinds} kinds of workers of the profile");
    }
    let all: u64 = workers.iter().map(|worker| u64::from(worker.threads)).sum();
    let share = |worker: &WorkerText| {
        let part = u64::from(worker.threads) * u64::from(asked) / all.max(1);
        (part as u32).max(1)
    };
    let mut shares: Vec<u32> = workers.iter().map(share).collect();
    // The largest kind gets the rounding difference.
    let largest = (0..workers.len())
        .rev()
        .max_by_key(|at| workers[*at].threads);
    if let Some(largest) = largest {
        let others = shares.iter().sum::<u32>() - shares[largest];
        shares[largest] = asked.saturating_sub(others);
        refuse_if! {
            shares[largest] == 0 =>
                "--threads {asked} is too few for the kinds of workers of the profile";
        }
    }
    Ok(shares)
}

/// Creates the role of a kind of worker.
fn role(
    worker: &WorkerText,
    (sets, workers): (&[SetText], &[WorkerText]),
    threads: u32,
    several: bool,
) -> Result<Role, String> {
    let number = |name: &str| {
        sets.iter()
            .position(|of| of.set.name == name)
            .ok_or_else(|| format!("unknown set '{name}'"))
    };
    let own = worker.set.as_deref().map_or(Ok(0), number)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut steps_of = |written: &[Written]| {
        written
            .iter()
            .map(|step| {
                let set = step.set.as_deref().map_or(Ok(own), number)?;
                fits(step.verb, &sets[set].set)?;
                let row = row_of(&mut rows, worker, (step.verb, &sets[set].set), several);
                Ok(Step {
                    verb: step.verb,
                    set,
                    last: step.last,
                    row,
                })
            })
            .collect::<Result<Vec<Step>, String>>()
    };
    let (mut first, mut steps) = (steps_of(&worker.first)?, steps_of(&worker.steps)?);
    if !steps
        .iter()
        .any(|step| !matches!(step.verb, Verb::Think(_)))
    {
        return Err("the list has no operation".to_owned());
    }
    let draws = !worker.weights.is_empty();
    if draws {
        steps.iter_mut().for_each(drawn);
        order(&mut first, &mut [])?;
    } else {
        order(&mut first, &mut steps)?;
    }
    let named = |op, name: &str, label: &str| row(worker, (op, name, label), several);
    rows.push(named(OpKind::Mixed, "all", "All operations"));
    if !draws {
        rows.push(named(OpKind::Round, "round", "Round of the list"));
    }
    let per = worker.per.as_ref().map(|(rounds, name)| {
        let mut all = workers.iter();
        let role = all.position(|other| other.name == *name && other.per.is_none());
        let role = role.ok_or_else(|| {
            format!(
                "'per' names '{name}', which must be another kind of worker without its own 'per'"
            )
        })?;
        let rounds = *rounds;
        Ok::<_, String>(Per { role, rounds })
    });
    Ok(Role {
        name: if several {
            worker.name.clone()
        } else {
            String::new()
        },
        text: worker.text.clone(),
        threads,
        first,
        steps,
        weights: worker.weights.clone(),
        every: worker.every,
        per: per.transpose()?,
        rows,
    })
}

/// Flags of an open that creates a new file.
fn creating(flags: OpenFlags) -> OpenFlags {
    let flags = flags.access(flags.reads(), true);
    flags.with(linux::CREAT | linux::EXCL)
}

/// Sets the flags of a drawn operation, which opens its file itself.
fn drawn(step: &mut Step) {
    step.verb = match step.verb {
        Verb::Create(flags) => Verb::Create(creating(flags)),
        Verb::Open(flags) => Verb::Open(flags.access(true, flags.writes())),
        other => other,
    };
}

fn row(worker: &WorkerText, (op, name, label): (OpKind, &str, &str), several: bool) -> Row {
    let (name, label) = match several {
        false => (name.to_owned(), label.to_owned()),
        true => (
            format!("{}-{name}", worker.name),
            format!("{}: {}", worker.name, label.to_lowercase()),
        ),
    };
    Row { op, name, label }
}

/// The index of the row of a step, which is added if it is the first of its kind.
fn row_of(
    rows: &mut Vec<Row>,
    worker: &WorkerText,
    (verb, set): (Verb, &FileSet),
    several: bool,
) -> usize {
    let Some(word) = verb.word(set.kind == SetKind::Directories) else {
        return 0;
    };
    let row = row(worker, (word.op, word.name, word.label), several);
    let known = rows.iter().position(|other| other.name == row.name);
    known.unwrap_or_else(|| {
        rows.push(row);
        rows.len() - 1
    })
}

/// Checks that a step can work on the names of a set.
fn fits(verb: Verb, set: &FileSet) -> Result<(), String> {
    let word = verb.word(false);
    if word.is_none_or(|word| word.sets.contains(&set.kind)) {
        return Ok(());
    }
    let what = match set.kind {
        SetKind::Files => "files",
        SetKind::Directories => "directories",
        SetKind::Links => "symbolic links",
    };
    Err(format!(
        "{} cannot work on the set '{}' of {what}",
        verb.name(),
        set.name
    ))
}

/// Checks that each step finds its file open, or closed, in every round. Gives opens the
/// flags that the steps on their files need.
fn order(first: &mut [Step], steps: &mut [Step]) -> Result<(), String> {
    let number = first.len();
    let mut all: Vec<Step> = first.iter().chain(steps.iter()).copied().collect();
    let sets = all.iter().map(|step| step.set + 1).max().unwrap_or(0);
    let mut open: Vec<Option<usize>> = vec![None; sets];
    let mut at_start = open.clone();
    let mut placed = vec![false; sets];
    for at in 0..all.len() {
        if at == number {
            at_start.clone_from(&open);
        }
        let Step { verb, set, .. } = all[at];
        let word = verb.name();
        match (verb, open[set]) {
            (Verb::Create(_) | Verb::Open(_), Some(_)) => {
                return Err(format!(
                    "{word} needs a close before it: a worker has one file of a set open at a time"
                ));
            }
            (Verb::Create(_) | Verb::Open(_), None) => {
                (open[set], placed[set]) = (Some(at), false);
            }
            (verb, None) if verb.need() == Need::Open => {
                return Err(format!(
                    "{word} has no open file: it needs an open or create before it"
                ));
            }
            (verb, Some(opened)) if verb.need() == Need::Open => {
                widen(&mut all[opened].verb, verb, &mut placed[set])?;
                if verb == Verb::Close {
                    open[set] = None;
                }
            }
            _ => {}
        }
    }
    if number == all.len() {
        at_start.clone_from(&open);
    }
    let is_open = |slots: &[Option<usize>]| slots.iter().map(Option::is_some).collect::<Vec<_>>();
    if is_open(&at_start) != is_open(&open) {
        return Err(
            "the list ends with other files open than at its start: each open needs a close"
                .to_owned(),
        );
    }
    for (step, made) in first.iter_mut().chain(steps).zip(all) {
        step.verb = made.verb;
        if let Verb::Create(flags) | Verb::Open(flags) = &mut step.verb
            && !flags.writes()
        {
            *flags = flags.access(true, false);
        }
        if let Verb::Create(flags) = &mut step.verb {
            *flags = creating(*flags);
        }
    }
    Ok(())
}

/// Gives the open of a file the flags that a step on it needs. `placed` is true if an
/// earlier step writes elsewhere than at its end, which is the position of `write whole` in
/// a new file.
fn widen(open: &mut Verb, verb: Verb, placed: &mut bool) -> Result<(), String> {
    let created = matches!(open, Verb::Create(_));
    let (Verb::Create(flags) | Verb::Open(flags)) = open else {
        return Ok(());
    };
    let appends = matches!(verb, Verb::Append(..));
    let (reads, writes) = (verb.reads(), verb.changes_file());
    *flags = flags.access(flags.reads() || reads, flags.writes() || writes);
    if appends {
        *flags = flags.with(linux::APPEND);
    }
    *placed |= match verb {
        Verb::Write(..) => true,
        Verb::WriteWhole(_) => !created,
        _ => false,
    };
    if flags.has(linux::APPEND) && *placed {
        return Err(
            "a file that is appended to (O_APPEND) cannot be written elsewhere: close it in between"
                .to_owned(),
        );
    }
    Ok(())
}

/// Rounds in flight of a rank's workers that change a set; at least one.
fn rounds_of_owners(plan: &MixPlan, set: usize) -> u64 {
    let changed = plan.roles.iter().any(|role| role.changes(set));
    let each = if changed { plan.rounds_in_flight() } else { 1 };
    plan.owners(set) * each as u64
}

/// Checks that a ring can perform the steps of a kind of worker, if it is used.
fn in_a_ring(plan: &MixPlan, role: &Role) -> Result<(), String> {
    if plan.in_flight.is_none() {
        return Ok(());
    }
    let word = |step: &Step| step.verb.name();
    let mut others: Vec<&str> = Vec::new();
    for word in role
        .all_steps()
        .filter(|step| !step.verb.in_a_ring())
        .map(word)
    {
        if !others.contains(&word) {
            others.push(word);
        }
    }
    if !others.is_empty() {
        return Err(format!(
            "--engine io_uring does not perform {}: use --engine sync",
            others.join(", ")
        ));
    }
    let common = |step: &&Step| {
        let position = matches!(step.verb, Verb::Create(_) | Verb::Open(_) | Verb::Close)
            || step.verb.moves_position();
        position && !role.draws() && role.holds(step.set)
    };
    match role.steps.iter().find(common) {
        Some(step) if plan.rounds_in_flight() > 1 => Err(format!(
            "{} in a round uses the file of the set '{}' that is opened before the first round, and rounds in flight \
             would share it: use --iodepth 1",
            word(step),
            plan.sets[step.set].name
        )),
        _ => Ok(()),
    }
}

fn check(
    plan: &MixPlan,
    (sets, workers): (&[SetText], &[WorkerText]),
    ranks: u32,
) -> Result<(), PlanError> {
    for (role, worker) in plan.roles.iter().zip(workers) {
        in_a_ring(plan, role).map_err(|message| located(&plan.name, worker.line, message))?;
    }
    for (number, set) in plan.sets.iter().enumerate() {
        let ranks = if plan.shared { u64::from(ranks) } else { 1 };
        let owners = plan.owners(number) * ranks;
        let rounds = rounds_of_owners(plan, number) * ranks;
        let (wanted, options) = match set.number {
            number if number < owners => (
                format!("{owners} workers that change it"),
                "--threads, --scale",
            ),
            number if number < rounds => (
                format!("{rounds} rounds in flight that change it"),
                "--iodepth, --threads, --scale",
            ),
            _ => continue,
        };
        let message = format!(
            "the set '{}' has {} names for {wanted}: each needs its own name ({options})",
            set.name, set.number
        );
        return Err(located(&plan.name, sets[number].line, message));
    }
    for (role, worker) in plan.roles.iter().zip(workers) {
        let paced = role.every.is_some() || role.per.is_some();
        if plan.open_loop.is_some() && (plan.roles.len() > 1 || paced) {
            let message =
                "--rate needs a single kind of worker, without 'every' and 'per'".to_owned();
            return Err(located(&plan.name, worker.line, message));
        }
    }
    if plan.open_loop.is_some() && plan.think.0 > 0 {
        refuse!("--rate and --think cannot be combined");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::InFlight;
    use crate::testing::check_error;

    fn of(text: MixText) -> Mix {
        Mix {
            text,
            ..Mix::default()
        }
    }

    fn plan(mix: &Mix, threads: Option<u32>) -> Result<MixPlan, String> {
        let common = Common {
            threads,
            ..Common::default()
        };
        resolve(mix, &common, 2).map_err(|error| error.0)
    }

    fn list(text: &str) -> Result<MixPlan, String> {
        plan(&of(MixText::List(text.to_owned())), None)
    }

    fn ops(text: &str) -> Mix {
        of(MixText::Ops(text.to_owned()))
    }

    /// A profile; without a text it is built in.
    fn profile(name: &str, text: Option<Result<&str, &str>>) -> Mix {
        of(MixText::Profile {
            name: name.to_owned(),
            text: text.map(|text| text.map(str::to_owned).map_err(str::to_owned)),
        })
    }

    #[test]
    fn opens_get_the_flags_that_their_steps_need() {
        let plan = list(
            "create, write whole, truncate 0, append 1k, close, create, write 4k, close, \
             open, read whole, append 1k, close, open, read 4k, close, open, write 4k, close",
        )
        .expect("a plan");
        let steps = plan.roles[0].steps.iter();
        let flags = steps.filter_map(|step| match step.verb {
            Verb::Create(flags) | Verb::Open(flags) => {
                Some((flags.reads(), flags.writes(), flags.has(linux::APPEND)))
            }
            _ => None,
        });
        let expect = [
            (false, true, true),
            (false, true, false),
            (true, true, true),
            (true, false, false),
            (false, true, false),
        ];
        assert_eq!(flags.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn operations_that_are_drawn_keep_their_dsync() {
        let mix = ops("create dsync=1,open dsync=1,create=1");
        let plan = plan(&mix, None).expect("a plan");
        let steps = plan.roles[0].steps.iter();
        let synced: Vec<bool> = steps.map(|step| step.verb.syncs()).collect();
        assert_eq!(synced, [true, true, false]);
    }

    #[test]
    fn lists_that_cannot_be_done_are_refused() {
        let check = |text: &str, part: &str| check_error(list(text), part);
        check("open, open, close", "one file of a set open at a time");
        check("read whole", "needs an open or create");
        check("open, read whole", "each open needs a close");
        check("open, append 4k, write 4k, close", "O_APPEND");
        check("open, write 4k, append 4k, close", "O_APPEND");
        check("open, write whole, append 4k, close", "O_APPEND");
        check("create, append 4k, write 4k, close", "O_APPEND");
        check("create, write 4k, append 4k, close", "O_APPEND");
        check("stat@nothing", "unknown set 'nothing'");
        check("open@dirs, close@dirs", "of directories");
        check("think 5ms", "no operation");
    }

    #[test]
    fn rows_are_those_of_the_kinds_of_steps_and_of_all() {
        let plan = list("2x (open, read whole, close), stat, mkdir, rmdir").expect("a plan");
        let rows = plan.roles[0].rows.iter();
        let names: Vec<&str> = rows.map(|row| row.name.as_str()).collect();
        assert_eq!(
            names.join(" "),
            "open read close stat mkdir rmdir all round"
        );
        assert_eq!(plan.sets[1].kind, SetKind::Directories);
        assert_eq!(plan.roles[0].row_of_closes(), 2);
    }

    #[test]
    fn every_built_in_profile_can_be_done() {
        for (name, text) in super::profile::BUILT_IN {
            let mix = profile(name, None);
            let whole = plan(&mix, None).unwrap_or_else(|error| panic!("{error}"));
            let read = super::profile::read(text).expect("it can be read");
            let threads: u32 = read.workers.iter().map(|worker| worker.threads).sum();
            assert_eq!(whole.threads(), threads, "{name}");
            let few = plan(&mix, Some(4)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(few.threads(), 4, "{name}");
        }
    }

    #[test]
    fn what_a_ring_does_not_perform_or_rounds_cannot_share_is_refused() {
        let with = |mix: Mix, depth| Mix {
            in_flight: InFlight {
                engine: Some("io_uring".to_owned()),
                depth: Some(depth),
            },
            ..mix
        };
        let able = "varmail fileserver webserver webproxy oltp videoserver openfiles database";
        let able: Vec<&str> = able.split(' ').collect();
        for (name, _) in super::profile::BUILT_IN {
            let got = plan(&with(profile(name, None), 4), None);
            assert_eq!(got.is_ok(), able.contains(name), "{name}: {got:?}");
        }
        let check = |mix: Mix, depth, expect: &str| {
            assert_eq!(plan(&with(mix, depth), None).expect_err(expect), expect);
        };
        let few = Mix {
            files: Some(15),
            ..ops("create=1,delete=1")
        };
        each! { check:
            ops("stat=1,list=1,chmod=1,list=2,readlink=1,access=1,utimes=1") => 1 =>
                "--ops: --engine io_uring does not perform list, chmod, readlink, access, utimes: use --engine sync";
            profile("git", None) => 1 =>
                "--profile git: line 30: --engine io_uring does not perform utimes: use --engine sync";
            few.clone() => 16 =>
                "--ops: the set 'files' has 15 names for 16 rounds in flight that change it: each needs its own name (--iodepth, --threads, --scale)";
        }
        assert!(plan(&with(few, 15), None).is_ok());
        let custom = |list: &str| {
            let text = format!(
                "[set.files]\nnumber = 50\n[set.log]\nnumber = 1\n[[worker]]\nfirst = \"open@log\"\nlist = \"{list}\"\n"
            );
            profile("mine.toml", Some(Ok(&text)))
        };
        for (list, word) in [
            ("stat, close@log, open@log", "close"),
            ("read whole@log, stat", "read"),
            ("write whole@log", "write"),
        ] {
            let why = "opened before the first round, and rounds in flight would share it: use --iodepth 1";
            let expect = format!(
                "--profile mine.toml: line 5: {word} in a round uses the file of the set 'log' that is {why}"
            );
            check(custom(list), 2, &expect);
            assert!(plan(&with(custom(list), 1), None).is_ok(), "{list}");
        }
        for shares in [
            "open, read whole, close, append 10@log, fsync@log, fstat@log",
            "write 10@log, read 10@log, truncate 0@log",
        ] {
            assert!(plan(&with(custom(shares), 8), None).is_ok());
        }
    }

    #[test]
    fn a_mix_that_cannot_be_done_is_refused_with_its_option_or_line() {
        let check = |mix: Mix, threads, part: &str| check_error(plan(&mix, threads), part);
        let mine = |text: &str| profile("mine.toml", Some(Ok(text)));
        let with = |files: u64, mix: Mix| Mix {
            files: Some(files),
            ..mix
        };
        let rated = Mix {
            rate: Some(10.0),
            ..profile("oltp", None)
        };
        each! { check:
            ops("stat") => None => "--ops: ";
            with(3, ops("create=1,unlink=1")) => Some(4) => "3 names for 4 workers";
            with(0, ops("stat=1")) => None => "--files must be";
            mine("x = 1\n") => None => "mine.toml: line 1: ";
            mine("[set.files]\nnumber = 5\n[[worker]]\nlist = \"open\"\n") => None =>
                "--profile mine.toml: line 3: ";
            profile("x.toml", Some(Err("gone"))) => None => "x.toml cannot be read: gone";
            rated => None => "--rate needs a single kind";
        }
    }
}
