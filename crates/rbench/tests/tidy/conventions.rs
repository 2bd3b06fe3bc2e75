//! Tests the places of tests, as far as source text shows it. Tests that mount the built-in file
//! system are below a module `needs_fuse`. Tests that only a clock can decide, and that may be
//! repeated, are below `timing`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::source::{Token, tokens};
use super::{all_sources, root};

/// A function of a source file.
#[derive(Debug)]
struct Function<'a> {
    /// Enclosing modules, from the root of its test program or crate.
    modules: Vec<String>,
    /// The name that callers use: `name`, or `Type::name`.
    name: String,
    is_test: bool,
    /// True if its file uses the library of the file system.
    knows_testfs: bool,
    body: Vec<Token<'a>>,
}

impl Function<'_> {
    fn is_below(&self, module: &str) -> bool {
        self.modules.iter().any(|name| name == module)
    }

    fn calls(&self, name: &str) -> bool {
        let path: Vec<&str> = name.split("::").collect();
        let words: Vec<&str> = self.body.iter().map(|token| token.text).collect();
        match path[..] {
            [kind, name] => words
                .windows(4)
                .any(|w| w == [kind, "::", name, "("] || (kind == "Self" && w[2] == name)),
            _ => words.windows(2).enumerate().any(|(at, w)| {
                let method = at > 0 && [".", "::", "fn"].contains(&words[at - 1]);
                w == [name, "("] && !method
            }),
        }
    }

    /// Returns true if it mounts the file system, directly or by starting a program.
    fn mounts(&self) -> bool {
        let library = self.knows_testfs && self.calls("mount");
        let program = self.body.iter().any(|token| {
            token.quoted && token.text.contains("testfs ") && token.text.contains("--watch-parent")
        });
        library || program
    }

    /// Returns true if it sleeps in a loop that ends on a condition.
    fn sleeps_and_tries_again(&self) -> bool {
        let (mut depth, mut loops) = (0, Vec::new());
        let mut opens_loop = false;
        let leaves = |word: &str| ["break", "return"].contains(&word);
        let is_left = self.body.iter().any(|token| leaves(token.text));
        for (at, token) in self.body.iter().enumerate() {
            match token.text {
                _ if token.quoted => {}
                "while" | "loop" => opens_loop = true,
                "for" => opens_loop = is_left,
                "{" => {
                    depth += 1;
                    if std::mem::take(&mut opens_loop) {
                        loops.push(depth);
                    }
                }
                "}" => {
                    loops.pop_if(|inner| *inner == depth);
                    depth -= 1;
                }
                "sleep" if !loops.is_empty() => {
                    let before = at.checked_sub(2).map(|at| self.body[at].text);
                    if before == Some("thread") {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }
}

/// The functions of a file, with their modules.
fn functions<'a>(program: &str, text: &'a str, modules: &[String]) -> Vec<Function<'a>> {
    let all = tokens(text);
    let knows_testfs = text.contains("rbench_testfs") || program.starts_with("rbench-testfs");
    let mut all_functions = Vec::new();
    // The owner of the enclosing braces.
    enum Around {
        Module,
        Type(String),
        Other,
    }
    let (mut here, mut around) = (modules.to_vec(), Vec::<Around>::new());
    let (mut next, mut tested, mut at) = (None, false, 0);
    while at < all.len() {
        let word = |ahead: usize| all.get(at + ahead).map_or("", |token| token.text);
        match word(0) {
            _ if all[at].quoted => {}
            "#" if word(2) == "test" && word(3) == "]" => tested = true,
            "mod" if word(2) == "{" => {
                next = Some(Around::Module).inspect(|_| here.push(word(1).to_owned()))
            }
            "impl" => {
                let end = all[at..].iter().position(|token| token.text == "{");
                let head: Vec<&str> = all[at..at + end.unwrap_or(0)]
                    .iter()
                    .map(|t| t.text)
                    .collect();
                let of = head
                    .iter()
                    .rposition(|word| *word == "for")
                    .map_or(1, |at| at + 1);
                let name = head.get(of).filter(|name| **name != "<");
                next = Some(Around::Type(name.copied().unwrap_or_default().to_owned()));
                at += end.unwrap_or(1);
                continue;
            }
            "fn" => {
                let begin = all[at..]
                    .iter()
                    .position(|t| !t.quoted && ["{", ";"].contains(&t.text));
                let begin = at + begin.unwrap_or(0);
                let mut depth = 0;
                let end = all[begin..].iter().position(|token| {
                    match token.text {
                        "{" if !token.quoted => depth += 1,
                        "}" if !token.quoted => depth -= 1,
                        _ => {}
                    }
                    depth == 0
                });
                let end = begin + end.unwrap_or(0);
                let own = word(1).to_owned();
                let name = match around.last() {
                    Some(Around::Type(kind)) => format!("{kind}::{own}"),
                    _ => own,
                };
                all_functions.push(Function {
                    modules: here.clone(),
                    name,
                    is_test: std::mem::take(&mut tested),
                    knows_testfs,
                    body: all[begin..end].to_vec(),
                });
                at = end;
            }
            "{" => around.push(next.take().unwrap_or(Around::Other)),
            "}" => {
                if matches!(around.pop(), Some(Around::Module)) {
                    here.pop();
                }
            }
            _ => {}
        }
        at += 1;
    }
    all_functions
}

/// The modules of a file below `crates`, from the root of its crate or test program.
fn modules_of(path: &Path) -> Vec<String> {
    let parts = path.iter().map(|part| part.to_string_lossy());
    let parts = parts.skip_while(|part| part != "src" && part != "tests");
    let mut parts: Vec<String> = parts
        .map(|part| part.trim_end_matches(".rs").to_owned())
        .collect();
    parts.retain(|part| !["main", "mod", "lib"].contains(&part.as_str()));
    parts
}

/// Files with tests, and the program of each: a crate, or a test program of one.
fn files_of_tests() -> Vec<(String, String, Vec<String>)> {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for path in all_sources() {
        let Ok(below) = path.strip_prefix(&crates) else {
            continue;
        };
        let name = below
            .iter()
            .next()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if below.ends_with("tidy/conventions.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let modules = modules_of(below);
        let tests = modules.first().is_some_and(|first| first == "tests");
        let program = if tests { modules.get(1) } else { None };
        if tests || text.contains("#[cfg(test)]") || super::is_test(&path) {
            let program = format!("{name} {}", program.map_or("", String::as_str));
            files.push((program, text, modules));
        }
    }
    assert!(files.len() > 100, "{} files of tests", files.len());
    files
}

#[test]
fn who_mounts_the_built_in_file_system_is_below_needs_fuse() {
    let files = files_of_tests();
    let mut programs: Vec<&String> = files.iter().map(|(program, ..)| program).collect();
    programs.sort();
    programs.dedup();
    let (mut mounting, mut wrong) = (0, Vec::new());
    for program in programs {
        let of_it = files.iter().filter(|(of, ..)| of == program);
        let all: Vec<Function<'_>> = of_it
            .flat_map(|(_, text, modules)| functions(program, text, modules))
            .collect();
        // Helpers that mount, and those that call them.
        let mut known: BTreeSet<&str> = BTreeSet::new();
        loop {
            let more: Vec<&str> = all
                .iter()
                .filter(|f| !f.is_test && !known.contains(f.name.as_str()))
                .filter(|f| f.mounts() || known.iter().any(|name| f.calls(name)))
                .map(|f| f.name.as_str())
                .collect();
            if more.is_empty() {
                break;
            }
            known.extend(more);
        }
        for test in all.iter().filter(|function| function.is_test) {
            if test.mounts() || known.iter().any(|name| test.calls(name)) {
                mounting += 1;
                // Tests below `timing` run only in `scripts/test all`, which has FUSE.
                if !test.is_below("needs_fuse") && !test.is_below("timing") {
                    wrong.push(format!(
                        "{program}: {}::{}",
                        test.modules.join("::"),
                        test.name
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(mounting > 80, "{mounting} tests that mount were found");
}

#[test]
fn only_what_a_clock_decides_is_tried_again() {
    const TRY_AGAIN: &[&str] = &["tried_again", "undisturbed"];
    let (mut waiting, mut wrong) = (0, Vec::new());
    for (program, text, modules) in files_of_tests() {
        for function in functions(&program, &text, &modules) {
            let name = format!(
                "{program}: {}::{}",
                function.modules.join("::"),
                function.name
            );
            let tests = function.modules.iter().any(|module| module == "tests");
            if !tests || function.is_below("timing") || TRY_AGAIN.contains(&function.name.as_str())
            {
                continue;
            }
            let again = TRY_AGAIN.iter().any(|name| function.calls(name));
            // Waiting for an event, in a function that is named so, is allowed.
            let waits = function.name.contains("wait");
            let sleeps = function.sleeps_and_tries_again();
            if again || sleeps && !waits {
                wrong.push(name);
            }
            waiting += u32::from(waits && sleeps);
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(waiting > 3, "{waiting} functions that wait were found");
}

#[test]
fn functions_are_found_with_their_modules() {
    let text = "use rbench_testfs::mount; fn a() { b::c(); S::new(); } mod m { impl S { fn new() -> S { mount(x) } } #[test]\nfn t() { \
                for _ in 0..3 { if x { break; } thread::sleep(d); } } } fn z() {}";
    let parsed = functions("", text, &["tests".to_owned()]);
    let names: Vec<(&str, &[String])> = parsed
        .iter()
        .map(|f| (f.name.as_str(), &f.modules[1..]))
        .collect();
    let m = ["m".to_owned()];
    let expect: [(&str, &[String]); 4] = [("a", &[]), ("S::new", &m), ("t", &m), ("z", &[])];
    assert_eq!(names, expect);
    assert!(parsed[0].calls("S::new") && !parsed[0].calls("c") && !parsed[0].mounts());
    assert!(parsed[1].mounts() && !parsed[1].is_test);
    assert!(parsed[2].is_test && parsed[2].sleeps_and_tries_again());
}
