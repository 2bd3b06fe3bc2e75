//! Tests `rbench probe`: each "no" is an error of the kernel, known abilities are reported, and
//! nothing is left. A file system that does not answer is reported.

use std::fs;

use rbench_report::schema::{AbilityVerdict, HostProbeResult, ProbeResult};

use crate::common::{Place, text};
use crate::valid;

/// The result of the single host.
fn host(json: &str) -> HostProbeResult {
    valid::check(json);
    let probe: ProbeResult = serde_json::from_str(json).expect("a probe");
    let [host] = probe.hosts.try_into().expect("one host");
    host
}

/// Checks that it ends with this code and one line that contains `word`.
fn refused(place: &Place, directory: &str, code: i32, word: &str) {
    let output = place.run(&format!("probe {directory} --quiet"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{directory}: {said}");
    assert_eq!(said.lines().count(), 1, "{directory}: {said}");
    assert!(said.contains(word), "{directory}: {said}");
}

#[test]
fn what_is_no_directory_to_probe_is_refused_and_left_alone() {
    let place = Place::new();
    fs::write(place.path("plain"), "mine").expect("written");
    refused(&place, "missing", 2, "does not exist");
    refused(&place, "plain", 2, "not a directory");
    refused(&place, "/proc", 1, "/proc");
    assert_eq!(fs::read(place.path("plain")).expect("there"), b"mine");
}

mod needs_root {
    use super::super::Mounted;
    use super::*;

    #[test]
    fn a_directory_that_is_mounted_read_only_is_refused() {
        let place = Place::new();
        let target = place.target();
        let mounted = Mounted::new(&["-t", "tmpfs", "-o", "ro", "none"], target.clone());
        refused(&place, "target", 1, "mounted read-only");
        drop(mounted);
    }
}

mod traced {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;

    /// Names of the same call on other processors or in the C library.
    const ALIKE: &[(&str, &str)] = &[
        ("open", "openat"),
        ("unlink", "unlinkat"),
        ("rename", "renameat2"),
        ("symlink", "symlinkat"),
        ("link", "linkat"),
        ("mknod", "mknodat"),
        ("newfstatat", "stat"),
        ("mkdirat", "mkdir"),
        ("fchownat", "chown"),
    ];

    /// Call and error of a failed call in a line of strace.
    fn failure(line: &str) -> Option<(String, String)> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (call, rest) = line.split_once('(')?;
        let call = call.rsplit(|c| !is_word(c)).next()?;
        let call = ALIKE
            .iter()
            .find(|(name, _)| *name == call)
            .map_or(call, |(_, name)| name);
        let (_, errno) = rest.rsplit_once(" = -1 ")?;
        let errno = errno.split(|c| !is_word(c)).next()?;
        Some((call.to_owned(), errno.to_owned()))
    }

    /// Probes under strace. Each reported error must be in the trace, and everything must be
    /// decided.
    pub fn confirmed(place: &Place, directory: &str) -> HostProbeResult {
        let traced = Command::new("strace")
            .args(["-f", "-Z", "-o", "trace"])
            .arg(env!("CARGO_BIN_EXE_rbench"))
            .args(["probe", directory, "--format", "json", "--quiet"])
            .current_dir(place.path(""))
            .output()
            .expect("strace is installed (scripts/install-packages test)");
        assert_eq!(traced.status.code(), Some(0), "{}", text(&traced.stderr));
        let trace = fs::read(place.path("trace")).expect("strace wrote it");
        // With -Z, strace breaks a line where another thread interrupts it.
        let trace = text(&trace).replace(" <unfinished ...>\n", "");
        let failed: BTreeSet<_> = trace.lines().filter_map(failure).collect();
        let host = host(&text(&traced.stdout));
        let mut known = 0;
        for ability in &host.abilities {
            let name = &ability.name;
            assert_ne!(ability.verdict, AbilityVerdict::Unknown, "{name}");
            let (AbilityVerdict::No, Some(errno)) = (ability.verdict, &ability.errno) else {
                continue;
            };
            let call = ability.call.clone().expect("with a call");
            let pair = (call, errno.clone());
            assert!(
                failed.contains(&pair),
                "{name}: {pair:?} is not among {failed:?}"
            );
            known += 1;
        }
        assert!(known > 0, "nothing is lacking: {:?}", host.abilities);
        host
    }

    #[test]
    fn each_no_of_a_file_system_in_memory_is_an_error_of_the_kernel() {
        let place = Place::new();
        let memory = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        let directory = memory.path().to_str().expect("text");
        let host = confirmed(&place, directory);
        let verdict = |name: &str| {
            let entry = host.abilities.iter().find(|ability| ability.name == name);
            entry.map(|ability| ability.verdict)
        };
        assert_eq!(
            verdict("zero-range"),
            Some(AbilityVerdict::No),
            "no FALLOC_FL_ZERO_RANGE"
        );
        for has in ["rename-exchange", "flock", "mmap-shared"] {
            assert_eq!(verdict(has), Some(AbilityVerdict::Yes), "{has}");
        }
        assert_eq!(place.entries(directory), [""; 0]);
    }
}

mod needs_fuse {
    use super::*;
    use crate::common::Server;

    #[test]
    fn what_reads_of_wrong_data_do_not_show_is_unknown() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m --direct-io --fault read:flip@p=1");
        let output = place.run("probe mnt --quiet --format json");
        let host = host(&text(&output.stdout));
        let entry = |name: &str| {
            let mut all = host.abilities.iter();
            all.find(|ability| ability.name == name)
                .expect("it is tried")
        };
        for name in ["rename-noreplace", "overwrite"] {
            let found = entry(name);
            assert_eq!(found.verdict, AbilityVerdict::Unknown, "{name}");
            assert_eq!(found.detail, "read returned wrong data");
        }
        assert_eq!(entry("flock").verdict, AbilityVerdict::Yes);
        let client = host.surroundings.client.as_ref().expect("a client");
        assert_eq!(client.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        server.end();
    }

    #[test]
    fn a_no_says_in_words_what_was_seen() {
        let place = Place::new();
        let options = "--memory 64m --broken rename-keeps-source --broken list-misses";
        let server = Server::start(&place, options);
        let output = place.run("probe mnt --quiet");
        let said = text(&output.stdout);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!said.contains("instead of"), "{said}");
        assert!(said.contains(" on host "), "{said}");
        assert!(said.contains(" shows "), "{said}");
        server.end();
    }

    #[test]
    fn each_no_of_the_built_in_file_system_is_an_error_of_the_kernel() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m");
        let host = traced::confirmed(&place, "mnt");
        let mount = host.surroundings.mount.expect("it is mounted");
        assert!(mount.fs_type.starts_with("fuse"), "{}", mount.fs_type);
        assert!(host.round_trip_ns > Some(0), "{:?}", host.round_trip_ns);
        assert_eq!(place.entries("mnt"), [""; 0]);
        server.end();
    }
}

/// A file system that does not answer for 20 s is given up: earlier calls have to be faster, and
/// other tests cannot wait that long.
mod timing {
    mod needs_fuse {
        use std::fs::File;
        use std::time::Instant;

        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;

        use super::super::*;
        use crate::common::{Server, wait_until};

        fn send(server: &Server, signal: Signal) {
            kill(Pid::from_raw(server.child.id().cast_signed()), signal).expect("it is ours");
        }

        /// Continues the server when dropped.
        struct Frozen<'s>(&'s Server);

        impl Drop for Frozen<'_> {
            fn drop(&mut self) {
                send(self.0, Signal::SIGCONT);
            }
        }

        #[test]
        fn a_probe_ends_at_the_call_that_does_not_return() {
            let place = Place::new();
            let server = Server::start(&place, "--memory 64m --fault fallocate:hang@nth=1");
            let (out, err) = (place.path("out"), place.path("err"));
            let mut child = place
                .command("probe mnt --format json --quiet")
                .stdout(File::create(&out).expect("made"))
                .stderr(File::create(&err).expect("made"))
                .spawn()
                .expect("starts");
            // The kernel ends a process only after the file system has answered.
            let size = || fs::metadata(&out).map_or(0, |found| found.len());
            wait_until("the report is there although a call hangs", || size() > 0);
            send(&server, Signal::SIGUSR2);
            assert_eq!(child.wait().expect("ends").code(), Some(1));
            let host = host(&fs::read_to_string(&out).expect("there"));
            assert_eq!(host.silent_at.as_deref(), Some("fallocate"));
            let last = host.abilities.last().map(|ability| ability.name.as_str());
            assert_eq!(last, Some("fsync"), "what came before is there");
            let said = fs::read_to_string(&err).expect("there");
            assert!(said.contains("is left behind"), "{said}");
            assert_eq!(place.run("clean mnt").status.code(), Some(0));
            assert_eq!(place.entries("mnt"), [""; 0]);
            server.end();
        }

        #[test]
        fn a_file_system_that_stands_still_is_told_after_20_s() {
            let place = Place::new();
            let server = Server::start(&place, "--memory 64m");
            let err = place.path("err");
            send(&server, Signal::SIGSTOP);
            let frozen = Frozen(&server);
            let started = Instant::now();
            let mut child = place
                .command("probe mnt/x --quiet")
                .stderr(File::create(&err).expect("made"))
                .spawn()
                .expect("starts");
            let size = || fs::metadata(&err).map_or(0, |found| found.len());
            wait_until("it is told", || size() > 0);
            let took = started.elapsed().as_secs();
            drop(frozen);
            assert_eq!(child.wait().expect("ends").code(), Some(1));
            let said = fs::read_to_string(&err).expect("there");
            assert!(said.contains("did not answer within 20 s"), "{said}");
            assert!((19..60).contains(&took), "after {took} s");
            server.end();
        }
    }
}
