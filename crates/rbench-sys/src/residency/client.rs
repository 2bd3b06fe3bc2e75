//! Counters of a JuiceFS client, from its file `.stats`.

use std::collections::BTreeMap;
use std::path::Path;

use super::requests::{content, stats_file};
use crate::mountinfo;

/// Prefix of every name in that file.
const PREFIX: &str = "juicefs_";

/// All counters of the client that serves `dir`, by their names without `juicefs_`;
/// `None` if the mount has no such file. Times are in seconds. It may block on the
/// file system.
pub fn client_counters(dir: &Path) -> Option<BTreeMap<String, f64>> {
    let mount = mountinfo::of(dir).ok()?;
    if !mount.fs_type.starts_with("fuse") {
        return None;
    }
    let text = content(&stats_file(&mount.mount_point)?).ok()?;
    of_text(&text)
}

/// Parses lines `juicefs_NAME VALUE`.
fn of_text(text: &str) -> Option<BTreeMap<String, f64>> {
    let line = |line: &str| {
        let (name, value) = line.trim().split_once(' ')?;
        let value: f64 = value.trim().parse().ok()?;
        let name = name.strip_prefix(PREFIX)?;
        value.is_finite().then(|| (name.to_owned(), value))
    };
    let counters: BTreeMap<String, f64> = text.lines().filter_map(line).collect();
    (!counters.is_empty()).then_some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_lines_of_a_name_and_a_number() {
        let counters = of_text("juicefs_uptime 1.5\njuicefs_a_total 1e+06\nother 3\njuicefs_b x\n");
        let expect = [("a_total".to_owned(), 1e6), ("uptime".to_owned(), 1.5)];
        assert_eq!(counters, Some(BTreeMap::from(expect)));
        assert_eq!(of_text("fuse_ops.read: 5\n"), None);
    }
}
