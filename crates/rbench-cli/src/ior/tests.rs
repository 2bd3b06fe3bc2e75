use rbench_core::{Bytes, Nanos};
use rbench_plan::meta::Packet;
use rbench_plan::spec::{OnError, Segments};

use super::*;
use crate::letters::tests::{self as letters_tests, check_all, names_of};
use crate::letters::{Line as _, Takes};
use crate::parse;
use crate::tests::{check_refused_by, words};

fn check(text: &str, change: impl FnOnce(&mut Line)) {
    letters_tests::check(text, change);
}

fn check_misuse(text: &str, expect: &str) {
    let line = format!("rbench ior {text}");
    check_refused_by("ior", text, parse(&words(&line), None), &[expect]);
}

#[test]
fn the_command_lines_of_io500_mean_what_they_mean_there() {
    let easy = "-C -Q 1 -g -G 27 -k -e -F -w -D 300 -t 2m -b 9920000m -o /mnt/e/f -a POSIX \
                -O stoneWallingWearOut=1 -O stoneWallingStatusFile=/r/s";
    check(easy, |l| {
        (l.spec.reorder, l.spec.task_offset, l.spec.barriers) = (true, Some(1), true);
        (l.spec.data_seed, l.spec.keep, l.spec.fsync) = (Some(27), true, true);
        (l.spec.file_per_process, l.spec.write) = (true, true);
        l.spec.deadline = Some(Nanos(300 * Nanos::SECOND.0));
        (l.spec.transfer, l.spec.block) = (Some(Bytes(2 << 20)), Some(Bytes(9_920_000 << 20)));
        l.spec.files = vec!["/mnt/e/f".into()];
        (l.spec.wear_out, l.spec.status_file) = (true, Some("/r/s".into()));
    });
}

#[test]
fn directives_are_the_long_names_in_any_case() {
    check("-O FILEPERPROC=1,transfersize=4k,KeepFile=0", |l| {
        (l.spec.file_per_process, l.spec.transfer) = (true, Some(Bytes(4096)));
    });
    check("-F -O filePerProc=0", |_| {});
    check_misuse("-O nothing=1", "unknown option 'nothing'");
    check_misuse("-O transferSiz=1", "nearest: transferSize");
    check_misuse("-O filePerProc=yes", "filePerProc must be 1 or 0");
    check_misuse("-O keepFile", "not of the form name=value");
    check_misuse("-O collective=1", "another interface");
}

#[test]
fn each_option_sets_its_own() {
    check("-s -1", |l| l.spec.segments = Some(Segments::AsInFiles));
    check("-s=3", |l| l.spec.segments = Some(Segments::Count(3)));
    check("-o a@b", |l| l.spec.files = vec!["a".into(), "b".into()]);
    check("-wrWRkeFmEYzgC", |l| {
        let spec = &mut l.spec;
        (spec.write, spec.read, spec.check_write, spec.check_read) = (true, true, true, true);
        (
            spec.keep,
            spec.fsync,
            spec.file_per_process,
            spec.multi_file,
        ) = (true, true, true, true);
        (spec.use_existing, spec.fsync_each, spec.random) = (true, true, 1);
        (spec.barriers, spec.reorder) = (true, true);
    });
    check_all::<Line>(samples! {
        "-l t -i 3 -N 2 -T 5 -d 1.5":
            spec.packet = Some(Packet::Timestamp), spec.repetitions = Some(3), spec.tasks = Some(2),
            spec.minutes_max = Some(5), spec.delay = Some(Nanos(1_500_000_000));
        "-z -C -z -C --random-offset-seed 7":
            spec.random = 2, spec.random_seed = Some(7), spec.reorder = true;
        "-zz -O randomOffset=1,verbose=3": spec.random = 1, view.verbosity = 3;
        "-q -vv": shared.common.limits.on_error = Some(OnError::Stop), view.verbosity = 2;
        "--drop-caches --overfill --untried":
            shared.common.drop_caches = true, shared.common.leave.overfill = true,
            shared.common.leave.untried = true;
    });
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    check_misuse("-a MPIIO", "through POSIX");
    for (letter, why) in [("-c", "POSIX"), ("-u", "directories")] {
        check_misuse(letter, why);
    }
    for (option, why) in [
        ("-y", "several mounts in turn"),
        ("--dryRun", "did nothing"),
        ("--randomPrefill=1m", "a run of its own"),
        ("-O randomPrefill=1m", "a run of its own"),
        ("--posix.rangelocks", "no locks"),
        ("--mpiio.showHints", "another interface"),
    ] {
        check_misuse(option, why);
    }
    check_misuse("-J", "another interface");
    check_misuse("--blocksize 4", "--blockSize");
    check_misuse("word", "unexpected word 'word'");
}

#[test]
fn no_two_options_have_one_name_and_all_have_help() {
    let all = || Line::TABLE.options();
    let mut names: Vec<String> = all().flat_map(names_of).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(all().all(|option| !option.help.is_empty()));
    assert!(all().any(|option| matches!(option.takes, Takes::Switch(_))));
    for name in names {
        assert!(
            Line::TABLE.refusal(&name).is_none(),
            "{name} is there and refused"
        );
    }
}
