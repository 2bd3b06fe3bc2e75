//! The existing name that a mistyped one probably means.

/// The known name nearest to `name`, if it is near: `name` is its beginning, or at
/// most one in three characters differs. Two characters that changed places count once.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.trim_matches('-').to_lowercase();
    known
        .filter_map(|known| {
            let lower = known.to_lowercase();
            let away = if name.len() > 2 && lower.starts_with(&name) {
                1
            } else {
                strsim::osa_distance(&name, &lower)
            };
            (away <= known.len() / 3).then_some((away, known))
        })
        .min()
        .map(|(_, known)| known)
}
