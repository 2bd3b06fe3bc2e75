//! Reads the command lines of README and docs the way users would type them.
#![allow(
    clippy::disallowed_methods,
    reason = "the pages of the project are read"
)]

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            into.push(path);
        }
    }
}

/// Returns the lines of code of a page, joined with their continuation lines.
fn code(page: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (line, number) in page.lines().zip(1..) {
        let Some(line) = line.strip_prefix("    ") else {
            goes_on = false;
            continue;
        };
        let text = line.trim_end_matches('\\');
        match all.last_mut().filter(|_| goes_on) {
            Some((_, whole)) => whole.push_str(text),
            None => all.push((number, text.to_owned())),
        }
        goes_on = text.len() < line.len();
    }
    all
}

/// Returns the words of a shell command up to a pipe, a redirection, a comment or the next command.
/// Returns `None` if only a shell can expand the words.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '`' | '…') => return None,
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&' | '>' | '<') => break,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Skips a launcher and its options; returns the words from the program's name on.
fn command(words: &[String]) -> Option<&[String]> {
    let at = match words.first()?.as_str() {
        "rbench" => 0,
        "mpirun" | "srun" | "$" => words.iter().position(|word| word == "rbench")?,
        _ => return None,
    };
    Some(&words[at..])
}

#[test]
fn the_command_lines_of_readme_and_docs_are_ones_that_are_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut all);
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for page in all {
        let text = fs::read_to_string(&page).expect("a page");
        for (number, line) in code(&text) {
            let Some(line) = words(&line) else { continue };
            let Some(argv) = command(&line) else { continue };
            // Job files and their jobs are unknown here.
            let foreign = argv.get(1).is_some_and(|word| word == "fio");
            let needs_file = foreign && argv.iter().any(|word| word.ends_with(".fio"));
            let generic = argv.get(1).is_some_and(|word| word == "COMMAND");
            if needs_file || generic {
                continue;
            }
            let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
            match parse(&argv, None) {
                Err(stop) if stop.code != 0 => {
                    let name = page.strip_prefix(&root).expect("below").display();
                    wrong.push(format!("{name}:{number}: {}", stop.text));
                }
                _ => taken += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 150, "only {taken} were found");
}

#[test]
fn strace_is_called_alike_everywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md")];
    pages(&root.join("docs/guide"), &mut all);
    pages(&root.join("docs/reference"), &mut all);
    let read = |page: &PathBuf| fs::read_to_string(page).expect("a page");
    let mut texts: Vec<String> = all.iter().map(read).collect();
    texts.extend(help_texts().into_iter().map(|(_, text)| text));
    let mut found = 0;
    for text in &texts {
        for at in text.match_indices("strace -f ").map(|(at, _)| &text[at..]) {
            let line = at.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
            assert!(line.starts_with("strace -f -y -ttt -T -s 0 -o"), "{line}");
            found += 1;
        }
    }
    assert!(found > 5, "only {found} were found");
}

#[test]
fn words_are_those_of_a_shell() {
    let check = |line: &str, expect: &[&str]| {
        assert_eq!(words(line).expect("words"), expect, "{line}");
    };
    check("rbench io --bs 4k  # fast", &["rbench", "io", "--bs", "4k"]);
    check(
        "rbench io --name '*01*' > a",
        &["rbench", "io", "--name", "*01*"],
    );
    check("a \"b c\" ''", &["a", "b c", ""]);
    assert_eq!(words("rbench … x"), None);
    let page = "    rbench io \\\n      --bs 4k\ntext\n    rbench meta";
    let lines: Vec<String> = code(page).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, ["rbench io   --bs 4k", "rbench meta"]);
}
