//! The files of directories that `opendir` names: requests to the caller, and its answers.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rbench_plan::given::Contents;

/// The key that requests the files of a directory. No path contains a zero byte.
pub fn question(directory: &str) -> PathBuf {
    PathBuf::from(format!("{directory}\0"))
}

/// Returns the directory whose files are requested, if `question` is such a key.
pub fn asked(question: &Path) -> Option<PathBuf> {
    let directory = question.as_os_str().as_bytes().strip_suffix(b"\0")?;
    Some(PathBuf::from(OsString::from_vec(directory.to_vec())))
}

/// Encodes these paths as the answer.
pub fn answer(paths: &[PathBuf]) -> Vec<u8> {
    let paths: Vec<&[u8]> = paths
        .iter()
        .map(|path| path.as_os_str().as_bytes())
        .collect();
    paths.join(&0)
}

/// Reads the names of a directory's files from the answer.
///
/// # Errors A clause if there is no answer, or if no jobs can be made of it.
pub fn read(directory: &str, files: &Contents) -> Result<Vec<String>, String> {
    let Some(answer) = files.get(&question(directory)) else {
        return Err(format!("{directory} is not a readable directory"));
    };
    let names = answer
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let name = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            let shown = String::from_utf8_lossy(bytes).into_owned();
            format!("the name {shown} is not UTF-8")
        })
    };
    let names: Vec<String> = names.map(name).collect::<Result<_, _>>()?;
    match names.is_empty() {
        true => Err(format!("{directory} has no regular files")),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_is_what_is_read() {
        let paths = ["d/a", "d/e/f g"].map(PathBuf::from);
        let question = question("d");
        assert_eq!(asked(&question), Some("d".into()));
        assert_eq!(asked(Path::new("d")), None);
        let files = Contents::from([(question, answer(&paths))]);
        assert_eq!(read("d", &files), Ok(vec!["d/a".into(), "d/e/f g".into()]));
        let why = read("x", &files).expect_err("nobody answered");
        assert!(why.contains("not a readable directory"), "{why}");
        let none = Contents::from([(super::question("d"), Vec::new())]);
        let why = read("d", &none).expect_err("it is empty");
        assert!(why.contains("no regular files"), "{why}");
    }
}
