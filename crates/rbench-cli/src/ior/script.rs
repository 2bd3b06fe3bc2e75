//! IOR's scripts: the options of a test, one a line, between `IOR START` and `IOR STOP`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Line;
use crate::letters;

/// Returns the script that a command line names with `-f`; `None` for other commands.
pub fn script_of(argv: &[OsString]) -> Option<PathBuf> {
    match argv {
        [_, command, words @ ..] if command == "ior" => letters::read::<Line>(words).ok()?.script,
        _ => None,
    }
}

/// Returns the words that a script adds to the command line: its options as directives.
///
/// # Errors A clause that describes the error, with the line.
pub fn options_of(script: &str) -> Result<Vec<OsString>, String> {
    let (mut words, mut started, mut tests) = (Vec::new(), false, 0_u32);
    for (number, line) in (1..).zip(script.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let plain = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match plain.to_lowercase().as_str() {
            "" => {}
            "ior start" => started = true,
            "ior stop" => break,
            // Lines before `IOR START` are plain text.
            _ if !started => {}
            "run" => tests += 1,
            _ if !line.contains('=') => {
                return Err(format!(
                    "line {number}: '{line}' is not of the form name=value"
                ));
            }
            _ if tests > 0 => {
                return Err(format!(
                    "line {number}: a second test starts here; give each test its own script"
                ));
            }
            _ => {
                words.push(OsString::from("-O"));
                words.push(line.into());
            }
        }
    }
    match started {
        true if tests <= 1 => Ok(words),
        true => Err(format!(
            "it has {tests} tests (RUN); give each test its own script"
        )),
        false => Err("it has no line 'IOR START'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_the_options_of_one_test() {
        let text =
            "Text.\nIOR START\n\ttransferSize=64k  # small\n\n fsync = 1\nRUN\nIOR STOP\nrest\n";
        let words = options_of(text).expect("a script");
        assert_eq!(words, ["-O", "transferSize=64k", "-O", "fsync = 1"]);
        let argv = ["rbench", "ior", "-w", "-f", "s", "-e"].map(OsString::from);
        assert_eq!(script_of(&argv), Some(PathBuf::from("s")));
        assert_eq!(script_of(&argv[..3]), None);
    }

    #[test]
    fn a_script_of_several_tests_or_of_none_is_refused() {
        for (text, why) in [
            (
                "IOR START\nRUN\nblockSize=1m\nRUN\nIOR STOP\n",
                "line 3: a second test",
            ),
            ("IOR START\nRUN\nRUN\nIOR STOP\n", "2 tests"),
            ("blockSize=1m\n", "IOR START"),
            ("IOR START\nblockSize\n", "line 2: 'blockSize'"),
        ] {
            let error = options_of(text).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
    }
}
