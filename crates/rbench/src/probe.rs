//! `rbench probe`: tests the abilities of a mount on each host of the launch.

use std::path::Path;

use rbench_cli::{Format, Probe, Progress};
use rbench_comm::Communicator;
use rbench_core::Rank;
use rbench_exec::Place;
use rbench_exec::probe::{HostProbe, PATIENCE, Probed, Sight, answers, probe};
use rbench_report::probe::{json, text};
use rbench_report::schema::{
    AbilityResult, AbilityVerdict, HostProbeResult, PROBE_SCHEMA, ProbeResult, SightResult,
    Surroundings,
};
use rbench_sys::promises::Verdict;
use rbench_sys::promises::abilities::ABILITIES;

use crate::console::{complain, print};
use crate::exit::{SUCCESS, exit_code, stop_code};
use crate::hosts::Hosts;
use crate::launch::Launch;
use crate::live::Feed;
use crate::marker::marker;
use crate::progress::Display;
use crate::refusal::Refusal;
use crate::show;
use crate::signals::Signals;
use crate::surroundings;

/// Probes the directory on every host; rank 0 prints the result.
pub async fn run(
    comm: &dyn Communicator,
    launch: &Launch,
    asked: &Probe,
    signals: &Signals,
) -> Result<u8, Refusal> {
    let hosts = Hosts::find(comm).await?;
    let progress = Progress::Auto.unless(asked.quiet);
    let display = Display::new(progress, comm.rank() == Rank(0), Feed::default());
    let group = hosts.group(comm, signals, &display).await?;
    let directory = Path::new(&launch.cwd).join(&asked.dir);
    answers(&group, &directory, group.is_leader(), PATIENCE).await?;
    let around = surroundings::gather(&group, &directory, false).await?;
    let marker = marker(&launch.run_id, &launch.origin);
    let place = Place {
        live: None,
        parent: &directory,
        name: &format!("rbench.{}", launch.run_id),
        marker: marker.as_bytes(),
        needs_shared: None,
        recorder: None,
    };
    let probed = probe(&group, &place, PATIENCE).await;
    display.end();
    let probed = probed?;
    if !group.is_root() {
        return Ok(stop_code(&group).unwrap_or(SUCCESS));
    }
    for left in &probed.left {
        complain(left);
    }
    let silent = probed.hosts.iter().any(|host| host.silent_at.is_some());
    let whole = probed.left.is_empty() && !silent;
    let result_file = result(launch, &hosts, &directory, around, probed);
    let printed = print(&match asked.format {
        Format::Text => text(&result_file, show::view()),
        Format::Json => json(&result_file),
    });
    Ok(exit_code(&group, whole, printed))
}

fn result(
    launch: &Launch,
    hosts: &Hosts,
    directory: &Path,
    around: Vec<Option<Surroundings>>,
    probed: Probed,
) -> ProbeResult {
    let name = |host: usize| {
        let host_found = hosts.topology.hosts.get(host);
        host_found.map_or_else(String::new, |host| host.name.clone())
    };
    let sight = |found: Sight| SightResult {
        maker: name(found.maker),
        looker: name(found.looker),
        seen_after_ns: found.after.map(|after| after.0),
        whole: found.whole,
    };
    let each = probed.hosts.into_iter().zip(around).enumerate();
    ProbeResult {
        schema: PROBE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: directory.display().to_string(),
        started: launch.started.clone(),
        hosts: each
            .map(|(number, (found, around))| {
                host(name(number), hosts.kernel(number), around, found)
            })
            .collect(),
        shared: probed.shared,
        sights: probed.sights.into_iter().map(sight).collect(),
    }
}

fn host(
    name: String,
    kernel: String,
    around: Option<Surroundings>,
    found: HostProbe,
) -> HostProbeResult {
    let (call, median) = found.round_trip.unzip();
    HostProbeResult {
        host: name,
        kernel,
        surroundings: around.unwrap_or_default(),
        round_trip_call: call,
        round_trip_ns: median.map(|median| median.0),
        abilities: found.found.into_iter().map(ability).collect(),
        silent_at: found.silent_at,
    }
}

fn ability((name, verdict): (String, Verdict)) -> AbilityResult {
    let about = ABILITIES.iter().find(|ability| ability.name == name);
    let about = about.map_or_else(String::new, |ability| ability.about.to_owned());
    let (verdict, detail, evidence) = match verdict {
        Verdict::Holds(note) => (AbilityVerdict::Yes, note, None),
        Verdict::LeftOut(why) => (AbilityVerdict::Unknown, why, None),
        Verdict::Undecided(seen) => (AbilityVerdict::Unknown, seen.beyond_the_error(), Some(seen)),
        Verdict::Broken(seen) | Verdict::Unsupported(seen) => {
            (AbilityVerdict::No, seen.beyond_the_error(), Some(seen))
        }
    };
    let errno = evidence.as_ref().and_then(|seen| seen.errno);
    AbilityResult {
        name,
        about,
        verdict,
        detail,
        call: evidence.map(|seen| seen.call),
        errno: errno.map(|errno| format!("{errno:?}")),
    }
}
