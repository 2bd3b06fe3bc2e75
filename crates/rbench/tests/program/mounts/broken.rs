//! Tests that each promise that the built-in file system breaks deliberately is found by the
//! related checks, and by no others.
//!
//! A run of all checks takes a second or two, so ten promises are broken at once. The findings must
//! be the union of the members' findings, whose checks are disjoint. Each promise is in two groups
//! that share no other member, so that a superfluous finding is noticed.

use std::collections::{BTreeMap, BTreeSet};

use rbench_report::schema::PromiseVerdict;

use super::check::{UNCACHED, checked, with_verdict};
use super::on_one_processor;
use crate::common::{Place, Server, text};

/// All checks except random operations, which take some seconds, and a full file system.
const ALL: &str = "names,rename,links,owners,times,open,size,space,content,listing,xattr,locks";

/// Broken promises and the checks that find them: the dedicated check first, then related ones.
/// Checks in parentheses are undecided; those with a question mark find it only at some
/// interleavings of two threads. The position determines the groups of a row.
const FOUND: &[(&str, &str)] = &[
    (
        "name-cut",
        "(names.length.whole) names.length.255 names.length.256",
    ),
    ("name-too-long-taken", "names.length.256"),
    ("name-255-refused", "names.length.255 (names.length.whole)"),
    ("case-ignored", "names.case"),
    ("bytes-lost", "names.bytes.any names.bytes.composed"),
    ("unlink-keeps-name", "names.unlink.removes"),
    (
        "rmdir-keeps-name",
        "names.rmdir.removes times.directory.rmdir",
    ),
    ("rmdir-takes-full", "names.rmdir.not-empty"),
    ("mkdir-ignores-mode", "owners.mode.mkdir"),
    ("create-ignores-mode", "owners.mode.create"),
    ("fifo-ignores-mode", "owners.mode.mkfifo"),
    (
        "fifo-is-file",
        "names.mkfifo.makes owners.mode.mkfifo times.directory.mkfifo",
    ),
    ("symlink-cut", "links.symbolic.long-target"),
    ("symlink-size-zero", "links.symbolic.size"),
    ("symlink-relative", "links.symbolic.target"),
    (
        "rename-loses-target",
        "rename.over-existing.keeps-one rename.over-existing.always-there rename.over-symlink",
    ),
    (
        "rename-keeps-source",
        "rename.plain rename.other-directory rename.noreplace.renames listing.renamed-entry",
    ),
    (
        "exchange-moves",
        "rename.exchange.files rename.exchange.kinds",
    ),
    ("rename-touches", "times.rename.keeps-mtime"),
    ("rename-full-error", "rename.directory.over-full"),
    (
        "rename-empties",
        "rename.directory.content rename.directory.over-empty rename.open-directory",
    ),
    ("rename-drops-attributes", "xattr.rename"),
    ("link-count-stays", "links.hard.count links.hard.many"),
    (
        "link-copies",
        "links.hard.one-file rename.same-file links.hard.count links.hard.mode links.hard.many \
         links.hard.of-symlink times.link.ctime times.unlink.ctime",
    ),
    ("link-touches", "times.link.keeps-mtime"),
    ("link-ctime-stays", "times.link.ctime"),
    ("unlink-ctime-stays", "times.unlink.ctime"),
    ("unlinked-count-one", "links.unnamed.count"),
    (
        "unlinked-empty",
        "links.unnamed.content links.unnamed.writes links.unnamed.second-open \
         links.unnamed.stat links.unnamed.same-name",
    ),
    (
        "unlinked-gone",
        "links.unnamed.stat rename.over-existing.open links.unnamed.content \
         links.unnamed.writes links.unnamed.second-open links.unnamed.count links.unnamed.mode \
         links.unnamed.same-name ?rename.over-existing.always-there",
    ),
    ("chmod-drops-bare-write", "owners.chmod.file"),
    (
        "chmod-drops-sticky",
        "owners.chmod.special owners.sticky.unlink owners.sticky.rmdir \
         owners.sticky.rename-over",
    ),
    (
        "chmod-drops-set-id",
        "owners.chmod.special owners.set-group-id.file owners.set-group-id.directory",
    ),
    ("chmod-touches", "times.chmod.keeps-mtime"),
    ("chmod-ctime-stays", "times.chmod.ctime"),
    ("chmod-open-lost", "owners.chmod.open links.unnamed.mode"),
    ("chown-16-bits", "owners.chown.large-ids"),
    ("chown-keeps-set-id", "owners.chown.drops-set-id"),
    ("chown-ctime-stays", "times.chown.ctime"),
    ("write-keeps-set-id", "owners.write.drops-set-id"),
    ("owner-is-root", "owners.owner.user"),
    (
        "set-group-ignored",
        "owners.set-group-id.file owners.set-group-id.directory",
    ),
    ("set-group-bit-lost", "owners.set-group-id.directory"),
    ("device-number-lost", "owners.device"),
    ("write-mtime-stays", "times.write.mtime"),
    ("write-ctime-stays", "times.write.ctime"),
    (
        "truncate-mtime-stays",
        "times.truncate.mtime times.truncate.open",
    ),
    ("truncate-ctime-stays", "times.truncate.ctime"),
    ("open-truncate-mtime-stays", "times.open-truncate.mtime"),
    ("fallocate-ctime-stays", "times.fallocate.ctime"),
    ("create-mtime-stays", "times.directory.create"),
    ("create-ctime-stays", "times.directory.ctime"),
    ("mkdir-mtime-stays", "times.directory.mkdir"),
    ("symlink-mtime-stays", "times.directory.symlink"),
    ("mknod-mtime-stays", "times.directory.mkfifo"),
    ("link-mtime-stays", "times.directory.link"),
    ("unlink-mtime-stays", "times.directory.unlink"),
    ("rmdir-mtime-stays", "times.directory.rmdir"),
    ("rename-from-mtime-stays", "times.directory.rename-from"),
    ("rename-into-mtime-stays", "times.directory.rename-into"),
    ("read-touches", "times.read.keeps-mtime"),
    ("close-touches", "times.set.survives-close"),
    ("times-ctime-stays", "times.set.ctime"),
    ("times-omit-sets", "times.set.omit"),
    ("times-now-is-epoch", "times.set.now"),
    ("times-32-bits", "times.set.after-2038"),
    ("times-before-1970", "times.set.before-1970"),
    ("times-round-up", "times.set.fraction"),
    ("times-symlink-ignored", "times.set.symlink"),
    (
        "size-lags",
        "size.write.extends size.hole.zeros size.hole.behind-data size.large.offset",
    ),
    ("size-32-bits", "size.large.terabyte size.large.offset"),
    ("offset-32-bits", "size.large.offset"),
    (
        "truncate-keeps-data",
        "size.truncate.cut-is-gone content.mmap.cut",
    ),
    (
        "truncate-grows-dirty",
        "size.truncate.longer size.truncate.cut-is-gone content.mmap.cut",
    ),
    (
        "truncate-open-ignored",
        "size.truncate.open links.unnamed.writes times.truncate.open size.large.terabyte \
         size.large.cut content.mmap.cut",
    ),
    (
        "hole-dirty",
        "size.hole.behind-data size.hole.zeros size.large.offset",
    ),
    (
        "seek-data-none",
        "size.seek.data size.seek.data-behind-hole",
    ),
    (
        "seek-hole-everywhere",
        "size.seek.hole size.seek.behind-end",
    ),
    (
        "punch-ignored",
        "space.punch.zeros space.punch.bytes space.punch.size space.punch.open \
         space.punch.again",
    ),
    (
        "punch-cuts",
        "space.punch.size space.punch.zeros space.punch.bytes space.punch.open \
         space.punch.again",
    ),
    ("punch-rounds", "space.punch.bytes space.punch.size"),
    ("reserve-clears", "space.reserve.keeps-data space.keep-size"),
    ("reserve-leaves-size", "space.reserve.size"),
    ("keep-size-extends", "space.keep-size"),
    ("write-flips", "content.sizes content.whole-read"),
    // Too rare for checks other than random operations (`model`).
    ("write-flips-rarely", ""),
    ("write-late", ""),
    ("write-short", "content.whole-write"),
    ("overwrite-lost", "content.overwrite"),
    (
        "append-overwrites",
        "open.append.at-end open.append.two open.append.many",
    ),
    (
        "copy-nothing",
        "content.copy.whole content.copy.part content.copy.fresh",
    ),
    ("fsync-refused", "open.sync content.mmap.synced"),
    ("fsync-directory-error", "open.sync.directory"),
    (
        "list-twice",
        "listing.each-once listing.new-entry listing.types listing.inodes listing.cookie \
         listing.while-removing listing.while-making listing.same-order",
    ),
    (
        "list-misses",
        "listing.each-once listing.cookie listing.same-order",
    ),
    ("list-wrong-types", "listing.types"),
    ("list-wrong-inodes", "listing.inodes"),
    ("list-repeats", "listing.cookie listing.while-making"),
    ("list-positions", "listing.while-removing"),
    ("list-no-dots", "listing.dots"),
    (
        "list-late",
        "listing.new-entry listing.renamed-entry listing.rewind",
    ),
    (
        "xattr-lost",
        "xattr.set xattr.bytes xattr.empty xattr.replaces xattr.several xattr.create.exists \
         xattr.replace.missing xattr.remove xattr.small-buffer xattr.size xattr.name-length \
         xattr.value-1000 xattr.value-64k xattr.unknown-space xattr.directory xattr.ctime \
         xattr.rename xattr.trusted",
    ),
    ("xattr-create-replaces", "xattr.create.exists"),
    ("xattr-replace-creates", "xattr.replace.missing"),
    ("xattr-unlisted", "xattr.several xattr.empty xattr.remove"),
    ("xattr-remove-ignored", "xattr.remove"),
    ("xattr-cut", "xattr.value-1000 xattr.bytes xattr.value-64k"),
    ("xattr-empty-lost", "xattr.empty"),
    ("xattr-missing-empty", "xattr.missing xattr.remove"),
    ("xattr-directory-refused", "xattr.directory"),
    ("xattr-ctime-stays", "xattr.ctime"),
    ("xattr-touches", "xattr.keeps-mtime"),
    (
        "flock-given-twice",
        "locks.flock.once locks.flock.shared ?locks.flock.hand-over locks.flock.convert",
    ),
    (
        "lock-given-twice",
        "locks.posix.once locks.posix.told locks.posix.ranges locks.posix.split \
         locks.posix.shared locks.posix.large locks.ofd.once locks.ofd.ranges locks.ofd.close \
         ?locks.ofd.hand-over",
    ),
];

/// Like `FOUND`, on a full file system, without those of its checks that would each write half a
/// gigabyte.
const FOUND_FULL: &[(&str, &str)] = &[
    ("full-lies", "(full.error)"),
    ("full-wrong-error", "full.error"),
    ("free-stays", "full.free-told"),
];

/// Number of groups per division, a prime. The table is a square with rows of this length, and the
/// groups are its lines in two directions.
const GROUPS: usize = 11;

/// Slopes of the lines: two lines meet at most once.
const STEPS: [usize; 2] = [0, 7];

type Row = (&'static str, &'static str);

fn group(step: usize, number: usize) -> Vec<Row> {
    let line = |place: usize| (place % GROUPS + step * (place / GROUPS)) % GROUPS;
    let members = FOUND.iter().enumerate();
    let members = members.filter(|(place, _)| line(*place) == number);
    members.map(|(_, row)| *row).collect()
}

/// The checks that always find a row.
fn checks(row: &Row) -> BTreeSet<String> {
    let words = row.1.split_whitespace();
    let always = words.filter(|word| !word.starts_with('?'));
    always.map(str::to_owned).collect()
}

/// Removes what members find only at times, unless another one always finds it.
fn without_chances(found: BTreeSet<String>, members: &[Row]) -> BTreeSet<String> {
    let words = members.iter().flat_map(|row| row.1.split_whitespace());
    let at_times: BTreeSet<&str> = words.filter_map(|word| word.strip_prefix('?')).collect();
    let always: BTreeSet<String> = members.iter().flat_map(checks).collect();
    let chance = |check: &String| at_times.contains(check.as_str()) && !always.contains(check);
    found.into_iter().filter(|check| !chance(check)).collect()
}

#[test]
fn no_two_of_a_group_are_found_by_the_same_check_or_meet_twice() {
    assert!(FOUND.len() <= GROUPS * GROUPS, "take the next prime number");
    let mut together = BTreeSet::new();
    for step in STEPS {
        for number in 0..GROUPS {
            let members = group(step, number);
            let mut by: BTreeMap<String, &str> = BTreeMap::new();
            for row in &members {
                for check in checks(row) {
                    let other = by.insert(check, row.0);
                    assert_eq!(other, None, "{}: exchange rows", row.0);
                }
            }
            for (place, one) in members.iter().enumerate() {
                for two in &members[place + 1..] {
                    assert!(together.insert((one.0, two.0)), "{} and {}", one.0, two.0);
                }
            }
        }
    }
}

#[test]
fn the_table_has_every_promise_that_can_be_broken() {
    let place = Place::new();
    let output = place.run("testfs target --broken ?");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let (_, names) = said
        .trim_end()
        .split_once("expected one of ")
        .expect("a list");
    let names: BTreeSet<&str> = names.trim_end_matches(')').split(", ").collect();
    let rows = FOUND.iter().chain(FOUND_FULL).map(|row| row.0);
    assert_eq!(rows.collect::<BTreeSet<_>>(), names);
    assert!(names.len() >= 60);
}

mod needs_fuse {
    use super::*;

    /// Checks that act as other users need root.
    mod needs_root {
        use super::*;

        /// The checks that find these broken promises.
        fn found(options: &str, only: &str, members: &[Row]) -> BTreeSet<String> {
            let place = Place::new();
            let broken = members.iter().map(|row| format!(" --broken {}", row.0));
            // With one processor, a second thread would only alternate with the first.
            let options = format!("{UNCACHED} --threads 1 {options}");
            let result = on_one_processor(|| {
                let server = Server::start(&place, &(options + &broken.collect::<String>()));
                let result = checked(&place, "mnt", only);
                server.end();
                result
            });
            let broken = with_verdict(&result, PromiseVerdict::Broken).into_iter();
            let undecided = with_verdict(&result, PromiseVerdict::Undecided).into_iter();
            let undecided = undecided.map(|promise| format!("({})", promise.name));
            let broken = broken.map(|promise| promise.name.clone());
            without_chances(broken.chain(undecided).collect(), members)
        }

        /// Breaks the members of a group together, and one by one only if the findings differ.
        fn together(number: usize) {
            for step in STEPS {
                let members = group(step, number);
                let expected = members.iter().flat_map(checks).collect();
                let seen = found("", ALL, &members);
                if seen == expected {
                    continue;
                }
                for row in &members {
                    assert_eq!(found("", ALL, &[*row]), checks(row), "{}", row.0);
                }
                let names: Vec<&str> = members.iter().map(|row| row.0).collect();
                let less: Vec<_> = expected.difference(&seen).collect();
                let more: Vec<_> = seen.difference(&expected).collect();
                panic!(
                    "alone each is found, but together {names:?} hide {less:?} and show {more:?}: exchange rows"
                );
            }
        }

        mod each_is_found_by_its_checks_alone {
            use super::*;

            macro_rules! groups {
                ($($name:ident: $number:literal),*) => {$(
                    #[test]
                    fn $name() {
                        together($number);
                    }
                )*};
            }

            groups! {
                groups_0: 0, groups_1: 1, groups_2: 2, groups_3: 3, groups_4: 4, groups_5: 5,
                groups_6: 6, groups_7: 7, groups_8: 8, groups_9: 9, groups_10: 10
            }

            #[test]
            fn of_a_full_file_system() {
                let only = format!("{ALL},full.error,full.free-told");
                for row in FOUND_FULL {
                    let seen = found("--quota 64m", &only, &[*row]);
                    assert_eq!(seen, checks(row), "{}", row.0);
                }
            }
        }
    }

    #[test]
    fn space_that_is_freed_later_is_waited_for() {
        let place = Place::new();
        let options = format!("{UNCACHED} --quota 64m --latency release=1s");
        let server = Server::start(&place, &options);
        let result = checked(&place, "mnt", "full");
        server.end();
        let holding = with_verdict(&result, PromiseVerdict::Holds);
        assert_eq!(holding.len(), 5, "{result:?}");
    }

    #[test]
    fn listings_that_are_broken_are_found_where_the_kernel_keeps_attributes() {
        for (broken, check) in [
            ("list-twice", "listing.each-once"),
            ("bytes-lost", "names.bytes.any"),
        ] {
            let place = Place::new();
            let options = format!("--memory 1g --allow-other --broken {broken}");
            let server = Server::start(&place, &options);
            let result = checked(&place, "mnt", check);
            let names = with_verdict(&result, PromiseVerdict::Broken).into_iter();
            let names: Vec<&str> = names.map(|promise| &*promise.name).collect();
            assert_eq!(names, [check], "{broken}");
            server.end();
        }
    }
}
