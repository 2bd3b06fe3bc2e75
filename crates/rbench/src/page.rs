//! `rbench report`: writes a page of results.

use std::fs::File;
use std::path::Path;

use rbench_cli::Page;
use rbench_report::Document;
use rbench_report::page;
use rbench_report::schema::SeriesResult;

use crate::console::fail;
use crate::exit::{FAILED, SUCCESS, USAGE};
use crate::files::{self, OVERWRITE, Replace};
use crate::show;

/// Writes the page.
pub fn write(asked: &Page) -> u8 {
    match written(asked) {
        Ok(()) => SUCCESS,
        Err((code, message)) => fail(code, message),
    }
}

fn written(asked: &Page) -> Result<(), (u8, String)> {
    let Page {
        files,
        html,
        overwrite,
    } = asked;
    let replace = if *overwrite {
        Replace::Ours
    } else {
        Replace::Nothing(OVERWRITE)
    };
    let refused = |why: String| (USAGE, format!("--html {} {why}", html.display()));
    // Checked before reading: an unusable path is reported at once.
    files::may_be_written(html, replace, is_page).map_err(refused)?;
    let named = show::named_documents(files).map_err(|why| (USAGE, why))?;
    let (names, documents): (Vec<String>, Vec<Document>) = named.into_iter().unzip();
    let text = page::render(&documents, &names);
    let written = files::write_whole(html, &text, replace, is_page);
    written.map(drop).map_err(|why| (FAILED, refused(why).1))
}

/// Checks that a page can be written to this path.
///
/// # Errors
/// One sentence that names the file.
pub fn is_free(html: &Path) -> Result<(), String> {
    let free = files::may_be_written(html, Replace::Nothing(OVERWRITE), is_page);
    free.map(drop)
        .map_err(|why| format!("--html {} {why}", html.display()))
}

/// Writes the page of a series.
///
/// # Errors
/// A clause that names the file.
pub fn of_series(series: &SeriesResult, html: &Path) -> Result<(), String> {
    let document = Document::Series(Box::new(series.clone()));
    let text = page::render(&[document], &[]);
    files::write_whole(html, &text, Replace::Nothing(OVERWRITE), is_page)
        .map(drop)
        .map_err(|why| format!("{} {why}", html.display()))
}

/// Returns true if a file starts like one of our pages.
fn is_page(file: &File) -> bool {
    files::begins_with(file, page::BEGINNING.as_bytes())
}
