//! Directories named by other tools' command lines: created, inspected, and removed
//! with care.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::MsFlags;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Uid, chroot, setuid};
use rbench_sys::testdir::{Held, Made, is_there, make, others_may_replace, remove_empty};
use rbench_sys::{RemoveError, SetupError};

use crate::support::{
    Mounted, disk, in_child, in_own_mounts, memory, place, protect_root, text, this_test,
};
use crate::workdir::QUIETLY;

/// Removes the tree `path`, in one thread.
fn removed_tree(path: &Path) -> Result<u64, RemoveError> {
    Held::default().remove_tree(path, QUIETLY)
}

/// Error of creating `path`, as a sentence.
fn refusal(path: &Path) -> String {
    make(path).expect_err(text(path)).to_string()
}

/// Error of a removal of `path` that removed nothing.
fn untouched(path: &Path) -> Errno {
    match removed_tree(path).expect_err(text(path)) {
        RemoveError::Kept {
            directory,
            removed: 0,
            kept: 1,
            first,
            errno,
        } if directory == path && first == path => errno,
        other => panic!("{}: {other}", path.display()),
    }
}

#[test]
fn a_directory_is_made_once_and_found_from_then_on() {
    let top = disk();
    let path = top.path().join("out");
    assert_eq!(is_there(&path), Ok(false));
    assert_eq!(make(&path), Ok(Made::Made));
    assert_eq!(is_there(&path), Ok(true));
    assert_eq!(make(&path), Ok(Made::WasThere));
    let with_slash = format!("{}/more/", text(&path));
    assert_eq!(make(Path::new(&with_slash)), Ok(Made::Made));
    assert_eq!(make(Path::new(&with_slash)), Ok(Made::WasThere));
    assert!(path.join("more").is_dir());
    let odd = path.join(OsStr::from_bytes(b"no text \xff"));
    assert_eq!(make(&odd), Ok(Made::Made));
    assert_eq!(removed_tree(&odd), Ok(0));

    let link = top.path().join("link");
    symlink("out", &link).expect("a new name");
    assert_eq!(is_there(&link), Ok(true));
    assert_eq!(
        make(&link),
        Ok(Made::WasThere),
        "as users' scratch links are"
    );
    assert_eq!(make(&link.join("below")), Ok(Made::Made));
    assert!(path.join("below").is_dir());
}

#[test]
fn a_relative_path_starts_from_the_current_directory_and_the_mode_is_0775() {
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    env::set_current_dir(place()).expect("it was made");
    umask(Mode::empty());
    for path in ["./out", "plain"] {
        assert_eq!(make(Path::new(path)), Ok(Made::Made));
        let metadata = fs::metadata(place().join(path)).expect("it was made");
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o775);
        fs::create_dir(Path::new(path).join("sub")).expect("a new name");
        assert_eq!(remove_empty(Path::new(path)), Ok(false));
        assert_eq!(removed_tree(Path::new(path)), Ok(1));
        assert_eq!(is_there(Path::new(path)), Ok(false));
    }
    for here in [".", "..", "./"] {
        assert_eq!(make(Path::new(here)), Ok(Made::WasThere), "{here}");
    }
    fs::set_permissions(".", Permissions::from_mode(0o555)).expect("it is ours");
    if Uid::effective().is_root() {
        setuid(Uid::from_raw(65534)).expect("root may become nobody");
    }
    assert_eq!(
        refusal(Path::new("new")),
        "no permission to write in .",
        "where it was to be"
    );
}

#[test]
fn a_place_that_cannot_be_is_refused_in_a_sentence() {
    let top = disk();
    let shown = top.path().display();
    let check = |relative: &str, expect: String| {
        assert_eq!(refusal(&top.path().join(relative)), expect);
    };
    fs::write(top.path().join("file"), "").expect("a new name");
    symlink("nowhere", top.path().join("dangling")).expect("a new name");
    symlink("file", top.path().join("to-file")).expect("a new name");
    check("no/out", format!("the directory {shown}/no does not exist"));
    check("file", format!("{shown}/file is not a directory"));
    check("to-file", format!("{shown}/to-file is not a directory"));
    check("file/out", format!("{shown}/file/out is not a directory"));
    check("dangling", format!("{shown}/dangling is not a directory"));
    check(
        &"x".repeat(300),
        format!(
            "cannot inspect {shown}/{}: File name too long (ENAMETOOLONG)",
            "x".repeat(300)
        ),
    );
    for root in ["/", "//", "/proc/..", "/."] {
        let message = refusal(Path::new(root));
        assert!(message.contains("is the root directory"), "{message}");
    }
    assert!(!top.path().join("no").exists(), "parents are not made");

    let exists = |relative: &str| is_there(&top.path().join(relative));
    assert_eq!(exists("no/out"), Ok(false));
    assert_eq!(exists("dangling"), Ok(false));
    let file = SetupError::NotADirectory(top.path().join("file"));
    assert_eq!(exists("file"), Err(file));
}

#[test]
fn a_tree_is_removed_with_all_that_is_in_it() {
    let top = disk();
    let path = top.path().join("test-dir.0-0");
    assert_eq!(removed_tree(&path), Ok(0), "not there");
    assert_eq!(removed_tree(&path.join("mdtest_tree.0")), Ok(0));
    assert_eq!(make(&path), Ok(Made::Made));
    assert_eq!(removed_tree(&path), Ok(0), "only itself");
    assert!(!path.exists());

    fs::create_dir_all(path.join("mdtest_tree.0/mdtest_tree.1")).expect("new names");
    for i in 0..2000 {
        fs::write(path.join(format!("mdtest_tree.0/file.mdtest.0.{i}")), "").expect("a new name");
    }
    assert_eq!(removed_tree(&path), Ok(2002));
    assert!(!path.exists());
}

/// These tests mount file systems, each in its own namespace.
mod needs_root {
    use super::*;

    #[test]
    fn a_full_or_read_only_file_system_is_named_as_such() {
        let Some(top) = in_own_mounts(this_test!()) else {
            return;
        };
        let shown = top.display();
        let mounted = Mounted::new("t", &top, Some("tmpfs"), MsFlags::MS_RDONLY, "");
        let expect = format!("{shown} is on a file system that is mounted read-only");
        assert_eq!(refusal(&top.join("out")), expect);
        assert_eq!(make(&top), Ok(Made::WasThere), "the mount itself is there");
        drop(mounted);
        let _mounted = Mounted::tmpfs(&top, "nr_inodes=1");
        let expect = format!("no space or quota is left on the file system of {shown}");
        assert_eq!(refusal(&top.join("out")), expect);
    }

    #[test]
    fn a_directory_right_below_the_root_directory_is_allowed() {
        let Some(top) = in_own_mounts(this_test!()) else {
            return;
        };
        let _mounted = Mounted::tmpfs(&top, "");
        fs::create_dir(top.join("proc")).expect("a new name");
        let _proc = Mounted::bind(Path::new("/proc"), &top.join("proc"));
        {
            let old = fs::File::open("/").expect("it is there");
            chroot(&top).expect("it is permitted");
            env::set_current_dir("/").expect("it is there");
            let out = Path::new("/out");
            assert_eq!(make(out), Ok(Made::Made));
            fs::create_dir(out.join("sub")).expect("a new name");
            assert_eq!(removed_tree(out), Ok(1));
            assert_eq!(is_there(out), Ok(false));
            assert!(matches!(make(Path::new("/")), Err(SetupError::Root(_))));
            // Returns to the old root, so that the mounts can be unmounted by name.
            nix::unistd::fchdir(&old).expect("it is open");
            chroot(".").expect("it is permitted");
        }
    }

    #[test]
    fn another_user_who_owns_a_step_of_a_path_may_replace_it() {
        // Not in the build directory: that may be below another user's.
        let top = memory();
        let top = top.path();
        let theirs = top.join("theirs");
        for path in ["safe/own", "theirs/own"] {
            fs::create_dir_all(top.join(path)).expect("new names");
        }
        symlink(top.join("safe"), theirs.join("to-safe")).expect("a new name");
        symlink(theirs.join("own"), top.join("to-own")).expect("a new name");
        symlink(theirs.join("gone"), top.join("to-gone")).expect("a new name");
        chown(&theirs, Some(1234), None).expect("it is permitted");
        for (path, may) in [
            ("safe/own", false),
            ("safe/missing/deeper", false),
            ("theirs", true),
            ("theirs/own", true),
            ("theirs/missing/deeper", true),
            // The name is in a safe place, but it is found through theirs.
            ("theirs/to-safe/own", true),
            ("theirs/to-safe/missing", true),
            ("to-own", true),
            // Moved away for a moment.
            ("to-gone", true),
            ("to-gone/deeper", true),
        ] {
            assert_eq!(others_may_replace(&top.join(path)), Ok(may), "{path}");
        }
    }

    #[test]
    fn only_an_empty_directory_is_removed_as_such() {
        let Some(top) = in_own_mounts(this_test!()) else {
            return;
        };
        let path = top.join("out");
        fs::create_dir_all(path.join("sub")).expect("new names");
        symlink("out/sub", top.join("link")).expect("a new name");
        fs::write(top.join("file"), "").expect("a new name");

        assert_eq!(remove_empty(&path), Ok(false), "not empty");
        assert_eq!(remove_empty(&top.join("no/where")), Ok(false), "not there");
        for name in ["link", "file"] {
            let error = SetupError::NotADirectory(top.join(name));
            assert_eq!(remove_empty(&top.join(name)), Err(error));
        }
        let mounted = Mounted::tmpfs(&path.join("sub"), "");
        let message = remove_empty(&path.join("sub")).map_err(|error| error.to_string());
        let expect = format!(
            "cannot remove {}/sub: Device or resource busy (EBUSY)",
            path.display()
        );
        assert_eq!(message, Err(expect));
        drop(mounted);
        assert_eq!(remove_empty(&path.join("sub")), Ok(true));
        assert_eq!(remove_empty(&path), Ok(true));
        assert!(!path.exists());
    }

    #[test]
    fn nothing_is_removed_but_the_directory_that_was_named() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        let top = directory.as_path();
        let _mounted = Mounted::tmpfs(top, "");
        protect_root();
        let outside = top.join("outside");
        let out = top.join("out");
        fs::create_dir(&outside).expect("a new name");
        fs::write(outside.join("precious"), "data").expect("a new name");
        symlink("outside", top.join("link")).expect("a new name");
        fs::create_dir_all(out.join("sub")).expect("new names");
        symlink("../outside", out.join("link")).expect("a new name");
        symlink("/", out.join("sub/root")).expect("a new name");

        assert_eq!(untouched(&top.join("link")), Errno::ENOTDIR);
        assert_eq!(
            untouched(Path::new(&format!("{}/link/", top.display()))),
            Errno::ENOTDIR
        );
        assert_eq!(untouched(&outside.join("precious")), Errno::ENOTDIR);
        for nameless in ["/", "//", "..", ".", "", "/proc/..", "a/.."] {
            assert_eq!(untouched(Path::new(nameless)), Errno::EINVAL, "{nameless}");
        }
        assert_eq!(removed_tree(&out), Ok(3));
        let kept = fs::read_to_string(outside.join("precious"));
        assert_eq!(kept.expect("it is untouched"), "data");
    }

    #[test]
    fn no_other_mount_is_emptied_neither_inside_nor_at_the_path_itself() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        let top = directory.as_path();
        let outside = top.join("outside");
        let out = top.join("out");
        fs::create_dir_all(out.join("sub/deep")).expect("new names");
        fs::create_dir(&outside).expect("a new name");
        fs::write(outside.join("precious"), "data").expect("a new name");

        // A mount of another file system, and one of the same.
        let other = Mounted::tmpfs(&out, "");
        fs::write(out.join("precious"), "data").expect("a new name");
        assert_eq!(untouched(&out), Errno::EXDEV);
        assert!(out.join("precious").exists());
        drop(other);
        let same = Mounted::bind(&outside, &out);
        assert_eq!(untouched(&out), Errno::EXDEV);
        let message = removed_tree(&out).expect_err("it stays").to_string();
        assert_eq!(
            message,
            format!(
                "{} could not be removed: another file system is mounted there",
                out.display()
            )
        );
        drop(same);
        let inside = Mounted::bind(&outside, &out.join("sub/deep"));
        let error = removed_tree(&out).expect_err("a mount stays");
        assert!(
            matches!(
                &error,
                RemoveError::Kept { removed: 0, kept: 1, first, errno: Errno::EXDEV, .. }
                    if *first == out.join("sub/deep")
            ),
            "{error:?}"
        );
        drop(inside);
        assert!(outside.join("precious").exists());
        assert_eq!(removed_tree(&out), Ok(2));
    }
}
