//! Remarks on the environment of a run on its hosts.

use std::collections::BTreeMap;

use rbench_core::surroundings::Surroundings;

/// Remarks on the hosts for the reader; empty when they are alike and nothing is remarkable. Takes
/// (name, CPUs, surroundings) of each.
pub fn remarks(hosts: &[(&str, u32, &Surroundings)]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut tell =
        |of: &dyn Fn(u32, &Surroundings) -> Option<String>| {
            let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (name, cpus, around) in hosts {
                if let Some(text) = of(*cpus, around) {
                    found.entry(text).or_default().push(name);
                }
            }
            remarks.extend(found.into_iter().map(|(text, names)| {
                match names.len() == hosts.len() {
                    true => text,
                    false => format!("{text} on {}", some_of(&names)),
                }
            }));
        };
    tell(&|_, s| {
        let slow = s.governors.iter().any(|g| g != "performance");
        slow.then(|| format!("governor {}", s.governors.join(" and ")))
    });
    tell(&|_, s| {
        let slow = |c: &&String| matches!(c.as_str(), "hpet" | "acpi_pm" | "jiffies");
        s.clock_source
            .as_ref()
            .filter(slow)
            .map(|c| format!("clock source {c}"))
    });
    if hosts.len() > 1 {
        tell(&|_, s| {
            let ntp = s.ntp.filter(|ntp| !ntp.synchronised);
            ntp.map(|_| "clock not synchronised (NTP)".to_owned())
        });
    }
    tell(&|cpus, s| {
        let limit = s.cpu_limit.filter(|limit| *limit < f64::from(cpus));
        limit.map(|limit| format!("limited to {limit:.1} of {cpus} CPUs"))
    });
    tell(&|_, s| {
        let limit = s.memory_limit_bytes;
        limit.map(|b| {
            format!(
                "limited to {} of memory",
                rbench_core::units::human_bytes(b)
            )
        })
    });
    tell_differences(hosts, &mut remarks);
    remarks
}

/// Remarks on differences between hosts of one target.
fn tell_differences(hosts: &[(&str, u32, &Surroundings)], remarks: &mut Vec<String>) {
    type Of = fn(&Surroundings) -> Option<String>;
    let all: [(&str, Of); 3] = [
        ("client version", |s| s.client.as_ref()?.version.clone()),
        ("client command", |s| {
            let client = s.client.as_ref()?;
            // Beside what differs anyhow.
            Some(client.command.get(1..)?.join(" "))
        }),
        ("max_background", |s| {
            Some(s.fuse.as_ref()?.max_background?.to_string())
        }),
    ];
    for (what, of) in all {
        let mut found: Vec<(String, &str)> = Vec::new();
        for (name, _, around) in hosts {
            let new = of(around).filter(|text| found.iter().all(|(known, _)| known != text));
            found.extend(new.map(|text| (text, *name)));
        }
        if found.len() > 1 {
            let short = found.iter().all(|(text, _)| text.len() <= 30);
            let each = found.iter().map(|(text, name)| match short {
                true => format!("{text} on {name}"),
                false => (*name).to_owned(),
            });
            let each: Vec<String> = each.collect();
            remarks.push(format!("{what} differs: {}", each.join(", ")));
        }
    }
}

/// The first of some names.
pub(crate) fn some_of(names: &[&str]) -> String {
    match names {
        [a, b, c, rest @ ..] if rest.len() > 1 => format!("{a}, {b}, {c} and {} more", rest.len()),
        all => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::surroundings::{ClientProgram, NtpState};

    use super::*;

    fn check(hosts: &[Surroundings], expect: &[&str]) {
        let names = ["client1", "client2", "client3"];
        let hosts: Vec<(&str, u32, &Surroundings)> = names
            .into_iter()
            .zip(hosts)
            .map(|(n, s)| (n, 8, s))
            .collect();
        assert_eq!(remarks(&hosts), expect);
    }

    fn ntp(synchronised: bool) -> Option<NtpState> {
        Some(NtpState {
            synchronised,
            max_error_us: 1,
            estimated_error_us: 1,
            frequency_ppm: 0.0,
        })
    }

    #[test]
    fn only_what_is_remarkable_or_differs_is_told() {
        let plain = Surroundings {
            governors: vec!["performance".to_owned()],
            clock_source: Some("tsc".to_owned()),
            ntp: ntp(true),
            cpu_limit: Some(8.0),
            ..Surroundings::default()
        };
        check(std::slice::from_ref(&plain), &[]);
        check(&[plain.clone(), plain.clone()], &[]);
        check(&[Surroundings::default()], &[]);
        let slow = Surroundings {
            governors: vec!["powersave".to_owned()],
            clock_source: Some("hpet".to_owned()),
            ntp: ntp(false),
            cpu_limit: Some(1.5),
            memory_limit_bytes: Some(1 << 30),
            ..Surroundings::default()
        };
        let words = [
            "governor powersave",
            "clock source hpet",
            "limited to 1.5 of 8 CPUs",
            "limited to 1.00 GiB of memory",
        ];
        check(std::slice::from_ref(&slow), &words);
        let on: Vec<String> = [
            words[0],
            words[1],
            "clock not synchronised (NTP)",
            words[2],
            words[3],
        ]
        .iter()
        .map(|w| format!("{w} on client2"))
        .collect();
        let on: Vec<&str> = on.iter().map(String::as_str).collect();
        check(&[plain, slow], &on);
    }

    #[test]
    fn clients_that_differ_are_told() {
        let client = |version: &str, option: &str| Surroundings {
            client: Some(ClientProgram {
                process: 1,
                name: "c".to_owned(),
                program: None,
                command: vec!["c".to_owned(), option.to_owned()],
                version: Some(version.to_owned()),
                attr_timeout_s: None,
                entry_timeout_s: None,
                writeback_cache: None,
            }),
            ..Surroundings::default()
        };
        check(&[client("1", "a"), client("1", "a")], &[]);
        check(
            &[client("1", "a"), client("2", "a"), client("1", "b")],
            &[
                "client version differs: 1 on client1, 2 on client2",
                "client command differs: a on client1, b on client3",
            ],
        );
    }
}
