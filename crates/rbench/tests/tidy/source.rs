//! Parses the imports of a source file, with as much of Rust's syntax as necessary.

use std::collections::{BTreeMap, BTreeSet};

use super::floors::Names;

/// Imports and exports of a module, without its tests.
#[derive(Debug, Default)]
pub struct Source {
    /// Paths to modules of the same crate, from the root.
    pub paths: BTreeSet<Names>,
    /// Names that `pub use` exports here, and their paths.
    pub exported: BTreeMap<String, Names>,
    /// The modules below, each in its own file.
    children: BTreeSet<String>,
}

/// `a/b` as a path of names.
pub fn names(path: &str) -> Names {
    path.split('/').map(str::to_owned).collect()
}

impl Source {
    pub fn read(text: &str, module: Names) -> Source {
        let words = words(text);
        let words = without_tests(&words);
        let children = words.windows(3).filter(|w| w[0] == "mod" && w[2] == ";");
        let children = children.map(|w| w[1].to_owned()).collect();
        let mut source = Source {
            children,
            ..Source::default()
        };
        // Modules in braces, by the depth of their braces.
        let (mut here, mut inner, mut depth) = (module, Vec::new(), 0);
        let mut at = 0;
        while at < words.len() {
            match &words[at..] {
                ["mod", name, "{", ..] => {
                    here.push((*name).to_owned());
                    inner.push(depth);
                    depth += 1;
                    at += 2;
                }
                ["{", ..] => depth += 1,
                ["}", ..] => {
                    depth -= 1;
                    if inner.pop_if(|outside| *outside == depth).is_some() {
                        here.pop();
                    }
                }
                ["use", rest @ ..] => {
                    let public = at > 0 && ["pub", ")"].contains(&words[at - 1]);
                    let end = rest.iter().position(|w| *w == ";").unwrap_or(rest.len());
                    source.tree(&mut &rest[..end], &[], &here, public);
                    at += end;
                }
                [first, "::", ..] if at == 0 || words[at - 1] != "::" => {
                    if !is_name(first) {
                        at += 1;
                        continue;
                    }
                    let path = words[at..].chunks(2);
                    let path = path.take_while(|pair| is_name(pair[0])).collect::<Vec<_>>();
                    let ends = path.iter().position(|pair| pair.get(1) != Some(&"::"));
                    let path = &path[..ends.map_or(path.len(), |last| last + 1)];
                    let path: Names = path.iter().map(|pair| pair[0].to_owned()).collect();
                    at += 2 * path.len() - 2;
                    let path = source.absolute(&path, &here);
                    source.paths.extend(path);
                }
                _ => {}
            }
            at += 1;
        }
        source
    }

    /// One path of a `use`, or several in braces.
    fn tree(&mut self, rest: &mut &[&str], before: &[String], here: &[String], public: bool) {
        let mut path = before.to_vec();
        while let Some((word, after)) = rest.split_first() {
            *rest = after;
            match *word {
                "::" => {}
                "{" => {
                    while !matches!(rest.first(), None | Some(&"}")) {
                        self.tree(rest, &path, here, public);
                    }
                    *rest = rest.get(1..).unwrap_or_default();
                    return self.past_comma(rest);
                }
                "}" | "," => break,
                name => path.push(name.to_owned()),
            }
            if matches!(rest.first(), Some(&"}")) {
                break;
            }
        }
        self.import(path, here, public);
    }

    /// The path from the root, if it leads to a module of the crate.
    fn absolute(&self, path: &[String], here: &[String]) -> Option<Names> {
        let mut names = match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" | "super" => here.to_vec(),
            child if self.children.contains(child) => here.to_vec(),
            _ => return None,
        };
        for name in path {
            match name.as_str() {
                "self" => {}
                "super" => drop(names.pop()),
                name => names.push(name.to_owned()),
            }
        }
        Some(names)
    }

    fn past_comma(&self, rest: &mut &[&str]) {
        if rest.first() == Some(&",") {
            *rest = &rest[1..];
        }
    }

    fn import(&mut self, mut path: Names, here: &[String], public: bool) {
        let alias = match path.iter().position(|name| name == "as") {
            Some(at) => path.drain(at..).nth(1),
            None => None,
        };
        let itself = path.len() > 1 && path.last().is_some_and(|n| n == "self" || n == "*");
        if itself {
            path.pop();
        }
        let whole = self.absolute(&path, here);
        self.paths.extend(whole.clone());
        if public {
            let target = whole.unwrap_or_else(|| path.clone());
            let name = alias.or_else(|| path.last().cloned());
            self.exported.extend(name.map(|name| (name, target)));
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single characters, without comments and literals.
pub fn words(text: &str) -> Vec<&str> {
    let all = tokens(text).into_iter();
    all.filter(|token| !token.quoted)
        .map(|token| token.text)
        .collect()
}

/// A word, or a literal with its quotes.
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    pub text: &'a str,
    pub quoted: bool,
}

/// All tokens except comments and whitespace.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut add = |text, quoted| tokens.push(Token { text, quoted });
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let raw = rest.trim_start_matches('b').strip_prefix('r');
        let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if raw.is_some_and(|raw| raw[hashes..].starts_with('"')) {
            let begin = rest.find('"').expect("it was seen") + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = rest[begin..]
                .find(&end)
                .map_or(rest.len(), |at| begin + at + end.len());
            add(&rest[..length], true);
            length
        } else if first == '"' || (first == '\'' && is_character(rest)) {
            let length = quoted(rest, first);
            add(&rest[..length], true);
            length
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let end = end.unwrap_or(rest.len());
            add(&rest[..end], false);
            end
        } else {
            let length = if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                add(&rest[..length], false);
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns true if the quote at the start opens a character, not a lifetime.
fn is_character(text: &str) -> bool {
    let mut following = text.chars().skip(1);
    following.next() == Some('\\') || following.next() == Some('\'')
}

/// Length of a literal, with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

/// Removes every item with `#[cfg(test)]`.
fn without_tests<'a>(words: &[&'a str]) -> Vec<&'a str> {
    const TEST: &[&str] = &["#", "[", "cfg", "(", "test", ")", "]"];
    let mut left = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let Some(item) = rest.strip_prefix(TEST) else {
            left.push(*word);
            rest = after;
            continue;
        };
        let mut depth = 0;
        let end = item.iter().position(|word| {
            match *word {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            depth == 0 && [";", "}"].contains(word)
        });
        rest = &item[end.map_or(item.len(), |at| at + 1)..];
    }
    left
}
