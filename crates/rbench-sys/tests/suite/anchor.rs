//! Removal by several threads, and of shares in parallel: removes everything, but
//! nothing outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use nix::errno::Errno;
use rbench_sys::anchor::{Anchor, deal};
use rbench_sys::{Part, Removal, RemoveError, testdir};

use crate::support::{Mounted, disk, in_own_mounts, memory, this_test};
use crate::workdir::{QUIETLY, create, kept};

/// Creates a tree with directories of very different sizes; returns the number of
/// entries.
fn grow(top: &Path) -> u64 {
    let mut entries = 0;
    let mut fill = |dir: &Path, files: u64| {
        if !dir.exists() {
            fs::create_dir(dir).expect("a new name");
            entries += 1;
        }
        for i in 0..files {
            fs::write(dir.join(format!("f{i}")), "").expect("a new name");
        }
        entries += files;
    };
    fill(&top.join("flat"), 3000);
    for d in 0..40 {
        let dir = top.join(format!("d{d}"));
        fill(&dir, d % 7);
        for e in 0..d % 5 {
            fill(&dir.join(format!("e{e}")), 3 * e);
        }
    }
    let mut deep = top.join("deep");
    for d in 0..60 {
        fill(&deep, d % 2);
        deep.push("d");
    }
    entries
}

#[test]
fn several_threads_remove_a_tree_once_and_tell_of_each_entry() {
    for threads in [1, 2, 5, 16] {
        let top = memory();
        let work_dir = create(top.path());
        let entries = grow(work_dir.path());
        let reported = AtomicU64::new(0);
        let how = Removal {
            threads,
            progress: &|_| {
                reported.fetch_add(1, Ordering::Relaxed);
            },
            ..QUIETLY
        };
        assert_eq!(work_dir.remove(how), Ok(entries), "{threads} threads");
        assert_eq!(reported.into_inner(), entries);
        assert!(!top.path().join("rbench.1").exists());
    }
}

#[test]
fn several_threads_stop_when_they_are_told_to() {
    let top = memory();
    let work_dir = create(top.path());
    grow(work_dir.path());
    let stop = AtomicBool::new(false);
    let stopped = || stop.load(Ordering::Relaxed);
    let how = Removal {
        threads: 4,
        progress: &|n| {
            stop.fetch_or(n >= 100, Ordering::Relaxed);
        },
        stop: &stopped,
    };
    let error = work_dir.remove(how).expect_err("it was stopped");
    let RemoveError::Stopped { removed, .. } = error else {
        panic!("{error}")
    };
    // Each thread completes its current entry.
    assert!((100..200).contains(&removed), "{removed}");
    assert!(top.path().join("rbench.1/.rbench-run").exists());
}

/// Removes the content of `anchor` like several processes do, each its share per
/// round; returns the number of entries and of rounds.
fn together(anchor: &(dyn Fn() -> Anchor + Sync), of: usize, enough: usize) -> (u64, usize) {
    let mut sum = 0;
    for round in 0.. {
        let (parts, _) = anchor().survey(enough);
        let shares: Vec<Vec<Part>> = (0..of).map(|nth| deal(&parts, nth, of)).collect();
        let remove = &|share: &Vec<Part>| match anchor().remove(
            share,
            Removal {
                threads: 2,
                ..QUIETLY
            },
        ) {
            Ok(removed) | Err(RemoveError::Kept { removed, .. }) => removed,
            Err(error) => panic!("{error}"),
        };
        let removed: u64 = thread::scope(|scope| {
            let all: Vec<_> = shares
                .iter()
                .map(|s| scope.spawn(move || remove(s)))
                .collect();
            all.into_iter()
                .map(|one| one.join().expect("no panic"))
                .sum()
        });
        sum += removed;
        if removed == 0 {
            return (sum, round);
        }
    }
    (sum, 0)
}

#[test]
fn shares_of_all_leave_nothing_but_the_directories_on_the_way() {
    for (of, enough) in [(1, 1), (3, 4), (4, 64), (5, 100_000)] {
        let top = memory();
        let work_dir = create(top.path());
        let entries = grow(work_dir.path());
        let anchor = || work_dir.anchor("").expect("no mount").expect("it is there");
        let (removed, _) = together(&anchor, of, enough);
        assert!(removed <= entries);
        let left = entries - removed;
        let (parts, whole) = anchor().survey(usize::MAX);
        assert!(parts.is_empty() && whole, "{parts:?}");
        assert!(work_dir.path().join(".rbench-run").exists());
        assert_eq!(work_dir.remove(QUIETLY), Ok(left));
    }
}

#[test]
fn what_is_listed_stays_within_bounds_and_goes_in_rounds() {
    let top = memory();
    let work_dir = create(top.path());
    let dir = work_dir.path().join("d");
    fs::create_dir(&dir).expect("a new name");
    for i in 0..70_000 {
        fs::File::create(dir.join(format!("{i}"))).expect("a new name");
    }
    let anchor = || {
        work_dir
            .anchor("d")
            .expect("no mount")
            .expect("it is there")
    };
    let (parts, whole) = anchor().survey(64);
    let listed: usize = parts.iter().map(|part| part.entries.len()).sum();
    assert!(!whole && (65_536..70_000).contains(&listed), "{listed}");
    assert_eq!(together(&anchor, 4, 64), (70_000, 2));
}

#[test]
fn links_in_place_of_what_was_listed_are_not_followed() {
    let top = disk();
    let outside = top.path().join("outside");
    fs::create_dir_all(outside.join("deep")).expect("new names");
    fs::write(outside.join("deep/precious"), "data").expect("a new name");
    fs::write(outside.join("precious"), "data").expect("a new name");
    let work_dir = create(top.path());
    let path = work_dir.path().to_owned();
    for name in ["a/deep", "b/deep", "c/deep"] {
        fs::create_dir_all(path.join(name)).expect("new names");
    }
    for name in ["a/precious", "a/deep/precious", "b/deep/precious"] {
        fs::write(path.join(name), "").expect("a new name");
    }
    symlink(&outside, path.join("link")).expect("a new name");
    let anchor = || work_dir.anchor("").expect("no mount").expect("it is there");
    // Files below a, b and c, by their whole paths; then the directories themselves.
    for enough in [100, 1] {
        let (parts, _) = anchor().survey(enough);
        assert!(!parts.is_empty());
        let opened = anchor();
        let aside = top.path().join("aside");
        for name in ["a", "b"] {
            fs::create_dir_all(&aside).expect("a new name");
            fs::rename(path.join(name), aside.join(name)).expect("the same file system");
            symlink(&outside, path.join(name)).expect("the name is free");
        }
        let how = Removal {
            threads: 4,
            ..QUIETLY
        };
        // Links in place of directories stay.
        let (.., errno) = kept(opened.remove(&parts, how));
        assert!(matches!(errno, Errno::ENOTDIR | Errno::ELOOP), "{errno}");
        for name in ["precious", "deep/precious"] {
            assert_eq!(
                fs::read_to_string(outside.join(name)).expect("untouched"),
                "data"
            );
        }
        for name in ["a", "b"] {
            fs::remove_file(path.join(name)).expect("the link is still there");
            fs::rename(aside.join(name), path.join(name)).expect("the same file system");
        }
        fs::remove_dir(&aside).expect("empty");
        if !path.join("link").exists() {
            symlink(&outside, path.join("link")).expect("a new name");
        }
    }
    // Links at the top, and paths that lead outside, are not followed either.
    symlink(&outside, path.join("top")).expect("a new name");
    assert!(work_dir.anchor("top").is_err());
    assert!(work_dir.anchor("../outside").is_err());
    assert!(testdir::Held::default().anchor(&path.join("top")).is_err());
    let (mut parts, _) = anchor().survey(100);
    parts[0].way = vec![c"..".to_owned(), c"outside".to_owned()];
    let (.., errno) = kept(anchor().remove(&parts, QUIETLY));
    assert_eq!(errno, Errno::EINVAL);
    assert!(outside.join("deep/precious").exists());
}

/// These tests mount file systems, each in its own namespace.
mod needs_root {
    use super::*;

    #[test]
    fn no_share_enters_another_mount() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        let work_dir = create(&directory);
        let path = work_dir.path().to_owned();
        for name in ["a/other", "b/other", "c"] {
            fs::create_dir_all(path.join(name)).expect("new names");
        }
        fs::write(path.join("b/other/ours"), "").expect("a new name");
        let anchor = || work_dir.anchor("").expect("no mount").expect("it is there");
        // One mount exists before the listing, the other one is added after it.
        let first = Mounted::tmpfs(&path.join("a/other"), "");
        fs::write(path.join("a/other/precious"), "data").expect("a new name");
        let (parts, _) = anchor().survey(100);
        let names: Vec<_> = parts.iter().flat_map(|part| &part.entries).collect();
        assert_eq!(names.len(), 1, "{parts:?}");
        let second = Mounted::tmpfs(&path.join("b/other"), "");
        fs::write(path.join("b/other/ours"), "data").expect("a new name");
        for parts in [parts, anchor().survey(1).0] {
            let (.., errno) = kept(anchor().remove(&parts, QUIETLY));
            assert_eq!(errno, Errno::EXDEV, "mounts stay");
        }
        assert!(path.join("a/other/precious").exists() && path.join("b/other/ours").exists());
        assert_eq!(
            work_dir.anchor("a/other").expect_err("it is mounted"),
            Errno::EXDEV
        );
        drop((first, second));
        assert!(work_dir.remove(QUIETLY).is_ok());
    }
}
