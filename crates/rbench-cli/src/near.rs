//! The name that was probably meant when one does not exist.

/// The known name nearest to a name, when it is near: the name is its
/// beginning, or at most one in three characters would have to change.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.trim_matches('-').to_lowercase();
    known
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
        .map(|(_, known)| known)
}

/// Levenshtein distance: how many characters must be inserted, deleted or
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
}
