//! The head of the report: time, ranks and nodes, path, file system.

use std::fmt::Write as _;

use super::View;
use crate::schema::{RunResult, Space, World};
use crate::table::printable;
use crate::times::local_time;

/// The version of mdtest that prints this format.
const VERSION: &str = "4.1.0";
/// mdtest's format of a time.
pub const TIME: &str = "%m/%d/%Y %H:%M:%S";

const GIB: f64 = (1_u64 << 30) as f64;
const MI: f64 = (1_u64 << 20) as f64;

/// The lines from `-- started at` to the number of tasks and items.
pub fn render(result: &RunResult, view: &View) -> String {
    let (run, world) = (&result.run, &result.world);
    let started = local_time(&run.started, run.utc_offset_s, TIME);
    let version = printable(&run.version);
    let (tasks, nodes) = (world.ranks, world.hosts.len());
    let mut out = format!("-- started at {started} --\n\n");
    let _ = writeln!(
        out,
        "mdtest-{VERSION}+rbench-{version} was launched with {tasks} total task(s) on {nodes} node(s)"
    );
    let command = command_line(&view.command, &run.command);
    let _ = writeln!(out, "Command line used: {command}");
    let _ = writeln!(out, "Nodemap: {}", nodemap(world));
    let path = printable(&view.paths.join("@"));
    let _ = writeln!(out, "Path                : {path}");
    if let Some(space) = &result.target.space {
        out.push_str(&file_system(space));
    }
    if view.shift > 0 {
        // mdtest prints a line number of its source here.
        let shift = view.shift;
        let _ = writeln!(
            out,
            "V-0: Rank   0 Line     0 Shifting ranks by {shift} for each phase."
        );
    }
    if let Some(seed) = view.seed {
        let _ = writeln!(out, "random seed: {seed}");
    }
    let items = view.items.unwrap_or_else(|| {
        let created = result.phases.iter().rfind(|p| p.name == "file-create");
        created
            .map_or(0, super::items_of_each)
            .saturating_mul(u64::from(tasks))
    });
    let words = view.kinds.words();
    let _ = writeln!(out, "{tasks} tasks, {items} {words}");
    out
}

/// The program's name, and the words of the command line after the program and its subcommand,
/// quoted for a shell.
pub fn command_line(program: &str, words: &[String]) -> String {
    let subcommand = words.get(1).is_some_and(|w| w == program);
    let own = if subcommand { 2 } else { 1 };
    let mut out = printable(program);
    for word in words.iter().skip(own) {
        let _ = write!(out, " '{}'", printable(&word.replace('\'', r"'\''")));
    }
    out
}

/// One digit per rank: 1 on the node of rank 0.
fn nodemap(world: &World) -> String {
    let first = world.hosts.iter().find(|host| host.ranks.contains(&0));
    let with_first = |rank: u32| first.is_some_and(|host| host.ranks.contains(&rank));
    let digit = |rank| if with_first(rank) { '1' } else { '0' };
    (0..world.ranks).map(digit).collect()
}

/// Size and usage of the file system.
pub fn file_system(space: &Space) -> String {
    let size = space.bytes_total as f64 / GIB;
    let (size, unit) = match size < 1024.0 {
        true => (size, "GiB"),
        false => (size / 1024.0, "TiB"),
    };
    format!(
        "FS                  : {size:.1} {unit}   Used FS: {:.1}%   Inodes: {:.1} Mi   Used Inodes: {:.1}%\n",
        used_percent(space.bytes_total, space.bytes_free),
        space.inodes_total as f64 / MI,
        used_percent(space.inodes_total, space.inodes_free),
    )
}

/// Used share in percent; 0 if the total is 0.
fn used_percent(total: u64, free: u64) -> f64 {
    100.0 * total.saturating_sub(free) as f64 / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_local_to_rank_0() {
        let check = |utc: &str, offset_s: i32, expect: &str| {
            assert_eq!(local_time(utc, offset_s, TIME), expect, "{utc} {offset_s}");
        };
        check("2026-11-21T12:00:00Z", 0, "11/21/2026 12:00:00");
        check("2026-11-21T12:00:00.999Z", 3600, "11/21/2026 13:00:00");
        check("2026-12-31T23:30:00Z", 19_800, "01/01/2027 05:00:00");
        check("2026-03-01T01:00:00Z", -28_800, "02/28/2026 17:00:00");
        check("some\nday", 0, "some\\nday");
        check("2026-11-21T12:00:00Z", i32::MAX, "2026-11-21T12:00:00Z");
    }

    #[test]
    fn the_words_behind_the_subcommand_are_quoted() {
        let check = |words: &[&str], expect: &str| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(command_line("mdtest", &words), expect);
        };
        check(&["/bin/rbench", "mdtest", "-b", "3"], "mdtest '-b' '3'");
        check(&["mdtest", "-n=1"], "mdtest '-n=1'");
        check(&["rbench", "mdtest"], "mdtest");
        check(
            &["rbench", "mdtest", "-d", "it's a\nx"],
            r"mdtest '-d' 'it'\''s a\nx'",
        );
    }

    #[test]
    fn the_file_system_is_shown_in_the_units_of_mdtest() {
        let check = |space: [u64; 4], expect: &str| {
            let [bytes_total, bytes_free, inodes_total, inodes_free] = space;
            let space = Space {
                bytes_total,
                bytes_free,
                inodes_total,
                inodes_free,
            };
            let line = format!("FS                  : {expect}\n");
            assert_eq!(file_system(&space), line);
        };
        const GIB: u64 = 1 << 30;
        let used = "15.6 GiB   Used FS: 0.0%   Inodes: 3.9 Mi   Used Inodes: 0.0%";
        check([16_750_372_454, 16_750_000_000, 4_089_447, 4_089_430], used);
        let used = "1.0 TiB   Used FS: 75.0%   Inodes: 1.0 Mi   Used Inodes: 50.0%";
        check([1024 * GIB, 256 * GIB, 1 << 20, 1 << 19], used);
        let used = "256.0 TiB   Used FS: 0.0%   Inodes: 0.0 Mi   Used Inodes: 0.0%";
        check([256 * 1024 * GIB, 256 * 1024 * GIB, 0, 0], used);
        let used = "0.0 GiB   Used FS: 0.0%   Inodes: 0.0 Mi   Used Inodes: 0.0%";
        check([0, 7, 0, 7], used);
    }
}
