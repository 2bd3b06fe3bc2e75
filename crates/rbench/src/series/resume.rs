//! `--resume FILE` and nothing else: the command line is that of the series in FILE.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rbench_cli::is_series;

use super::record::read_earlier;

/// Options that each launch of a series has for itself.
const OWN: [&str; 2] = ["--resume", "--overwrite"];

/// The file whose series is to be gone on with, if the command line says no more than that: a
/// series may be named.
pub fn alone(argv: &[OsString]) -> Option<PathBuf> {
    let words = match argv.get(1..)? {
        [name, words @ ..] if is_series(name) => words,
        words => words,
    };
    match words {
        [option, file] if option == "--resume" && !file.to_string_lossy().starts_with('-') => {
            Some(file.into())
        }
        [one] => Some(one.to_str()?.strip_prefix("--resume=")?.into()),
        _ => None,
    }
}

/// The full command line of `argv`. If it is [`alone`], this process changes to the directory in
/// which the command of the file was given.
pub fn words(argv: &[OsString]) -> Result<Vec<OsString>, String> {
    let Some(file) = alone(argv) else {
        return Ok(argv.to_vec());
    };
    let file = std::path::absolute(&file).unwrap_or(file);
    let named = |why: String| format!("--resume {}: {why}", file.display());
    let (earlier, _) = read_earlier(&file)?;
    let command = &earlier.run.command;
    let asked = argv
        .get(1)
        .filter(|word| !word.to_string_lossy().starts_with('-'));
    if asked.is_some_and(|asked| command.get(1).is_none_or(|then| asked != then.as_str())) {
        let series = earlier.suite.as_ref().unwrap_or(&earlier.kind);
        return Err(named(format!("it holds a series of {series}")));
    }
    if command
        .iter()
        .any(|word| word.contains(char::REPLACEMENT_CHARACTER))
    {
        let why = "its command line is not known to the letter: give it again";
        return Err(named(why.to_owned()));
    }
    if let Some(then) = &earlier.launched {
        std::env::set_current_dir(Path::new(&then.cwd))
            .map_err(|e| named(format!("it was started in {}: {e}", then.cwd)))?;
    }
    Ok(again(argv, command, &file))
}

/// `command`, going on with `file`.
fn again(argv: &[OsString], command: &[String], file: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = argv.iter().take(1).cloned().collect();
    let mut then = command.iter().skip(1);
    words.extend(then.next().map(OsString::from));
    words.extend(["--out".into(), file.into(), "--resume".into()]);
    while let Some(word) = then.next() {
        match word.as_str() {
            "--out" => drop(then.next()),
            word if word.starts_with("--out=") || OWN.contains(&word) => {}
            word => words.push(word.into()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> Vec<OsString> {
        words.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_file_alone_is_one_with_nothing_else() {
        for words in [
            "--resume f",
            "--resume=f",
            "sweep --resume f",
            "quick --resume=f",
        ] {
            assert_eq!(
                alone(&line(&format!("rbench {words}"))),
                Some("f".into()),
                "{words}"
            );
        }
        for words in [
            "sweep --resume",
            "io --resume f",
            "sweep --out f --resume",
            "nn --resume -q",
            "fio",
        ] {
            assert_eq!(alone(&line(&format!("rbench {words}"))), None, "{words}");
        }
    }

    #[test]
    fn the_command_line_again_has_the_file_and_no_other() {
        let check = |then: &str, now: &str| {
            let then: Vec<String> = then.split(' ').map(str::to_owned).collect();
            assert_eq!(
                again(&line("./rbench --resume f"), &then, Path::new("/f")),
                line(now)
            );
        };
        check(
            "rbench sweep --out g --quiet --overwrite --over bs=4k,8k -- io --dir x",
            "./rbench sweep --out /f --resume --quiet --over bs=4k,8k -- io --dir x",
        );
        check("r /mnt --resume --out=g", "./rbench /mnt --out /f --resume");
    }
}
