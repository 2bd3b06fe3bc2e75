//! The option that was probably meant by one that does not exist.

use super::table;

/// The long option nearest to a name, when it is near: the name is its
/// beginning, or one in three characters would have to change at most.
pub fn long(name: &str) -> Option<String> {
    let name = name.trim_matches('-').to_lowercase();
    table::options()
        .filter_map(|option| option.long)
        .filter_map(|known| {
            let lower = known.to_lowercase();
            let away = if name.len() > 2 && lower.starts_with(&name) {
                1
            } else {
                distance(&name, &lower)
            };
            (away <= known.len() / 3).then_some((away, known))
        })
        .min()
        .map(|(_, known)| format!("--{known}"))
}

/// The same letter in the other case.
pub fn letter(letter: u8) -> Option<String> {
    let other = letter ^ 0x20;
    (letter.is_ascii_alphabetic() && table::letter(other).is_some())
        .then(|| format!("-{}", char::from(other)))
}

/// Levenshtein's: how many characters have to be put in, taken out or
/// replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(long(name).as_deref(), expect, "{name}");
        };
        check("posix.odirct", Some("--posix.odirect"));
        check("showrankstatistics", Some("--showRankStatistics"));
        check("save", Some("--savePerOpDataCSV"));
        check("rbench-raport", Some("--rbench-report"));
        check("hlep", None);
        check("stripes", None);
        check("", None);
        assert_eq!(letter(b'K').as_deref(), Some("-k"));
        assert_eq!(letter(b'J'), None);
    }
}
