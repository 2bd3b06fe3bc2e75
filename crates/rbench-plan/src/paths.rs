//! Names of files as text.

/// Returns true if `..` in a name leads above its start.
pub fn climbs(name: &str) -> bool {
    let mut depth = 0_u32;
    let mut parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.any(|part| {
        let up = part == "..";
        let above = up && depth == 0;
        depth = if up {
            depth.saturating_sub(1)
        } else {
            depth + 1
        };
        above
    })
}
