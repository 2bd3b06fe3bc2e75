//! Events of a run, which set marks: commands that run beside it, and signals.

use std::str::FromStr;

use crate::units::Nanos;

/// Start of a command without a time of its own.
pub const EVENT_AT: Nanos = Nanos(10_000_000_000);

/// Name of the marks of a signal that no option names.
pub const SIGNAL_NAME: &str = "SIGUSR1";

/// Longest name in characters: names appear in tables and charts.
const NAME_MAX: usize = 40;

/// `--event`: a name, and the cause of its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Name of the marks.
    pub name: String,
    /// Their cause.
    pub cause: EventCause,
}

/// Cause of a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventCause {
    /// This command, once, when it starts.
    Command {
        /// Its start, after the common start of the first reported phase.
        at: Nanos,
        /// The command for `sh -c`.
        command: String,
    },
    /// Each SIGUSR1.
    Signal,
}

impl FromStr for Event {
    type Err = String;

    /// Reads `NAME=COMMAND`, `NAME@TIME=COMMAND` or `NAME=SIGUSR1`.
    fn from_str(text: &str) -> Result<Event, String> {
        let form = || format!("'{text}' is not of the form NAME[@TIME]=COMMAND");
        let (before, command) = text.split_once('=').ok_or_else(form)?;
        let (name, time) = match before.rsplit_once('@') {
            Some((name, time)) => (name, Some(time)),
            None => (before, None),
        };
        if name.trim().is_empty() || command.trim().is_empty() {
            return Err(form());
        }
        if name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(format!(
                "the name '{name}' must have at most {NAME_MAX} characters, none of them a control character"
            ));
        }
        let at = match time.map(str::parse::<Nanos>) {
            Some(Ok(at)) => Some(at),
            Some(Err(why)) => return Err(format!("'{before}': {why}")),
            None => None,
        };
        let cause = match (command, at) {
            (SIGNAL_NAME, None) => EventCause::Signal,
            (SIGNAL_NAME, Some(_)) => {
                return Err(format!(
                    "'{text}': {SIGNAL_NAME} takes no @TIME, since it sets a mark when it is sent"
                ));
            }
            (command, at) => EventCause::Command {
                at: at.unwrap_or(EVENT_AT),
                command: command.to_owned(),
            },
        };
        Ok(Event {
            name: name.to_owned(),
            cause,
        })
    }
}

/// Checks that these events can be combined.
///
/// # Errors
/// A sentence: two events have the same name, or are set by the same signal.
pub fn check_events(events: &[Event]) -> Result<(), String> {
    for (i, event) in events.iter().enumerate() {
        let Event { name, cause } = event;
        if events[..i].iter().any(|other| other.name == *name) {
            return Err(format!(
                "--event: the name '{name}' is given twice; give each event its own name"
            ));
        }
        let signal = |event: &Event| event.cause == EventCause::Signal;
        if *cause == EventCause::Signal && events[..i].iter().any(signal) {
            return Err(format!("--event: {SIGNAL_NAME} is given two names"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_name_and_a_time() {
        let check = |text: &str, name: &str, at: u64, command: &str| {
            let event: Event = text.parse().expect(text);
            assert_eq!(event.name, name);
            let (at, command) = (Nanos(at * 1_000_000), command.to_owned());
            assert_eq!(event.cause, EventCause::Command { at, command });
        };
        check("failover=kill 7", "failover", 10_000, "kill 7");
        check("failover@2.5s=a=b mfs@x", "failover", 2_500, "a=b mfs@x");
        check("mds 1@host@0=true", "mds 1@host", 0, "true");
        check("x@500ms=SIGUSR1 ", "x", 500, "SIGUSR1 ");
        let signal: Event = "failover=SIGUSR1".parse().expect("a signal");
        assert_eq!(signal.cause, EventCause::Signal);
    }

    #[test]
    fn what_is_none_is_refused_in_a_clause() {
        for (text, expect) in [
            ("failover", "NAME[@TIME]=COMMAND"),
            ("=true", "NAME[@TIME]=COMMAND"),
            ("@5s=true", "NAME[@TIME]=COMMAND"),
            ("failover=", "NAME[@TIME]=COMMAND"),
            ("failover@soon=true", "'failover@soon'"),
            ("failover@=true", "'failover@'"),
            ("failover@-1s=true", "'failover@-1s'"),
            ("a\nb=true", "control character"),
            (&format!("{}=true", "x".repeat(41)), "at most 40"),
            ("x@5s=SIGUSR1", "takes no @TIME"),
        ] {
            let error = text.parse::<Event>().expect_err(text);
            assert!(error.contains(expect), "{text}: {error}");
        }
    }

    #[test]
    fn names_are_given_once() {
        let events = |texts: &[&str]| -> Vec<Event> {
            let parse = |text: &&str| text.parse().expect("an event");
            texts.iter().map(parse).collect()
        };
        assert_eq!(
            check_events(&events(&["a=x", "b=SIGUSR1", "c@1=x"])),
            Ok(())
        );
        for (texts, expect) in [
            (["a=x", "a@3=y"], "'a' is given twice"),
            (["a=SIGUSR1", "b=SIGUSR1"], "two names"),
        ] {
            let error = check_events(&events(&texts)).expect_err("refused");
            assert!(error.contains(expect), "{error}");
        }
    }
}
