//! Tests that devices in use are not overwritten: loop devices with real file systems, swap areas
//! and partitions, before and after `rbench fio` was allowed to write to them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::common::wait_until;

/// Prints why a test is skipped. With `RBENCH_TEST_NO_SKIP` set, as in CI, it fails instead.
fn skip(why: &str) {
    assert!(
        std::env::var_os("RBENCH_TEST_NO_SKIP").is_none(),
        "skipped: {why}"
    );
    println!("skipped: {why}");
}

fn sh(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(words(&output.stdout)),
        false => Err(format!("{program}: {}", words(&output.stderr))),
    }
}

/// Size of an image, bytes.
const SIZE: u64 = 16 << 20;

/// Offset of ext4's magic number.
const MAGIC_AT: u64 = 1080;

/// A directory with an image on a loop device; dropping it removes all.
struct Bed {
    dir: TempDir,
    devices: Vec<String>,
    mounts: Vec<PathBuf>,
    swaps: Vec<String>,
}

impl Bed {
    /// Creates an ext4 file system in the image; `None` without loop devices.
    fn new() -> Option<Bed> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut bed = Bed {
            dir,
            devices: Vec::new(),
            mounts: Vec::new(),
            swaps: Vec::new(),
        };
        let image = bed.path("image");
        let file = fs::File::create(&image).expect("made");
        file.set_len(SIZE).expect("room");
        let attached = sh("mkfs.ext4", &["-q", &image.to_string_lossy()])
            .and_then(|_| bed.attach(&image.clone(), &[]));
        match attached {
            Ok(_) => Some(bed),
            Err(why) => {
                skip(&why);
                None
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn image(&self) -> PathBuf {
        self.path("image")
    }

    fn device(&self) -> String {
        self.devices[0].clone()
    }

    fn attach(&mut self, below: &Path, options: &[&str]) -> Result<String, String> {
        let below = below.to_string_lossy();
        let mut all = vec!["--find", "--show"];
        all.extend(options);
        all.push(&below);
        let device = sh("losetup", &all)?;
        self.devices.push(device.clone());
        Ok(device)
    }

    fn mount(&mut self, device: &str) -> PathBuf {
        let place = self.path("mounted");
        fs::create_dir(&place).expect("made");
        sh("mount", &[device, &place.to_string_lossy()]).expect("mounted");
        self.mounts.push(place.clone());
        place
    }

    /// Returns true if the file system still exists.
    fn sound(&self) -> bool {
        let file = fs::File::open(self.image()).expect("there");
        let mut magic = [0; 2];
        file.read_exact_at(&mut magic, MAGIC_AT)
            .expect("long enough");
        magic == [0x53, 0xef]
    }

    fn fio(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_rbench"))
            .args(["fio", "--name=a", "--bs=4k"])
            .args(words)
            .current_dir(self.dir.path())
            .output()
            .expect("starts")
    }

    /// Checks that writing to the files of these options is refused before anything is changed.
    fn check_refused(&self, names: &[&str], expect: &[&str]) {
        let words = [&["--rw=write", "--size=64k"], names].concat();
        let output = self.fio(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{names:?}: {said}");
        for part in expect {
            assert!(said.contains(part), "{names:?}: {said}");
        }
        assert_eq!(said.lines().count(), 1, "{names:?}: {said}");
        assert!(self.sound(), "{names:?}");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for place in &self.mounts {
            let _ = sh("umount", &[&place.to_string_lossy()]);
        }
        for area in &self.swaps {
            let _ = sh("swapoff", &[area]);
        }
        for device in self.devices.iter().rev() {
            let _ = sh("losetup", &["--detach", device]);
        }
    }
}

fn filename(path: impl AsRef<Path>) -> String {
    format!("--filename={}", path.as_ref().display())
}

/// A shell in a private mount namespace, until its standard input closes.
struct Elsewhere(Child);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn with_a_directory_given_nothing_is_opened_outside_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").expect("made");
    fs::create_dir(dir.path().join("below")).expect("made");
    let fio = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_rbench"))
            .args([
                "fio",
                "--directory=below",
                "--rw=write",
                "--bs=4k",
                "--size=8k",
            ])
            .args(words)
            .current_dir(dir.path())
            .output()
            .expect("starts")
    };
    let below = format!("below/{}", victim.display());
    let check = |words: &[&str], file: &str, length: u64| {
        let output = fio(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        let metadata = fs::metadata(dir.path().join(file));
        assert_eq!(metadata.expect(file).len(), length, "{words:?}");
        assert_eq!(fs::read(&victim).expect("there"), b"precious", "{words:?}");
    };
    // The same as fio 3.33.
    let absolute = filename(&victim);
    check(&[&absolute, "--name=a"], &below, 8192);
    check(&["--filename=/x:sub/y", "--name=a"], "below/x", 4096);
    check(&["--filename=/x:sub/y", "--name=a"], "below/sub/y", 4096);
    check(&["--filename=a\\:b", "--name=a"], "below/a:b", 8192);
    check(&["--filename=sub/../z", "--name=a"], "below/z", 8192);
    check(
        &["--filename_format=/f.$jobname", "--name=a"],
        "below/f.a",
        8192,
    );
    check(&["--name=/slash"], "below/slash.0.0", 8192);
    // fio follows these paths out of the directory.
    for words in [
        &["--filename=../victim", "--name=a"][..],
        &["--filename=x:sub/../../victim", "--name=a"],
        &["--filename_format=../victim", "--name=a"],
        &["--filename_format=$jobname", "--name=../victim"],
    ] {
        let output = fio(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("is outside of the directory below"), "{said}");
        assert_eq!(fs::read(&victim).expect("there"), b"precious");
    }
}

/// Loop devices and mounts.
mod needs_root {
    use super::*;

    #[test]
    fn a_mounted_device_is_not_written_to_by_whatever_name() {
        let Some(mut bed) = Bed::new() else { return };
        let device = bed.device();
        let place = bed.mount(&device);
        let mounted = format!("is mounted on {}", place.display());
        bed.check_refused(
            &[&filename(&device)],
            &[&device, &mounted, "allow_mounted_write"],
        );
        // A symbolic link, another node with the same number, and a name from a format.
        let link = bed.path("link");
        symlink(&device, &link).expect("made");
        bed.check_refused(&[&filename(&link)], &[&mounted]);
        let number = fs::metadata(&device).expect("there").rdev();
        let (major, minor) = (
            nix::sys::stat::major(number).to_string(),
            nix::sys::stat::minor(number).to_string(),
        );
        let node = bed.path("node");
        sh("mknod", &[&node.to_string_lossy(), "b", &major, &minor]).expect("made");
        bed.check_refused(&[&filename(&node)], &[&mounted]);
        bed.check_refused(&["--filename_format=link"], &[&mounted]);
        bed.check_refused(&[&filename(&node), "--create_on_open=1"], &[&mounted]);
        bed.check_refused(
            &[&filename(&node), "--numjobs=3", "--ioengine=io_uring"],
            &[&mounted],
        );
        // The second of several, and one in a later group.
        fs::write(bed.path("file"), []).expect("made");
        bed.check_refused(&["--filename=file:node"], &[&mounted]);
        let later = [
            "--filename=file",
            "--name=b",
            "--stonewall",
            "--filename=node",
            "--rw=write",
        ];
        bed.check_refused(&later, &["job 'b'", &mounted]);
        assert_eq!(fs::metadata(bed.path("file")).expect("there").len(), 0);
        // A name in an I/O log.
        let lines = format!("{device} add\n{device} open\n{device} write 0 4096\n");
        fs::write(bed.path("log"), format!("fio version 2 iolog\n{lines}")).expect("written");
        bed.check_refused(&["--read_iolog=log"], &[&mounted]);
        bed.check_refused(&["--read_iolog=log", "--read_iolog_chunked=1"], &[&mounted]);
        // The backing file of the device.
        let behind = format!("backing the loop device {device}");
        bed.check_refused(&[&filename(bed.image())], &[&behind]);
    }

    #[test]
    fn a_name_that_is_looked_at_only_when_it_is_opened_is_refused_all_the_same() {
        let Some(mut bed) = Bed::new() else { return };
        let device = bed.device();
        bed.mount(&device);
        symlink(&device, bed.path("a.0.0")).expect("made");
        let output = bed.fio(&["--rw=write", "--size=64k", "--create_on_open=1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("EBUSY") && said.contains("is mounted on"),
            "{said}"
        );
        assert!(bed.sound());
    }

    #[test]
    fn what_only_the_kernel_knows_to_be_in_use_is_refused_by_whatever_name() {
        let Some(bed) = Bed::new() else { return };
        let device = bed.device();
        symlink(&device, bed.path("a.0.0")).expect("made");
        // Like a file system's additional devices: no table lists them.
        let holder = fs::OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_EXCL)
            .open(&device)
            .expect("nobody else holds it");
        let output = bed.fio(&["--rw=write", "--size=64k", "--create_on_open=1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("the kernel refuses to open it exclusively"),
            "{said}"
        );
        assert!(bed.sound());
        drop(holder);
        // A process that another test starts has a copy of the descriptor for a moment.
        wait_until("it is written to", || {
            let output = bed.fio(&["--rw=write", "--size=64k", "--create_on_open=1"]);
            output.status.code() == Some(0)
        });
    }

    #[test]
    fn what_is_in_use_may_be_read_and_what_is_not_may_be_written() {
        let Some(mut bed) = Bed::new() else { return };
        let device = bed.device();
        let place = bed.mount(&device);
        let read = bed.fio(&["--rw=read", "--size=64k", &filename(&device)]);
        assert_eq!(read.status.code(), Some(0), "{read:?}");
        assert!(bed.sound());
        sh("umount", &[&place.to_string_lossy()]).expect("unmounted");
        bed.mounts.clear();
        // A mount namespace that another test makes has a copy of the mount until that test ends.
        wait_until("it is written to", || {
            let file = filename(&device);
            let write = bed.fio(&["--rw=write", "--size=64k", "--numjobs=2", &file]);
            write.status.code() == Some(0)
        });
        assert!(!bed.sound(), "it was to be written");
    }

    #[test]
    fn who_says_so_writes_to_a_mounted_device() {
        let Some(mut bed) = Bed::new() else { return };
        let device = bed.device();
        bed.mount(&device);
        let words = [
            "--rw=write",
            "--size=64k",
            "--end_fsync=1",
            "--allow_mounted_write=1",
        ];
        let output = bed.fio(&[&words[..], &[&filename(&device)]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(!bed.sound());
    }

    #[test]
    fn a_device_under_another_one_is_not_written_to() {
        let Some(mut bed) = Bed::new() else { return };
        let device = bed.device();
        let above = bed
            .attach(Path::new(&device), &[])
            .expect("a second loop device");
        let behind = format!("backing the loop device {above}");
        bed.check_refused(&[&filename(&device)], &[&behind]);
    }

    #[test]
    fn a_device_with_a_partition_in_use_is_not_written_to() {
        let Some(mut bed) = Bed::new() else { return };
        let image = bed.path("parted");
        fs::File::create(&image)
            .and_then(|file| file.set_len(SIZE))
            .expect("made");
        let device = bed.attach(&image, &["--partscan"]).expect("attached");
        // Like the kernel's own parser for a partition table.
        let added = sh("addpart", &[&device, "1", "2048", "20480"]);
        added.expect("a partition");
        let part = format!("{device}p1");
        sh("mkfs.ext4", &["-q", &part]).expect("made");
        let place = bed.mount(&part);
        let name = part.trim_start_matches("/dev/");
        let words = format!("its partition {name} is mounted on {}", place.display());
        bed.check_refused(&[&filename(&device)], &[&words]);
        bed.check_refused(&[&filename(&part)], &["is mounted on"]);
    }

    #[test]
    fn a_device_that_is_swapped_to_is_not_written_to() {
        let Some(mut bed) = Bed::new() else { return };
        let image = bed.path("swap");
        fs::File::create(&image)
            .and_then(|file| file.set_len(SIZE))
            .expect("made");
        let device = bed.attach(&image, &[]).expect("attached");
        sh("mkswap", &[&device]).expect("made");
        if let Err(why) = sh("swapon", &[&device]) {
            return skip(&why);
        }
        bed.swaps.push(device.clone());
        bed.check_refused(&[&filename(&device)], &["is used as swap"]);
    }

    #[test]
    fn a_device_that_is_mounted_in_another_mount_namespace_is_not_written_to() {
        let Some(bed) = Bed::new() else { return };
        let (device, place) = (bed.device(), bed.path("there"));
        fs::create_dir(&place).expect("made");
        let script = format!(
            "mount {device} {} && echo mounted && read end",
            place.display()
        );
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut elsewhere = Elsewhere(child);
        let mut line = String::new();
        let stdout = elsewhere.0.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("read");
        assert_eq!(line, "mounted\n");
        let mounted = format!("is mounted on {}", place.display());
        bed.check_refused(&[&filename(&device)], &[&mounted]);
    }
}
