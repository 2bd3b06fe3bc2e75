//! Check before a phase that reads: was the data ever written? Reads of reserved blocks and of
//! holes fetch nothing and are fast.

use rbench_sys::residency::{Extents, Part, extents};

use crate::group::{ExecError, Group};
use crate::listener::Listener;

/// The code of the warning.
const NEVER_WRITTEN: &str = "never-written";

/// Maximum number of parts that a rank inspects; of more, a sample at even distances.
const MOST_PARTS: usize = 64;

/// Hosts that the warning names.
const MOST_HOSTS: usize = 4;

/// Findings of the ranks of a host, and the number of inspected parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    extents: Extents,
    parts: u64,
}

/// Inspects the `parts` of files that this rank reads next in `what`, untimed; warns if some of it
/// was never written. All ranks call it. Says nothing if the file system does not report it.
pub(crate) async fn look(
    group: &Group<'_>,
    mut parts: Vec<Part>,
    what: &str,
    listener: &mut dyn Listener,
) -> Result<(), ExecError> {
    parts.sort_unstable();
    parts.dedup();
    let count = parts.len() as u64;
    let step = parts.len().div_ceil(MOST_PARTS).max(1);
    let sample: Vec<Part> = parts.into_iter().step_by(step).collect();
    let looked = group.on_target(move || extents(&sample), || 0).await?;
    // Without the thread nothing is known.
    let looked = looked.unwrap_or_default();
    let all = group.gather(&(count, looked)).await?;
    let mut hosts = vec![Found::default(); group.host_names.len()];
    for ((count, looked), host) in all.into_iter().zip(&group.host_of) {
        let found = &mut hosts[*host as usize];
        found.parts += count;
        found.extents = found.extents.plus(looked);
    }
    let named = group.host_names.iter().map(String::as_str).zip(hosts);
    if let Some(message) = sentence(what, &named.collect::<Vec<_>>()) {
        listener.warning(NEVER_WRITTEN, message);
    }
    Ok(())
}

/// Returns the warning, if any.
fn sentence(what: &str, hosts: &[(&str, Found)]) -> Option<String> {
    let lacks = |found: &Found| found.extents.unwritten + found.extents.holes > 0;
    let lacking: Vec<&(&str, Found)> = hosts.iter().filter(|(_, found)| lacks(found)).collect();
    if lacking.is_empty() {
        return None;
    }
    let one = |(host, found): &(&str, Found)| {
        let Extents {
            parts,
            bytes,
            unwritten,
            holes,
        } = found.extents;
        let percent = |part: u64| 100.0 * part as f64 / bytes as f64;
        let of = match found.parts == parts {
            true => String::new(),
            false => format!("; {parts} of {} files checked", found.parts),
        };
        format!(
            "on {host} {} ({} reserved, {} holes{of})",
            rounded(percent(unwritten + holes)),
            rounded(percent(unwritten)),
            rounded(percent(holes)),
        )
    };
    let mut words: Vec<String> = lacking.iter().take(MOST_HOSTS).map(|h| one(h)).collect();
    if lacking.len() > MOST_HOSTS {
        words.push(format!("and on {} more hosts", lacking.len() - MOST_HOSTS));
    }
    Some(format!(
        "{what} reads ranges that were never written, which is fast because no data is fetched: {}.",
        words.join(", ")
    ))
}

/// Rounds a share for people; a nonzero share is never 0%.
fn rounded(percent: f64) -> String {
    if percent > 0.0 && percent < 1.0 {
        "under 1%".to_owned()
    } else {
        format!("{percent:.0}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(looked: u64, bytes: u64, unwritten: u64, holes: u64, parts: u64) -> Found {
        Found {
            extents: Extents {
                parts: looked,
                bytes,
                unwritten,
                holes,
            },
            parts,
        }
    }

    #[test]
    fn only_hosts_that_lack_data_are_named_with_their_share() {
        let full = found(2, 1000, 0, 0, 2);
        assert_eq!(sentence("x", &[("a", full), ("b", Found::default())]), None);
        let some = found(2, 1000, 250, 5, 2);
        let sample = found(64, 1000, 0, 1000, 500);
        let text = sentence("x", &[("a", full), ("b", some), ("c", sample)]);
        let expect = "x reads ranges that were never written, which is fast because no data is fetched: on b 26% (25% \
                      reserved, under 1% holes), on c 100% (0% reserved, 100% holes; 64 of 500 files checked).";
        assert_eq!(text.as_deref(), Some(expect));
        let many: Vec<(&str, Found)> = (0..6).map(|_| ("h", some)).collect();
        let text = sentence("x", &many).unwrap_or_default();
        assert!(text.ends_with("and on 2 more hosts."), "{text}");
    }
}
