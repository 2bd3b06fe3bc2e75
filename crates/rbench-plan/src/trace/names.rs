//! Names of a trace, and their mapping to paths below the directory of a replay.

use std::sync::Arc;

use super::{Name, Other, why};

/// The longest path that Linux accepts, and the longest name in one, in bytes.
pub const PATH_MAX: usize = 4095;
const PART_MAX: usize = 255;

/// Placeholder for an unknown working directory.
pub const SOMEWHERE: &[u8] = b"/working-directory";

/// The reason why a name has no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmapped {
    /// Operations on it are left out.
    LeftOut(&'static str),
    /// It is not a name: a sentence.
    Wrong(String),
}

/// Selection and mapping of a trace's names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// Only names below this directory, which becomes the directory of the replay: the parts of
    /// its path.
    below: Option<Vec<Vec<u8>>>,
    /// True if names start at the root of a mount instead of a host: `/dev` is then a user's
    /// directory.
    of_a_mount: bool,
}

impl Names {
    /// Selects the names below `directory`; `None`: all.
    pub fn below(directory: Option<&[u8]>) -> Names {
        Names {
            below: directory.map(|path| parts(b"/", path)),
            of_a_mount: false,
        }
    }

    /// Returns the names of a trace that start at the root of a mount.
    pub fn of_a_mount(&self) -> Names {
        Names {
            of_a_mount: true,
            ..self.clone()
        }
    }

    /// The directory given by the user.
    pub fn directory(&self) -> Option<Vec<u8>> {
        let below = self.below.as_ref()?;
        Some([&b"/"[..], &below.join(&b'/')].concat())
    }

    /// The path of a name, which is relative to `base` unless it is absolute.
    ///
    /// # Errors
    /// Fails if its operations are left out, or if it is not a name.
    pub fn map(&self, base: &[u8], name: &[u8]) -> Result<Name, Unmapped> {
        checked(name).map_err(Unmapped::Wrong)?;
        if name.len() > PATH_MAX {
            return Err(Unmapped::LeftOut(why::LONG));
        }
        let parts = parts(base, name);
        if is_long(&parts) {
            return Err(Unmapped::LeftOut(why::LONG));
        }
        self.path_of(&parts).map_err(Unmapped::LeftOut)
    }

    fn path_of(&self, parts: &[Vec<u8>]) -> Result<Name, &'static str> {
        let kernel = [&b"proc"[..], b"sys", b"dev"];
        let is_kernel = |part: &Vec<u8>| kernel.contains(&&part[..]);
        if !self.of_a_mount && parts.first().is_some_and(is_kernel) {
            return Err(why::KERNEL);
        }
        let rest = match &self.below {
            None => parts,
            Some(below) => parts.strip_prefix(&below[..]).ok_or_else(|| {
                match parts.first().is_some_and(|first| *first == SOMEWHERE[1..]) {
                    true => why::SOMEWHERE,
                    false => why::ELSEWHERE,
                }
            })?,
        };
        Ok(Arc::from(rest.join(&b'/')))
    }

    /// Target of a symbolic link in the replay, for the recorded `target` of `link`, a name
    /// below `base`.
    ///
    /// # Errors
    /// Fails if it is not a target, or is too long.
    pub fn target(&self, base: &[u8], link: &[u8], target: &[u8]) -> Result<Other, Unmapped> {
        checked(target).map_err(Unmapped::Wrong)?;
        if target.len() > PATH_MAX {
            return Err(Unmapped::LeftOut(why::LONG));
        }
        let leads_down =
            !target.starts_with(b"/") && !target.split(|b| *b == b'/').any(|part| part == b"..");
        if leads_down {
            return Ok(Other::Bytes(target.into()));
        }
        let beside = absolute(base, link);
        let end = beside.iter().rposition(|b| *b == b'/').unwrap_or(0);
        let to = parts(&beside[..end.max(1)], target);
        if is_long(&to) {
            return Err(Unmapped::LeftOut(why::LONG));
        }
        let path = self.path_of(&to).unwrap_or_else(|_| {
            // This path does not exist in a replay.
            let mut outside = b"outside/".to_vec();
            outside.extend(to.join(&b'/'));
            outside.into()
        });
        Ok(Other::Path(path))
    }
}

/// The name of an extended attribute: only the user name space is replayed.
///
/// # Errors
/// Fails if operations on it are left out.
pub fn attribute(name: &[u8]) -> Result<Name, Unmapped> {
    if !name.starts_with(b"user.") || name.contains(&0) {
        return Err(Unmapped::LeftOut(why::ATTRIBUTE));
    }
    match name.len() > PART_MAX {
        true => Err(Unmapped::LeftOut(why::LONG)),
        false => Ok(name.into()),
    }
}

/// True if no system accepts a path of those parts.
fn is_long(parts: &[Vec<u8>]) -> bool {
    let all: usize = parts.iter().map(|part| part.len() + 1).sum();
    all > PATH_MAX || parts.iter().any(|part| part.len() > PART_MAX)
}

fn checked(name: &[u8]) -> Result<(), String> {
    match name {
        [] => Err("a name is empty".to_owned()),
        name if name.contains(&0) => Err("a name contains a NUL byte".to_owned()),
        _ => Ok(()),
    }
}

/// The parts of an absolute path, with `.` and `..` resolved textually: nothing lies above `/`.
fn parts(base: &[u8], name: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let base = if name.starts_with(b"/") { b"" } else { base };
    for part in base.split(|b| *b == b'/').chain(name.split(|b| *b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part.to_vec()),
        }
    }
    parts
}

/// The absolute path of a name, without `.` and `..`.
pub fn absolute(base: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = vec![b'/'];
    path.extend(parts(base, name).join(&b'/'));
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapped(names: &Names, base: &str, name: &str) -> String {
        match names.map(base.as_bytes(), name.as_bytes()) {
            Ok(path) => String::from_utf8_lossy(&path).into_owned(),
            Err(why) => format!("{why:?}"),
        }
    }

    #[test]
    fn names_lie_below_whatever_they_say() {
        let all = Names::default();
        assert_eq!(mapped(&all, "/home/u", "a/./b//c"), "home/u/a/b/c");
        assert_eq!(
            mapped(&all, "/home/u", "../../../../etc/passwd"),
            "etc/passwd"
        );
        assert_eq!(mapped(&all, "/home/u", "/etc/../../x/"), "x");
        assert_eq!(mapped(&all, "/", ".."), "");
        assert!(mapped(&all, "/", "/proc/self/maps").contains("LeftOut"));
        assert!(mapped(&all, "/", "/tmp/../dev/null").contains("LeftOut"));
        assert!(mapped(&all, "/", "a\0b").contains("NUL byte"));
        assert!(mapped(&all, "/", "").contains("empty"));
        let long = "LeftOut(\"a name of more than 255 bytes or a path of more than 4095\")";
        let deep = format!("/{}", ["x"; 2000].join("/"));
        assert_eq!(mapped(&all, &deep, "y"), format!("{}/y", &deep[1..]));
        assert_eq!(mapped(&all, &deep, &deep[1..200]), long);
        assert_eq!(mapped(&all, "/", &"x".repeat(255)), "x".repeat(255));
        assert_eq!(mapped(&all, "/", &"x".repeat(256)), long);
        let mount = all.of_a_mount();
        assert_eq!(mapped(&mount, "/", "/dev/disk"), "dev/disk");
        assert_eq!(mapped(&mount, "/", "../proc"), "proc");
        let some = Names::below(Some(b"/data/set/"));
        assert_eq!(mapped(&some, "/data/set/x", "y"), "x/y");
        assert_eq!(mapped(&some, "/", "/data/set"), "");
        assert!(mapped(&some, "/", "/data/settle").contains("LeftOut"));
        assert!(mapped(&some, "/data/set", "../other").contains("LeftOut"));
    }

    #[test]
    fn links_lead_down_or_are_told_where_to() {
        let all = Names::default();
        let target = |link: &str, target: &str| match all.target(
            b"/r",
            link.as_bytes(),
            target.as_bytes(),
        ) {
            Ok(Other::Bytes(path)) => String::from_utf8_lossy(&path).into_owned(),
            Ok(Other::Path(path)) => format!("below {}", String::from_utf8_lossy(&path)),
            other => format!("{other:?}"),
        };
        assert!(target("l", &"x/".repeat(2048)).contains("LeftOut"));
        assert!(target("l", &"/x".repeat(2048)).contains("LeftOut"));
        assert_eq!(target("l", &"x/".repeat(2047)), "x/".repeat(2047));
        assert_eq!(target("d/l", "x/y"), "x/y");
        assert_eq!(target("d/l", "../x"), "below r/x");
        assert_eq!(target("l", "../../../../x"), "below x");
        assert_eq!(target("l", "/etc/passwd"), "below etc/passwd");
        assert_eq!(target("l", "/dev/null"), "below outside/dev/null");
        assert_eq!(target("l", "a/../../../x"), "below x");
    }

    proptest! {
        #[test]
        fn no_name_leads_out(base in prop::collection::vec(any::<u8>(), 0..40),
                             name in prop::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), any::<u8>()], 0..300)) {
            for names in [Names::default(), Names::below(Some(b"/a/b"))] {
                if let Ok(path) = names.map(&base, &name) {
                    prop_assert!(!path.starts_with(b"/"));
                    let plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
                    prop_assert!(path.is_empty() || path.split(|b| *b == b'/').all(plain));
                }
                if let Ok(Other::Bytes(path)) = names.target(&base, &name, &name) {
                    prop_assert!(!path.starts_with(b"/"));
                    prop_assert!(path.split(|b| *b == b'/').all(|part| part != b".."));
                }
            }
        }
    }
}
