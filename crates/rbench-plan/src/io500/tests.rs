use super::*;
use crate::testing::{check_document, line};

const PLACES: Places<'_> = Places {
    data: "/m/data",
    state: "/m/state",
};

fn of(settings: &Settings) -> Vec<String> {
    let cells = cells(settings, PLACES);
    cells.iter().map(|cell| line(&cell.words)).collect()
}

#[test]
fn the_phases_have_their_order_and_options() {
    let lines = of(&Settings::default());
    let names: Vec<&str> = PHASES.iter().map(|phase| phase.name).collect();
    let expect = "ior-easy-write mdtest-easy-write ior-hard-write mdtest-hard-write find ior-easy-read \
        mdtest-easy-stat ior-hard-read mdtest-hard-stat mdtest-easy-delete mdtest-hard-read mdtest-hard-delete \
        ior-rnd4K-easy-read";
    assert_eq!(names.join(" "), expect);
    let has = |at: usize, parts: &[&str]| {
        let line = format!("{} ", lines[at]);
        for part in parts {
            assert!(line.contains(&format!(" {part} ")), "{line}: {part}");
        }
    };
    each! { has:
        0 =>
            &["-t 2m", "-b 9920000m", "-F", "-e", "-C -Q 1", "-w", "-D 300", "--stoneWallingWearOut"];
        1 => &["-n 1000000", "-u", "-L", "-F", "-N 1", "-C -Y -W 300"];
        2 => &["-t 47008 -b 47008 -s 10000000", "-e", "-w", "-D 300"];
        3 => &["-t -w 3901 -e 3901", "-F", "-N 1", "-C -Y -W 300"];
    }
    assert_eq!(
        lines[4],
        "find /m/data -newer /m/state/timestampfile -size 3901c -name *01*"
    );
    each! { has:
        5 => &["-r -R", "-C -Q 1", "--stoneWallingStatusFile /m/state/ior-easy.stonewall"];
        6 => &["-T", "-x /m/state/mdtest-easy.stonewall"];
        7 => &["-r -R", "-s 10000000"];
        8 => &["-T", "-N 1"];
        9 => &["-r"];
        10 => &["-E -X", "-e 3901"];
        11 => &["-r"];
        12 => &["-t 4096 -b 4096 -s -1 -z -r", "-D 300"];
    }
    assert!(!lines[2].contains(" -F "), "one file for all: {}", lines[2]);
}

#[test]
fn what_is_written_is_read_with_the_same_data() {
    let lines = of(&Settings::default());
    let after = |line: &str, option: &str| {
        let mut words = line.split(' ').skip_while(|word| *word != option);
        words.nth(1).map(str::to_owned)
    };
    for phase in PHASES.iter().filter(|phase| phase.name != "find") {
        let one = |wanted: &dyn Fn(&Phase) -> bool| {
            let at = PHASES.iter().position(wanted);
            at.map(|at| &lines[at]).expect("a phase")
        };
        let write = one(&|other| other.writes() && other.files == phase.files);
        let own = one(&|other| other.name == phase.name);
        for option in ["-G", "--dataPacketType", "-d", "-o"] {
            assert_eq!(after(own, option), after(write, option), "{own}: {option}");
        }
    }
}

#[test]
fn all_settings_are_printed_as_they_can_be_read() {
    let read = read(&Settings::text()).expect("its own text");
    assert_eq!(of(&read), of(&Settings::default()));
    assert_eq!(read.all(), Settings::default().all());
}

#[test]
fn a_settings_file_is_read_as_io500_does() {
    let text = "; a comment\n[GLOBAL]\ndatadir = /mnt/fs # here\nAPI=POSIX --posix.odirect\nverbosity = 10\n\
                [debug]\nstonewall-time = 30\n[ior-easy]\nblocksize = 4m\n[mdtest-hard]\nn=7\n[find]\nnproc = 2\n\
                [find-easy]\nanything = 1\n[ior-hard-read]\nrun = false\n[ior-hard]\nverbosity =\n";
    let settings = read(text).expect("settings");
    assert_eq!(settings.dir(), Some("/mnt/fs"));
    assert_eq!((settings.stonewall_s(), settings.required_s()), (30, 300));
    let lines = of(&settings);
    assert_eq!(lines.len(), 12);
    assert!(lines[0].contains(" -b 4m ") && lines[0].contains("--posix.odirect"));
    assert!(lines[3].contains(" -n 7 "));
    assert_eq!(cells(&settings, PLACES)[4].selection.ranks, Some(2));
    let reasons = settings.invalid_because(1.0);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("30 s") && reasons[1] == "ior-hard-read is not run");
}

#[test]
fn what_cannot_be_is_named_with_its_line() {
    let check = |text: &str, line: usize, part: &str| check_document(read(text), line, part);
    each! { check:
        "[globl]\n" => 1 => "(nearest: global)";
        "\n[ior-easy]\nblockSze = 4m\n" => 3 => "(nearest: blockSize)";
        "datadir = x\n" => 1 => "outside of a section";
        "[debug]\nstonewall-time = 0\n" => 2 => "at least 1";
        "[debug]\n# one\nstonewall-time = 5m\n" => 3 => "at least 1";
        "[ior-easy]\ntransferSize = two\n" => 2 => "a size";
        "[find]\nrun = maybe\n" => 2 => "TRUE or FALSE";
        "[find]\nexternal-script = ./find.sh\n" => 2 => "rbench has its own search";
        "[global]\napi = MPIIO\n" => 2 => "POSIX";
        "[global]\nio-buffers-on-gpu = TRUE\n" => 2 => "GPU";
        "[global]\ndrop-caches-cmd = sudo flush\n" => 2 => "does not run commands";
        "[debug]\npause-dir = /tmp\n" => 2 => "pause";
        "[find\n" => 1 => "no closing ]";
        "[find]\nwhat is this\n" => 2 => "not a section";
        "[ior-easy-write]\nrun = FALSE\n" => 1 => "[ior-easy-read] needs";
        "[ior-easy]\nfilePerProc = FALSE\n" => 1 => "filePerProc = TRUE";
    }
}

#[test]
fn a_part_is_taken_of_what_is_written_and_of_the_time() {
    let settings = Settings::default().scaled(0.01).expect("a part");
    let lines = of(&settings);
    for (line, part) in [
        (0, " -b 99200m "),
        (0, " -D 3 "),
        (1, " -n 10000 "),
        (2, " -s 100000 "),
        (3, " -w 3901 "),
    ] {
        assert!(lines[line].contains(part), "{}", lines[line]);
    }
    let reasons = settings.invalid_because(0.01);
    assert!(reasons[0].contains("0.01 of the full size"), "{reasons:?}");
    assert_eq!(Settings::default().invalid_because(1.0), [""; 0]);
    let whole = Settings::default().scaled(1.0).expect("all of it");
    assert_eq!(of(&whole), of(&Settings::default()));
}

#[test]
fn what_is_kept_leaves_the_order_as_it_is() {
    let settings = &Settings::default().phases();
    let all = |_: &str| true;
    assert_eq!(kept(settings, 0, all), 0);
    assert_eq!(kept(settings, 7, all), 7);
    assert_eq!(kept(settings, 13, |_| false), 13, "nothing comes after it");
    // The directory is gone.
    assert_eq!(kept(settings, 7, |_| false), 0);
    // A write was interrupted; the files before it exist.
    assert_eq!(kept(settings, 3, |files| files != "mdtest-hard"), 3);
    // mdtest-easy-delete was interrupted.
    assert_eq!(kept(settings, 9, |files| files != "mdtest-easy"), 1);
    // It has ended, and no later phase needs its files.
    assert_eq!(kept(settings, 10, |files| files != "mdtest-easy"), 10);
    // mdtest-hard-delete was interrupted: mdtest-easy-stat would have to run again,
    // too.
    let left = |files: &str| !files.starts_with("mdtest");
    assert_eq!(kept(settings, 11, left), 1);
    assert_eq!(kept(settings, 12, left), 12);
}
