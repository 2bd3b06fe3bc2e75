//! What makes short phases long enough: options of the command that was run.

use rbench_core::Bytes;

use super::{SHORTEST_S, is_short};
use crate::schema::RunResult;

/// How much longer than the least a phase is meant to be: times vary.
const MARGIN: f64 = 2.0;

/// Phases whose items are the tree's: how many, its shape says.
const OF_THE_TREE: [&str; 2] = ["tree-create", "tree-remove"];

/// The end of the sentence that lists short phases.
pub(super) fn advice(result: &RunResult) -> String {
    let phases = result.phases.iter().filter(|p| p.items > 0 && is_short(p));
    let (tree, others): (Vec<_>, Vec<_>) =
        phases.partition(|p| OF_THE_TREE.contains(&p.name.as_str()));
    let command = result.run.command.get(1).map(String::as_str);
    if others.is_empty() && !tree.is_empty() && command == Some("meta") {
        return ". That many directories are in the tree: --depth and --branch say how many."
            .into();
    }
    let least = others
        .iter()
        .map(|p| p.elapsed_s)
        .fold(SHORTEST_S, f64::min);
    let more = (least > 0.0).then(|| MARGIN * SHORTEST_S / least);
    let option = more.and_then(|more| option(result, command?, more));
    match option {
        Some(option) => format!(". Use more items: {option}."),
        None => ". Use more items.".into(),
    }
}

/// The option with so many times as many items, and what would do as well.
fn option(result: &RunResult, command: &str, more: f64) -> Option<String> {
    let setting = |name: &str| result.spec.get(name)?.as_str();
    let count = |name: &str| setting(name)?.parse::<u64>().ok();
    let scaled = |n: u64| round_up(n as f64 * more);
    let timed = |option: &str, n: u64| format!("{option} {n}, or --time 1");
    match command {
        "meta" => Some(timed("--items", scaled(count("items")?))),
        "ops" => Some(timed("--ops", scaled(count("ops")?))),
        "mdtest" => {
            let letters = |word: &&String| word.starts_with('-') && !word.starts_with("--");
            let mut words = result.run.command.iter().skip(2).filter(letters);
            Some(match words.any(|word| word.contains('I')) {
                true => format!("-I {}", scaled(count("items")?)),
                false => format!("-n {}", scaled(count("items-per-rank")?)),
            })
        }
        "io" => Some(match count("files") {
            Some(files) => timed("--files", scaled(files)),
            None => {
                let Bytes(size) = setting("size")?.parse().ok()?;
                let size = size as f64 * more;
                // Above that there is no file.
                let size = (size < (1_u64 << 62) as f64).then(|| (size as u64).next_power_of_two());
                let size = Bytes(size?).to_string();
                format!(
                    "--size {}, or --time 1",
                    size.trim_end_matches("iB").trim_end_matches('B')
                )
            }
        }),
        _ => None,
    }
}

/// The next of 1, 2, 5, 10, 20, 50 …
fn round_up(n: f64) -> u64 {
    let mut step = 1.0;
    while step * 10.0 < n {
        step *= 10.0;
    }
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * step);
    nice.into_iter().find(|nice| *nice >= n).unwrap_or(n) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_round_and_not_smaller() {
        for (n, nice) in [
            (0.3, 1),
            (1.0, 1),
            (1.1, 2),
            (47.0, 50),
            (51.0, 100),
            (2001.0, 5000),
        ] {
            assert_eq!(round_up(n), nice, "{n}");
        }
    }
}
