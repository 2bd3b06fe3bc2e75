//! Injected faults: the requests that they hit, their actions, and their texts.
//! `table` decides which requests are hit, and `log` records those that fired. The
//! service carries the actions out.

pub(crate) mod log;
pub(crate) mod table;

use std::fmt;
use std::str::FromStr;

use nix::errno::Errno;
use rbench_core::Nanos;
use rbench_core::units::ParseQuantityError;

use crate::kind::{Kind, UnknownKind};

/// An injected fault, written `KIND:ACTION@TRIGGER`: `read:stall=500ms@nth=100`,
/// `write:EIO@p=0.01`, `create:ENOSPC@after=1000`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// The kind of request that it hits.
    pub kind: Kind,
    /// Its action.
    pub action: Action,
    /// Selection of the requests of that kind.
    pub trigger: Trigger,
}

/// Effect of a fault on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `stall=TIME`: the reply is delayed by this time, in addition to the injected
    /// latency.
    Stall(Nanos),
    /// `hang`: the operation is done, and the reply is held until it is released. If
    /// the mount ends first, the reply is ECONNABORTED.
    Hang,
    /// The name of an errno: that error is the reply, and the operation is not done.
    /// Only release and releasedir, which the kernel never repeats, are done.
    Fail(Errno),
    /// `die`: the file system ends at once. Calls in flight fail with ECONNABORTED,
    /// all later ones with ENOTCONN, until it is unmounted.
    Die,
    /// `short`: a read or write moves half of its bytes (at least one).
    Short,
    /// `flip`: one bit of the data is inverted.
    Flip,
    /// `zero`: the data, or a 4 KiB block of it, becomes zeros.
    Zero,
    /// `stale`: a read returns blocks of 4 KiB as they were before their last
    /// overwriting.
    Stale,
    /// `misdirect`: a read returns the data of another offset or file; a write goes
    /// there.
    Misdirect,
    /// `lost`: a write is acknowledged, but only moves the end of the file.
    Lost,
}

impl Action {
    /// True if it can be applied to requests of `kind`.
    pub fn suits(self, kind: Kind) -> bool {
        match self {
            Action::Stall(_) | Action::Hang | Action::Fail(_) | Action::Die => kind.has_reply(),
            Action::Short | Action::Flip | Action::Zero | Action::Misdirect => {
                matches!(kind, Kind::Read | Kind::Write)
            }
            Action::Stale => kind == Kind::Read,
            Action::Lost => kind == Kind::Write,
        }
    }

    /// Its text; `None` if that has a value.
    fn word(self) -> Option<&'static str> {
        let known = WORDS.iter().find(|(action, _)| *action == self);
        known.map(|(_, word)| *word)
    }
}

/// The actions whose text is a single word, not the name of an error.
const WORDS: [(Action, &str); 8] = [
    (Action::Hang, "hang"),
    (Action::Die, "die"),
    (Action::Short, "short"),
    (Action::Flip, "flip"),
    (Action::Zero, "zero"),
    (Action::Stale, "stale"),
    (Action::Misdirect, "misdirect"),
    (Action::Lost, "lost"),
];

/// Selection of the requests of a kind that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trigger {
    /// `nth=N`: the N-th request, counted from 1, once.
    Nth(u64),
    /// `after=N`: every request after the N-th.
    After(u64),
    /// `p=PROBABILITY`: each request with that probability (above 0, at most 1),
    /// drawn from the seed and the number of the request.
    Probability(f64),
}

/// The reason why a fault could not be read. Its text is a clause that can follow the
/// name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseFaultError {
    /// Not of the form KIND:ACTION@TRIGGER.
    #[error("'{0}' is not of the form KIND:ACTION@TRIGGER (such as read:stall=500ms@nth=100)")]
    Form(String),
    /// An unknown name of a request.
    #[error(transparent)]
    Kind(#[from] UnknownKind),
    /// A request without a reply.
    #[error("'{0}' has no reply that could go wrong")]
    NoReply(Kind),
    /// An unknown action.
    #[error(
        "'{0}' is not an action (stall=TIME, hang, die, short, flip, zero, stale, misdirect, lost, or an error such \
         as EIO)"
    )]
    Action(String),
    /// An action on data for a request that moves none, or the reverse.
    #[error("'{0}' does not apply to '{1}'")]
    Unsuited(Action, Kind),
    /// The time of a stall cannot be read.
    #[error("the stall: {0}")]
    Stall(ParseQuantityError),
    /// An unknown trigger.
    #[error("'{0}' is not a trigger (nth=N, after=N or p=PROBABILITY)")]
    Trigger(String),
    /// A number of the wrong form or range.
    #[error("'{0}' is not {1}")]
    Number(String, &'static str),
}

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ParseFaultError::Form(text.to_owned());
        let (kind, rest) = text.trim().split_once(':').ok_or_else(form)?;
        let (action, trigger) = rest.split_once('@').ok_or_else(form)?;
        let kind: Kind = kind.parse()?;
        if !kind.has_reply() {
            return Err(ParseFaultError::NoReply(kind));
        }
        let action: Action = action.parse()?;
        if !action.suits(kind) {
            return Err(ParseFaultError::Unsuited(action, kind));
        }
        Ok(Fault {
            kind,
            action,
            trigger: trigger.parse()?,
        })
    }
}

impl FromStr for Action {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some(("stall", time)) => {
                let time = time.parse().map_err(ParseFaultError::Stall);
                time.map(Action::Stall)
            }
            Some(_) => Err(ParseFaultError::Action(text.to_owned())),
            None => {
                let known = WORDS.iter().find(|(_, word)| *word == text);
                known
                    .map(|(action, _)| *action)
                    .or_else(|| errno_named(text).map(Action::Fail))
                    .ok_or_else(|| ParseFaultError::Action(text.to_owned()))
            }
        }
    }
}

/// The error of that name, such as `EIO`.
fn errno_named(name: &str) -> Option<Errno> {
    // Linux numbers its errors up to EHWPOISON; aliases are listed.
    const LAST: i32 = libc::EHWPOISON;
    match name {
        "EWOULDBLOCK" => Some(Errno::EAGAIN),
        "ENOTSUP" => Some(Errno::EOPNOTSUPP),
        "EDEADLOCK" => Some(Errno::EDEADLK),
        _ => (1..=LAST)
            .map(Errno::from_raw)
            .find(|e| *e != Errno::UnknownErrno && format!("{e:?}") == name),
    }
}

impl FromStr for Trigger {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |expected| ParseFaultError::Number(text.to_owned(), expected);
        match text.split_once('=') {
            Some(("nth", n)) => match n.parse() {
                Ok(n) if n > 0 => Ok(Trigger::Nth(n)),
                _ => Err(wrong("nth=N with a whole number from 1")),
            },
            Some(("after", n)) => n
                .parse()
                .map(Trigger::After)
                .map_err(|_| wrong("after=N with a whole number from 0")),
            Some(("p", p)) => match p.parse() {
                Ok(p) if p > 0.0 && p <= 1.0 => Ok(Trigger::Probability(p)),
                _ => Err(wrong("p=PROBABILITY above 0 and at most 1")),
            },
            _ => Err(ParseFaultError::Trigger(text.to_owned())),
        }
    }
}

impl fmt::Display for Fault {
    /// Writes the text that reads back as the same fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.kind, self.action, self.trigger)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Stall(time) => {
                // The largest exact unit.
                const UNITS: [(u64, &str); 3] =
                    [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
                let (scale, unit) = UNITS
                    .into_iter()
                    .find(|(scale, _)| time.0.is_multiple_of(*scale))
                    .unwrap_or((1, "ns"));
                write!(f, "stall={}{unit}", time.0 / scale)
            }
            Action::Fail(errno) => write!(f, "{errno:?}"),
            action => f.write_str(action.word().unwrap_or_default()),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Nth(n) => write!(f, "nth={n}"),
            Trigger::After(n) => write!(f, "after={n}"),
            Trigger::Probability(p) => write!(f, "p={p}"),
        }
    }
}

impl Trigger {
    /// True if the request `number` (from 1) is hit. `draw` makes a random number
    /// that belongs to the request.
    fn hits(self, number: u64, draw: impl FnOnce() -> u64) -> bool {
        match self {
            Trigger::Nth(n) => number == n,
            Trigger::After(n) => number > n,
            Trigger::Probability(p) => ((draw() >> 11) as f64) < p * (1_u64 << 53) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Fault, String> {
        text.parse().map_err(|e: ParseFaultError| e.to_string())
    }

    #[test]
    fn a_fault_is_a_kind_an_action_and_a_trigger() {
        let check = |text: &str, kind, action, trigger| {
            let expect = Fault {
                kind,
                action,
                trigger,
            };
            assert_eq!(read(text), Ok(expect), "{text}");
        };
        use Trigger::{After, Nth, Probability};
        let stall = Action::Stall(Nanos(500_000_000));
        let [io, unsupported] = [Errno::EIO, Errno::EOPNOTSUPP].map(Action::Fail);
        check("read:stall=500ms@nth=100", Kind::Read, stall, Nth(100));
        check("write:EIO@p=0.01", Kind::Write, io, Probability(0.01));
        let text = "create:ENOTSUP@after=1000";
        check(text, Kind::Create, unsupported, After(1000));
    }

    #[test]
    fn a_bad_fault_names_the_offending_part() {
        let check = |text: &str, part: &str| {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        };
        check("read", "'read' is not of the form");
        check("read:EIO", "'read:EIO' is not of the form");
        check("stat:EIO@nth=1", "'stat' is not a FUSE request");
        check("forget:EIO@nth=1", "'forget' has no reply");
        check("read:EOOPS@nth=1", "'EOOPS' is not an action");
        check("read:UnknownErrno@nth=1", "'UnknownErrno' is not an action");
        check("read:hang=1s@nth=1", "'hang=1s' is not an action");
        check("read:stall=1x@nth=1", "the stall: '1x'");
        check("mkdir:short@nth=1", "'short' does not apply to 'mkdir'");
        check("write:stale@nth=1", "'stale' does not apply to 'write'");
        check("read:lost@nth=1", "'lost' does not apply to 'read'");
        check("read:EIO@nth=0", "'nth=0' is not nth=N");
        check("read:EIO@nth=-1", "'nth=-1' is not nth=N");
        check("read:EIO@after=x", "'after=x' is not after=N");
        check("read:EIO@p=1.5", "'p=1.5' is not p=");
        check("read:EIO@p=NaN", "'p=NaN' is not p=");
        check("read:EIO@every=2", "'every=2' is not a trigger");
    }

    fn fault() -> impl Strategy<Value = Fault> {
        let kind = prop::sample::select(Kind::ALL).prop_filter("has a reply", |k| k.has_reply());
        let action = prop_oneof![
            (0..u64::MAX / 2_000_000_000, 0_u32..4)
                .prop_map(|(n, power)| Action::Stall(Nanos(n * 1000_u64.pow(power)))),
            (1..=40_i32).prop_map(|e| Action::Fail(Errno::from_raw(e))),
            prop::sample::select(&WORDS[..]).prop_map(|(action, _)| action),
        ];
        let trigger = prop_oneof![
            (1..u64::MAX).prop_map(Trigger::Nth),
            any::<u64>().prop_map(Trigger::After),
            (1e-9..=1.0_f64).prop_map(Trigger::Probability),
        ];
        (kind, action, trigger)
            .prop_map(|(kind, action, trigger)| Fault {
                kind,
                action,
                trigger,
            })
            .prop_filter("can be done", |fault| fault.action.suits(fault.kind))
    }

    proptest! {
        #[test]
        fn a_written_fault_reads_back_the_same(fault in fault()) {
            prop_assert_eq!(read(&fault.to_string()), Ok(fault));
        }
    }
}
