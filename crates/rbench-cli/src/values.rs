//! Values of options that have a form of their own.

use rbench_core::{Bytes, Nanos};
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::meta::{PHASES, PhaseKind};

pub fn bytes(text: &str) -> Result<Bytes, String> {
    text.parse()
        .map_err(|e: rbench_core::units::ParseQuantityError| e.to_string())
}

pub fn time(text: &str) -> Result<Nanos, String> {
    text.parse()
        .map_err(|e: rbench_core::units::ParseQuantityError| e.to_string())
}

pub fn phase(text: &str) -> Result<PhaseKind, String> {
    PHASES
        .iter()
        .find(|info| info.name == text)
        .map(|info| info.kind)
        .ok_or_else(|| {
            let names: Vec<&str> = PHASES.iter().map(|info| info.name).collect();
            format!("'{text}' is not one of {}", names.join(", "))
        })
}

pub fn rw(text: &str) -> Result<Rw, String> {
    Rw::ALL
        .into_iter()
        .find(|rw| rw.name() == text)
        .ok_or_else(|| {
            format!(
                "'{text}' is not one of {}",
                Rw::ALL.map(Rw::name).join(", ")
            )
        })
}

pub fn fsync(text: &str) -> Result<FsyncRule, String> {
    match text {
        "end" => Ok(FsyncRule::End),
        "never" => Ok(FsyncRule::Never),
        "close" => Ok(FsyncRule::Close),
        _ => text
            .strip_prefix("every=")
            .and_then(|n| n.parse().ok())
            .map(FsyncRule::Every)
            .ok_or_else(|| format!("'{text}' is not one of end, never, close, every=N")),
    }
}

pub fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not a number of operations a second"))
}

pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not of the form key=value")),
    }
}
