//! Tests the dependencies inside a crate: each module is on a floor and imports only from lower
//! ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::source::{Source, names};

/// The floors of a crate, the lowest first: names of rooms.
///
/// A room is a module: its file, and the files below it that are not rooms themselves. Rooms of one
/// floor do not import from each other. The root of the crate is above all: nothing imports its own
/// definitions, and its exports count as those of their modules.
struct House {
    name: &'static str,
    floors: &'static [&'static str],
}

const HOUSES: &[House] = &[
    House {
        name: "rbench-core",
        floors: &[
            "amounts direction dirents linux memory message mountinfo near plain random surroundings",
            "machine open permutation units",
            "operations",
            "client clock effort engine event failure latency moved request steady",
            "coarse hist merge script",
            "priority",
            "job timeline",
            "parts",
            "residency spread",
            // The results of a phase.
            "outcome",
        ],
    },
    House {
        name: "rbench-comm",
        floors: &[
            "arrival communicator launcher",
            "chosen hosts offsets threads",
            "drift mpi",
            "world",
        ],
    },
    House {
        name: "rbench-plan",
        floors: &[
            "refusal",
            "arrival document find paths permutation process series tree",
            "iolog meta mix shift suite",
            "cache expect io500 trace verify",
            "jobs replay",
            "given pattern",
            "io",
            "values",
            "knee nn quick spec",
            "resolve",
            "demand describe estimate",
        ],
    },
    House {
        name: "rbench-sys",
        floors: &[
            // Facts of the host and its kernel, single calls.
            "files proc",
            // The same, from those.
            "caches calls dirents identity in_use inputs limits mountinfo own_files \
             processes senders shell space thread waiting",
            // Buffers in the memory of the host, process groups.
            "buffer guarded",
            // Engines; disks and directories.
            "background command disks engine/contract engine/faults engine/fd_table remove speed \
             standing walk",
            // The container and the job; pages of files in memory, which its limits bound.
            "surroundings",
            "residency",
            // Parts of engines and metadata operations.
            "anchor engine/buffers engine/progress fs",
            "engine/synchronous fault null_fs posix trace",
            // Engines that others are made of, and the run's own directory.
            "engine/sync round_trip workdir",
            "engine/falloc engine/ftruncate engine/io_uring engine/libaio engine/mmap \
             engine/names engine/null engine/offload engine/posixaio engine/psync engine/pvsync \
             engine/pvsync2 engine/splice engine/vsync promises testdir",
            // Names in flight: a ring, as the engine's.
            "engine/in_flight",
            // The table of engines; promises between clients, reported like other promises.
            "between engine",
        ],
    },
    House {
        name: "rbench-exec",
        floors: &[
            "inbox",
            // Waits, data and its marks, what was done more than once.
            "content data intervals live mounts overdue pace repeats sight thread trap",
            // Observers of phases.
            "marks",
            // Records of one worker, headers of blocks, and messages of the ranks.
            "group meter verify",
            "hooks listener queue removal single worker",
            "creation in_flight",
            // Parts of operations, and the phase.
            "ack caches extents ops phase steps target",
            // Blocks moved through an engine; observation and reduction around a phase.
            "blocks client lost reduce residency stuck",
            "round",
            "spots warm_up",
            "needs room testdirs",
            // The workload.
            "workload",
            "passes",
            // Workloads.
            "check find jobs meta mix probe replay",
            "calibrate io",
            "run",
        ],
    },
    House {
        name: "rbench-report",
        floors: &[
            "stats view",
            "hlog schema table",
            "figures summary times",
            "fio hgrm intervals json openmetrics probe",
            "check csv live repetition text",
            "markdown mdtest ops warnings",
            "compare finish ior",
            "journal json_schema",
            "series",
            "document",
            "listing",
            "page",
        ],
    },
    House {
        name: "rbench-cli",
        floors: &[
            "definition live",
            "output",
            "field",
            "letters series",
            "invocation",
            "fio ior mdtest",
            "args",
            "completions",
        ],
    },
    House {
        name: "rbench-testfs",
        floors: &[
            "kind store sync",
            "broken delay fault hang observed passthrough paths servers",
            "config damage stats",
            "memory mount",
            "control",
            "cut service",
            "session",
            "serve",
        ],
    },
    House {
        name: "rbench-fuzz",
        floors: &[
            "refusal seeds",
            "plans quantities result_file",
            "fio mdtest seals",
        ],
    },
    House {
        name: "rbench",
        floors: &[
            "client_counters dead_mounts embedded exit files marker round_trip surroundings version",
            "console data_size hlog job_files marks operations",
            "launch libexec man record refusal show testfs trouble verify",
            "compare front live page status target",
            "fio ior mdtest progress report signals",
            "command hosts outside publish",
            "check clean probe result",
            "recording",
            "run",
            "series",
            "pipeline",
        ],
    },
];

/// A path of names: of a module, or of an item in it.
pub type Names = Vec<String>;

/// The modules of a crate and their imports.
struct Crate(BTreeMap<Names, Source>);

impl Crate {
    fn read(source: &Path) -> Crate {
        let mut files = Vec::new();
        super::sources(source, &mut files);
        let mut all = BTreeMap::new();
        for file in files.iter().filter(|file| !super::is_test(file)) {
            let inside = file.strip_prefix(source).expect("it was found there");
            let inside = inside.with_extension("");
            let mut module: Names = inside.iter().map(|n| n.to_string_lossy().into()).collect();
            module.pop_if(|name| matches!(name.as_str(), "lib" | "main" | "mod"));
            let text = fs::read_to_string(file).expect("a source file");
            all.insert(module.clone(), Source::read(&text, module));
        }
        Crate(all)
    }

    /// The module that a path leads to, through exports of other modules; `None` if it is in
    /// another crate.
    fn home(&self, path: &[String]) -> Option<Names> {
        let known = |length: &usize| self.0.contains_key(&path[..*length]);
        let length = (0..=path.len()).rev().find(known).unwrap_or(0);
        let exported = self.0.get(&path[..length]).zip(path.get(length));
        match exported.and_then(|(module, name)| module.exported.get(name)) {
            Some(target) if target != path => {
                let home = self.home(target);
                home.filter(|home| !home.is_empty() || target.len() == 1)
            }
            _ => Some(path[..length].to_vec()),
        }
    }

    /// The modules that each module imports from.
    fn arrows(&self) -> Arrows {
        let homes = |(module, source): (&Names, &Source)| {
            let paths = source.paths.iter().filter(|path| !path.is_empty());
            let homes = paths.filter_map(|path| self.home(path));
            let others = homes.filter(|home| home != module);
            let name = |home: Names| match home.is_empty() {
                true => ROOT.to_owned(),
                false => home.join("/"),
            };
            (module.join("/"), others.map(name).collect())
        };
        self.0
            .iter()
            .filter(|(m, _)| !m.is_empty())
            .map(homes)
            .collect()
    }
}

/// The name of a crate's root.
const ROOT: &str = "lib";

/// The modules that each module imports from.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The room of a module, and its floor's number.
fn room<'a>(floors: &[&'a str], module: &str) -> Option<(usize, &'a str)> {
    let inside = |room: &str| {
        let rest = module.strip_prefix(room);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let floors = floors.iter().enumerate();
    floors
        .flat_map(|(floor, rooms)| rooms.split_whitespace().map(move |room| (floor, room)))
        .filter(|(_, room)| inside(room))
        .max_by_key(|(_, room)| room.len())
}

/// The mistakes of a house, as sentences.
fn wrong(floors: &[&str], arrows: &Arrows) -> Vec<String> {
    let mut wrong = Vec::new();
    for room in floors.iter().flat_map(|rooms| rooms.split_whitespace()) {
        if !arrows.contains_key(room) {
            wrong.push(format!("there is no module {room}"));
        }
    }
    for (module, used) in arrows {
        let Some((floor, here)) = room(floors, module) else {
            wrong.push(format!("{module} stands on no floor"));
            continue;
        };
        for other in used {
            match room(floors, other) {
                Some((_, there)) if there == here => {}
                Some((other_floor, _)) if other_floor < floor => {}
                Some((other_floor, _)) => wrong.push(format!(
                    "{module} (floor {floor}) imports {other} (floor {other_floor})"
                )),
                None if other == ROOT => wrong.push(format!("{module} imports from the root")),
                None => {}
            }
        }
    }
    wrong.extend(ring(floors, arrows).map(|ring| format!("a ring: {}", ring.join(", "))));
    wrong
}

/// Modules that import each other in a cycle, if any. A module and its own children in the same
/// room may import each other.
fn ring(floors: &[&str], arrows: &Arrows) -> Option<Vec<String>> {
    let mut left = arrows.clone();
    for (module, used) in &mut left {
        let own = |other: &str| {
            let rest = other.strip_prefix(module.as_str());
            let below = rest.is_some_and(|rest| rest.starts_with('/'));
            below && room(floors, other) == room(floors, module)
        };
        used.retain(|other| !own(other));
    }
    // Removes modules that import no remaining module or that no remaining module imports.
    loop {
        let imported: BTreeSet<String> = left.values().flatten().cloned().collect();
        let before = left.len();
        let modules: BTreeSet<String> = left.keys().cloned().collect();
        left.retain(|module, used| !used.is_disjoint(&modules) && imported.contains(module));
        if left.len() == before {
            break;
        }
    }
    (!left.is_empty()).then(|| left.into_keys().collect())
}

/// The floors as text: the highest on top, and for each room the rooms that it uses.
fn picture(house: &House, arrows: &Arrows) -> String {
    let mut lines = vec![house.name.to_owned()];
    for (floor, rooms) in house.floors.iter().enumerate().rev() {
        for name in rooms.split_whitespace() {
            let own = |module: &&str| room(house.floors, module).is_some_and(|(_, r)| r == name);
            let used = arrows.iter().filter(|(module, _)| own(&module.as_str()));
            let below: BTreeSet<&str> = used
                .flat_map(|(_, used)| used)
                .filter_map(|other| room(house.floors, other))
                .map(|(_, room)| room)
                .filter(|room| *room != name)
                .collect();
            let below: Vec<&str> = below.into_iter().collect();
            let line = format!("  {floor}  {name:<24} {}", below.join(" "));
            lines.push(line.trim_end().to_owned());
        }
    }
    lines.join("\n")
}

#[test]
fn modules_import_from_lower_floors_only() {
    let built: BTreeSet<&str> = HOUSES.iter().map(|house| house.name).collect();
    let crates = super::ARROWS.iter().map(|(name, _)| *name);
    assert_eq!(built, crates.collect(), "each crate has its floors");
    let mut all = Vec::new();
    for house in HOUSES {
        let source = super::root().join("crates").join(house.name).join("src");
        let arrows = Crate::read(&source).arrows();
        assert!(arrows.len() > 5, "the modules of {} were found", house.name);
        println!("{}", picture(house, &arrows));
        let wrong = wrong(house.floors, &arrows);
        all.extend(wrong.iter().map(|wrong| format!("{}: {wrong}", house.name)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn an_arrow_that_is_turned_round_is_found() {
    const FLOORS: &[&str] = &["base other", "engine/kinds", "engine"];
    let check = |text: &str, expect: &[&str]| {
        let arrows = text.split(';').map(|line| {
            let (module, used) = line.split_once(':').expect("module: used");
            (
                module.trim().to_owned(),
                used.split_whitespace().map(str::to_owned).collect(),
            )
        });
        assert_eq!(wrong(FLOORS, &arrows.collect()), expect, "{text}");
    };
    check(
        "base:; other:; engine: engine/psync base; engine/psync: engine/kinds; engine/kinds: other",
        &[],
    );
    check(
        "base: engine; other: base; engine:; engine/kinds: engine/psync; engine/psync:; stray:",
        &[
            "base (floor 0) imports engine (floor 2)",
            "engine/kinds (floor 1) imports engine/psync (floor 2)",
            "other (floor 0) imports base (floor 0)",
            "stray stands on no floor",
        ],
    );
    check(
        "base:; other:; engine/kinds:; engine: engine/a; engine/a: engine/b; engine/b: engine/a",
        &["a ring: engine/a, engine/b"],
    );
    check(
        "base:; other:; engine/kinds:; engine: engine/a; engine/a: engine/a/b; engine/a/b: engine/a",
        &[],
    );
    check(
        "base: lib; other:; engine/kinds:; engine:",
        &["base imports from the root"],
    );
    check(
        "base:; engine:; engine/kinds:",
        &["there is no module other"],
    );
}

#[test]
fn imports_are_found_however_they_are_written() {
    let source = Source::read(
        r##"
        //! use crate::comment;
        use crate::a::{b, c::{D as E, *}, self};
        mod x;
        pub use x::{Y, Z as W};
        pub use std::fmt::Debug;
        use std::fs;
        #[cfg(test)]
        use crate::tests_only;
        const TEXT: (&str, char) = ("use crate::string;", '"');
        pub(crate) fn f<'a>(_: &'a str) -> super::sibling::Thing {
            println!(r#"use crate::raw"#, crate::called::now());
        }
        fn g() -> x::Y { std::x::y() }
        mod inner { use super::x; use super::super::up; }
        #[cfg(test)]
        mod tests { fn g() { crate::more_tests::h() } }
        "##,
        names("engine/here"),
    );
    let paths: Vec<String> = source.paths.iter().map(|path| path.join("/")).collect();
    let expect = "a a/b a/c a/c/D called/now engine/here/x engine/here/x/Y engine/here/x/Z engine/sibling/Thing engine/up";
    assert_eq!(paths.join(" "), expect);
    let exported = source
        .exported
        .iter()
        .map(|(name, path)| format!("{name}={}", path.join("/")));
    let exported: Vec<String> = exported.collect();
    assert_eq!(
        exported.join(" "),
        "Debug=std/fmt/Debug W=engine/here/x/Z Y=engine/here/x/Y"
    );
}
