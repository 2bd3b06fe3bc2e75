//! Published figures that come with the program, and the rows of a run that measure the same thing.
//!
//! The files `published/*.csv` hold the figures as published; `published/sets.rs` has source,
//! authors and set-up.

mod sets;

use rbench_core::near::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use sets::{SETS, Set, Workload};

use super::even::Difference;
use super::figure::{Figure, find as figure};
use super::samples::{RowSamples, Run, workload};
use crate::RunResult;
use crate::table::distinct;
use sets::{Need, Source, Want};

const MIB: f64 = 1_048_576.0;

/// One system of a set.
#[derive(Debug, Clone)]
pub struct Column {
    /// The set that it belongs to.
    pub set: &'static Set,
    /// Its name in the set.
    pub name: String,
    /// Its figures, in the order of publication.
    pub rows: Vec<Figures>,
}

/// One published figure.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The workload that it is part of.
    pub workload: &'static Workload,
    /// The measured operation, in the words of the publication.
    pub operation: String,
    /// Size of each file in bytes, if the publication has several sizes.
    pub file_bytes: Option<u64>,
    /// Items or bytes per second, or ns.
    pub value: f64,
}

/// A published figure that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "NotCompared")]
pub struct Unmeasured {
    /// The published workload.
    pub workload: String,
    /// Its operation.
    pub operation: String,
    /// Reason why it was not measured.
    pub reason: String,
}

/// A line of a table; other tables lack its default fields.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    source: String,
    #[serde(default)]
    system: String,
    workload: String,
    operation: String,
    #[serde(default)]
    file_size: String,
    #[serde(default)]
    clients: u32,
    #[serde(default)]
    processes_per_client: u32,
    unit: String,
    value: f64,
}

/// Each line of a set's table: the name of its column, and its figure.
fn lines(set: &'static Set) -> Vec<(String, Figures)> {
    let figures = |line: Line| {
        let (size, [clients, processes]) =
            (&line.file_size, [line.clients, line.processes_per_client]);
        let column = match set.source {
            Source::JuiceFs(edition) if line.source != edition => return None,
            Source::JuiceFs(_) => line.system,
            Source::CubeFs { by_size } if size.is_empty() == by_size => return None,
            Source::CubeFs { by_size: true } => size.to_lowercase().replace("ib", ""),
            Source::CubeFs { by_size: false } => format!("{clients}x{processes}"),
        };
        let size: Option<rbench_core::Bytes> = size.parse().ok();
        let mut workloads = set.workloads.iter();
        let figures = Figures {
            workload: workloads.find(|own| own.name == line.workload)?,
            operation: line.operation,
            file_bytes: size.map(|size| size.0),
            value: line.value * scale(&line.unit)?,
        };
        Some((column, figures))
    };
    let mut reader = csv::Reader::from_reader(set.table.as_bytes());
    let lines = reader.deserialize().filter_map(Result::ok);
    lines.filter_map(figures).collect()
}

/// Base units in a published unit.
fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "ops/s" | "files/s" | "1/s" => 1.0,
        // CubeFS writes MB/s; its operations per second × block size show that it means MiB/s.
        "MiB/s" | "MB/s" => MIB,
        "us" | "us/op" => 1e3,
        "ms/op" => 1e6,
        _ => return None,
    })
}

impl Set {
    /// The names of its columns, in the order of publication.
    pub fn columns(&'static self) -> Vec<String> {
        distinct(lines(self).into_iter().map(|(name, _)| name))
    }
}

/// The column that `SET/COLUMN` names.
///
/// # Errors A clause that lists the known names.
pub fn find(name: &str) -> Result<Column, String> {
    let (set, column) = name.split_once('/').unwrap_or((name, ""));
    let Some(found) = SETS.iter().find(|known| known.name == set) else {
        let all = names();
        let near = nearest(name, all.iter().map(String::as_str));
        let near = near.or_else(|| nearest(set, SETS.iter().map(|set| set.name)));
        let near = near.map_or_else(String::new, |name| format!(" (nearest: {name})"));
        return Err(format!(
            "'{name}' is not a published column{near}: --published list names them all"
        ));
    };
    let rows: Vec<Figures> = lines(found)
        .into_iter()
        .filter(|(own, _)| own == column)
        .map(|(_, figures)| figures)
        .collect();
    if rows.is_empty() {
        let names = found.columns();
        let near = nearest(column, names.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |name| format!(" (nearest: {set}/{name})"));
        return Err(format!(
            "'{name}' is not a published column{near}: {set} has {}",
            names.join(", ")
        ));
    }
    Ok(Column {
        set: found,
        name: column.to_owned(),
        rows,
    })
}

/// Lists every set with its columns, its source, and the commands that measure the same.
pub fn list() -> String {
    let one = |set: &'static Set| {
        let measured = set.workloads.iter().filter_map(|workload| {
            let line = workload.measure_with?;
            Some(format!("    {}: {line}\n", workload.name))
        });
        let measured: Vec<String> = measured.collect();
        format!(
            "{}: {}\n  {}\n  columns: {}\n  measured by\n{}",
            set.name,
            set.title,
            set.published,
            set.columns().join(", "),
            measured.concat()
        )
    };
    let all: Vec<String> = SETS.iter().map(one).collect();
    all.join("\n")
}

/// Every column, by its full name.
pub fn names() -> Vec<String> {
    let columns = |set: &'static Set| {
        let columns = set.columns().into_iter();
        columns.map(|column| format!("{}/{column}", set.name))
    };
    SETS.iter().flat_map(columns).collect()
}

impl Column {
    /// `SET/COLUMN`
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.set.name, self.name)
    }

    /// Notes for the reader.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!("{}: {}", self.full_name(), self.set.published),
            "published figures have no spread: intervals include that of NEW only".to_owned(),
        ];
        notes.extend(self.set.notes.iter().map(|note| (*note).to_owned()));
        notes
    }

    /// The set-ups of these workloads, in the words of the publication.
    pub(super) fn set_ups(&self, workloads: &[&'static Workload]) -> Vec<(&'static str, String)> {
        let (clients, processes) = self.name.split_once('x').unwrap_or(("", ""));
        let ranks = clients
            .parse::<u64>()
            .ok()
            .zip(processes.parse::<u64>().ok());
        let ranks = ranks.map_or_else(String::new, |(a, b)| (a * b).to_string());
        let own = |text: &str| {
            text.replace("CLIENTS", clients)
                .replace("RANKS", &ranks)
                .replace("COLUMN", &self.name)
        };
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let of_workloads = workloads.iter().flat_map(|w| w.set_up.iter());
        for (what, value) in of_workloads.chain(self.set.set_up) {
            let value = own(value);
            match found.iter_mut().find(|(known, _)| known == what) {
                Some((_, known)) if *known == value => {}
                Some((_, known)) => *known = format!("{known} or {value}"),
                None => found.push((what, value)),
            }
        }
        found
    }
}

impl Figures {
    /// The row that measures the same, and its figure.
    ///
    /// # Errors The reason why there is none.
    pub(super) fn place<'r>(
        &self,
        runs: &[Run<'_>],
        rows: &'r [RowSamples],
    ) -> Result<(&'r RowSamples, &'static Figure), String> {
        let mut mapped = self.workload.rows.iter();
        let mapping = mapped.find(|row| row.operation == self.operation);
        let mapping = mapping.ok_or("no row of rbench measures it")?;
        let own = figure(mapping.figure).ok_or("rbench has no such figure")?;
        let row = match &mapping.want {
            Want::Never(reason) => Err((*reason).to_owned()),
            Want::Row(name, need) => named(name, rows).and_then(|row| {
                need.holds(self, rows)?;
                Ok(row)
            }),
            Want::OpsRow(name) if runs.iter().all(|r| workload(r.result) == "ops") => {
                named(name, rows)
            }
            Want::OpsRow(_) => Err("not measured: use rbench ops".to_owned()),
            Want::WholeFile { op, bytes } => sized(rows, op, *bytes),
            Want::Blocks { op, bytes, random } => blocks(runs, rows, op, (*bytes, *random)),
        }?;
        // The rate was given, and service times depend on it.
        if row.is_open_loop() {
            return Err("measured in an open loop, at its own target rate".to_owned());
        }
        if own.name == "rate" && row.one_each {
            return Err("each worker did one operation: there is no rate".to_owned());
        }
        Ok((row, own))
    }
}

fn measured(rows: &[RowSamples]) -> impl Iterator<Item = &RowSamples> {
    rows.iter().filter(|row| !row.runs.is_empty())
}

fn named<'r>(name: &str, rows: &'r [RowSamples]) -> Result<&'r RowSamples, String> {
    measured(rows)
        .find(|row| row.name == name)
        .ok_or_else(|| "not measured".to_owned())
}

fn bytes_each(row: &RowSamples) -> u64 {
    row.bytes_each().round() as u64
}

fn size(bytes: u64) -> String {
    rbench_core::Bytes(bytes).to_string()
}

/// The row of these operations that moves `bytes` in each.
fn sized<'r>(rows: &'r [RowSamples], op: &str, bytes: u64) -> Result<&'r RowSamples, String> {
    let mut own = measured(rows).filter(|row| row.op == op).peekable();
    if own.peek().is_none() {
        return Err("not measured".to_owned());
    }
    own.find(|row| bytes_each(row) == bytes)
        .ok_or_else(|| format!("not measured with {}", size(bytes)))
}

fn blocks<'r>(
    runs: &[Run<'_>],
    rows: &'r [RowSamples],
    op: &str,
    (bytes, random): (u64, bool),
) -> Result<&'r RowSamples, String> {
    sized(rows, op, bytes)?;
    let order = |row: &RowSamples| runs.first().and_then(|run| is_random(run.result, row));
    let fits = |row: &&RowSamples| row.op == op && bytes_each(row) == bytes;
    if let Some(row) = measured(rows)
        .filter(fits)
        .find(|row| order(row) == Some(random))
    {
        return Ok(row);
    }
    let unknown = measured(rows).filter(fits).any(|row| order(row).is_none());
    let words = if random { "at random" } else { "in sequence" };
    Err(match unknown {
        true => format!("the result does not say which of its rows accessed blocks {words}"),
        false => format!("not measured {words}"),
    })
}

/// Returns true if the row took its blocks at random. `None` if the result does not say, for mixed
/// reads and writes, and for reads that verify blocks.
fn is_random(result: &RunResult, row: &RowSamples) -> Option<bool> {
    let pure = |rw: &str| match rw.strip_prefix("rand") {
        Some(op) => (op == row.op).then_some(true),
        None => (rw == row.op).then_some(false),
    };
    if workload(result) == "io" {
        // A repeated phase has a number after its name.
        let name = row.name.trim_end_matches(|c: char| c.is_ascii_digit());
        return pure(name.strip_suffix('-').unwrap_or(&row.name));
    }
    // Options that all jobs share are on the command line.
    let words = result.run.command.iter();
    let typed = words.filter_map(|word| {
        let word = word.trim_start_matches('-');
        word.strip_prefix("rw=")
            .or_else(|| word.strip_prefix("readwrite="))
    });
    let mut orders: Vec<Option<bool>> = typed.map(pure).collect();
    orders.dedup();
    match orders[..] {
        [one] => one,
        _ => None,
    }
}

impl Need {
    fn holds(self, published: &Figures, rows: &[RowSamples]) -> Result<(), String> {
        let bytes_of = |name: &str| named(name, rows).map(bytes_each).ok();
        let files = |wanted: u64| match bytes_of("file-create") {
            Some(bytes) if bytes == wanted => Ok(()),
            Some(bytes) => Err(format!(
                "files hold {} in the publication and {} here",
                size(wanted),
                size(bytes)
            )),
            None => Err("the result does not say how large its files are".to_owned()),
        };
        let reads = |wanted: u64| match bytes_of("file-read") {
            Some(bytes) if bytes != wanted => Err(format!(
                "{} of each file are read in the publication and {} here",
                size(wanted),
                size(bytes)
            )),
            _ => Ok(()),
        };
        match self {
            Need::Nothing => Ok(()),
            Need::Files(bytes) => files(bytes),
            Need::FilesThatAreNotRead(bytes) => files(bytes).and_then(|()| reads(0)),
            Need::FilesOfTheColumn => files(published.file_bytes.unwrap_or(0)),
            Need::FilesOfTheColumnRead => {
                let bytes = published.file_bytes.unwrap_or(0);
                files(bytes).and_then(|()| reads(bytes))
            }
        }
    }
}

/// Differences between the set-ups of a publication and of the runs.
pub(super) fn set_ups(
    published: &[(&'static str, String)],
    runs: &[Run<'_>],
    rows: &[RowSamples],
) -> Vec<Difference> {
    let Some(run) = runs.first().map(|run| run.result) else {
        return Vec::new();
    };
    let line = |(what, base): &(&'static str, String)| {
        let new = own(what, run, rows);
        (new != *base).then(|| Difference {
            what: (*what).to_owned(),
            base: base.clone(),
            new,
        })
    };
    published.iter().filter_map(line).collect()
}

/// This property of a run.
fn own(what: &str, run: &RunResult, rows: &[RowSamples]) -> String {
    const UNKNOWN: &str = "-";
    let setting = |name: &str| {
        let value = run.spec.get(name);
        let text = value.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
        text.unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let mount = &run.target;
    match what {
        "tool" => format!("rbench {} {}", workload(run), run.run.version),
        "hosts" => run.world.hosts.len().to_string(),
        "ranks" => run.world.ranks.to_string(),
        "threads of each" => run.world.threads_per_rank.to_string(),
        "items of each rank" => setting("items-per-rank"),
        "block size" => setting("bs"),
        "data of each worker" => setting("size"),
        "direct I/O" => match setting("direct").as_str() {
            UNKNOWN => "no".to_owned(),
            set => set.to_owned(),
        },
        "sync of writes" => setting("fsync"),
        "file size" => rows
            .iter()
            .find(|row| matches!(row.op.as_str(), "create" | "write-file"))
            .map_or_else(|| UNKNOWN.to_owned(), |row| size(bytes_each(row))),
        "client host" => run.world.hosts.first().map_or_else(
            || UNKNOWN.to_owned(),
            |host| format!("{} CPUs, {}", host.cpus, host.kernel),
        ),
        "file system" => {
            let client = run.world.hosts.first();
            let client = client.and_then(|host| host.surroundings.as_ref()?.client.as_ref());
            let version = client.and_then(|client| client.version.clone());
            let name = mount.fs_type.clone().unwrap_or_else(|| UNKNOWN.to_owned());
            match version {
                Some(version) => format!("{name}, {version}"),
                None => name,
            }
        }
        "backed by" => mount
            .mount_source
            .clone()
            .unwrap_or_else(|| UNKNOWN.to_owned()),
        "accessed through" => "system calls and the mount".to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_a_figure_of_one_set() {
        let mut tables: Vec<&str> = SETS.iter().map(|set| set.table).collect();
        tables.dedup();
        for table in tables {
            let own = SETS.iter().filter(|set| set.table == table);
            let figures: usize = own.map(|set| lines(set).len()).sum();
            assert_eq!(figures, table.lines().count() - 1);
        }
    }

    #[test]
    fn every_operation_of_the_tables_is_mapped_or_refused_with_a_reason() {
        for set in SETS {
            for (column, figures) in lines(set) {
                let mut mapped = figures.workload.rows.iter();
                let row = mapped.find(|row| row.operation == figures.operation);
                let row = row.unwrap_or_else(|| panic!("{}/{column}: {figures:?}", set.name));
                assert!(figure(row.figure).is_some(), "{row:?}");
            }
        }
    }

    #[test]
    fn columns_are_found_by_name_and_near_names_are_told() {
        let column = find("juicefs-1.1/redis-always").expect("published");
        assert_eq!(column.full_name(), "juicefs-1.1/redis-always");
        assert!(
            column
                .rows
                .iter()
                .any(|row| row.operation == "mkdir" && row.value == 558e3)
        );
        assert_eq!(find("cubefs/8x64").expect("published").rows.len(), 12 + 7);
        assert_eq!(
            find("cubefs-small-files/128k")
                .expect("published")
                .rows
                .len(),
            4
        );
        for (name, reason) in [
            ("juicefs-1.1/redis", "nearest: juicefs-1.1/redis-always"),
            ("juicefs-1.1", "redis-always"),
            ("jucefs-1.1/tikv", "nearest: juicefs-1.1/tikv"),
            ("", "--published list"),
            ("nothing/at/all", "--published list"),
        ] {
            let error = find(name).expect_err(name);
            assert!(error.contains(reason), "{error}");
        }
    }
}
