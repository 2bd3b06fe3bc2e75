//! Tests that a run is refused, before any change, if the file system lacks a required operation.
//! The message names the option and the file system's answer, for every command line.

use crate::common::{Place, text};

const FIO: &str = "fio --name=job --size=1m --bs=4k";

/// The words of a line, and one last word that may contain spaces.
fn words<'l>(line: &'l str, last: &'l str) -> Vec<&'l str> {
    let words = line.split_whitespace().chain([last]);
    words.filter(|word| !word.is_empty()).collect()
}

/// Checks that the run ends with 2 and these sentences, and leaves `directory` unchanged.
fn refused(place: &Place, directory: &str, words: &[&str], sentences: &[String]) {
    let before = place.entries(directory);
    let output = place.command("").args(words).output().expect("it starts");
    let stderr = text(&output.stderr);
    let said = stderr.lines().filter_map(|l| l.strip_prefix("rbench: "));
    assert_eq!(said.collect::<Vec<_>>(), sentences, "{words:?}: {stderr}");
    assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
    assert_eq!(place.entries(directory), before, "{words:?}");
}

fn goes(place: &Place, words: &[&str]) {
    let output = place.command("").args(words).arg("--quiet").output();
    let output = output.expect("it starts");
    let code = output.status.code();
    assert_eq!(code, Some(0), "{words:?}: {}", text(&output.stderr));
}

mod needs_root {
    use std::fs;

    use super::super::Mounted;
    use super::*;

    #[test]
    fn without_o_direct_each_command_line_that_needs_it_is_refused() {
        let place = Place::new();
        let target = place.target();
        let mounted = Mounted::new(&["-t", "ramfs", "none"], target.clone());
        let says = |what: &str| {
            let text = format!("O_DIRECT ({what}): ramfs (none) refuses it (openat: EINVAL)");
            vec![text]
        };
        let direct = format!("{FIO} --directory=target --direct=1");
        for (line, what) in [
            ("io --dir target --size 1m --direct", "--direct"),
            (&direct, "job job"),
            ("ior -o target/a -b 1m -t 64k --posix.odirect", "job write"),
        ] {
            refused(&place, "target", &words(line, ""), &says(what));
        }
        goes(&place, &words("io --dir target --size 1m", ""));
        // A file that is only read, and its directory, are left alone; the run fails later.
        fs::write(target.join("there"), vec![0; 1 << 20]).expect("written");
        let read = place.run(&format!(
            "{FIO} --filename=target/there --rw=read --direct=1"
        ));
        let said = text(&read.stderr) + &text(&read.stdout);
        assert_eq!(read.status.code(), Some(1), "{said}");
        assert!(said.contains("EINVAL"), "{said}");
        drop(mounted);
    }
}

mod needs_fuse {
    use super::*;
    use crate::common::Server;

    /// The faults, a command line that needs the failing operations, and the message.
    struct Case {
        faults: &'static [&'static str],
        words: Vec<&'static str>,
        sentences: &'static [&'static str],
    }

    fn cases() -> Vec<Case> {
        let case = |faults, words, sentences| Case {
            faults,
            words,
            sentences,
        };
        let mix = "mix --dir mnt --files 20 --rounds 2 --list";
        vec![
            case(
                &["write:EINVAL@nth=2"],
                words("io --dir mnt --size 1m --rw randwrite", ""),
                &["writes at any offset (--rw randwrite): FS refuses it (pwrite64: EINVAL)"],
            ),
            case(
                &["write:EINVAL@nth=2"],
                words(mix, "open, write 1k random, close"),
                &["writes at any offset (--list): FS refuses it (pwrite64: EINVAL)"],
            ),
            case(
                &["write:misdirect@nth=2"],
                [words(FIO, ""), words("--directory=mnt --rw=randwrite", "")].concat(),
                &[
                    "writes at any offset (job job): FS does not support it (pread64: unexpected result)",
                ],
            ),
            case(
                &["read:flip@p=1"],
                words("io --dir mnt --size 1m --rw randwrite", ""),
                &["writes at any offset (--rw randwrite): FS: read returned wrong data (pread64)"],
            ),
            case(
                &["fallocate:EOPNOTSUPP@after=0"],
                [
                    words(FIO, ""),
                    words("--directory=mnt --rw=trimwrite --fallocate=none", ""),
                ]
                .concat(),
                &["punching holes (job job): FS refuses it (fallocate: EOPNOTSUPP)"],
            ),
            case(
                &["link:EPERM@after=0"],
                words(
                    "meta --dir mnt --items 5 --phases file-create,file-link,file-remove",
                    "",
                ),
                &["hard links (--phases file-link): FS refuses it (linkat: EPERM)"],
            ),
            case(
                &["symlink:EPERM@after=0", "setxattr:EOPNOTSUPP@after=0"],
                words(
                    "meta --dir mnt --items 5 --phases file-create,file-symlink,file-setxattr,file-remove",
                    "",
                ),
                &[
                    "symbolic links (--phases file-symlink): FS refuses it (symlinkat: EPERM)",
                    "extended attributes (--phases file-setxattr): FS refuses it (fsetxattr: EOPNOTSUPP)",
                ],
            ),
        ]
    }

    #[test]
    fn a_run_is_refused_when_requests_fail_that_it_needs() {
        for case in cases() {
            let place = Place::new();
            let faults = case.faults.iter().map(|fault| format!("--fault {fault} "));
            let options = format!("--memory 64m {}", faults.collect::<String>());
            let server = Server::start(&place, &options);
            let fs = "fuse.rbench-testfs (rbench-testfs)";
            let sentences = case.sentences.iter().map(|s| s.replace("FS", fs));
            let sentences: Vec<String> = sentences.collect();
            refused(&place, "mnt", &case.words, &sentences);
            server.end();
        }
    }

    #[test]
    fn the_same_runs_go_where_nothing_fails() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m");
        for case in cases() {
            goes(&place, &case.words);
        }
        server.end();
    }
}
