//! A directory's results: one line for each file.

use crate::document::Document;
use crate::schema::{Run, Target};
use crate::table::{Table, distinct, left, or_none, right};
use crate::view::View;

/// Renders a line for each result.
///
/// `results`: the name of each file with its content.
pub fn listing(results: &[(String, Document)], view: View) -> String {
    let mut table = Table::new([
        left("File"),
        left("Started"),
        left("Command"),
        right("Ranks"),
        left("Directory"),
        left("Rows or cells"),
        left("State"),
    ]);
    for result in results {
        table.row(line(result));
    }
    table.render(view)
}

fn line((name, document): &(String, Document)) -> Vec<String> {
    let run = document.run();
    let (ranks, target, content, complete) = match document {
        Document::Run(result) => {
            let rows = distinct(result.phases.iter().map(|phase| &phase.name));
            let ranks = result.world.ranks;
            (
                ranks,
                directory(&result.target),
                rows.len(),
                result.complete,
            )
        }
        Document::Series(series) => {
            let target = or_none(series.dir.clone());
            (series.ranks, target, series.cells.len(), series.complete)
        }
    };
    let state = if complete { "complete" } else { "incomplete" };
    vec![
        name.clone(),
        run.started.clone(),
        command(run),
        ranks.to_string(),
        target,
        content.to_string(),
        state.to_owned(),
    ]
}

fn directory(target: &Target) -> String {
    match &target.fs_type {
        Some(fs_type) => format!("{} ({fs_type})", target.path),
        None => target.path.clone(),
    }
}

/// The command's name: the first word after the program.
fn command(run: &Run) -> String {
    or_none(run.command.get(1).cloned())
}
