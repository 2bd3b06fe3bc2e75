//! Output of `rbench probe`.

use std::collections::BTreeMap;

use rbench_core::units::human_nanos;
use serde::Serialize;

use crate::schema::{
    AbilityResult, AbilityVerdict, HostProbeResult, ProbeResult, Surroundings, remarks,
};
use crate::table::{NONE, Table, distinct, grouped, left, or_none, right, sentence};
use crate::view::View;

/// The report for people; ends with a newline.
pub fn text(probe: &ProbeResult, view: View) -> String {
    let mut out = format!("rbench {}: probe of {}\n\n", probe.version, probe.directory);
    let around: Vec<(&str, &Surroundings)> = probe
        .hosts
        .iter()
        .map(|host| (host.host.as_str(), &host.surroundings))
        .collect();
    out.push_str(&mounted(&around, view));
    for host in &probe.hosts {
        let trip = match (&host.round_trip_call, host.round_trip_ns) {
            (Some(call), Some(ns)) => format!("{call} {}", human_nanos(ns as f64)),
            _ => "no call reached the file system".to_owned(),
        };
        let trip = format!("{trip} on host {}", host.host);
        line(&mut out, view, "Round trip", &trip, None);
    }
    out.push('\n');
    out.push_str(&abilities(probe, view));
    if probe.hosts.len() > 1 {
        out.push('\n');
        out.push_str(&sights(probe, view));
    }
    let remarks = notes(probe);
    if !remarks.is_empty() {
        out.push('\n');
    }
    for remark in remarks {
        out.push_str(&sentence(view, "- ", &remark));
    }
    out
}

/// A result as JSON.
pub fn json(result: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(result);
    format!("{}\n", text.expect("the schema's types always serialise"))
}

/// The mount on each host, and the program that serves it.
pub(crate) fn mounted(hosts: &[(&str, &Surroundings)], view: View) -> String {
    let mut out = String::new();
    for (what, names) in each(hosts, mount) {
        line(&mut out, view, "Mount", &what, names.as_deref());
    }
    for (what, names) in each(hosts, client) {
        line(&mut out, view, "Client", &what, names.as_deref());
    }
    out
}

fn line(out: &mut String, view: View, label: &str, what: &str, names: Option<&str>) {
    let what = match names {
        Some(names) if names.contains(", ") => format!("{what} (on hosts {names})"),
        Some(name) => format!("{what} (on host {name})"),
        None => what.to_owned(),
    };
    out.push_str(&sentence(view, &format!("{label:12}"), &what));
}

/// Lists each value with its hosts, or once without hosts if all agree.
fn each(
    hosts: &[(&str, &Surroundings)],
    of: fn(&Surroundings) -> Option<String>,
) -> Vec<(String, Option<String>)> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (host, around) in hosts {
        found.entry(or_none(of(around))).or_default().push(host);
    }
    let all = |names: &Vec<&str>| names.len() == hosts.len();
    found
        .into_iter()
        .filter(|(text, names)| text != NONE || !all(names))
        .map(|(text, names)| {
            let told = (!all(&names)).then(|| names.join(", "));
            (text, told)
        })
        .collect()
}

fn mount(around: &Surroundings) -> Option<String> {
    let mount = around.mount.as_ref()?;
    let mut text = format!(
        "{} from {} at {}, {}",
        mount.fs_type, mount.source, mount.point, mount.options
    );
    if let Some(fuse) = &around.fuse {
        let settings = [
            ("max_background", fuse.max_background),
            ("congestion_threshold", fuse.congestion_threshold),
        ];
        for (name, value) in settings {
            if let Some(value) = value {
                text.push_str(&format!(", {name} {value}"));
            }
        }
    }
    Some(text)
}

fn client(around: &Surroundings) -> Option<String> {
    let client = around.client.as_ref()?;
    let version = client.version.as_deref().unwrap_or("version unknown");
    Some(format!(
        "{} ({version}): {}",
        client.name,
        client.command.join(" ")
    ))
}

/// A row for each ability, or for each result where hosts differ.
fn abilities(probe: &ProbeResult, view: View) -> String {
    let mut table = Table::new([
        left("Ability"),
        left("Verdict"),
        left("Hosts").optional(),
        left("Description, or the file system's answer"),
    ]);
    let abilities = probe.hosts.iter().flat_map(|host| &host.abilities);
    for name in distinct(abilities.map(|ability| ability.name.as_str())) {
        let of = |host: &HostProbeResult| {
            let found = host.abilities.iter().find(|ability| ability.name == name);
            found.map_or_else(|| (NONE.to_owned(), "not tried".to_owned()), cells)
        };
        let answers = probe
            .hosts
            .iter()
            .map(|host| (of(host), host.host.as_str()));
        let found = grouped(answers);
        let differ = found.len() > 1;
        for ((verdict, what), hosts) in found {
            let hosts = match differ {
                true => hosts.join(", "),
                false => NONE.to_owned(),
            };
            table.row([name.to_owned(), verdict, hosts, what]);
        }
    }
    table.render(view)
}

fn cells(ability: &AbilityResult) -> (String, String) {
    let AbilityResult {
        about,
        verdict,
        detail,
        call,
        errno,
        ..
    } = ability;
    let what = match (call, errno) {
        (Some(call), Some(errno)) if detail.is_empty() => format!("{call}: {errno}"),
        (Some(call), Some(errno)) => format!("{call}: {errno}, {detail}"),
        (Some(call), None) if *verdict == AbilityVerdict::No => {
            format!("{about}: {call} shows {detail}")
        }
        (Some(_), None) => detail.clone(),
        (None, _) if detail.is_empty() => about.clone(),
        (None, _) => format!("{about}: {detail}"),
    };
    (verdict.name().to_owned(), what)
}

fn sights(probe: &ProbeResult, view: View) -> String {
    if !probe.shared {
        return "The hosts do not see the same directory at this path.\n".to_owned();
    }
    let mut table = Table::new([left("Made on"), left("Seen on"), right("After"), left("")]);
    for sight in &probe.sights {
        let after = sight.seen_after_ns.map(|ns| human_nanos(ns as f64));
        let told = match (sight.seen_after_ns, sight.whole) {
            (None, _) => "not seen within 10 s",
            (Some(_), true) => "",
            (Some(_), false) => "without its content",
        };
        table.row([
            sight.maker.clone(),
            sight.looker.clone(),
            or_none(after),
            told.to_owned(),
        ]);
    }
    table.render(view)
}

fn notes(probe: &ProbeResult) -> Vec<String> {
    let hosts = probe.hosts.iter();
    let mut notes: Vec<String> = hosts
        .filter_map(|host| {
            let at = host.silent_at.as_ref()?;
            Some(format!(
                "The file system did not answer on {} within 20 s ({at}); nothing more was tried there.",
                host.host
            ))
        })
        .collect();
    let around: Vec<_> = probe
        .hosts
        .iter()
        .map(|host| (host.host.as_str(), 0, &host.surroundings))
        .collect();
    notes.extend(remarks(&around));
    let unknown = |host: &&HostProbeResult| {
        let mut all = host.abilities.iter();
        all.any(|ability| ability.verdict == AbilityVerdict::Unknown)
    };
    if probe.hosts.iter().any(|host| unknown(&host)) {
        notes.push("unknown: not decided, for the reason in its row.".to_owned());
    }
    notes
}
