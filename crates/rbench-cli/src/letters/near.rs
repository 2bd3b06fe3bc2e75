//! Suggestions for an unknown option.

use super::{Line, Table};

/// Returns the long option nearest to a name: one that starts with it, or differs in at most one of
/// three characters.
pub fn long<L: Line>(table: &Table<L>, name: &str) -> Option<String> {
    rbench_core::near::nearest(name, table.options().filter_map(|option| option.long))
        .map(|known| format!("--{known}"))
}

/// Returns the same letter in the other case.
pub fn letter<L: Line>(table: &Table<L>, letter: u8) -> Option<String> {
    let other = letter ^ 0x20;
    (letter.is_ascii_alphabetic() && table.letter(other).is_some())
        .then(|| format!("-{}", char::from(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdtest::Line as Mdtest;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(long(&Mdtest::TABLE, name).as_deref(), expect, "{name}");
        };
        check("posix.odirct", Some("--posix.odirect"));
        check("showrankstatistics", Some("--showRankStatistics"));
        check("save", Some("--savePerOpDataCSV"));
        check("rbench-raport", Some("--rbench-report"));
        check("hlep", Some("--help"));
        check("holp-me", None);
        check("stripes", None);
        check("", None);
        assert_eq!(letter(&Mdtest::TABLE, b'K').as_deref(), Some("-k"));
        assert_eq!(letter(&Mdtest::TABLE, b'J'), None);
    }
}
