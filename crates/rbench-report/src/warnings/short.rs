//! Advice for short phases: command options that make them longer.

use rbench_core::Bytes;

use crate::schema::{PhaseResult, RunResult};
use crate::summary::{SHORTEST_S, is_short};

/// Target duration relative to the minimum, since times vary.
const MARGIN: f64 = 2.0;

/// Phases whose number of items follows from the shape of the tree.
const OF_THE_TREE: [&str; 2] = ["tree-create", "tree-remove"];

/// Returns true if the list of short phases includes this one. Phases of the tree depend on other
/// options, so they are listed only if no others are short.
pub(super) fn is_listed(result: &RunResult, phase: &PhaseResult) -> bool {
    counts(phase) && (!of_the_tree(phase) || !others(result))
}

fn counts(phase: &PhaseResult) -> bool {
    phase.items > 0 && is_short(phase)
}

fn of_the_tree(phase: &PhaseResult) -> bool {
    OF_THE_TREE.contains(&phase.name.as_str())
}

/// Returns true if a phase other than those of the tree is short.
fn others(result: &RunResult) -> bool {
    let mut phases = result.phases.iter();
    phases.any(|phase| counts(phase) && !of_the_tree(phase))
}

/// End of the sentence that lists short phases, for the user of the result's command.
pub(super) fn advice(result: &RunResult) -> String {
    let command = result.run.command.get(1).map_or("", String::as_str);
    let tree = match command {
        "meta" => Some("--depth and --branch"),
        "mdtest" => Some("-b and -z"),
        _ => None,
    };
    if !others(result) {
        return tree.map_or(".".into(), |options| {
            format!(". {options} set the number of directories in the tree.")
        });
    }
    let given = |name: &str| result.spec.get(name).and_then(|value| value.as_str());
    // --time would exclude phases of the tree that the user selected.
    let tree_asked = given("phases").is_some_and(|phases| phases.contains("tree-"));
    let timed =
        matches!(command, "meta" | "ops" | "io" | "mix") && !tree_asked && given("time").is_none();
    let mut out = match (option(result, command), timed) {
        (Some((name, value)), true) => {
            format!(". Use more items: {name} {value}, or --time 1.")
        }
        (Some((name, value)), false) => format!(". Use more items: {name} {value}."),
        (None, _) if command == "mix" && timed => ". Use more items, or --time 1.".into(),
        (None, _) if command == "fio" => {
            ". Use more data (size), or time_based with a runtime.".into()
        }
        (None, _) => ". Use more items.".into(),
    };
    let short = |phase: &&PhaseResult| of_the_tree(phase) && counts(phase);
    if let Some(options) = tree
        && let Some(phase) = result.phases.iter().find(short)
    {
        out.push_str(&format!(
            " Also short: {}; {options} set the number of its directories.",
            phase.label
        ));
    }
    out
}

/// The advice for the user of a series of this kind with the result as a cell: its options have
/// other names. `None` if the options are those of the cell.
pub(super) fn advice_of_series(kind: &str, result: &RunResult) -> Option<String> {
    let own = |name: &str| match (kind, name) {
        ("nn", "--items") => Some("--files"),
        ("quick", "--items") => Some("--small-file-count"),
        ("quick", "--size") => Some("--big-file-size"),
        _ => None,
    };
    match kind {
        "nn" | "quick" | "suite" | "io500" => {}
        _ => return None,
    }
    let command = result.run.command.get(1)?;
    let more = option(result, command).filter(|_| others(result));
    let more = more.and_then(|(name, value)| Some((own(name)?, value)));
    Some(match more {
        Some((name, value)) => format!(". Use more items: {name} {value}."),
        None => ".".into(),
    })
}

/// The option for a command's number of items, with a value that makes its shortest phase long
/// enough.
fn option(result: &RunResult, command: &str) -> Option<(&'static str, String)> {
    let phases = result.phases.iter();
    let phases = phases.filter(|phase| counts(phase) && !of_the_tree(phase));
    let least = phases.map(|p| p.elapsed_s).fold(SHORTEST_S, f64::min);
    let more = (least > 0.0).then(|| MARGIN * SHORTEST_S / least)?;
    let setting = |name: &str| result.spec.get(name)?.as_str();
    let count = |name: &str| setting(name)?.parse::<u64>().ok();
    let scaled = |n: u64| round_up(n as f64 * more).to_string();
    match command {
        "meta" => Some(("--items", scaled(count("items")?))),
        "ops" => Some(("--ops", scaled(count("ops")?))),
        "mdtest" => {
            let letters = |word: &&String| word.starts_with('-') && !word.starts_with("--");
            let mut words = result.run.command.iter().skip(2).filter(letters);
            Some(match words.any(|word| word.contains('I')) {
                true => ("-I", scaled(count("items")?)),
                false => ("-n", scaled(count("items-per-rank")?)),
            })
        }
        "io" => match count("files") {
            Some(files) => Some(("--files", scaled(files))),
            None => {
                let Bytes(size) = setting("size")?.parse().ok()?;
                let size = size as f64 * more;
                // Files cannot be larger.
                let size = (size < (1_u64 << 62) as f64).then(|| (size as u64).next_power_of_two());
                let size = Bytes(size?).to_string();
                let short = size.trim_end_matches("iB").trim_end_matches('B');
                Some(("--size", short.to_owned()))
            }
        },
        _ => None,
    }
}

/// Rounds up to 1, 2, 5, 10, 20, 50 …
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
