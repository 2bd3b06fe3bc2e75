//! Checks mdtest's options and translates them into the metadata workload.
//!
//! docs/reference/mdtest.md describes the options. Sentences name mdtest's own
//! letters.

use std::path::PathBuf;

use rbench_core::units::counted;
use rbench_core::{Bytes, Nanos};

use super::{Facts, PlanError, check_path_length, in_flight};
use crate::meta::{
    Backend, Content, Hooks, ItemOwner, Layout, Location, Making, MetaPlan, PhaseKind, PhasePlan,
    Renaming, UNTIL_THE_DEADLINE,
};
use crate::spec::Mdtest;
use crate::tree::{MDTEST, Naming, PATH_MAX, Shape};

/// The numbers of ranks to run with, in order: `-f`, `-l`, `-s`.
///
/// # Errors
/// A sentence that names the option.
pub(super) fn counts(options: &Mdtest, ranks: u32) -> Result<Vec<u32>, PlanError> {
    let last = options.last.unwrap_or(ranks);
    let first = options
        .first
        .unwrap_or(if options.last.is_some() { last } else { ranks });
    let stride = options.task_stride.unwrap_or(1);
    for (flag, value) in [("-l", last), ("-f", first), ("-s", stride)] {
        refuse_if!(value == 0 => "{flag} must be at least 1");
    }
    refuse_if!(last > ranks => "-l {last} is more than the number of ranks that were started, {ranks}");
    if first > last {
        let limit = options
            .last
            .map_or("the ranks that were started".to_owned(), |l| {
                format!("-l {l}")
            });
        refuse!("-f {first} is more than {limit}");
    }
    Ok((first..=last).step_by(stride as usize).collect())
}

impl Mdtest {
    /// True if no phase was named, so that all run.
    fn all_phases(&self) -> bool {
        !(self.create || self.stat || self.read || self.remove || self.rename)
    }

    /// True if the run creates the items.
    pub fn creates(&self) -> bool {
        self.create || self.all_phases()
    }

    /// The file in which an earlier run recorded its number of items.
    pub fn status_to_read(&self) -> Option<&PathBuf> {
        self.status_file.as_ref().filter(|_| !self.creates())
    }

    /// The file in which this run records its number of items.
    pub fn status_to_write(&self) -> Option<&PathBuf> {
        let is_recorded = self.creates() && self.stonewall.is_some_and(|w| w.0 > 0);
        self.status_file.as_ref().filter(|_| is_recorded)
    }
}

/// Tree and items.
struct Extent {
    shape: Shape,
    loops: u64,
    per_rank: u64,
}

impl Extent {
    /// True if a tree of a rank has more than one item, as renaming needs.
    fn can_rename(&self) -> bool {
        self.per_rank / self.loops > 1
    }
}

pub(super) fn resolve(
    given: &Mdtest,
    facts: &Facts,
    notes: &mut Vec<String>,
) -> Result<MetaPlan, PlanError> {
    let ranks = facts.ranks();
    let options = &complete(given, notes)?;
    let items_made = made_before(options, facts, notes)?;
    let extent = extent(options, items_made, notes)?;
    // Rank 0 may have to count the items of all ranks.
    refuse_if! {
        extent.per_rank.checked_mul(u64::from(ranks)).is_none_or(|all| all > 1 << 62) =>
            "-n or -I give all ranks over 2^62 items";
    }
    refuse_if!(given.rename && !extent.can_rename() => "-U needs more than one item");
    // If only the default set asks for it, renaming is left out.
    if options.rename && !options.files_only && !extent.can_rename() && extent.per_rank > 0 {
        notes.push("renaming needs more than one item, and is left out".to_owned());
    }
    let dirs = dirs(options, ranks)?;
    let (write, read) = sizes(options)?;
    exclusions(options)?;
    let naming = Naming {
        common: options.shared.then_some("shared"),
        ..MDTEST
    };
    let longest = dirs.iter().map(|d| d.as_os_str().len()).max().unwrap_or(0);
    let prefix = "x".repeat(longest + "/test-dir.4294967295-18446744073709551615".len());
    check_path_length("-z", extent.shape, naming, &prefix, ranks)?;
    let layout = if options.unique_dir {
        Layout::Unique
    } else {
        Layout::Shared
    };
    let stated_shift = stride(options, facts);
    let stride = (stated_shift % u64::from(ranks)) as u32;
    let plan = MetaPlan {
        stated_shift,
        stated_random: options.random,
        loops: extent.loops,
        layout,
        tree_ahead: if options.unique_dir { stride } else { 0 },
        naming,
        site: Location::TestDirs(dirs),
        backend: options.backend,
        in_flight: in_flight::of(&options.in_flight)?,
        phases: phases(options, &extent, stride, ranks),
        barriers: !options.no_barriers,
        making: if options.mknod {
            Making::Node
        } else {
            Making::Open
        },
        renaming: Renaming::Chain,
        content: Content::Packet {
            packet: options.packet.unwrap_or_default(),
            seed: data_seed(options).unwrap_or(facts.seed as u32 as i32),
        },
        write,
        read,
        fsync: options.fsync && write.0 > 0,
        direct: options.direct,
        verify_read: options.verify_read,
        verify_write: options.verify_write,
        around: Hooks {
            before: options.before.clone(),
            sync: options.sync,
            after: options.after.clone(),
            pause: options.pause.unwrap_or_default(),
        },
        made: items_made,
        failures_end_the_run: options.warnings_are_errors,
        ..MetaPlan::bare(extent.shape, extent.per_rank)
    };
    in_flight::check(&plan)?;
    Ok(plan)
}

/// `-G`; -1 means none in mdtest.
fn data_seed(options: &Mdtest) -> Option<i32> {
    options.data_seed.filter(|seed| *seed != -1)
}

/// The options with all phases where none is named, and with -F where -S implies it.
fn complete(options: &Mdtest, notes: &mut Vec<String>) -> Result<Mdtest, PlanError> {
    refuse_if! {
        options.files_only && options.dirs_only => "-F and -D cannot be combined";
        options.shared && options.dirs_only => "-S shares files: it cannot be combined with -D";
        options.rename && options.files_only =>
            "-U renames directories: it cannot be combined with -F";
    }
    if options.shared && !options.files_only {
        notes.push("-S works on files only: directories are left out".to_owned());
    }
    let all = options.all_phases();
    Ok(Mdtest {
        create: options.create || all,
        stat: options.stat || all,
        read: options.read || all,
        remove: options.remove || all,
        rename: options.rename || all,
        files_only: options.files_only || options.shared,
        ..options.clone()
    })
}

/// The number of items in the file of `-x`.
fn made_before(
    options: &Mdtest,
    facts: &Facts,
    notes: &mut Vec<String>,
) -> Result<Option<u64>, PlanError> {
    let Some(file) = options.status_to_read() else {
        return Ok(None);
    };
    let sized = options.items.is_some() || options.items_per_dir.is_some();
    match facts.stonewalled {
        Some(0) => refuse!("-x {}: it records no items", file.display()),
        Some(items) => Ok(Some(items)),
        None if sized => {
            notes.push(format!(
                "-x {} does not exist: -n or -I gives the number of items",
                file.display()
            ));
            Ok(None)
        }
        None => refuse!(
            "-x {} does not exist: give the number of items with -n or -I",
            file.display()
        ),
    }
}

fn extent(
    options: &Mdtest,
    made: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Extent, PlanError> {
    let branch = options.branch.unwrap_or(1);
    refuse_if!(branch == 0 => "-b must be at least 1");
    let mut shape = Shape {
        branch,
        depth: options.depth.unwrap_or(0),
        items_per_node: 0,
        leaf_only: options.leaf_only,
    };
    let too_large = |shape: &Shape| {
        let depth = shape.depth;
        PlanError(format!(
            "-b {branch} -z {depth} is a tree of over 2^62 items"
        ))
    };
    shape.nodes().ok_or_else(|| too_large(&shape))?;
    let places = shape.places();
    let items = options.items.filter(|n| *n > 0);
    let per_dir = options.items_per_dir.filter(|n| *n > 0);
    let mut loops = 1;
    shape.items_per_node = match (items, per_dir) {
        (Some(_), Some(_)) if options.unique_dir => refuse!("-n, -I and -u cannot be combined"),
        (Some(n), Some(each)) if !n.is_multiple_of(each) => {
            refuse!("-n {n} is not a multiple of -I {each}")
        }
        (Some(n), Some(each)) => {
            loops = n / each;
            each
        }
        (Some(n), None) if n < places => {
            refuse!("-n {n} is less than one item for each of the {places} tree directories")
        }
        (Some(n), None) => {
            let each = n / places;
            if each * places != n {
                notes.push(format!(
                    "-n {n} does not divide evenly over {places} tree directories: each rank gets {}",
                    each * places
                ));
            }
            each
        }
        (None, Some(each)) => each,
        (None, None) => open_ended(options, made, (places, notes))?,
    };
    let per_rank = shape
        .items()
        .and_then(|items| items.checked_mul(loops))
        .filter(|items| *items <= 1 << 62)
        .ok_or_else(|| {
            let flag = if per_dir.is_some() { "-I" } else { "-n" };
            PlanError(format!(
                "{flag} and the tree give each rank over 2^62 items"
            ))
        })?;
    Ok(Extent {
        shape,
        loops,
        per_rank,
    })
}

/// Items of each tree directory without -n and -I.
fn open_ended(
    options: &Mdtest,
    made: Option<u64>,
    (places, notes): (u64, &mut Vec<String>),
) -> Result<u64, PlanError> {
    let until_the_deadline = options.create && options.stonewall.is_some_and(|w| w.0 > 0);
    match (made, until_the_deadline) {
        (None, false) => Ok(0),
        (None, true) if !options.files_only => {
            notes.push(
                "neither -n nor -I: only the tree is tested, as in mdtest; with -F files \
                 are created until -W ends the phase"
                    .to_owned(),
            );
            Ok(0)
        }
        _ if !options.files_only => {
            refuse!("-x does not record the number of directories: add -F, or give -n or -I")
        }
        _ if places > 1 => {
            refuse!("-z needs the number of items: give -n or -I")
        }
        (Some(made), _) => Ok(made),
        (None, true) => Ok(UNTIL_THE_DEADLINE),
    }
}

fn dirs(options: &Mdtest, ranks: u32) -> Result<Vec<PathBuf>, PlanError> {
    let dirs = if options.dirs.is_empty() {
        vec![PathBuf::from("./out")]
    } else {
        options.dirs.clone()
    };
    if let Some(bad) = dirs.iter().find(|d| d.to_str().is_none_or(str::is_empty)) {
        refuse!("-d '{}' is not a directory name", bad.display());
    }
    // The paths below it need this room.
    if let Some(long) = dirs.iter().find(|d| d.as_os_str().len() > PATH_MAX - 512) {
        refuse!(
            "-d names a directory with a path of {} bytes, too long for the paths of the tree",
            long.as_os_str().len()
        );
    }
    if dirs.len() > 1 {
        refuse_if! {
            !options.unique_dir => "-d with several directories needs -u";
            dirs.len() > ranks as usize =>
                "-d names {} directories, but there is only {}", dirs.len(), counted(ranks.into(), "rank");
            options.stride.unwrap_or(0) > 0 =>
                "-d with several directories and -N cannot be combined";
        }
    }
    Ok(dirs)
}

fn sizes(options: &Mdtest) -> Result<(Bytes, Bytes), PlanError> {
    let write = options.write_bytes.unwrap_or_default();
    let read = options.read_bytes.unwrap_or_default();
    for (flag, size) in [("-w", write), ("-e", read)] {
        refuse_if! {
            size.0 > 1 << 30 => "{flag} {size} is more than the 1GiB that one call moves";
            options.direct && !size.0.is_multiple_of(512) =>
                "--posix.odirect needs {flag} to be a multiple of 512, and {} is not", size.0;
        }
    }
    refuse_if! {
        read > write && options.create && options.read && !options.dirs_only =>
            "-e {} is more than the {} bytes that -w writes", read.0, write.0;
        options.verify_read && !(options.read && !options.dirs_only && read.0 > 0) =>
            "-X needs the read phase of files and -e";
        options.verify_read && options.backend == Backend::Dummy =>
            "-a DUMMY and -X cannot be combined: DUMMY reads no data to check";
        options.verify_read && !options.create && data_seed(options).is_none() =>
            "-X on files of an earlier run needs its -G";
        options.verify_write && write.0 == 0 => "--verify-write needs -w";
        options.mknod && write.0 > 0 => "-k and -w cannot be combined";
    }
    Ok((write, read))
}

fn exclusions(options: &Mdtest) -> Result<(), PlanError> {
    refuse_if! {
        options.shared && options.unique_dir => "-S and -u cannot be combined";
        options.shared && options.collective => "-S and -c cannot be combined";
        options.no_barriers && options.collective =>
            "-B and -c cannot be combined: the other ranks must wait for the items that rank 0 creates";
        options.no_barriers && options.stonewall.is_some_and(|w| w.0 > 0) =>
            "-B and -W cannot be combined: the ranks must synchronise at the stonewall";
        options.collective && options.stonewall.is_some_and(|w| w.0 > 0) =>
            "-c and -W cannot be combined: only one rank creates";
    }
    Ok(())
}

/// `-N` in ranks: multiplied by the ranks of a node if ranks are placed node by node.
fn stride(options: &Mdtest, facts: &Facts) -> u64 {
    let by_block = facts.on_first_host().filter(|_| facts.hosts() > 1);
    u64::from(options.stride.unwrap_or(0)) * u64::from(by_block.unwrap_or(1))
}

/// The phases in mdtest's order, each with its multiple of the stride.
fn phases(options: &Mdtest, extent: &Extent, stride: u32, ranks: u32) -> Vec<PhasePlan> {
    let ahead = |times: u32| ItemOwner::Each {
        ahead: (u64::from(stride) * u64::from(times) % u64::from(ranks)) as u32,
    };
    let by_one = |otherwise: ItemOwner| {
        if options.collective {
            ItemOwner::FirstForAll
        } else {
            otherwise
        }
    };
    let of_the_tree = if options.unique_dir {
        // The items of rank r lie in the tree of rank r + stride: rank r creates the
        // tree of that number.
        by_one(ItemOwner::Each {
            ahead: (ranks - stride) % ranks,
        })
    } else {
        ItemOwner::First
    };
    let removal = if options.shared {
        ItemOwner::First
    } else {
        by_one(ahead(3))
    };
    let items = extent.per_rank > 0;
    let (dirs, files) = (items && !options.files_only, items && !options.dirs_only);
    let rename = dirs && options.rename && extent.can_rename();
    let creation = by_one(ahead(0));
    let wanted = [
        (options.create, PhaseKind::TreeCreate, of_the_tree),
        (dirs && options.create, PhaseKind::DirCreate, creation),
        (dirs && options.stat, PhaseKind::DirStat, ahead(1)),
        (rename, PhaseKind::DirRename, ahead(1)),
        (dirs && options.remove, PhaseKind::DirRemove, removal),
        (files && options.create, PhaseKind::FileCreate, creation),
        // Files that rank 0 has created for all.
        (
            files && options.create && options.collective,
            PhaseKind::FileWrite,
            ahead(0),
        ),
        (files && options.stat, PhaseKind::FileStat, ahead(1)),
        (files && options.read, PhaseKind::FileRead, ahead(2)),
        (files && options.remove, PhaseKind::FileRemove, removal),
        (options.remove, PhaseKind::TreeRemove, of_the_tree),
    ];
    wanted
        .into_iter()
        .filter(|(run, _, _)| *run)
        .map(|(_, kind, who)| PhasePlan {
            shuffled: options.random
                && matches!(kind.info().name, "dir-stat" | "file-stat" | "file-read"),
            deadline: options
                .stonewall
                .filter(|w: &Nanos| w.0 > 0 && kind == PhaseKind::FileCreate),
            ..PhasePlan::new(kind, who)
        })
        .collect()
}

#[cfg(test)]
mod tests;
