//! Activity of block devices and processors of the hosts while a group of jobs runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rbench_core::machine::HostUse;
use rbench_plan::jobs::FileNames;
use rbench_sys::disks::{CpuWatch, DiskWatch};
use rbench_sys::speed;

use super::JobRound;
use super::layout;
use crate::group::{ExecError, Group};

/// The counters that this rank watches.
pub(super) struct Watch {
    disks: DiskWatch,
    /// At the leader of a host, where it is asked for.
    cpus: Option<CpuWatch>,
    unit_us: Vec<f64>,
}

/// The counters that a rank is to watch.
struct Wanted {
    /// Directories of files, and files that may be devices.
    paths: BTreeSet<PathBuf>,
    /// The processors as well.
    cpus: bool,
    /// For the first time.
    first: bool,
}

impl JobRound<'_> {
    /// Begins to watch what is to be reported of the machine, if anything is.
    pub(super) async fn watch(&self, group: &Group<'_>) -> Result<Option<Watch>, ExecError> {
        let disks = self.members.iter().filter(|member| member.reports_disks());
        let mut paths = BTreeSet::new();
        for member in disks {
            for path in layout::used(group, &member.job, self.common.base, true) {
                // Names that were given may be those of devices.
                let given = matches!(member.job.files.names, FileNames::Given(_));
                match path.parent().filter(|_| !given) {
                    Some(parent) => paths.insert(parent.to_owned()),
                    None => paths.insert(path),
                };
            }
        }
        let wanted = Wanted {
            cpus: self.common.whole.idle,
            first: self.number == 0,
            paths,
        };
        // This is the same on every rank.
        let any = self.common.whole.idle || self.members.iter().any(|m| m.reports_disks());
        match any {
            true => Watch::begin(group, wanted).await.map(Some),
            false => Ok(None),
        }
    }
}

impl Watch {
    /// Begins, untimed: reads the counters of the target.
    async fn begin(group: &Group<'_>, wanted: Wanted) -> Result<Watch, ExecError> {
        let cpus = wanted.cpus && group.is_leader();
        let watch = group.agree_on_target(move || {
            let unit_us = match cpus && wanted.first {
                true => speed::unit_of_each_cpu(),
                false => Vec::new(),
            };
            Ok(Watch {
                disks: DiskWatch::begin(wanted.paths.iter().map(PathBuf::as_path)),
                unit_us,
                cpus: cpus.then(CpuWatch::begin),
            })
        });
        watch.await
    }

    /// Ends; at rank 0 what each host did, empty elsewhere.
    pub(super) async fn end(self, group: &Group<'_>) -> Result<Vec<HostUse>, ExecError> {
        let mine = HostUse {
            host: group.host_number(),
            disks: self.disks.end(),
            cpus: self.cpus.map_or_else(Vec::new, |cpus| cpus.end()),
            unit_us: self.unit_us,
        };
        let mut hosts: Vec<HostUse> = Vec::new();
        for one in group.gather(&mine).await? {
            match hosts.iter_mut().find(|known| known.host == one.host) {
                Some(known) => known.join(one),
                None => hosts.push(one),
            }
        }
        hosts.sort_by_key(|host| host.host);
        Ok(hosts)
    }
}
