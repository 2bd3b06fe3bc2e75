//! Series: several runs of one launch, one after the other, whose results belong together.
//! Each run is a cell: a command line, and the ranks that take part.

use std::ffi::OsString;
use std::str::FromStr;

use rbench_core::Rank;
use rbench_core::plain::plain;

use crate::refusal::PlanError;

/// One run of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// Its name, different from all others, for people and machines: `hosts=2 bs=4k`.
    pub name: String,
    /// Its values by key, in the order of the keys.
    pub values: Vec<(String, String)>,
    /// The command line after the program's name.
    pub words: Vec<OsString>,
    /// The launched ranks that take part.
    pub selection: Selection,
}

/// Selection of the launched ranks that take part in a cell; `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// Number of hosts, in the order of their first ranks.
    pub hosts: Option<u32>,
    /// Number of ranks of each of them.
    pub ranks_per_host: Option<u32>,
    /// Total number of ranks, spread over the hosts as evenly as possible: each host's
    /// first, then each host's second, and so on.
    pub ranks: Option<u32>,
}

/// Builder of a command line, after the program's name.
#[derive(Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<OsString>);

impl Words {
    /// Adds words that blanks separate.
    pub(crate) fn and(mut self, text: &str) -> Words {
        let words = text.split_whitespace();
        self.0.extend(words.map(OsString::from));
        self
    }

    /// Adds such words if this is `given`.
    pub(crate) fn and_if(self, given: bool, text: &str) -> Words {
        match given {
            true => self.and(text),
            false => self,
        }
    }

    /// Adds a word and its value, which may contain blanks.
    pub(crate) fn with(mut self, word: &str, value: impl Into<OsString>) -> Words {
        self.0.extend([word.into(), value.into()]);
        self
    }
}

impl Selection {
    /// True if a key of `--over` selects ranks.
    pub fn is_key(key: &str) -> bool {
        matches!(key, "hosts" | "ranks-per-host" | "ranks")
    }

    /// Sets the value of such a key.
    ///
    /// # Errors
    /// A sentence if the value is not a number from 1 on.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PlanError> {
        let number = value.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
            PlanError(format!(
                "--over {key}: '{value}' is not a number of at least 1"
            ))
        })?;
        match key {
            "hosts" => self.hosts = Some(number),
            "ranks-per-host" => self.ranks_per_host = Some(number),
            _ => self.ranks = Some(number),
        }
        Ok(())
    }

    /// The ranks that take part, ascending. `host_of` is the host of each launched rank,
    /// numbered from 0 in the order of their first ranks.
    ///
    /// # Errors
    /// A sentence if there are fewer than requested.
    pub fn members(&self, host_of: &[u32]) -> Result<Vec<Rank>, PlanError> {
        let hosts = host_of.iter().max().map_or(0, |last| last + 1);
        let chosen = self.hosts.unwrap_or(hosts);
        if chosen > hosts {
            let launched = counted(hosts, "host was", "hosts were");
            refuse!("hosts={chosen}: only {launched} launched");
        }
        let mut seen = vec![0_u32; hosts as usize];
        // Each rank with its turn on its host.
        let mut turns: Vec<(u32, Rank)> = Vec::new();
        for (rank, &host) in (0_u32..).zip(host_of) {
            let turn = seen[host as usize];
            seen[host as usize] += 1;
            if host < chosen && self.ranks_per_host.is_none_or(|most| turn < most) {
                turns.push((turn, Rank(rank)));
            }
        }
        if let Some(wanted) = self.ranks_per_host
            && let Some(few) = seen[..chosen as usize].iter().find(|n| **n < wanted)
        {
            let few = counted(*few, "rank", "ranks");
            refuse!("ranks-per-host={wanted}: a host has only {few}");
        }
        if let Some(wanted) = self.ranks {
            let all = turns.len();
            refuse_if!(wanted as usize > all => "ranks={wanted}: there are only {all}");
            turns.sort_unstable();
            turns.truncate(wanted as usize);
        }
        let mut members: Vec<Rank> = turns.into_iter().map(|(_, rank)| rank).collect();
        members.sort_unstable();
        Ok(members)
    }
}

fn counted(n: u32, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// A key of `--over` with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// `hosts`, `ranks-per-host`, `ranks`, or an option of the workload without its
    /// dashes.
    pub key: String,
    /// At least one.
    pub values: Vec<String>,
}

impl FromStr for Over {
    type Err = PlanError;

    /// Reads `KEY=V1,V2,…`.
    fn from_str(text: &str) -> Result<Over, PlanError> {
        let form = || {
            PlanError(format!(
                "'{text}' is not a key with values (expected KEY=V1,V2,…)"
            ))
        };
        let (key, values) = text.split_once('=').ok_or_else(form)?;
        let key = key.trim_start_matches('-');
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if key.is_empty() || values.iter().any(String::is_empty) {
            return Err(form());
        }
        Ok(Over {
            key: key.to_owned(),
            values,
        })
    }
}

/// The workloads of a sweep, in words.
pub const WORKLOADS: &str = "io, meta, mix, ops, mdtest or fio";

/// Checks that the words start with the name of a workload.
///
/// # Errors
/// A sentence with the possible `names`, if they start with an option.
pub fn named(words: &[OsString], names: &str) -> Result<(), PlanError> {
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
    if let Some(first) = words.first().filter(is_option) {
        let first = first.to_string_lossy();
        refuse!(
            "the workload is missing before {}: name {names} after --",
            plain(&first)
        );
    }
    Ok(())
}

/// The cells of a sweep: the product of all values, with the last key changing fastest,
/// each with the words of the workload.
///
/// # Errors
/// A sentence if the workload is missing, because the words start with an option. Or one
/// that names the key: it occurs twice, is already an option of the workload, or has a
/// value twice.
pub fn product(over: &[Over], words: &[OsString]) -> Result<Vec<Cell>, PlanError> {
    named(words, WORKLOADS)?;
    for (at, one) in over.iter().enumerate() {
        let key = &one.key;
        refuse_if! {
            over[..at].iter().any(|other| other.key == *key) => "--over {key} is given twice";
        }
        let mut values = one.values.iter().enumerate();
        if let Some((_, twice)) = values.find(|(at, value)| one.values[..*at].contains(value)) {
            refuse!("--over {key}: the value {twice} is given twice");
        }
        let placed = fill(&mut words.to_vec(), key, "");
        refuse_if! {
            !Selection::is_key(key) && !placed && has_option(key, words) =>
                "--over {key}: the workload already has {}", flag(key);
        }
    }
    let mut cells = vec![Cell {
        words: words.to_vec(),
        ..Cell::default()
    }];
    for one in over {
        let mut next = Vec::with_capacity(cells.len() * one.values.len());
        for cell in &cells {
            for value in &one.values {
                next.push(cell.with(&one.key, value)?);
            }
        }
        cells = next;
    }
    Ok(cells)
}

impl Cell {
    /// The cell with another value.
    fn with(&self, key: &str, value: &str) -> Result<Cell, PlanError> {
        let mut cell = self.clone();
        if !cell.name.is_empty() {
            cell.name.push(' ');
        }
        cell.name.push_str(&format!("{key}={value}"));
        cell.values.push((key.to_owned(), value.to_owned()));
        if Selection::is_key(key) {
            cell.selection.set(key, value)?;
        } else if !fill(&mut cell.words, key, value) {
            set_option(&mut cell.words, key, value);
        }
        Ok(cell)
    }
}

/// Replaces each `{KEY}` by the value. Returns true if there is one.
fn fill(words: &mut [OsString], key: &str, value: &str) -> bool {
    let placeholder = format!("{{{key}}}");
    let mut is_filled = false;
    for word in words {
        if let Some(text) = word.to_str().filter(|text| text.contains(&placeholder)) {
            *word = text.replace(&placeholder, value).into();
            is_filled = true;
        }
    }
    is_filled
}

/// Adds an option to a command line, right after the name of the workload. The values of a
/// switch are `on` and `off`.
pub fn set_option(words: &mut Vec<OsString>, key: &str, value: &str) {
    let fio = words.first().is_some_and(|word| word == "fio");
    let added: Vec<OsString> = match value {
        _ if fio => vec![format!("--{key}={value}").into()],
        "on" => vec![flag(key).into()],
        "off" => Vec::new(),
        _ => vec![flag(key).into(), value.into()],
    };
    let index = words.len().min(1);
    words.splice(index..index, added);
}

/// The option of a key: `-n`, `--bs`.
fn flag(key: &str) -> String {
    if key.chars().count() == 1 {
        format!("-{key}")
    } else {
        format!("--{key}")
    }
}

/// True if a command line has the option of that key.
pub fn has_option(key: &str, words: &[OsString]) -> bool {
    let flag = flag(key);
    words.iter().any(|word| {
        word.to_str().is_some_and(|word| {
            word == flag
                || word
                    .strip_prefix(&flag)
                    .is_some_and(|rest| rest.starts_with('='))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_error, words};

    fn over(key: &str, values: &[&str]) -> Over {
        Over {
            key: key.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    #[test]
    fn a_product_has_every_combination_once() {
        let keys = [
            over("hosts", &["1", "2"]),
            over("bs", &["4k", "1m"]),
            over("direct", &["on", "off"]),
        ];
        let cells = product(&keys, &words("io --rw write")).expect("a product");
        let names: Vec<&str> = cells.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names.len(), 8);
        assert_eq!(names[0], "hosts=1 bs=4k direct=on");
        assert_eq!(names[7], "hosts=2 bs=1m direct=off");
        assert_eq!(cells[0].words, words("io --direct --bs 4k --rw write"));
        assert_eq!(cells[7].words, words("io --bs 1m --rw write"));
        assert_eq!(cells[7].selection.hosts, Some(2));
    }

    #[test]
    fn keys_of_fio_and_mdtest_have_their_form() {
        let cells = product(&[over("iodepth", &["4"])], &words("fio --name=a")).expect("cells");
        assert_eq!(cells[0].words, words("fio --iodepth=4 --name=a"));
        let cells = product(&[over("n", &["10"])], &words("mdtest -F")).expect("cells");
        assert_eq!(cells[0].words, words("mdtest -n 10 -F"));
    }

    #[test]
    fn a_key_with_a_place_of_its_own_is_no_option() {
        let workload = words("mdtest -w {size} -e {size} -F");
        let cells = product(&[over("size", &["4k"])], &workload).expect("cells");
        assert_eq!(cells[0].words, words("mdtest -w 4k -e 4k -F"));
    }

    #[test]
    fn a_key_needs_values() {
        let read: Over = "bs=4k,1m".parse().expect("a key");
        assert_eq!((read.key.as_str(), read.values.len()), ("bs", 2));
        let read: Over = "--bs=4k".parse().expect("a key");
        assert_eq!(read.key, "bs");
        for wrong in ["bs", "bs=", "=4k", "bs=4k,,8k"] {
            assert!(wrong.parse::<Over>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_workload_that_is_missing_is_said_so() {
        let error = product(&[over("bs", &["4k"])], &words("--dir /mnt")).expect_err("refused");
        let expect =
            "the workload is missing before --dir: name io, meta, mix, ops, mdtest or fio after --";
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let check =
            |keys: &[Over], part: &str| check_error(product(keys, &words("io --bs=4k")), part);
        each! { check:
            &[over("bs", &["8k"])] => "already has --bs";
            &[over("a", &["1"]), over("a", &["2"])] => "given twice";
            &[over("a", &["1", "1"])] => "the value 1 is given twice";
            &[over("hosts", &["0"])] => "--over hosts: '0'";
        }
    }

    #[test]
    fn ranks_are_chosen_host_by_host() {
        let host_of = [0, 0, 0, 1, 1, 1, 2, 2, 2];
        let of = |[hosts, ranks_per_host, ranks]: [Option<u32>; 3]| {
            let selection = Selection {
                hosts,
                ranks_per_host,
                ranks,
            };
            let ranks = selection.members(&host_of);
            ranks.map(|ranks| ranks.into_iter().map(|r| r.0).collect::<Vec<_>>())
        };
        assert_eq!(of([None; 3]), Ok((0..9).collect()));
        assert_eq!(of([Some(2), None, None]), Ok((0..6).collect()));
        assert_eq!(of([None, Some(1), None]), Ok(vec![0, 3, 6]));
        assert_eq!(of([None, None, Some(4)]), Ok(vec![0, 1, 3, 6]));
        for impossible in [
            [Some(4), None, None],
            [None, Some(4), None],
            [None, None, Some(10)],
        ] {
            assert!(of(impossible).is_err(), "{impossible:?}");
        }
    }
}
