//! The directories that a run works in, as each host sees them. Hosts whose file system differs
//! from the others' are found before anything is created.
//!
//! Two properties are compared. First the type of the file system, by the kernel of each host,
//! without any request. Then whether all hosts see the same directory: one of them creates an empty
//! directory there, the others look for it, and it is removed again. Sources are shown but not
//! compared: the same server may be mounted by several names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rbench_core::{Clock as _, MonotonicClock, Nanos};
use rbench_sys::standing::{Standing, file_length, standing};
use rbench_sys::surroundings::without_credentials;
use rbench_sys::{MountInfo, testdir};
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group, Ranks};
use crate::target::SEEN_WITHIN;

/// Maximum number of hosts in a sentence.
const MOST_NAMES: usize = 4;

/// A directory that a run works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The directory, absolute.
    pub path: PathBuf,
    /// Set if the run creates it if missing.
    pub makes: bool,
    /// A file in it that is only read: if it exists, nothing is created to compare the hosts.
    pub witness: Option<PathBuf>,
    /// The ranks that work in it.
    pub ranks: Vec<u32>,
}

/// View of one host on a spot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Has {
    host: u32,
    /// The existing directory: itself or, if the run creates it, its parent. `None`: neither
    /// exists.
    at: Option<OsString>,
    mount: Option<MountInfo>,
    witness: Option<u64>,
}

impl Has {
    fn look(spot: &Spot, host: u32) -> Has {
        let found = standing(&spot.path).ok();
        let near = |found: &Standing| {
            let above = spot.makes && spot.path.parent() == Some(&found.at);
            found.at == spot.path || above
        };
        let at = found.as_ref().filter(|f| near(f)).map(|f| f.at.clone());
        // Options are not compared, and may be long.
        let short = |mount| MountInfo {
            options: Vec::new(),
            ..mount
        };
        Has {
            host,
            at: at.map(PathBuf::into_os_string),
            witness: spot.witness.as_deref().and_then(file_length),
            mount: found.and_then(|found| found.mount).map(short),
        }
    }

    /// `ext4 (/dev/vda)`
    fn words(&self) -> String {
        match (&self.at, &self.mount) {
            (None, Some(_)) => "nothing".to_owned(),
            (None, None) => "a file system that does not answer".to_owned(),
            (_, None) => "an unknown file system".to_owned(),
            (_, Some(mount)) => {
                format!("{} ({})", mount.fs_type, without_credentials(&mount.source))
            }
        }
    }

    /// Returns whether both may be the same, judged by type.
    fn is_like(&self, other: &Has) -> bool {
        match (&self.mount, &other.mount) {
            _ if self.at.is_some() != other.at.is_some() => false,
            (Some(a), Some(b)) => a.is_of_the_type_of(b),
            // Unknown values count as equal.
            _ => true,
        }
    }

    fn may_be_remote(&self) -> bool {
        let remote = self.mount.as_ref().is_some_and(MountInfo::may_be_remote);
        self.at.is_some() && remote
    }
}

/// Finds hosts whose file system differs from the others'. On several hosts only.
///
/// # Errors
/// One sentence that names the hosts, the same on every rank; the files created for the
/// comparison are removed.
pub(crate) async fn compare(
    group: &Group<'_>,
    spots: &[Spot],
    name: &str,
) -> Result<(), ExecError> {
    let hosts = |spot: &&Spot| Spot::hosts(spot, group).len() > 1;
    let spots: Vec<Spot> = spots.iter().filter(hosts).cloned().collect();
    if spots.is_empty() {
        return Ok(());
    }
    group.step("comparing the hosts' file systems");
    let me = group.host_number();
    let mine = looks_at(group, &spots);
    let facts = group.agree_on_target(move || {
        let look = |(k, spot): &(usize, Spot)| (*k, Has::look(spot, me));
        Ok(mine.iter().map(look).collect::<Vec<_>>())
    });
    let facts = facts.await?;
    let all = gather(group, &facts, spots.len()).await?;
    let refused = all.as_ref().and_then(|all| unlike(group, &spots, all));
    verdict(group, refused).await?;

    let marks = marks(&spots, all.as_deref(), name);
    let marks = group.broadcast(&marks).await?;
    // Local file systems show new entries at once.
    let waits = facts.iter().any(|(_, has)| has.may_be_remote());
    let within = if waits { SEEN_WITHIN } else { Nanos(0) };
    let unseen = seek(group, &spots, &marks, within).await?;
    let seen = gather_unseen(group, unseen).await?;
    let refused = all.and_then(|all| unseen_by(group, &spots, &all, &seen));
    verdict(group, refused).await
}

impl Spot {
    /// Creates the spot of an existing directory in which all ranks of a run work.
    pub fn of_all(path: PathBuf, ranks: u32) -> Spot {
        Spot {
            path,
            makes: false,
            witness: None,
            ranks: (0..ranks).collect(),
        }
    }

    /// Returns whether something is created in it: not if an existing file is only read.
    pub fn makes_something(&self) -> bool {
        let read_only = self.witness.as_deref().and_then(file_length);
        read_only.is_none()
    }

    /// Returns the hosts that work in it, ascending.
    pub fn hosts(&self, ranks: &Ranks<'_>) -> Vec<u32> {
        let hosts = self.ranks.iter();
        let mut hosts: Vec<u32> = hosts.map(|rank| ranks.host_of[*rank as usize]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

/// Returns the spots that this rank inspects for its host, with their numbers.
pub(crate) fn looks_at(ranks: &Ranks<'_>, spots: &[Spot]) -> Vec<(usize, Spot)> {
    let me = ranks.host_number();
    let mine = |spot: &Spot| ranks.is_leader() && spot.hosts(ranks).contains(&me);
    let spots = spots.iter().cloned().enumerate();
    spots.filter(|(_, spot)| mine(spot)).collect()
}

/// Gathers the hosts' views of each spot, at rank 0.
async fn gather(
    group: &Group<'_>,
    facts: &[(usize, Has)],
    spots: usize,
) -> Result<Option<Vec<Vec<Has>>>, ExecError> {
    let all = group.world.gather_values(&facts.to_vec());
    let Some(all) = group.quietly(all).await? else {
        return Ok(None);
    };
    let mut found = vec![Vec::new(); spots];
    for (k, has) in all.into_iter().flatten() {
        if let Some(found) = found.get_mut(k) {
            found.push(has);
        }
    }
    Ok(Some(found))
}

/// Distributes rank 0's refusal to every rank.
async fn verdict(group: &Group<'_>, refused: Option<String>) -> Result<(), ExecError> {
    let refused = group.broadcast(&refused).await?;
    refused.map_or(Ok(()), |text| Err(ExecError::SetUp(text)))
}

/// Describes hosts that have another type of file system than the others.
fn unlike(ranks: &Ranks<'_>, spots: &[Spot], all: &[Vec<Has>]) -> Option<String> {
    spots
        .iter()
        .zip(all)
        .find_map(|(spot, all)| unlike_at(&ranks.host_names, spot, all))
}

fn unlike_at(names: &[String], spot: &Spot, all: &[Has]) -> Option<String> {
    let mut kinds: Vec<Vec<&Has>> = Vec::new();
    for has in all {
        match kinds.iter_mut().find(|kind| kind[0].is_like(has)) {
            Some(kind) => kind.push(has),
            None => kinds.push(vec![has]),
        }
    }
    if kinds.len() < 2 {
        return None;
    }
    // A remote mount is the intended one.
    let worth = |kind: &Vec<&Has>| (kind[0].may_be_remote(), kind[0].at.is_some(), kind.len());
    let best = kinds.iter().map(worth).max()?;
    let meant = kinds.iter().position(|kind| worth(kind) == best)?;
    let meant = kinds.remove(meant);
    let odd: Vec<String> = kinds
        .iter()
        .map(|kind| {
            let have = if kind.len() == 1 { "has" } else { "have" };
            format!("{} {have} {}", named(names, kind), kind[0].words())
        })
        .collect();
    let others = match meant.len() {
        1 => named(names, &meant),
        _ => "the others".to_owned(),
    };
    Some(format!(
        "{} at {}, {others} {}: mount it there, or use --private-dirs",
        odd.join(", "),
        spot.path.display(),
        meant[0].words()
    ))
}

/// `client1, client2 and client3`
fn named(names: &[String], all: &[&Has]) -> String {
    let of = |has: &&Has| names.get(has.host as usize).cloned().unwrap_or_default();
    let mut words: Vec<String> = all.iter().take(MOST_NAMES).map(of).collect();
    if all.len() > MOST_NAMES {
        words.push(format!("{} others", all.len() - MOST_NAMES));
    }
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// Returns the mark of the first host that the others look for, for each spot; `None` where nothing
/// is to be created.
fn marks(spots: &[Spot], all: Option<&[Vec<Has>]>, name: &str) -> Vec<Option<OsString>> {
    let mark = |(spot, all): (&Spot, &Vec<Has>)| {
        let first = all.iter().min_by_key(|has| has.host)?;
        let none = spot.witness.is_some() && first.witness.is_some();
        let at = first.at.as_ref().filter(|_| !none)?;
        Some(Path::new(at).join(format!(".{name}.seen")).into_os_string())
    };
    let all = spots.iter().zip(all.unwrap_or_default());
    all.map(mark).collect()
}

/// Creates the marks, looks for those of others, and removes them; returns the spots where this
/// host does not see another's mark.
async fn seek(
    group: &Group<'_>,
    spots: &[Spot],
    marks: &[Option<OsString>],
    within: Nanos,
) -> Result<Vec<usize>, ExecError> {
    let me = group.host_number();
    let first = |spot: &Spot| spot.hosts(group).first() == Some(&me);
    let looks = looks_at(group, spots);
    let mark = |k: usize| marks.get(k)?.clone().map(PathBuf::from);
    let of = |mine: bool| {
        let looks = looks.iter().filter(move |(_, spot)| first(spot) == mine);
        looks.filter_map(|(k, _)| Some((*k, mark(*k)?)))
    };
    let (own, others): (Vec<_>, Vec<_>) = (of(true).collect(), of(false).collect());
    let made = group.agree_on_target(move || {
        // If nothing can be created, the types decide.
        let make = |(k, mark): &(usize, PathBuf)| Some((*k, testdir::make(mark).ok()?));
        let made: Vec<usize> = own.iter().filter_map(make).map(|(k, _)| k).collect();
        Ok((made, own))
    });
    let (made, own) = made.await?;
    let mut is_made = vec![0_u64; spots.len()];
    made.iter().for_each(|k| is_made[*k] = 1);
    let is_made = group.largest(is_made).await?;
    let sought = others.into_iter().filter(|(k, _)| is_made[*k] == 1);
    let sought = sought.collect();
    let unseen = group.agree_on_target(move || Ok(look_for(sought, within)));
    let unseen = unseen.await?;
    // Marks stay until all have looked.
    group.meet().await?;
    let removed = group.agree_on_target(move || {
        let own = own.iter().filter(|(k, _)| made.contains(k));
        let failed = |(_, mark): &(usize, PathBuf)| testdir::remove_empty(mark).err();
        own.filter_map(failed)
            .next()
            .map_or(Ok(()), |e| Err(e.to_string()))
    });
    removed.await?;
    Ok(unseen)
}

/// Returns the numbers of others' marks that this host does not see in this time: some clients keep
/// a listing for a while.
fn look_for(mut sought: Vec<(usize, PathBuf)>, within: Nanos) -> Vec<usize> {
    let begun = MonotonicClock.now();
    loop {
        sought.retain(|(_, mark)| !testdir::is_there(mark).unwrap_or(false));
        if sought.is_empty() || MonotonicClock.now().since(begun) >= within {
            return sought.into_iter().map(|(k, _)| k).collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Gathers (spot, host) of all unseen marks, at rank 0.
async fn gather_unseen(
    group: &Group<'_>,
    unseen: Vec<usize>,
) -> Result<Vec<(usize, u32)>, ExecError> {
    let all = group.gather(&unseen).await?;
    let mut found = Vec::new();
    for (unseen, host) in all.into_iter().zip(&group.host_of) {
        found.extend(unseen.into_iter().map(|k| (k, *host)));
    }
    Ok(found)
}

/// Describes hosts that do not see another host's directory.
fn unseen_by(
    ranks: &Ranks<'_>,
    spots: &[Spot],
    all: &[Vec<Has>],
    unseen: &[(usize, u32)],
) -> Option<String> {
    let spots = spots.iter().zip(all).enumerate();
    spots.into_iter().find_map(|(k, (spot, all))| {
        let first = all.iter().min_by_key(|has| has.host)?;
        let differs = |has: &&Has| {
            let told = first.witness.is_some() && has.witness != first.witness;
            told || unseen.contains(&(k, has.host))
        };
        let blind: Vec<&Has> = all.iter().filter(differs).collect();
        let one = blind.first()?;
        let (names, path) = (&ranks.host_names, spot.path.display());
        let (does, they) = match blind.len() {
            1 => ("does", "it has"),
            _ => ("do", "they have"),
        };
        Some(format!(
            "{0} {does} not see {1}'s {path}: {they} {2} there, {1} {3}: mount the same file system on all \
             hosts, or use --private-dirs",
            named(names, &blind),
            named(names, &[first]),
            one.words(),
            first.words(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(host: u32, fs_type: &str, source: &str) -> Has {
        Has {
            host,
            at: (!fs_type.is_empty()).then(|| "/mnt/mfs".into()),
            mount: Some(MountInfo {
                fs_type: fs_type.to_owned(),
                source: source.to_owned(),
                options: Vec::new(),
                mount_point: PathBuf::new(),
            }),
            witness: None,
        }
    }

    fn check(all: &[(&str, &str)], expect: Option<&str>) {
        let names: Vec<String> = (1..9).map(|n| format!("client{n}")).collect();
        let spot = Spot::of_all(PathBuf::from("/mnt/mfs"), 0);
        let all = (0..).zip(all);
        let all: Vec<Has> = all.map(|(host, (t, s))| has(host, t, s)).collect();
        assert_eq!(unlike_at(&names, &spot, &all).as_deref(), expect);
    }

    #[test]
    fn hosts_that_have_something_else_are_named_with_it() {
        const MFS: (&str, &str) = ("fuse.mfs", "mfsmaster:9421");
        const DISK: (&str, &str) = ("ext4", "/dev/vda");
        check(&[MFS, MFS, MFS], None);
        check(&[MFS, ("fuse", "10.0.0.1:9421"), MFS], None);
        check(&[DISK, DISK], None);
        check(
            &[MFS, MFS, DISK],
            Some(
                "client3 has ext4 (/dev/vda) at /mnt/mfs, the others fuse.mfs (mfsmaster:9421): mount it there, or use --private-dirs",
            ),
        );
        // The intended file system may not be that of most hosts.
        check(
            &[DISK, DISK, MFS],
            Some(
                "client1 and client2 have ext4 (/dev/vda) at /mnt/mfs, client3 fuse.mfs (mfsmaster:9421): mount it there, or use --private-dirs",
            ),
        );
        check(
            &[("", ""), MFS, DISK],
            Some(
                "client1 has nothing, client3 has ext4 (/dev/vda) at /mnt/mfs, client2 fuse.mfs \
                 (mfsmaster:9421): mount it there, or use --private-dirs",
            ),
        );
        check(
            &[DISK, DISK, DISK, DISK, DISK, DISK, MFS, MFS],
            Some(
                "client1, client2, client3, client4 and 2 others have ext4 (/dev/vda) at /mnt/mfs, the \
                 others fuse.mfs (mfsmaster:9421): mount it there, or use --private-dirs",
            ),
        );
    }
}
