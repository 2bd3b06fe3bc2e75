//! `rbench man` and `rbench completions`, generated from the options of the commands.

use std::io::Write as _;
use std::path::Path;

use rbench_cli::{Names, Shell};
use rbench_report::compare::published;
use rbench_sys::engine::ENGINES;

use crate::console::{fail, print};
use crate::exit::{FAILED, SUCCESS, USAGE};
use crate::files::new_file;

/// The completions of a shell, including the names that other crates define.
pub fn completions(shell: Shell) -> String {
    let names = Names {
        engines: ENGINES
            .iter()
            .map(|engine| engine.name.to_owned())
            .collect(),
        published: published::names(),
    };
    rbench_cli::completions(shell, &names)
}

/// Prints the program's page, or writes all pages into a directory.
pub fn man(out: Option<&Path>) -> u8 {
    let pages = match rbench_cli::man_pages() {
        Ok(pages) => pages,
        Err(error) => {
            return fail(FAILED, format!("the man pages cannot be made: {error}"));
        }
    };
    let Some(folder) = out else {
        let program = pages.first().map_or("", |(_, text)| text.as_str());
        return print(program);
    };
    write(folder, &pages)
}

/// Writes all pages, or none if one of them cannot be written.
fn write(folder: &Path, pages: &[(String, String)]) -> u8 {
    if !folder.is_dir() {
        return fail(
            USAGE,
            format!("--out {} is not a directory", folder.display()),
        );
    }
    let taken = pages.iter().map(|(name, _)| folder.join(name));
    if let Some(path) = taken.into_iter().find(|p| p.symlink_metadata().is_ok()) {
        let path = path.display();
        return fail(
            USAGE,
            format!("{path} already exists and is not overwritten"),
        );
    }
    for (name, text) in pages {
        let path = folder.join(name);
        let written = new_file(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            return fail(
                FAILED,
                format!("{} cannot be written: {error}", path.display()),
            );
        }
    }
    SUCCESS
}
