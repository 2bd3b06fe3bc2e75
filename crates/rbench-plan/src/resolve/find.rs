//! Checks of `rbench find`.

use super::PlanError;
use crate::spec::{Common, Find};

pub(super) fn resolve(find: &Find, common: &Common) -> Result<Find, PlanError> {
    refuse_if!(common.dir.is_none() => "rbench find needs the directory to search");
    for (flag, given) in [
        ("--shift", common.shift.is_some()),
        ("--keep", common.keep),
        ("--overfill", common.leave.overfill),
        ("--untried", common.leave.untried),
    ] {
        refuse_if!(given => "{flag} has no effect on a search, which creates nothing: remove it");
    }
    if find.name.as_ref().is_some_and(|name| name.is_empty()) {
        refuse!("--name is empty: no name would match");
    }
    Ok(find.clone())
}
