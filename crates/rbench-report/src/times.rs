//! Times of day.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::table::printable;

/// The format of ctime(3).
pub const CTIME: &str = "%a %b %e %H:%M:%S %Y";

/// Formats a time `offset_s` east of UTC; `None` for an impossible offset.
pub fn local(at: Timestamp, offset_s: i32, format: &str) -> Option<String> {
    let time = Offset::from_seconds(offset_s).ok()?.to_datetime(at);
    Some(time.strftime(format).to_string())
}

/// Formats a time in the schema's format, `offset_s` east of UTC. Other text is returned unchanged.
pub fn local_time(utc: &str, offset_s: i32, format: &str) -> String {
    let at = utc.parse().ok();
    let local = at.and_then(|at| local(at, offset_s, format));
    local.unwrap_or_else(|| printable(utc))
}
