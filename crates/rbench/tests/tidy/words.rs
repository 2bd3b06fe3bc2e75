//! Tests that texts for users (README, docs, help and messages) and comments are plain English.

use std::fs;
use std::path::{Path, PathBuf};

use super::source::tokens;
use super::{all_sources, is_test, root};

/// Phrases to avoid, and their replacements.
const NOT_USED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("are gone over", "are read, are visited"),
    ("are no", "are not"),
    ("as with", "like"),
    ("behind", "after, following"),
    ("begun", "started"),
    ("do again", "replay, repeat"),
    ("has to do with", "concerns"),
    ("have to do with", "concern"),
    ("is no", "is not a, invalid"),
    ("looked at", "checked, read"),
    ("looking at", "checking, reading"),
    ("looks at", "checks, reads"),
    ("of which", "whose, and"),
    ("once more", "again"),
    ("rate that was due", "offered load"),
    ("see to it", "ensure"),
    ("sees to it", "ensures"),
    ("so far", "until now"),
    ("so long", "this long"),
    ("so many", "this many, N"),
    ("stand for", "mean"),
    ("stands for", "means"),
    ("tells of", "reports"),
    ("told", "reported, printed"),
    ("what came of", "result"),
    ("wherefrom", "where"),
    ("whoever", "who"),
    ("whom", "who"),
];

/// Correct phrases that contain one of those.
const RIGHT: &[&str] = &[
    "are no longer",
    "is no longer",
    "is no more",
    "left behind",
    "leaves behind",
    "so far as",
    "so long as",
    "there are no",
    "there is no",
];

/// The phrases to avoid in a text.
fn found(text: &str) -> Vec<&'static str> {
    let mut apart = String::new();
    for c in text.to_lowercase().chars() {
        match c {
            _ if c.is_alphanumeric() || c == '-' || c == '\'' || c.is_whitespace() => apart.push(c),
            _ => apart.push_str(" . "),
        }
    }
    let words: Vec<&str> = apart.split_whitespace().collect();
    let mut plain = format!(" {} ", words.join(" "));
    for right in RIGHT {
        plain = plain.replace(&format!(" {right} "), " . ");
    }
    let all = NOT_USED.iter().map(|(phrase, _)| *phrase);
    all.filter(|phrase| plain.contains(&format!(" {phrase} ")))
        .collect()
}

/// The prose of a page by line, without code.
fn prose(page: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut all = Vec::new();
    for (line, number) in page.lines().zip(1..) {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            let outside = line.split('`').step_by(2).collect::<Vec<_>>();
            all.push((number, outside.join(" . ")));
        }
    }
    all
}

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

/// A format string without its placeholders.
fn without_places(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        let after = part.split_once('}').map_or(part, |(_, after)| after);
        shown + " . " + after
    })
}

/// The replacement of a phrase, for the test's message.
fn instead(phrase: &str) -> &'static str {
    let entry = NOT_USED.iter().find(|(known, _)| *known == phrase);
    entry.map_or("", |(_, instead)| instead)
}

fn line_of(text: &str, at: &str) -> usize {
    let offset = at.as_ptr() as usize - text.as_ptr() as usize;
    text[..offset].lines().count()
}

#[test]
fn pages_are_in_plain_english() {
    let names = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "ARCHITECTURE.md",
    ];
    let mut all: Vec<PathBuf> = names.iter().map(|name| root().join(name)).collect();
    pages(&root().join("docs"), &mut all);
    let mut wrong = Vec::new();
    for path in all {
        let text = fs::read_to_string(&path).expect("a page");
        for (line, text) in prose(&text) {
            for phrase in found(&text) {
                let name = path.strip_prefix(root()).expect("it is below").display();
                wrong.push(format!("{name}:{line}: '{phrase}': {}", instead(phrase)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Help and messages are string literals that contain spaces; help is also in doc comments.
#[test]
fn help_and_messages_are_in_plain_english() {
    let mut wrong = Vec::new();
    for path in all_sources().iter().filter(|path| !is_test(path)) {
        let text = fs::read_to_string(path).expect("a source file");
        let name = path.strip_prefix(root()).expect("it is below").display();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(&text);
        let literals = tokens(code).into_iter().filter(|token| token.quoted);
        for token in literals.filter(|token| token.text.contains(' ')) {
            let line = line_of(code, token.text);
            let shown = without_places(&token.text.replace("\\n", " "));
            for phrase in found(&shown) {
                wrong.push(format!("{name}:{line}: '{phrase}': {}", instead(phrase)));
            }
        }
        let is_help = name.to_string().contains("rbench-cli/src/args");
        let comments = code.lines().zip(1..);
        for (line, number) in comments.filter(|_| is_help) {
            let Some(comment) = line.trim_start().strip_prefix("/// ") else {
                continue;
            };
            for phrase in found(comment) {
                wrong.push(format!("{name}:{number}: '{phrase}': {}", instead(phrase)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The comments of a file: the line of each first one, and the text of those that follow each other.
fn comments(code: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (line, number) in code.lines().zip(1..) {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            open = false;
            continue;
        };
        let words = comment.trim_start_matches(['/', '!']);
        match all.last_mut().filter(|_| open) {
            Some((_, text)) => text.push_str(&format!(" {words}")),
            None => all.push((number, words.to_owned())),
        }
        open = true;
    }
    all
}

#[test]
fn comments_are_in_plain_english() {
    let mut wrong = Vec::new();
    for path in all_sources() {
        let name = path.strip_prefix(root()).expect("it is below").display();
        let code = fs::read_to_string(&path).expect("a source file");
        for (line, text) in comments(&code) {
            let outside = text.split('`').step_by(2).collect::<Vec<_>>().join(" . ");
            for phrase in found(&outside) {
                wrong.push(format!("{name}:{line}: '{phrase}': {}", instead(phrase)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn phrases_are_found_as_whole_words_and_not_where_they_are_right() {
    assert_eq!(found("It tells of no items"), ["tells of"]);
    assert_eq!(
        found("nothing was told, and x is no size"),
        ["is no", "told"]
    );
    assert_eq!(found("Behind\nthe end"), ["behind"]);
    for right in [
        "what is left behind",
        "there is no page",
        "untold",
        "is no longer",
    ] {
        assert!(found(right).is_empty(), "{right}");
    }
    let page = "a `told` b\n    told\n```\ntold\n```\ntold";
    let hits = prose(page)
        .into_iter()
        .filter(|(_, text)| !found(text).is_empty());
    assert_eq!(hits.map(|(line, _)| line).collect::<Vec<_>>(), [6]);
}
