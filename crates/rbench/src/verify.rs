//! `rbench verify`: reports the fate of the writes in the journals.

use std::fmt::Write as _;

use rbench_cli::{Format, Verify};
use rbench_core::plain::plain;
use rbench_core::units::{counted, human_count};
use rbench_exec::ack::{Audit, Class, Finding, audit};
use rbench_report::json::pretty;
use serde_json::json;

use crate::console::{fail, print};
use crate::exit::{FAILED, SUCCESS, USAGE};

/// Reads the journals and the data, and prints the findings.
pub fn verify(what: &Verify) -> u8 {
    let audit = match audit(&what.journals, what.dir.as_deref()) {
        Ok(audit) => audit,
        Err(message) => {
            // FAILED would mean damaged data.
            return fail(USAGE, message);
        }
    };
    let text = match what.format {
        Format::Text => text(&audit),
        Format::Json => json(&audit),
    };
    let code = match (audit.is_clean(), audit.writes) {
        (false, _) => FAILED,
        // Otherwise a journal that was lost would look like a success.
        (true, 0) => USAGE,
        (true, _) => SUCCESS,
    };
    code.max(print(&text))
}

/// The result as one sentence.
fn conclusion(audit: &Audit) -> String {
    let bad = Class::ALL.into_iter().filter(|class| class.is_bad());
    let bad: Vec<Class> = bad.filter(|class| audit.count(*class) > 0).collect();
    let [first, others @ ..] = bad.as_slice() else {
        return match audit.writes {
            0 => "No acknowledged write is in the journals: nothing was verified.".to_owned(),
            _ => "Nothing synced was lost.".to_owned(),
        };
    };
    let count = audit.count(*first);
    let are = if count == 1 { "is" } else { "are" };
    let mut text = format!("{} {are} {}", counted(count, "block"), first.name());
    for class in others {
        text.push_str(&format!(
            " and {} {}",
            human_count(audit.count(*class)),
            class.name()
        ));
    }
    let all = audit.blocks.values().sum();
    format!("{text}, of {}.", human_count(all))
}

/// The meaning of a class.
fn meaning(class: Class) -> &'static str {
    match class {
        Class::Acknowledged => "holds the last acknowledged write",
        Class::Allowed => "in flight, or acknowledged and never synced",
        Class::Untouched => "never written and empty",
        Class::Lost => "synced, but now older or empty",
        Class::Corrupt => "holds data that no write put there",
        Class::Unreadable => "cannot be read",
    }
}

fn text(audit: &Audit) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "journals: {} ({})",
        audit.journals,
        counted(audit.records, "record")
    );
    for class in Class::ALL {
        let (name, count) = (class.name(), audit.count(class));
        let _ = writeln!(out, "{count:>12} {name:<15}  {}", meaning(class));
    }
    for finding in &audit.findings {
        let Finding {
            class,
            path,
            offset,
            expected,
            found,
        } = finding;
        let line = format!(
            "{}: {} at offset {offset}: expected {expected}; found {found}",
            class.name(),
            path.display()
        );
        // A journal's paths may contain any character, even newlines.
        let _ = writeln!(out, "{}", plain(&line));
    }
    for class in Class::ALL.into_iter().filter(|class| class.is_bad()) {
        let listed = audit.findings.iter().filter(|f| f.class == class).count() as u64;
        if audit.count(class) > listed {
            let more = audit.count(class) - listed;
            let _ = writeln!(out, "{}: {more} more", class.name());
        }
    }
    for note in &audit.notes {
        let _ = writeln!(out, "note: {}", plain(note));
    }
    let _ = writeln!(out, "{}", conclusion(audit));
    out
}

fn json(audit: &Audit) -> String {
    let blocks: serde_json::Map<_, _> = Class::ALL
        .into_iter()
        .map(|class| (class.name().replace(' ', "-"), audit.count(class).into()))
        .collect();
    let finding = |finding: &Finding| {
        json!({
            "class": finding.class.name(),
            "path": finding.path.to_string_lossy(),
            "offset": finding.offset,
            "expected": finding.expected,
            "found": finding.found,
        })
    };
    pretty(&json!({
        "clean": audit.is_clean(),
        "journals": audit.journals,
        "records": audit.records,
        "acknowledged_writes": audit.writes,
        "blocks": blocks,
        "findings": audit.findings.iter().map(finding).collect::<Vec<_>>(),
        "notes": audit.notes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit_of(lost: u64) -> Audit {
        let finding = |n: u64| Finding {
            class: Class::Lost,
            path: "/mnt/f".into(),
            offset: n * 4096,
            expected: "generation 0x2, which was synced".to_owned(),
            found: "zeros, or past the end of the file".to_owned(),
        };
        Audit {
            journals: 2,
            records: 600,
            writes: 250,
            blocks: [(Class::Acknowledged, 100), (Class::Lost, lost)].into(),
            findings: (0..lost.min(10)).map(finding).collect(),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn both_forms_tell_counts_examples_and_notes() {
        let said = text(&audit_of(12));
        let has = |line: &str| assert!(said.lines().any(|l| l.contains(line)), "{said}");
        has("journals: 2 (600 records)");
        has("         100 as acknowledged  holds the last");
        has("          12 lost");
        has("lost: /mnt/f at offset 4096: expected generation 0x2, which was synced; found zeros");
        has("lost: 2 more");
        has("note: a note");
        has("12 blocks are lost, of 112.");
        let value: serde_json::Value = serde_json::from_str(&json(&audit_of(12))).expect("JSON");
        assert_eq!(value["blocks"]["as-acknowledged"], 100);
        assert_eq!(value["blocks"]["unreadable"], 0);
        assert_eq!(
            (&value["clean"], &value["findings"][1]["offset"]),
            (&false.into(), &4096.into())
        );
        assert!(!text(&audit_of(0)).contains("more"));
    }

    #[test]
    fn neither_form_steers_the_terminal_or_is_given_lines_by_a_path() {
        let mut audit = audit_of(1);
        audit.findings[0].path = "/mnt/\x1b[2J\u{9b}x\x7f\nnote: all is well".into();
        audit.notes = vec!["/mnt/\r\u{9b}y\nlost: 0".to_owned()];
        for said in [text(&audit), json(&audit)] {
            let steers = |c: char| c.is_control() && c != '\n';
            assert!(!said.contains(steers), "{said:?}");
        }
        let said = text(&audit);
        let lines: Vec<&str> = said.lines().rev().skip(1).take(2).collect();
        assert_eq!(lines[0], r"note: /mnt/\r\u{9b}y\nlost: 0");
        let path = r"lost: /mnt/\u{1b}[2J\u{9b}x\u{7f}\nnote: all is well at offset 0: ";
        assert!(lines[1].starts_with(path), "{said}");
        let value: serde_json::Value = serde_json::from_str(&json(&audit)).expect("JSON");
        assert_eq!(value["notes"][0], "/mnt/\r\u{9b}y\nlost: 0");
    }

    #[test]
    fn the_last_line_says_what_became_of_the_data() {
        let mut audit = audit_of(0);
        assert_eq!(conclusion(&audit), "Nothing synced was lost.");
        audit.writes = 0;
        assert!(conclusion(&audit).ends_with("nothing was verified."));
        audit.blocks.insert(Class::Lost, 1);
        assert_eq!(conclusion(&audit), "1 block is lost, of 101.");
        audit.blocks.insert(Class::Corrupt, 2);
        assert_eq!(conclusion(&audit), "1 block is lost and 2 corrupt, of 103.");
    }
}
