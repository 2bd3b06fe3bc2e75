//! Traces of each format, read line by line.

use super::survey::{Step, Survey};
use super::*;
use crate::testing::check_error;

pub(super) fn reading() -> Reading {
    Reading {
        names: Names::default(),
        unit: Nanos::MICROSECOND,
        cwd: Some(b"/w".to_vec()),
    }
}

fn read_as(format: Format, text: &str) -> Result<Out, String> {
    read_with(format, text, &reading())
}

pub(super) fn read_with(format: Format, text: &str, reading: &Reading) -> Result<Out, String> {
    let mut reader = reader(format, reading);
    let mut out = Out::default();
    for (number, line) in text.lines().enumerate() {
        let number = number as u64 + 1;
        let read = reader.line(number, line.as_bytes(), &mut out);
        read.map_err(|why| format!("line {number}: {why}"))?;
    }
    reader.end(&mut out)?;
    Ok(out)
}

/// What a survey finds in these operations.
fn survey_of(ops: &[Op]) -> Survey {
    let mut survey = Survey::default();
    for op in ops.iter().cloned() {
        survey.take(&Step { trace: 0, op }).expect("taken");
    }
    survey
}

fn check_refused(format: Format, text: &str, wanted: &str) {
    check_error(read_as(format, text), wanted);
}

/// What was left out of the replay, with its number.
fn left_out(out: &Out) -> Vec<(&'static str, u64)> {
    out.left_out.0.iter().map(|(why, n)| (*why, *n)).collect()
}

fn shown(out: &Out) -> Vec<String> {
    let name = |name: &Name| String::from_utf8_lossy(name).into_owned();
    let show = |op: &Op| {
        let kind = op.call.op().name();
        let (path, file) = (op.path.as_ref().map(name), op.file);
        let file = file.map(|file| format!("#{file}"));
        let at = match op.call {
            Call::Read | Call::Write => Some("None".to_owned()),
            Call::ReadAt(at) | Call::WriteAt(at) => Some(format!("Some({at})")),
            _ => None,
        };
        let length = at.as_ref().and(op.length).map(|length| length.to_string());
        let other = match &op.other {
            Other::Path(to) => Some(name(to)),
            Other::Bytes(_) | Other::Nothing => None,
        };
        let words: Vec<String> = [path, other, file, at, length]
            .into_iter()
            .flatten()
            .collect();
        let what = words.join(" ");
        let mark = if op.implied { "(" } else { "" };
        format!("{mark}{} {kind} {what}", op.process)
    };
    out.ops.iter().map(show).collect()
}

fn before(out: &Out) -> Vec<String> {
    let show = |one: &world::Prepared| {
        let path = String::from_utf8_lossy(&one.path);
        format!("{path} {:?} {}", one.kind, one.size)
    };
    survey_of(&out.ops)
        .finish()
        .before
        .iter()
        .map(show)
        .collect()
}

/// Recorded latencies cover the same operations as those of the replay, in which an expected
/// failure counts as done.
#[test]
fn recorded_latencies_are_of_failed_operations_too() {
    let out = read_as(
        Format::Strace,
        "1 1.0 stat(\"/a\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0 <0.000010>\n\
         1 2.0 stat(\"/b\", 0x7ffc) = -1 ENOENT (No such file or directory) <0.000030>\n\
         1 3.0 stat(\"/b\", 0x7ffc) = -1 ENOENT (No such file or directory) <18446744000.000000>",
    )
    .expect("read");
    let summary = survey_of(&out.ops).finish();
    let stats = &summary.kinds[&rbench_core::OpKind::Stat];
    assert_eq!((stats.operations, stats.latency.count()), (3, 3));
    // A damaged stamp does not overflow the sums.
    assert!(stats.latency.max() < Nanos(u64::MAX / 2));
}

const STRACE: &str = r#"
100 1700000000.000001 openat(AT_FDCWD, "in", O_RDONLY|O_CLOEXEC) = 3 <0.000010>
100 1700000000.000020 fstat(3, {st_mode=S_IFREG|0644, st_size=5000, ...}) = 0 <0.000005>
100 1700000000.000030 read(3, "abc\"), x"..., 4096) = 4096 <0.000007>
100 1700000000.000040 dup2(3, 7) = 7 <0.000001>
100 1700000000.000050 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
101 1700000000.000060 read(7, "x", 4096) = 904 <0.000007>
101 1700000000.000070 mkdir("../new dir", 0777) = 0 <0.000020>
100 1700000000.000080 <... clone resumed>) = 101 <0.000030>
100 1700000000.000090 close(3) = 0 <0.000001>
101 1700000000.000100 chdir("../new dir") = 0 <0.000001>
101 1700000000.000110 openat(AT_FDCWD, "out\303\274", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3 <0.000010>
101 1700000000.000120 write(3, "y"..., 100) = 100 <0.000010>
101 1700000000.000130 rename("out\303\274", "final") = 0 <0.000010>
101 1700000000.000140 stat("/w/nothing", 0x7ffc) = -1 ENOENT (No such file or directory) <0.000004>
101 1700000000.000150 openat(AT_FDCWD, "/proc/self/maps", O_RDONLY) = 4 <0.000004>
101 1700000000.000160 read(4, "", 100) = 0 <0.000004>
101 1700000000.000170 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000 <0.000004>
101 1700000000.000180 +++ exited with 0 +++
100 1700000000.000190 --- SIGCHLD {si_signo=SIGCHLD} ---
100 1700000000.000200 exit_group(0) = ?
100 1700000000.000210 +++ exited with 0 +++
"#;

#[test]
fn strace_follows_descriptors_through_dup_fork_and_exit() {
    let out = read_as(Format::Strace, STRACE).expect("read");
    let expect = [
        "100 open w/in #0",
        "100 stat #0",
        "100 read #0 None 4096",
        "101 read #0 None 4096",
        "101 mkdir new dir",
        "101 open new dir/outü #1",
        "101 write #1 None 100",
        "101 rename new dir/outü new dir/final",
        "101 stat w/nothing",
        "(101 close #1",
        "(100 close #0",
    ];
    assert_eq!(shown(&out), expect);
    let expect = [(why::DUPLICATE, 1), (why::KERNEL, 2), (why::MAPPED, 1)];
    assert_eq!(left_out(&out), expect);
    assert_eq!(before(&out), ["w Directory 0", "w/in File 5000"]);
}

#[test]
fn paths_behind_descriptors_may_hold_anything() {
    let text = "7 1.0 openat(AT_FDCWD</w,(x>, \"a\", O_RDONLY) = 3</w,(x/a,)b> <0.1>\n\
                7 1.1 read(3</w,(x/a,)b>, \"\"..., 10) = 10 <0.1>\n\
                7 1.2 close(3</w,(x/a,)b>(deleted)) = 0 <0.1>";
    let out = read_as(Format::Strace, text).expect("read");
    let expect = ["7 open w/a #0", "7 read #0 None 10", "7 close #0"];
    assert_eq!(shown(&out), expect);
}

#[test]
fn a_damaged_strace_is_an_error_with_its_line() {
    let check = |text: &str, wanted: &str| check_refused(Format::Strace, text, wanted);
    each! { check:
        "100 1.0 openat(AT_FDCWD, \"in" => "line 1: a call is cut off";
        "100 1.0 openat(AT_FDCWD, \"in\", O_RDONLY) = " => "line 1: the result of a call";
        "hello" => "line 1: the line has no time";
        "1 1.0 stat(\"a\\0b\", 0x1) = 0" => "line 1: a name contains a NUL byte";
        "1 1.0 close(x) = 0" => "line 1: 'x' is not a number";
        "1 1.0 open(\"a\", O_RDONLY) = -1 EWHAT (x)" => "line 1: 'EWHAT' is not a Linux error";
        "1 1.0 <... open resumed" => "line 1: the end of a call is cut off";
    }
}

#[test]
fn jfs_requests_become_calls() {
    let text = "\
2024.03.01 10:00:00.000100 [uid:0,gid:0,pid:7] lookup (1,d): OK (2,[drwxr-xr-x:0040755,2,0,0,0,0,0,4096]) <0.000050>
2024.03.01 10:00:00.000200 [uid:0,gid:0,pid:7] lookup (2,a,b): OK (3,[-rw-r--r--:0100644,1,0,0,0,0,0,9000]) <0.000050>
#
2024.03.01 10:00:00.000300 [uid:0,gid:0,pid:7] open (3): OK [fh:9] <0.000050>
2024.03.01 10:00:00.000400 [uid:0,gid:0,pid:7] read (3,4096,0): OK (4096) <0.000050>
2024.03.01 10:00:00.000500 [uid:0,gid:0,pid:8] read (3,4096,4096): OK (4096) <0.000050>
2024.03.01 10:00:00.000600 [uid:0,gid:0,pid:7] flush (3): OK <0.000020>
2024.03.01 10:00:00.000700 [uid:0,gid:0,pid:0] release (3): OK <0.000010>
2024.03.01 10:00:01.000100 [uid:0,gid:0,pid:7] lookup (2,n): no such file or directory <0.000050>
2024.03.01 10:00:01.000200 [uid:0,gid:0,pid:7] create (2,n,-rw-r--r--:0100644):(4,[-rw-r--r--:0100644,1,0,0,0,0,0,0]) [fh:11] - OK <0.000050>
2024.03.01 10:00:01.000300 [uid:0,gid:0,pid:7] write (4,100,0,11) - OK <0.000050>
2024.03.01 10:00:01.000400 [uid:0,gid:0,pid:7] rename (2,n,1,m,0): OK <0.000050>
2024.03.01 10:00:01.000500 [uid:0,gid:0,pid:7] release (4,11): OK <0.000010>
2024.03.01 10:00:01.000600 [uid:0,gid:0,pid:7] release (5,13): OK <0.000010>
2024.03.01 10:00:01.000700 [uid:0,gid:0,pid:7] getattr (4): OK (4,[-rw-r--r--:0100644,1,0,0,0,0,0,100]) <0.000050>
";
    let out = read_as(Format::Juicefs, text).expect("read");
    let expect = [
        "7 open d/a,b #0",
        "7 read #0 Some(0) 4096",
        "(8 open d/a,b #1",
        "8 read #1 Some(4096) 4096",
        "7 close #0",
        "(8 close #1",
        "7 open d/n #2",
        "7 write #2 Some(0) 100",
        "7 rename d/n m",
        "7 close #2",
        "7 stat m",
    ];
    assert_eq!(shown(&out), expect);
    assert_eq!(out.gaps, 1);
    assert_eq!(before(&out), ["d Directory 0", "d/a,b File 9000"]);
    // The open includes the time from the first lookup on.
    assert_eq!(out.ops[0].took, Some(Nanos(250_000)));
    let check = |text: &str, wanted: &str| check_refused(Format::Juicefs, text, wanted);
    each! { check:
        "2024.03.01 10:00:00.000100 [uid:0,gid:0,pid:7] lookup (1,d): OK" => "cut off";
        "2024.03.01 [uid:0,gid:0,pid:7] lookup (1,d): OK <0.1>" => "not a time";
        "2024.03.01 10:00:00.1 [uid:0,gid:0,pid:7] lookup (x,d): OK <0.1>" => "arguments of 'lookup'";
        "2024.03.01 10:00:00.1 [uid:0,gid:0,pid:7] unlink (1,..): OK <0.1>" => "a slash or is . or ..";
    }
}

/// Sizes that a damaged trace claims do not overflow when added.
#[test]
fn sizes_do_not_wrap_round() {
    let stat = |name: &str| {
        format!(
            "{{\"at\":1,\"process\":1,\"op\":\"stat\",\"path\":\"{name}\",\"returned\":0,\"kind\":\"file\",\"size\":{}}}\n",
            i64::MAX
        )
    };
    let text = [form::HEADER, "\n", &stat("a"), &stat("b"), &stat("c")].concat();
    let ops = read_as(Format::Rbench, &text).expect("read").ops;
    assert_eq!(survey_of(&ops).finish().bytes_before(), u64::MAX);
}

/// Operations that need more memory than any call are left out.
#[test]
fn calls_ask_for_room_that_there_is() {
    let text = "1 1.0 listxattr(\"/a\", NULL, 9000000000000000000) = 0\n\
                1 1.1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
                1 1.2 read(3, \"\"..., 9000000000000000000) = 0";
    let out = read_as(Format::Strace, text).expect("read");
    assert_eq!(out.left_out.0[why::LARGE], 1);
    assert_eq!(survey_of(&out.ops).finish().largest, 1 << 16);
    let mut out = Out::default();
    for length in [TRANSFER_MAX, TRANSFER_MAX + 1] {
        for call in [
            Call::Readdir,
            Call::Listxattr(By::File),
            Call::Getxattr(By::File, None),
            Call::Setxattr(By::File, None, 0),
        ] {
            out.push(Op::on_file(0, call).moving(length));
        }
    }
    assert_eq!((out.ops.len(), out.left_out.0[why::LARGE]), (4, 4));
}

#[test]
fn a_call_on_attributes_follows_a_link_or_not_by_its_name() {
    let text = "1 1.0 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
                1 1.1 listxattr(\"a\", NULL, 0) = 0\n\
                1 1.2 llistxattr(\"a\", NULL, 0) = 0\n\
                1 1.3 flistxattr(3, NULL, 0) = 0\n\
                1 1.4 lremovexattr(\"a\", \"user.x\") = 0\n\
                1 1.5 lchown(\"a\", 1, 1) = 0\n\
                1 1.6 removexattr(\"a\", \"user.x\") = 0";
    let out = read_as(Format::Strace, text).expect("read");
    let calls: Vec<Call> = out.ops.iter().skip(1).map(|op| op.call).collect();
    let expect = [
        Call::Listxattr(By::Path),
        Call::Listxattr(By::Link),
        Call::Listxattr(By::File),
        Call::Removexattr(By::Link, None),
        Call::Chown(By::Link, 1, 1),
        Call::Removexattr(By::Path, None),
    ];
    assert_eq!(calls, expect);
}

#[test]
fn a_rename_makes_no_device() {
    let text = "1 1.0 renameat2(AT_FDCWD, \"a\", AT_FDCWD, \"b\", RENAME_WHITEOUT) = 0\n\
                1 1.1 renameat2(AT_FDCWD, \"a\", AT_FDCWD, \"b\", RENAME_EXCHANGE) = 0";
    let out = read_as(Format::Strace, text).expect("read");
    assert_eq!(shown(&out), ["1 rename w/a w/b"]);
    assert_eq!(out.left_out.0[why::DEVICE], 1);
}

/// Nested directories use no more memory than a path may have.
#[test]
fn paths_end_where_those_of_a_system_do() {
    let name = "n".repeat(250);
    let cd = format!("1 1.0 chdir(\"{name}\") = 0\n").repeat(17);
    let error = read_as(Format::Strace, &cd).expect_err("refused");
    let expect = "line 17: the path of a working directory is longer than 4095 bytes";
    assert_eq!(error, expect);
    let mkdir = |n: u64| {
        format!(
            "2024.03.01 10:00:00.0001 [uid:0,gid:0,pid:7] mkdir ({n},{name},drwxr-xr-x:0040755): OK ({},[drwxr-xr-x:0040755,2,0,0,0,0,0,4096]) <0.00005>\n",
            n + 1
        )
    };
    let jfs: String = (1..=18).map(mkdir).collect();
    let out = read_as(Format::Juicefs, &jfs).expect("read");
    assert_eq!((out.ops.len(), out.left_out.0[why::LONG]), (16, 2));
}

/// The data about any trace is limited.
#[test]
fn what_is_known_of_a_trace_takes_so_much_memory_at_most() {
    let surveyed = |text: &str| {
        let mut survey = Survey::in_room(200_000);
        let mut ops = read_as(Format::Strace, text).expect("read").ops.into_iter();
        ops.try_for_each(|op| survey.take(&Step { trace: 0, op }))
    };
    let refused = |line: &dyn Fn(u32) -> String| {
        let all: String = (0..3_000).map(line).collect();
        check_error(surveyed(&all), "need more than 200000B of memory");
    };
    refused(&|n| format!("1 1.0 stat(\"a{n}\", 0x1) = 0\n"));
    refused(&|n| format!("1 1.0 stat(\"/a{n}\", 0x1) = -1 ENOENT (x)\n"));
    refused(&|n| format!("1 1.0 mkdir(\"a{n}\", 0777) = 0\n"));
    refused(&|n| format!("{n} 1.0 stat(\"a\", 0x1) = 0\n"));
    refused(&|n| format!("1 1.0 openat(AT_FDCWD, \"a\", O_RDONLY) = {}\n", n + 3));
    // Names that are created and removed do not add up.
    let again = "1 1.0 mkdir(\"a\", 0777) = 0\n1 1.0 mkdir(\"a/b\", 0777) = 0\n\
                 1 1.0 rmdir(\"a/b\") = 0\n1 1.0 rmdir(\"a\") = 0\n";
    assert_eq!(surveyed(&again.repeat(1_000)), Ok(()));
}

#[test]
fn attributes_with_names_of_users_are_replayed() {
    let set = |name: &str| format!("1 1.0 setxattr(\"a\", \"{name}\", \"v\", 1, 0) = 0\n");
    let longest = format!("user.{}", "x".repeat(250));
    let text = [set(&longest), set(&format!("{longest}y")), set("trusted.x")];
    // What `strace -s 0` prints.
    let cut_off = "1 1.0 getxattr(\"a\", \"\"..., NULL, 0) = 3\n";
    let out = read_as(Format::Strace, &(text.concat() + cut_off)).expect("read");
    assert_eq!(out.ops.len(), 1);
    assert_eq!(out.ops[0].carries(), 255);
    let reasons = [(why::LONG, 1), (why::ATTRIBUTE, 1), (why::CUT_OFF, 1)];
    assert_eq!(left_out(&out), reasons);
}

/// `/dev` and similar names are the kernel's on a host, but users' directories on a mount.
#[test]
fn names_of_the_kernel_are_those_of_a_host() {
    let jfs = "2024.03.01 10:00:00.000100 [uid:0,gid:0,pid:7] mkdir (1,dev,drwxr-xr-x:0040755): OK (2,[drwxr-xr-x:0040755,2,0,0,0,0,0,4096]) <0.000050>";
    let own = format!(
        "{}\n{{\"at\":1,\"process\":7,\"op\":\"mkdir\",\"path\":\"dev\",\"mode\":493}}",
        form::HEADER
    );
    for (format, text) in [(Format::Juicefs, jfs), (Format::Rbench, &own)] {
        let out = read_as(format, text).expect("read");
        assert_eq!(shown(&out), ["7 mkdir dev"], "{format:?}");
    }
    let out = read_as(Format::Strace, "7 1.0 mkdir(\"/dev/x\", 0777) = 0").expect("read");
    assert_eq!(out.left_out.0[why::KERNEL], 1);
}

/// Two files of one process, one of them outside of the replay.
#[test]
fn what_is_done_with_a_file_that_is_left_out_is_left_out_too() {
    let text = "\
2024.03.01 10:00:00.000100 [uid:0,gid:0,pid:7] lookup (1,d): OK (2,[drwxr-xr-x:0040755,2,0,0,0,0,0,4096]) <0.000050>
2024.03.01 10:00:00.000200 [uid:0,gid:0,pid:7] lookup (1,e): OK (3,[drwxr-xr-x:0040755,2,0,0,0,0,0,4096]) <0.000050>
2024.03.01 10:00:01.000100 [uid:0,gid:0,pid:7] create (3,out,-rw-r--r--:0100644):(5,[-rw-r--r--:0100644,1,0,0,0,0,0,0]) [fh:12] - OK <0.000050>
2024.03.01 10:00:01.000200 [uid:0,gid:0,pid:7] write (5,100,0,12) - OK <0.000050>
2024.03.01 10:00:01.000300 [uid:0,gid:0,pid:7] create (2,in,-rw-r--r--:0100644):(4,[-rw-r--r--:0100644,1,0,0,0,0,0,0]) [fh:11] - OK <0.000050>
2024.03.01 10:00:01.000400 [uid:0,gid:0,pid:7] write (5,300,100,12) - OK <0.000050>
2024.03.01 10:00:01.000500 [uid:0,gid:0,pid:7] write (6,700,0,13) - OK <0.000050>
2024.03.01 10:00:01.000600 [uid:0,gid:0,pid:7] write (6,800,0,13) - OK <0.000050>
2024.03.01 10:00:01.000700 [uid:0,gid:0,pid:7] write (4,200,0,11) - OK <0.000050>
2024.03.01 10:00:01.000800 [uid:0,gid:0,pid:7] release (5,12): OK <0.000010>
2024.03.01 10:00:01.000900 [uid:0,gid:0,pid:7] release (4,11): OK <0.000010>
";
    let below = Reading {
        names: Names::below(Some(b"/d")),
        ..reading()
    };
    let out = read_with(Format::Juicefs, text, &below).expect("read");
    let expect = [
        "7 stat ",
        "7 open in #1",
        "7 write #1 Some(0) 200",
        "7 close #1",
    ];
    assert_eq!(shown(&out), expect);
    // The open of inode 6 is missing, once.
    assert_eq!(out.gaps, 1);
    assert_eq!(left_out(&out), [(why::ELSEWHERE, 7)]);
}

#[test]
fn iologs_and_dxt_become_calls() {
    let text = "fio version 3 iolog\n0 /d/f add\n5 /d/f open\n10 /d/f write 4096 512\n20 /d/f datasync 0 0\n30 /d/f close";
    let out = read_as(Format::Iolog, text).expect("read");
    let expect = [
        "0 open d/f #0",
        "0 write #0 Some(4096) 512",
        "0 fdatasync #0",
        "0 close #0",
    ];
    assert_eq!(shown(&out), expect);
    assert_eq!(out.ops[1].at, Nanos(10_000));
    let text = "\
# darshan log version: 3.41
# DXT, file_id: 12, file_name: /scratch/one
# Module Rank Wt/Rd Segment Offset Length Start(s) End(s)
 X_MPIIO  0 write 0 0 100 0.1000 0.2000
 X_MPIIO  0 write 0 100 0.1000 0.2000
 X_POSIX  0 write 0 0 100 0.1000 0.2000
 X_POSIX  1 read 0 50 100 0.1500 0.3000 [OST] 5
# DXT, file_id: 13, file_name: /scratch/two
 X_POSIX  0 read 0 0 10 0.0500 0.0600";
    let out = read_as(Format::Dxt, text).expect("read");
    let expect = [
        "(0 open scratch/two #0",
        "0 read #0 Some(0) 10",
        "(0 close #0",
        "(0 open scratch/one #1",
        "0 write #1 Some(0) 100",
        "(1 open scratch/one #2",
        "1 read #2 Some(50) 100",
        "(0 close #1",
        "(1 close #2",
    ];
    assert_eq!(shown(&out), expect);
}

#[test]
fn what_newer_versions_of_juicefs_write_is_read() {
    let text = "\
2024.05.23 16:11:18.700000 [uid:0,gid:0,pid:1] create (1,a,-rw-r--r--:0100644): (2,[-rw-r--r--:0100644,1,0,0,1,1,1,0]) [fh:1] - OK <0.000200>
2024.05.23 16:11:18.710000 [uid:0,gid:0,pid:1] write (2,4096,0,1) - OK <0.000050>
2024.05.23 16:11:18.720000 [uid:0,gid:0,pid:1] setattr (2[1],0x8,[size=5]): (2,[-rw-r--r--:0100644,1,0,0,1,1,1,5]) - OK <0.000090>
2024.05.23 16:11:18.725000 [uid:0,gid:0,pid:1] mkdir (1,b,drwxr-xr-x:0040755) - disk quota exceeded <0.000010>
2024.05.23 16:11:18.726000 [uid:0,gid:0,pid:1] mkdir (1,c,drwxr-xr-x:0040755) - errno 41 <0.000010>
2024.05.23 16:11:18.730000 [uid:0,gid:0,pid:1] release (2,1) - OK <0.000002>
";
    let out = read_as(Format::Juicefs, text).expect("read");
    let all = shown(&out);
    for wanted in ["truncate", "mkdir b", "mkdir c", "close #0"] {
        let found = all.iter().any(|op| op.contains(wanted));
        assert!(found, "{wanted}: {all:?}");
    }
    let failed = |op: &Op| match op.result {
        Outcome::Failed(errno) => Some(errno),
        _ => None,
    };
    let errors: Vec<i32> = out.ops.iter().filter_map(failed).collect();
    assert_eq!(errors, [122, 41]);
}

#[test]
fn the_own_form_reads_what_it_writes() {
    let out = read_as(Format::Strace, STRACE).expect("read");
    let mut text = format!("{}\n", form::HEADER);
    for op in &out.ops {
        text.push_str(&String::from_utf8_lossy(&form::line(op, Nanos(0))));
    }
    let again = read_as(Format::Rbench, &text).expect("read");
    assert_eq!(again.ops.len(), out.ops.len());
    for (one, other) in again.ops.iter().zip(&out.ops) {
        let expect = Op {
            line: one.line,
            ..other.clone()
        };
        assert_eq!(*one, expect);
    }
    let check = |line: &str, wanted: &str| {
        let text = format!("{}\n{line}\n", form::HEADER);
        let error = read_as(Format::Rbench, &text).expect_err("refused");
        assert!(
            error.starts_with("line 2: ") && error.contains(wanted),
            "{error}"
        );
    };
    each! { check:
        r#"{"op":"read""# => "not valid JSON";
        "[]" => "not a JSON object";
        r#"{"at":1,"process":1,"op":"dance"}"# => "'dance' is not an operation";
        r#"{"at":1,"process":1,"op":"unlink","path":"a\u0000b"}"# => "NUL byte";
        r#"{"at":1,"process":1,"op":"write","file":0,"length":5,"data":"QUJD"}"# =>
            "its data has 3 bytes";
        r#"{"at":1,"process":1,"op":"unlink","path":"a","implied":true}"# =>
            "only an operation that opens or closes a file may be implied";
        r#"{"at":1,"process":1,"op":"stat","path":"a","size":9223372036854775808}"# =>
            "'size' exceeds the largest file size";
        r#"{"at":1,"process":1,"op":"read","file":0,"length":5,"returned":9223372036854775808}"# =>
            "'returned' exceeds the largest file size";
        r#"{"at":1,"process":1,"op":"read","file":0,"offset":9223372036854775808,"length":5}"# =>
            "'offset' exceeds the largest file size";
    }
}

#[test]
fn every_operation_is_written_as_it_was_read() {
    let lines = [
        r#"{"at":1,"file":0,"flags":65,"mode":420,"op":"open","path":"a","process":1,"returned":0}"#,
        r#"{"at":1,"file":0,"implied":true,"op":"close","process":1}"#,
        r#"{"at":1,"file":0,"length":5,"offset":null,"op":"read","process":1,"returned":3,"took":9}"#,
        r#"{"at":1,"file":0,"length":5,"offset":0,"op":"read","process":1}"#,
        r#"{"at":1,"error":"EIO","file":0,"length":5,"offset":null,"op":"write","process":1}"#,
        r#"{"at":1,"data":"QUJD","file":0,"length":3,"offset":7,"op":"write","process":1}"#,
        r#"{"at":1,"file":0,"offset":-4,"op":"lseek","process":1,"whence":2}"#,
        r#"{"at":1,"file":0,"op":"fsync","process":1}"#,
        r#"{"at":1,"file":0,"op":"fdatasync","process":1}"#,
        r#"{"at":1,"follows":true,"length":5,"op":"truncate","path":"a","process":1}"#,
        r#"{"at":1,"file":0,"length":5,"op":"truncate","process":1}"#,
        r#"{"at":1,"file":0,"length":5,"mode":3,"offset":6,"op":"fallocate","process":1}"#,
        r#"{"at":1,"file":0,"op":"stat","process":1}"#,
        r#"{"at":1,"follows":false,"kind":"link","op":"stat","path":"a","process":1,"size":4}"#,
        r#"{"at":1,"mode":4,"op":"access","path":"","process":1}"#,
        r#"{"at":1,"file":0,"length":4096,"op":"readdir","process":1}"#,
        r#"{"at":1,"mode":493,"op":"mkdir","path":"a","process":1}"#,
        r#"{"at":1,"mode":420,"op":"mknod","path":"a","process":1}"#,
        r#"{"at":1,"op":"rmdir","path":"a","process":1}"#,
        r#"{"at":1,"op":"unlink","path":"a","process":1}"#,
        r#"{"at":1,"flags":2,"op":"rename","path":"a","process":1,"to":"b"}"#,
        r#"{"at":1,"op":"link","path":"a","process":1,"to":"b"}"#,
        r#"{"at":1,"op":"symlink","path":"a","process":1,"to":"b"}"#,
        r#"{"at":1,"op":"symlink","path":"a","process":1,"target":"b/c"}"#,
        r#"{"at":1,"op":"readlink","path":{"base64":"/w=="},"process":1}"#,
        r#"{"at":1,"follows":false,"mode":384,"op":"chmod","path":"a","process":1}"#,
        r#"{"at":1,"file":0,"gid":2,"op":"chown","process":1,"uid":4294967295}"#,
        r#"{"at":1,"file":0,"op":"utimes","process":1}"#,
        r#"{"at":1,"follows":true,"op":"statfs","path":"a","process":1}"#,
        r#"{"at":1,"flags":1,"follows":false,"length":5,"name":"user.a","op":"setxattr","path":"a","process":1}"#,
        r#"{"at":1,"file":0,"length":5,"name":"user.a","op":"getxattr","process":1}"#,
        r#"{"at":1,"follows":true,"length":5,"op":"listxattr","path":"a","process":1}"#,
        r#"{"at":1,"file":0,"name":"user.a","op":"removexattr","process":1}"#,
    ];
    let text = format!("{}\n{}\n", form::HEADER, lines.join("\n"));
    let out = read_as(Format::Rbench, &text).expect("read");
    let written = out.ops.iter().map(|op| {
        let line = form::line(op, Nanos(0));
        String::from_utf8_lossy(line.trim_ascii_end()).into_owned()
    });
    assert_eq!(written.collect::<Vec<_>>(), lines);
}

#[test]
fn a_form_is_known_by_its_first_line() {
    for (line, format) in [
        ("fio version 2 iolog", Format::Iolog),
        ("# darshan log version: 3.41", Format::Dxt),
        (form::HEADER, Format::Rbench),
        ("12 1700000000.5 close(3) = 0 <0.1>", Format::Strace),
        ("[pid 12] 1700000000.5 close(3) = 0 <0.1>", Format::Strace),
        (
            "2024.03.01 10:00:00.1 [uid:0,gid:0,pid:7] getattr (1): OK <0.1>",
            Format::Juicefs,
        ),
    ] {
        assert_eq!(Format::of(line.as_bytes()), Some(format), "{line}");
    }
    assert_eq!(Format::of(b"hello"), None);
}

/// A trace of each format, for random changes.
fn samples() -> Vec<(Format, String)> {
    let jfs = "2024.03.01 10:00:00.000100 [uid:0,gid:0,pid:7] lookup (1,d): OK (2,[drwxr-xr-x:0040755,2,0,0,0,0,0,4096]) <0.000050>\n\
        2024.03.01 10:00:00.000300 [uid:0,gid:0,pid:7] open (3): OK [fh:9] <0.000050>\n\
        2024.03.01 10:00:01.000400 [uid:0,gid:0,pid:7] rename (2,n,1,m,0): OK <0.000050>\n\
        2024.03.01 10:00:01.000500 [uid:0,gid:0,pid:7] setattr (3,0x8,[mode=-rw-r--r--:0644;size=5;]): OK <0.000050>\n";
    let dxt =
        "# DXT, file_id: 12, file_name: /scratch/one\n X_POSIX  0 write 0 0 100 0.1000 0.2000\n";
    let log =
        "fio version 3 iolog\n0 /d/f add\n5 /d/f open\n10 /d/f write 4096 512\n30 /d/f close\n";
    let own = read_as(Format::Strace, STRACE).expect("read").ops;
    let own = own.iter().map(|op| form::line(op, Nanos(0)));
    let own = own.map(|line| String::from_utf8_lossy(&line).into_owned());
    let own = format!("{}\n{}", form::HEADER, own.collect::<String>());
    vec![
        (Format::Strace, STRACE.to_owned()),
        (Format::Juicefs, jfs.to_owned()),
        (Format::Dxt, dxt.to_owned()),
        (Format::Iolog, log.to_owned()),
        (Format::Rbench, own),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// A changed trace is either read or refused, and none of its names leads out.
    #[test]
    fn a_changed_trace_is_read_or_refused(
        which in 0..5_usize,
        changes in proptest::collection::vec((0..10_000_usize, proptest::prelude::any::<u8>(), 0..4_u8), 0..8),
    ) {
        let (format, text) = samples().swap_remove(which);
        let mut bytes = text.into_bytes();
        for (offset, byte, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let offset = offset % bytes.len();
            match how {
                0 => bytes[offset] = byte,
                1 => bytes.insert(offset, byte),
                2 => drop(bytes.remove(offset)),
                _ => bytes.truncate(offset.max(1)),
            }
        }
        let mut reader = reader(format, &reading());
        let mut out = Out::default();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let read = lines.iter().zip(1..).try_for_each(|(line, n)| reader.line(n, line, &mut out));
        let _ = read.and_then(|()| reader.end(&mut out));
        let mut survey = Survey::default();
        for op in out.ops {
            let leads_out = |path: &[u8]| path.starts_with(b"/") || path.split(|b| *b == b'/').any(|part| part == b"..");
            if let Some(path) = &op.path {
                proptest::prop_assert!(!leads_out(path), "{op:?}");
            }
            let _ = survey.take(&Step { trace: 0, op });
        }
        let summary = survey.finish();
        proptest::prop_assert!(summary.before.iter().all(|one| !one.path.starts_with(b"/")));
    }
}

#[test]
fn seeks_are_replayed_from_where_they_count() {
    let seek = |whence: &str| format!("1 1.0 lseek(3, 0, {whence}) = 0\n");
    let known = ["SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"];
    let open = "1 1.0 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n";
    let seeks = known.map(seek).concat() + &seek("SEEK_OTHER");
    let out = read_as(Format::Strace, &format!("{open}{seeks}")).expect("read");
    let calls = out.ops.iter().map(|op| format!("{:?}", op.call));
    let seeks: Vec<String> = calls.filter(|call| call.starts_with("Seek")).collect();
    let expected: Vec<String> = (0..5).map(|whence| format!("Seek(0, {whence})")).collect();
    assert_eq!(seeks, expected);
    assert_eq!(left_out(&out), [(why::OTHER, 1)]);
}
