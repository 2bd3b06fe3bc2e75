//! Mounting and unmounting within one process.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::common::{Bed, PLENTY, wait_until};
use rbench_testfs::{Config, Kind, mount};

/// Type and source of the mounts at `point` in the mount table, the topmost last.
pub fn mounts_at(point: &Path) -> Vec<(String, String)> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let here = table.lines().filter(|line| {
        let place = line
            .split(' ')
            .nth(4)
            .map(|place| place.replace("\\040", " "));
        place.as_deref().map(Path::new) == Some(point)
    });
    here.map(|line| {
        let (_, kind) = line.split_once(" - ").expect("a separator");
        let mut words = kind.split(' ').map(str::to_owned);
        (
            words.next().expect("a type"),
            words.next().expect("a source"),
        )
    })
    .collect()
}

fn refusal(config: Config, point: &Path) -> String {
    mount(config, point).expect_err("it is wrong").to_string()
}

#[test]
fn the_mount_table_shows_what_it_is_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().join("with a space");
    fs::create_dir(&point).expect("new");
    let point = point.canonicalize().expect("there");
    let mut config = Config::memory(PLENTY);
    config.source = "my source, really".replace(' ', "-");
    let mounted = mount(config, &point).expect("/dev/fuse is there");
    assert_eq!(mounted.mountpoint(), point);
    let expect = (
        "fuse.rbench-testfs".to_owned(),
        "my-source,-really".to_owned(),
    );
    assert_eq!(mounts_at(&point), [expect]);
    fs::write(point.join("f"), "x").expect("room");
    let stats = std::sync::Arc::clone(mounted.stats());
    mounted.unmount().expect("not in use");
    assert_eq!(mounts_at(&point), []);
    assert!(!point.join("f").exists());
    assert_eq!(stats.snapshot().counts(Kind::Create).requests, 1);
}

#[test]
fn dropping_unmounts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().canonicalize().expect("there");
    drop(mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there"));
    assert_eq!(mounts_at(&point), []);
}

#[test]
fn a_file_that_is_open_goes_on_while_the_mount_is_gone() {
    let bed = Bed::new(Config::memory(PLENTY));
    let path = bed.join("f");
    let mut open = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("new");
    open.write_all(b"before ").expect("room");
    let Bed { mounted, .. } = bed;
    let point = mounted.mountpoint().to_owned();
    let stats = std::sync::Arc::clone(mounted.stats());
    mounted.unmount().expect("it is detached");
    assert_eq!(mounts_at(&point), []);
    assert!(!path.exists());
    open.write_all(b"after").expect("it is still served");
    open.rewind().expect("a file");
    let mut text = String::new();
    open.read_to_string(&mut text).expect("it is still served");
    assert_eq!(text, "before after");
    drop(open);
    // With its last user gone, the file system ends and frees everything.
    let users = || std::sync::Arc::strong_count(&stats);
    wait_until("its end", || users() == 1);
}

#[test]
fn unmounting_can_wait_for_the_last_user() {
    let Bed { mounted, .. } = Bed::new(Config::memory(PLENTY));
    let point = mounted.mountpoint().to_owned();
    let open = File::create(point.join("f")).expect("room");
    let mounted = mounted.waiting_for_users();
    let unmounting = std::thread::spawn(|| mounted.unmount());
    wait_until("it is detached", || mounts_at(&point).is_empty());
    assert!(!unmounting.is_finished());
    drop(open);
    let ended = unmounting.join().expect("no panic");
    ended.expect("it is no longer in use");
}

/// Unmounting by system call needs root.
mod needs_root {
    use super::*;

    #[test]
    fn unmounting_takes_away_only_its_own_mount() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let point = folder.path().canonicalize().expect("there");
        let below = mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there");
        fs::write(point.join("below"), "").expect("room");
        let above = mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there");
        assert!(!point.join("below").exists());
        assert_eq!(mounts_at(&point).len(), 2);
        above.unmount().expect("not in use");
        assert!(point.join("below").exists());

        // Already unmounted from outside: nothing is left to do, and a later mount
        // there is not touched.
        nix::mount::umount(&point).expect("not in use");
        let other = mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there");
        below.unmount().expect("it is gone");
        assert_eq!(mounts_at(&point).len(), 1);
        other.unmount().expect("not in use");
    }

    #[test]
    fn a_mount_whose_service_has_ended_can_be_unmounted() {
        let bed = Bed::new(Config::memory(PLENTY));
        let point = bed.mounted.mountpoint().to_owned();
        let in_use = File::create(bed.join("f")).expect("room");
        // Cuts the connection even if it cannot unmount.
        let force = nix::mount::MntFlags::MNT_FORCE;
        let busy = nix::mount::umount2(&point, force);
        assert_eq!(busy, Err(nix::errno::Errno::EBUSY));
        let dead = fs::metadata(&point).map_err(|error| error.kind());
        assert_eq!(dead.err(), Some(std::io::ErrorKind::NotConnected));
        assert_eq!(mounts_at(&point).len(), 1);
        bed.mounted.unmount().expect("it is detached");
        assert_eq!(mounts_at(&point), []);
        drop(in_use);
    }

    #[test]
    fn a_mount_below_another_is_not_taken_for_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let point = folder.path().canonicalize().expect("there");
        let below = mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there");
        let above = mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there");
        let refused = below.unmount().expect_err("it is covered").to_string();
        assert!(
            refused.contains("another file system is mounted over it"),
            "{refused}"
        );
        assert_eq!(mounts_at(&point).len(), 2);
        above.unmount().expect("not in use");
        nix::mount::umount(&point).expect("not in use");
        assert_eq!(mounts_at(&point), []);
    }
}

#[test]
fn what_cannot_be_mounted_is_told_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().canonicalize().expect("there");
    let check = |said: String, expect: &str| assert!(said.contains(expect), "{said}");
    let memory = || Config::memory(PLENTY);
    check(
        refusal(memory(), &point.join("none")),
        "/none does not exist",
    );
    File::create(point.join("file")).expect("new");
    check(
        refusal(memory(), &point.join("file")),
        "/file is not a folder",
    );
    let absent = Config::passthrough(point.join("none"));
    check(refusal(absent, &point), "/none cannot be passed through");
    let file = Config::passthrough(point.join("file"));
    check(refusal(file, &point), "/file cannot be passed through");
    fs::create_dir(point.join("inside")).expect("new");
    let itself = Config::passthrough(&point);
    check(
        refusal(itself, &point.join("inside")),
        "lies inside the folder",
    );
    assert_eq!(mounts_at(&point), []);
}

#[test]
fn a_folder_can_be_passed_through_at_its_own_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().canonicalize().expect("there");
    fs::write(point.join("before"), "x").expect("room");
    let mounted = mount(Config::passthrough(&point), &point).expect("/dev/fuse is there");
    assert_eq!(
        fs::read_to_string(point.join("before")).expect("there"),
        "x"
    );
    fs::write(point.join("through"), "y").expect("room");
    mounted.unmount().expect("not in use");
    assert_eq!(
        fs::read_to_string(point.join("through")).expect("there"),
        "y"
    );
}

#[test]
fn changes_of_the_folder_are_seen_through_the_mount() {
    let backing = tempfile::tempdir().expect("a temporary folder");
    let config = Config::passthrough(backing.path()).uncached();
    let bed = Bed::new(config);
    fs::write(backing.path().join("f"), "outside").expect("room");
    assert_eq!(fs::read_to_string(bed.join("f")).expect("there"), "outside");
    fs::write(bed.join("f"), "inside").expect("room");
    let content = fs::read_to_string(backing.path().join("f")).expect("there");
    assert_eq!(content, "inside");
    fs::remove_file(backing.path().join("f")).expect("there");
    assert!(!bed.join("f").exists());
}
