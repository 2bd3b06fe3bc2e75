//! What the file system's clients counted of their own work.

use rbench_core::units::{human_count, human_nanos};

use crate::schema::{CLIENT_WORK, RunResult};
use crate::table::{NONE, Table, left, right};
use crate::view::View;

/// A row for each client and kind of work.
pub fn render(result: &RunResult, view: View) -> String {
    let mut table = Table::new([
        left("CLIENT COUNTERS"),
        left("Work"),
        right("Count"),
        right("Each"),
    ]);
    for client in &result.client_counters {
        let mut host = client.host.clone();
        for (name, label) in CLIENT_WORK {
            let Some((count, seconds)) = client.work(name) else {
                continue;
            };
            let each = match count {
                0 => NONE.to_owned(),
                count => human_nanos(seconds * 1e9 / count as f64),
            };
            let host = std::mem::take(&mut host);
            table.row([host, label.to_owned(), human_count(count), each]);
        }
    }
    match table.is_empty() {
        true => String::new(),
        false => table.render(view),
    }
}
