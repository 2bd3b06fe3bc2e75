//! Check that a run's writes fit, before anything is created. Only a run that cannot fit is
//! refused: certain writes, in data that no file system compresses, against the free space. A run
//! near the limit gets a warning.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rbench_core::units::{human_bytes, human_count};
use rbench_plan::Plan;
use rbench_plan::demand::{Demand, demand};
use rbench_sys::standing::{Standing, standing};
use rbench_sys::{MountInfo, Space};

use crate::group::{ExecError, Group, Ranks};
use crate::spots::Spot;
use crate::target::gather_texts;

/// A remote file system that reports at least this many bytes is unlimited: object stores report
/// such numbers.
const NO_BOUND: u64 = 1 << 50;

/// Tenths of the free space above which a run is near the limit.
const EDGE_TENTHS: u64 = 9;

/// Demand of a run in each directory at a moment.
pub(crate) type Moment = Vec<(PathBuf, Demand)>;

/// Demands of a run, moment after moment. With `false` it accesses no file and returns the upper
/// bound; with `true` it subtracts existing files. `None`: nothing is certain.
pub(crate) type Demands = Box<dyn Fn(bool) -> Option<Vec<Moment>> + Send>;

/// Returns the demands that follow from the plan alone, in directories each with the ranks that
/// fill it.
pub(crate) fn of_plan(plan: &Plan, spots: Vec<(PathBuf, Vec<u32>)>) -> Demands {
    let of = |(dir, ranks): (PathBuf, Vec<u32>)| (dir, demand(plan, ranks.len() as u32));
    let moments: Vec<Moment> = vec![spots.into_iter().map(of).collect()];
    Box::new(move |_| Some(moments.clone()))
}

/// Checks the room of the spots that this rank judges: all in the file systems that its host sees.
/// `size` is the option that sets the amount of data. Returns warnings, at rank 0.
///
/// # Errors
/// One sentence, the same on every rank, when it cannot fit.
pub(crate) async fn check(
    group: &Group<'_>,
    demands: Option<Demands>,
    size: Option<&'static str>,
) -> Result<Vec<String>, ExecError> {
    let root = nix::unistd::geteuid().is_root();
    let judged = group.agree_on_target(move || match demands {
        Some(demands) => judge(&demands, root, size),
        None => Ok(Vec::new()),
    });
    let warnings = judged.await?;
    gather_texts(group, warnings).await
}

/// Returns the spots that this rank judges, with the ranks that fill them: one host judges for all
/// that see the same, otherwise each host its own.
pub(crate) fn judged_here(
    ranks: &Ranks<'_>,
    private_dirs: bool,
    spots: &[Spot],
) -> Vec<(PathBuf, Vec<u32>)> {
    if !ranks.is_leader() {
        return Vec::new();
    }
    let host = |rank: u32| ranks.host_of[rank as usize];
    let me = ranks.host_number();
    let of = |spot: &Spot| {
        let ranks: Vec<u32> = if private_dirs {
            let all = spot.ranks.iter().copied();
            all.filter(|rank| host(*rank) == me).collect()
        } else if spot.ranks.iter().copied().map(host).min() == Some(me) {
            spot.ranks.clone()
        } else {
            Vec::new()
        };
        (!ranks.is_empty()).then(|| (spot.path.clone(), ranks))
    };
    spots.iter().filter_map(of).collect()
}

fn judge(demands: &Demands, root: bool, size: Option<&str>) -> Result<Vec<String>, String> {
    // Files are only inspected if it matters.
    for looks in [false, true] {
        let Some(moments) = demands(looks) else {
            return Ok(Vec::new());
        };
        let judged = moments.iter().try_fold(Vec::new(), |mut all, moment| {
            all.extend(judge_moment(moment, root, size)?);
            Ok(all)
        });
        match judged {
            Ok(warnings) if warnings.is_empty() => break,
            Ok(mut warnings) if looks => {
                warnings.dedup();
                return Ok(warnings);
            }
            Err(refused) if looks => return Err(refused),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(Vec::new())
}

/// Compares the demands with their file systems. Returns warnings.
fn judge_moment(
    moment: &[(PathBuf, Demand)],
    root: bool,
    size: Option<&str>,
) -> Result<Vec<String>, String> {
    let mut by_device: BTreeMap<u64, (&Path, Standing, Demand)> = BTreeMap::new();
    for (path, demand) in moment {
        // A missing path is reported later.
        let Ok(found) = standing(path) else {
            continue;
        };
        by_device
            .entry(found.device)
            .and_modify(|(_, _, sum)| *sum = sum.and(*demand))
            .or_insert((path, found, *demand));
    }
    let mut warnings = Vec::new();
    for (path, found, demand) in by_device.into_values() {
        if let Some(space) = found.space {
            let room = Room::of(&space, found.mount.as_ref(), root);
            warnings.extend(room.judge(path, &demand, size)?);
        }
    }
    Ok(warnings)
}

/// Free space; `None` if the file system does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    /// Upper bound of bytes and inodes for this user.
    bytes: Option<u64>,
    inodes: Option<u64>,
    /// Bytes available to everybody.
    bytes_for_all: Option<u64>,
    inodes_for_all: Option<u64>,
    /// Set if data takes its length whatever its content.
    as_it_is: bool,
}

impl Room {
    fn of(space: &Space, mount: Option<&MountInfo>, root: bool) -> Room {
        let remote = mount.is_none_or(MountInfo::may_be_remote);
        let told = |total: u64, free: u64, bound: u64| {
            let nominal = remote && (total >= bound || free == 0);
            (total > 0 && free <= total && !nominal).then_some(free)
        };
        let bytes = |free| told(space.bytes_total, free, NO_BOUND);
        let inodes = |free| told(space.inodes_total, free, u64::MAX);
        let (most_bytes, most_inodes) = match root {
            true => (space.bytes_free, space.inodes_free),
            false => (space.bytes_available, space.inodes_available),
        };
        Room {
            bytes: bytes(most_bytes),
            inodes: inodes(most_inodes),
            bytes_for_all: bytes(space.bytes_available),
            inodes_for_all: inodes(space.inodes_available),
            as_it_is: mount.is_some_and(MountInfo::stores_as_it_is),
        }
    }

    /// Returns a warning near the limit.
    ///
    /// # Errors
    /// A sentence if it cannot fit.
    fn judge(
        &self,
        path: &Path,
        demand: &Demand,
        size: Option<&str>,
    ) -> Result<Option<String>, String> {
        let path = path.display();
        let sure = match self.as_it_is {
            true => demand.plain_bytes,
            false => demand.bytes,
        };
        if let Some(free) = self.bytes.filter(|free| sure > *free) {
            return Err(format!(
                "the run writes {} at {path}, where only {} is free: write less{}, or use --overfill",
                human_bytes(sure),
                human_bytes(free),
                size.map_or_else(String::new, |option| format!(" ({option})")),
            ));
        }
        if let Some(free) = self.inodes.filter(|free| demand.inodes > *free) {
            return Err(format!(
                "the run creates {} files and directories at {path}, where only {} inodes are free: \
                 create fewer, or use --overfill",
                human_count(demand.inodes),
                human_count(free)
            ));
        }
        let near = |needed: u64, free: u64| needed / EDGE_TENTHS > free / 10;
        let bytes = self
            .bytes_for_all
            .filter(|f| near(demand.bytes_at_most, *f));
        let inodes = self.inodes_for_all.filter(|f| near(demand.inodes, *f));
        Ok(match (bytes, inodes) {
            (Some(free), _) => Some(format!(
                "The target may become full: the run writes up to {} at {path}, where {} was free. Nearly \
                 full file systems are slower.",
                human_bytes(demand.bytes_at_most),
                human_bytes(free)
            )),
            (None, Some(free)) => Some(format!(
                "The target may run out of inodes: the run creates {} files and directories at {path}, where \
                 {} inodes were free.",
                human_count(demand.inodes),
                human_count(free)
            )),
            (None, None) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn space(bytes: (u64, u64, u64), inodes: (u64, u64)) -> Space {
        Space {
            bytes_total: bytes.0,
            bytes_free: bytes.1,
            inodes_total: inodes.0,
            inodes_free: inodes.1,
            bytes_available: bytes.2,
            inodes_available: inodes.1,
        }
    }

    fn mount(fs_type: &str) -> MountInfo {
        MountInfo {
            fs_type: fs_type.to_owned(),
            source: String::new(),
            options: Vec::new(),
            mount_point: PathBuf::from("/"),
        }
    }

    fn check(space: Space, fs_type: &str, root: bool, demand: Demand, expect: &str) {
        let room = Room::of(&space, Some(&mount(fs_type)), root);
        let judged = match room.judge(Path::new("/mnt"), &demand, Some("--size")) {
            Err(refused) => refused,
            Ok(warning) => warning.unwrap_or_default(),
        };
        match expect {
            "" => assert_eq!(judged, ""),
            words => assert!(judged.contains(words), "{judged}"),
        }
    }

    fn writes(bytes: u64) -> Demand {
        Demand {
            bytes,
            plain_bytes: bytes,
            bytes_at_most: bytes,
            inodes: 1,
        }
    }

    #[test]
    fn only_what_cannot_fit_is_refused() {
        let disk = space((10 * GIB, 2 * GIB, GIB), (1000, 500));
        let refused = "the run writes 1.50 GiB at /mnt, where only 1.00 GiB is free: write less (--size), or use --overfill";
        check(disk, "ext4", false, writes(GIB + GIB / 2), refused);
        // The reserve for root is available to root.
        check(disk, "ext4", true, writes(GIB + GIB / 2), "may become full");
        check(
            disk,
            "ext4",
            true,
            writes(2 * GIB + 1),
            "where only 2.00 GiB is free",
        );
        check(disk, "ext4", false, writes(GIB / 2), "");
        check(
            disk,
            "ext4",
            false,
            writes(GIB / 100 * 91),
            "up to 932 MiB at /mnt",
        );
        let many = Demand {
            inodes: 501,
            ..Demand::default()
        };
        check(
            disk,
            "ext4",
            false,
            many,
            "creates 501 files and directories at /mnt, where only 500 inodes",
        );
        let fewer = Demand {
            inodes: 480,
            ..many
        };
        check(disk, "ext4", false, fewer, "out of inodes");
    }

    #[test]
    fn data_that_may_take_less_than_its_length_is_only_warned_of() {
        let disk = space((10 * GIB, GIB, GIB), (0, 0));
        let shrinks = Demand {
            bytes: 0,
            ..writes(5 * GIB)
        };
        check(disk, "btrfs", false, shrinks, "may become full");
        check(disk, "ext4", false, shrinks, "the run writes 5.00 GiB");
        let perhaps = Demand {
            bytes: 0,
            plain_bytes: 0,
            ..writes(5 * GIB)
        };
        check(disk, "ext4", false, perhaps, "may become full");
    }

    #[test]
    fn numbers_that_mean_nothing_are_told_apart() {
        let huge = writes(1 << 52);
        for (space, fs_type) in [
            (space((0, 0, 0), (0, 0)), "fuse.s3fs"),
            (space((1 << 50, 1 << 50, 1 << 50), (0, 0)), "fuse.juicefs"),
            (space((u64::MAX, u64::MAX, u64::MAX), (0, 0)), "fuse.rclone"),
            // Used inodes only.
            (space((0, 0, 0), (7, 0)), "ceph"),
            (space((GIB, 2 * GIB, 2 * GIB), (0, 0)), "fuse.odd"),
        ] {
            check(space, fs_type, false, huge, "");
        }
        // Disks report true sizes.
        let large = space((1 << 51, 1 << 51, 1 << 51), (0, 0));
        check(large, "xfs", false, huge, "the run writes 4096 TiB");
        let full = space((GIB, 0, 0), (10, 10));
        check(full, "ext4", true, writes(1), "where only 0 B is free");
    }
}
