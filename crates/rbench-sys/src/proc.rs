//! Texts of `/proc` and `/sys`: named fields, sizes, the fields of a process's `stat`, and
//! directories of numbers.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use rbench_core::Bytes;

/// The rest of the first line that starts with `name`, without blanks around it.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(name).map(str::trim))
}

/// The size in a line `VmRSS:   1234 kB`.
pub(crate) fn kib(text: &str, name: &str) -> Option<Bytes> {
    let number = field(text, name)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024).map(Bytes)
}

/// The names in a directory that are numbers; none if it cannot be read.
pub(crate) fn numbers<T: FromStr>(dir: impl AsRef<Path>) -> impl Iterator<Item = T> {
    fs::read_dir(dir).into_iter().flat_map(numbers_of)
}

/// The names of these entries that are numbers.
pub(crate) fn numbers_of<T: FromStr>(entries: fs::ReadDir) -> impl Iterator<Item = T> {
    let entries = entries.flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fields of a file `stat` of proc_pid_stat(5), from the third on: its state.
pub(crate) struct Stat<'t>(Vec<&'t str>);

impl<'t> Stat<'t> {
    /// Splits the text; the name of the process before these fields may contain anything, even
    /// parentheses.
    pub(crate) fn read(text: &'t str) -> Option<Stat<'t>> {
        let (_, fields) = text.rsplit_once(')')?;
        Some(Stat(fields.split_whitespace().collect()))
    }

    /// The field with this number in proc_pid_stat(5).
    pub(crate) fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.0.get(number - 3)?.parse().ok()
    }

    /// True in one of these states, each a letter.
    pub(crate) fn is(&self, states: &[&str]) -> bool {
        self.0.first().is_some_and(|state| states.contains(state))
    }

    /// True if the process has ended, even if it was not waited for: it holds no resources.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_empty() || self.is(&["Z", "X", "x"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_kib() {
        assert_eq!(kib("VmHWM:\t 8 kB\n", "VmHWM:"), Some(Bytes(8192)));
        assert_eq!(kib("Name: x\n", "VmHWM:"), None);
        let total = |text| kib(text, "MemTotal:");
        let text = "MemTotal:  2048 kB\nMemAvailable:   1024 kB\nSwap: 1 kB\n";
        assert_eq!(total(text), Some(Bytes(2 << 20)));
        assert_eq!(kib(text, "MemAvailable:"), Some(Bytes(1 << 20)));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(total("MemTotal: many kB\n"), None);
        assert_eq!(kib("MemTotal: 100 kB\n", "MemAvailable:"), None);
    }
}
