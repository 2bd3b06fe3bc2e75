//! The marker in a run's directory. It names the run and the process that owns the directory.

use rbench_sys::limits::{host_facts, process_space};
use rbench_sys::processes::Process;

/// The start of every marker.
const BEGIN: &str = "rbench run ";

/// Content of a run's marker file: the run's id, and the process of rank 0 as given by [`origin`].
pub fn marker(run_id: &str, origin: &str) -> String {
    format!("{BEGIN}{run_id}\n{origin}")
}

/// Line of a marker whose directory is kept on purpose, however the run ends.
pub const KEPT: &str = "kept on purpose\n";

/// Process number of a marker, if that process is certainly running.
pub fn at_work(marker: &[u8]) -> Option<u64> {
    let marker = read(marker)?;
    let here = process_space()?;
    let process = marker.process.filter(|_| marker.space == here)?;
    process.is_running().then(|| u64::from(process.number))
}

/// Describes this process, so that others can check whether it is still running.
pub fn origin() -> String {
    let host = host_facts().map_or_else(|_| String::new(), |facts| facts.name);
    let Process { number, started } = Process::this();
    let space = process_space().unwrap_or_default();
    format!("host {host}\nspace {space}\nprocess {number} {started}\n")
}

/// The content of a marker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marker {
    pub run: String,
    pub host: String,
    /// Scope of the process number: a boot and a PID namespace.
    pub space: String,
    pub process: Option<Process>,
    /// True if the directory is kept on purpose.
    pub kept: bool,
}

/// Reads a marker; `None` if it is invalid.
pub fn read(bytes: &[u8]) -> Option<Marker> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut marker = Marker {
        run: text.strip_prefix(BEGIN)?.lines().next()?.to_owned(),
        ..Marker::default()
    };
    for line in text.lines() {
        match line.split_once(' ') {
            _ if line == KEPT.trim_end() => marker.kept = true,
            Some(("host", name)) => name.clone_into(&mut marker.host),
            Some(("space", space)) => space.clone_into(&mut marker.space),
            Some(("process", numbers)) => {
                let (number, started) = numbers.split_once(' ')?;
                marker.process = Some(Process {
                    number: number.parse().ok()?,
                    started: started.parse().ok()?,
                });
            }
            _ => {}
        }
    }
    Some(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_tells_run_host_and_process() {
        let text = format!("{BEGIN}20261121-aaaa\nhost one\nspace b/1\nprocess 12 345\n");
        let marker = read(text.as_bytes()).expect("a marker");
        assert_eq!(
            (
                marker.run.as_str(),
                marker.host.as_str(),
                marker.space.as_str()
            ),
            ("20261121-aaaa", "one", "b/1")
        );
        let process = marker.process.expect("a process");
        assert_eq!((process.number, process.started), (12, 345));
        assert_eq!(read(b"something else"), None);
        assert_eq!(read(b"\xff"), None);
    }
}
