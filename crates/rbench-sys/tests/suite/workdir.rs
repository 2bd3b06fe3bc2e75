//! rbench's own directory: made, found again, and removed with care.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::errno::Errno;
use nix::mount::MsFlags;
use nix::unistd::{Uid, setuid};
use rbench_core::{By, Call};
use rbench_sys::{Fs, Operands, Removal, RemoveError, SetupError, WorkDir};

use crate::allocations;
use crate::support::{
    Mounted, disk, in_child, in_own_mounts, place, protect_root, skip, text, this_test,
};

const MARK: &[u8] = b"run 1\n";

/// A new directory in `parent`, named "rbench.1".
pub fn create(parent: &Path) -> WorkDir {
    WorkDir::create(parent, "rbench.1", MARK).expect("the parent is empty")
}

fn remove(directory: WorkDir) -> Result<u64, RemoveError> {
    directory.remove(QUIETLY)
}

/// Of a removal that left something: the numbers of entries removed and kept, and why.
pub fn kept(removal: Result<u64, RemoveError>) -> (u64, u64, Errno) {
    match removal {
        Err(RemoveError::Kept {
            removed,
            kept,
            errno,
            ..
        }) => (removed, kept, errno),
        other => panic!("{other:?}"),
    }
}

/// Removes everything with one thread, without progress.
pub const QUIETLY: Removal<'static> = Removal {
    threads: 1,
    stop: &|| false,
    progress: &|_| (),
};

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory)
        .expect("it is there")
        .next()
        .is_none()
}

#[test]
fn a_work_directory_is_made_found_again_and_removed() {
    let parent = disk();
    let made = create(parent.path());
    let path = parent.path().join("rbench.1");
    assert_eq!(made.path(), path);
    let marker = fs::read(path.join(".rbench-run")).expect("the marker is there");
    assert_eq!(marker, MARK);

    let found = WorkDir::open(parent.path(), "rbench.1", MARK)
        .expect("the parent is there")
        .expect("and so is the directory");
    found.fs().on_path(Call::MKDIR, c"sub").expect("a new name");
    assert!(path.join("sub").is_dir());
    assert_eq!(
        made.fs().on_path(Call::Stat(By::Link), c".rbench-run"),
        Ok(MARK.len() as u64)
    );
    assert_eq!(remove(made), Ok(1));
    assert!(is_empty(parent.path()));
}

#[test]
fn another_run_may_mark_a_directory_as_its_own() {
    let parent = disk();
    let made = create(parent.path());
    made.mark(b"run 2, and more\n").expect("it is ours");
    let open = |marker| WorkDir::open(parent.path(), "rbench.1", marker).expect("it is there");
    assert!(open(MARK).is_none() && open(b"run 2, and more\n").is_some());
    let there = fs::read_dir(made.path()).expect("it is there").count();
    assert_eq!(there, 1, "the marker alone");
    assert_eq!(remove(made), Ok(0));
}

#[test]
fn what_is_absent_or_marked_otherwise_is_not_this_run() {
    let parent = disk();
    let path = parent.path();
    let seen = |name: &str, marker: &[u8]| {
        WorkDir::open(path, name, marker)
            .expect("the parent is there")
            .is_some()
    };
    create(path);
    assert!(seen("rbench.1", MARK));
    assert!(!seen("rbench.2", MARK));
    assert!(!seen("rbench.1", b"run 2\n"));
    assert!(!seen("rbench.1", b"run 1"), "a longer marker");
    assert!(!seen("rbench.1", b"run 1\nmore"), "a shorter marker");

    symlink("rbench.1", path.join("link")).expect("a new name");
    assert!(!seen("link", MARK), "a symbolic link is not a directory");
    fs::write(path.join("file"), MARK).expect("a new name");
    assert!(!seen("file", MARK));
    fs::create_dir(path.join("plain")).expect("a new name");
    assert!(!seen("plain", MARK), "no marker");
    symlink("../rbench.1/.rbench-run", path.join("plain/.rbench-run")).expect("a new name");
    assert!(!seen("plain", MARK), "a marker from elsewhere");

    let missing = WorkDir::open(&path.join("no"), "rbench.1", MARK).map(drop);
    assert_eq!(missing, Err(SetupError::Missing(path.join("no"))));
}

/// The sentence that making `name` in `parent` fails with.
fn refusal(parent: &Path, name: &str) -> String {
    match WorkDir::create(parent, name, MARK) {
        Ok(made) => panic!("made {}", made.path().display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_parent_or_name_that_cannot_be_is_refused_in_a_sentence() {
    let parent = disk();
    let path = parent.path();
    let shown = path.display();
    let check = |parent: &Path, name: &str, expect: String| {
        assert_eq!(refusal(parent, name), expect);
    };
    fs::write(path.join("file"), "").expect("a new name");
    let name = "rbench.1";
    check(
        &path.join("no"),
        name,
        format!("the directory {shown}/no does not exist"),
    );
    check(
        &path.join("file"),
        name,
        format!("{shown}/file is not a directory"),
    );
    check(path, "file", format!("{shown}/file already exists"));
    for root in ["/", "//", "/proc/..", "/."] {
        let message = refusal(Path::new(root), name);
        assert!(message.contains("is the root directory"), "{message}");
    }
    for bad in ["", ".", "..", "a/b", "/", "a\0b"] {
        let message = refusal(path, bad);
        assert!(message.contains("is not a valid name"), "{message}");
    }
    let long = "x".repeat(300);
    let message = refusal(path, &long);
    assert!(
        message.ends_with("File name too long (ENAMETOOLONG)"),
        "{message}"
    );
    create(path);
    check(path, name, format!("{shown}/rbench.1 already exists"));
    let marker = fs::read(path.join("rbench.1/.rbench-run"));
    assert_eq!(marker.expect("it is untouched"), MARK);
}

#[test]
fn without_permission_the_sentence_says_so_and_what_stays_is_named() {
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    let place = place();
    let path = place.as_path();
    let shown = path.display();
    fs::set_permissions(path, Permissions::from_mode(0o777)).expect("it is ours");
    let locked = path.join("locked");
    fs::create_dir(&locked).expect("a new name");
    fs::set_permissions(&locked, Permissions::from_mode(0o555)).expect("it is ours");
    if Uid::effective().is_root() {
        setuid(Uid::from_raw(65534)).expect("root may become nobody");
    }

    let expect = format!("no permission to write in {shown}/locked");
    assert_eq!(refusal(&locked, "rbench.1"), expect);

    let made = create(path);
    let inner = made.mkdir_all("a/fixed").expect("new names");
    for name in [c"x", c"y"] {
        inner.on_path(Call::MKDIR, name).expect("a new name");
    }
    made.fs().on_path(Call::MKDIR, c"b").expect("a new name");
    let fixed = made.path().join("a/fixed");
    fs::set_permissions(&fixed, Permissions::from_mode(0o555)).expect("it is ours");
    let first_listed = fs::read_dir(&fixed)
        .expect("it is readable")
        .find_map(|entry| entry.ok().map(|entry| entry.path()))
        .expect("it has entries");
    let error = remove(made).expect_err("two entries cannot be removed");
    let directory = format!("{shown}/rbench.1");
    assert_eq!(
        error.to_string(),
        format!(
            "2 entries of {directory} could not be removed, the first {}: \
             Permission denied (EACCES)",
            first_listed.display()
        )
    );
    assert!(!path.join("rbench.1/b").exists(), "the others are gone");
    let again = WorkDir::open(path, "rbench.1", MARK).expect("the parent is there");
    fs::set_permissions(&fixed, Permissions::from_mode(0o755)).expect("it is ours");
    assert_eq!(remove(again.expect("still marked")), Ok(4));
}

#[test]
fn a_part_of_the_directory_is_removed_with_the_same_care() {
    let top = disk();
    let made = create(top.path());
    let path = made.path().to_owned();
    let removed = |relative: &str| made.remove_below(relative, QUIETLY);
    made.mkdir_all("a/b/c").expect("new names");
    made.mkdir_all("a/d").expect("new names");
    assert_eq!(removed("a/b"), Ok(1), "c, and b itself");
    assert!(path.join("a/d").is_dir() && !path.join("a/b").exists());
    assert_eq!(removed("a/b"), Ok(0), "nothing is there any more");
    assert_eq!(removed("no/where"), Ok(0));

    let outside = top.path().join("outside");
    fs::create_dir_all(outside.join("precious")).expect("new names");
    symlink(&outside, path.join("link")).expect("a new name");
    for relative in ["link", "link/precious", "../outside", "", "."] {
        assert_eq!(kept(removed(relative)).0, 0, "{relative}");
    }
    assert!(outside.join("precious").is_dir());
    assert_eq!(removed("a"), Ok(1));
    assert_eq!(remove(made), Ok(1), "the link");
}

#[test]
fn a_directory_that_turns_into_a_symbolic_link_meanwhile_is_not_followed() {
    let top = disk();
    let outside = top.path().join("outside");
    fs::create_dir(&outside).expect("a new name");
    fs::write(outside.join("precious"), "data").expect("a new name");
    let made = create(top.path());
    let path = made.path().to_owned();
    for i in 0..10 {
        made.fs()
            .on_path(
                Call::MKDIR,
                &CString::new(format!("d{i}")).expect("no NUL in it"),
            )
            .expect("a new name");
    }
    // All names are in the first batch of the listing. When the first entry
    // is gone, the others change.
    let swapped = AtomicU32::new(0);
    let swap = |n| {
        for i in (0..10).filter(|_| n == 1) {
            let name = path.join(format!("d{i}"));
            if fs::remove_dir(&name).is_ok() {
                symlink(&outside, &name).expect("the name is free");
                swapped.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let how = Removal {
        progress: &swap,
        ..QUIETLY
    };
    let links_stay = (1, 9, Errno::ENOTDIR);
    assert_eq!(kept(made.remove(how)), links_stay);
    assert_eq!(swapped.into_inner(), 9);
    assert!(outside.join("precious").exists());
    let again = WorkDir::open(top.path(), "rbench.1", MARK).expect("the parent is there");
    assert_eq!(remove(again.expect("it is still marked")), Ok(9));
    assert!(outside.join("precious").exists());
}

#[test]
fn a_large_directory_is_removed_in_constant_memory_and_progress_is_told() {
    const FILES: u64 = 20_000;
    let top = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let made = create(top.path());
    let inner = made.mkdir_all("d").expect("a new name");
    for i in 0..FILES {
        let name = CString::new(format!("a-file-with-a-longer-name.{i}"));
        let name = name.expect("no NUL in it");
        let fd = inner.open(&name, rbench_core::OpenFlags::CREATE_NEW);
        inner.close(fd.expect("a new name")).expect("it is open");
    }
    let told = Mutex::new(Vec::with_capacity(FILES as usize + 1));
    let tell = |n| told.lock().expect("one thread").push(n);
    let how = Removal {
        progress: &tell,
        ..QUIETLY
    };
    let mut removed = Ok(0);
    let peak = allocations::peak_bytes(|| {
        removed = made.remove(how);
    });
    assert_eq!(removed, Ok(FILES + 1));
    let told = told.into_inner().expect("one thread");
    assert!(told.into_iter().eq(1..=FILES + 1));
    assert!(peak < 100_000, "{peak} bytes for {FILES} entries");
    assert!(is_empty(top.path()));
}

#[test]
fn deep_trees_are_removed() {
    let top = disk();
    let made = create(top.path());
    let deepest = ["d"; 300].join("/");
    made.mkdir_all(&deepest).expect("new names");
    assert_eq!(remove(made), Ok(300));
    assert!(is_empty(top.path()));
}

#[test]
fn a_stopped_removal_keeps_the_marker_and_can_be_taken_up_again() {
    let top = disk();
    let made = create(top.path());
    for i in 0..50 {
        made.mkdir_all(&format!("d{i}/sub")).expect("new names");
    }
    let stop = AtomicBool::new(false);
    let stopped = || stop.load(Ordering::Relaxed);
    let how = Removal {
        progress: &|n| stop.store(n == 10, Ordering::Relaxed),
        stop: &stopped,
        ..QUIETLY
    };
    let error = made.remove(how).expect_err("it was stopped");
    let directory = top.path().join("rbench.1");
    assert_eq!(
        error,
        RemoveError::Stopped {
            directory,
            removed: 10
        }
    );
    let again = WorkDir::open(top.path(), "rbench.1", MARK).expect("the parent is there");
    assert_eq!(remove(again.expect("it is still marked")), Ok(90));
    assert!(is_empty(top.path()));
}

#[test]
fn directories_inside_are_made_and_opened_without_leaving() {
    let top = disk();
    let made = create(top.path());
    let deep = made.mkdir_all("a/b/c").expect("new names");
    assert_eq!(deep.on_path(Call::MKDIR, c"x"), Ok(0));
    assert!(made.path().join("a/b/c/x").is_dir());
    let again = made.mkdir_all("a/b/c").expect("they may exist");
    assert_eq!(
        again.call(&Call::List, Operands::path(c".").receiving(&mut [0; 4096])),
        Ok(1)
    );

    let refused = |relative: &str| {
        let error = made.mkdir_all(relative).map(drop);
        error.expect_err("it leads outside").to_string()
    };
    for outside in ["..", "a/../../x", "/tmp", "", "a//b", "a/."] {
        let message = refused(outside);
        assert!(
            message.starts_with(&format!("'{outside}' is not a valid name")),
            "{message}"
        );
    }
    symlink("..", made.path().join("link")).expect("a new name");
    let expect = format!("{}/link is not a directory", made.path().display());
    assert_eq!(refused("link/x"), expect);
}

#[test]
fn one_that_cannot_be_looked_into_is_named_and_hides_no_others() {
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    let place = place();
    let path = place.as_path();
    fs::set_permissions(path, Permissions::from_mode(0o777)).expect("it is ours");
    create(path);
    // Like a directory of another user who lets others in.
    let open = path.join("rbench.1");
    fs::set_permissions(&open, Permissions::from_mode(0o755)).expect("it is ours");
    let closed = path.join("rbench.0");
    fs::create_dir(&closed).expect("a new name");
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).expect("it is ours");
    if Uid::effective().is_root() {
        setuid(Uid::from_raw(65534)).expect("root may become nobody");
    }
    let found = WorkDir::find(path).expect("it can be read");
    let (found, unread) = (found.marked, found.closed);
    assert_eq!(found, [("rbench.1".to_owned(), MARK.to_vec())]);
    // An ordinary user could not clear it away; of root's the parent does.
    let _ = fs::set_permissions(&closed, Permissions::from_mode(0o700));
    let told: Vec<String> = unread.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [format!("no permission to read {}", closed.display())]
    );
}

/// These mount, each in a namespace of its own.
mod needs_root {
    use super::*;

    #[test]
    fn a_full_read_only_or_dead_file_system_is_named_as_such() {
        let Some(place) = in_own_mounts(this_test!()) else {
            return;
        };
        let path = place.as_path();
        let shown = path.display();
        let name = "rbench.1";

        let mounted = Mounted::new("t", path, Some("tmpfs"), MsFlags::MS_RDONLY, "");
        let expect = format!("{shown} is on a file system that is mounted read-only");
        assert_eq!(refusal(path, name), expect);
        drop(mounted);

        let full = "no space or quota is left on the file system of";
        let mounted = Mounted::tmpfs(path, "nr_inodes=1");
        assert_eq!(refusal(path, name), format!("{full} {shown}"));
        drop(mounted);

        // The directory fits, its marker does not: nothing must be left over.
        for options in ["nr_inodes=2", "size=4k"] {
            let mounted = Mounted::tmpfs(path, options);
            if options == "size=4k" {
                fs::write(path.join("filler"), [0; 4096]).expect("it just fits");
            }
            assert_eq!(refusal(path, name), format!("{full} {shown}/{name}"));
            assert!(!path.join(name).exists(), "{options}");
            drop(mounted);
        }

        let Ok(server) = fs::File::options().read(true).write(true).open("/dev/fuse") else {
            return skip("there is no /dev/fuse");
        };
        use std::os::fd::AsRawFd;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            server.as_raw_fd()
        );
        let mounted = Mounted::new("dead", path, Some("fuse"), MsFlags::empty(), &options);
        drop(server);
        let expect = format!("the file system at {shown} does not answer: its server has ended");
        assert_eq!(refusal(path, name), expect);
        drop(mounted);
    }

    #[test]
    fn removal_follows_no_symbolic_link() {
        let Some(place) = in_own_mounts(this_test!()) else {
            return;
        };
        let top = place.as_path();
        let _mounted = Mounted::tmpfs(top, "");
        protect_root();
        let outside = top.join("outside");
        fs::create_dir_all(outside.join("deep")).expect("new names");
        fs::write(outside.join("deep/precious"), "data").expect("a new name");
        let made = create(top);
        let inner = made.path().join("dir");
        fs::create_dir(&inner).expect("a new name");
        for (name, target) in [
            ("relative", "../../outside"),
            ("absolute", text(&outside)),
            ("root", "/"),
            ("up", ".."),
            ("self", "."),
            ("file", "../../outside/deep/precious"),
            ("dangling", "nowhere"),
        ] {
            symlink(target, inner.join(name)).expect("a new name");
        }
        assert_eq!(remove(made), Ok(8));
        assert!(!inner.exists());
        let kept = fs::read_to_string(outside.join("deep/precious"));
        assert_eq!(kept.expect("it is untouched"), "data");
    }

    #[test]
    fn removal_enters_no_other_mount() {
        let Some(place) = in_own_mounts(this_test!()) else {
            return;
        };
        let top = place.as_path();
        let outside = top.join("outside");
        fs::create_dir(&outside).expect("a new name");
        fs::write(outside.join("precious"), "data").expect("a new name");
        let made = create(top);
        let path = made.path().to_owned();
        fs::create_dir_all(path.join("a/other")).expect("new names");
        fs::create_dir_all(path.join("b/same")).expect("new names");
        fs::write(path.join("b/ours"), "").expect("a new name");

        // Another file system, and another place of the same one: the device
        // number would not tell the second from our own directories.
        let other = Mounted::tmpfs(&path.join("a/other"), "");
        let same = Mounted::bind(&outside, &path.join("b/same"));
        fs::write(path.join("a/other/precious"), "data").expect("a new name");

        let error = remove(made).expect_err("mounts stay");
        let RemoveError::Kept {
            removed,
            kept,
            first,
            errno,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!((*removed, *kept, *errno), (1, 2, Errno::EXDEV));
        assert!(first.ends_with("a/other") || first.ends_with("b/same"));
        assert!(
            error
                .to_string()
                .ends_with("another file system is mounted there")
        );
        for kept in [path.join("a/other/precious"), outside.join("precious")] {
            assert_eq!(fs::read_to_string(kept).expect("it is untouched"), "data");
        }
        assert!(!path.join("b/ours").exists());

        drop((other, same));
        let again = WorkDir::open(top, "rbench.1", MARK).expect("the parent is there");
        assert_eq!(remove(again.expect("it is still marked")), Ok(4));
        assert!(outside.join("precious").exists());
        assert!(!path.exists());
    }

    #[test]
    fn a_part_of_the_directory_on_which_something_is_mounted_stays() {
        let Some(place) = in_own_mounts(this_test!()) else {
            return;
        };
        let made = create(&place);
        made.mkdir_all("a/b").expect("new names");
        let part = made.path().join("a/b");
        let mounted = Mounted::tmpfs(&part, "");
        fs::write(part.join("precious"), "data").expect("a new name");
        let error = made.remove_below("a/b", QUIETLY).expect_err("mounts stay");
        assert_eq!(
            error.to_string(),
            format!(
                "{} could not be removed: another file system is mounted there",
                part.display()
            )
        );
        assert!(part.join("precious").exists());
        drop(mounted);
        assert_eq!(made.remove_below("a/b", QUIETLY), Ok(0));
        assert_eq!(remove(made), Ok(1));
    }

    #[test]
    fn without_proc_mounts_stay_and_the_rest_is_removed() {
        let Some(place) = in_own_mounts(this_test!()) else {
            return;
        };
        let made = create(&place);
        let path = made.path().to_owned();
        made.mkdir_all("a/b").expect("new names");
        made.mkdir_all("d").expect("a new name");
        let mounted = Mounted::tmpfs(&path.join("a/b"), "");
        fs::write(path.join("a/b/precious"), "data").expect("a new name");
        let hidden = Mounted::tmpfs(Path::new("/proc"), "");
        let (removed, _, errno) = kept(remove(made));
        assert_eq!((removed, errno), (1, Errno::EXDEV), "a mount stays");
        assert!(path.join("a/b/precious").exists() && !path.join("d").exists());
        drop((hidden, mounted));
        let again = WorkDir::open(&place, "rbench.1", MARK).expect("the parent exists");
        assert_eq!(remove(again.expect("it is still marked")), Ok(2));
    }
}
