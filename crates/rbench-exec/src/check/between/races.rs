//! All clients want the same names at the same instants: how many got each.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rbench_core::Nanos;
use rbench_core::units;
use rbench_sys::between::{Attempt, Race, Step};
use rbench_sys::promises::{Evidence, Verdict, described};

use super::{Clients, Counted, End, UNSUPPORTED};

/// Names, and the time from one to the next.
const ROUNDS: usize = 50;
const EVERY: Nanos = Nanos(4_000_000);
/// Largest number of repetitions, each with other names, until the calls of two clients overlap.
const AGAIN: usize = 8;

impl Clients<'_, '_> {
    pub(super) async fn race(&self, race: Race, number: usize) -> Result<(Verdict, Counted), End> {
        let mut found = self.names(race, number, 0).await?;
        for again in 1..AGAIN {
            let none = matches!(found.0, Verdict::Undecided(_));
            if !self.group.decided(|| none).await? {
                break;
            }
            found = self.names(race, number, again).await?;
        }
        Ok(found)
    }

    /// All want one name after the other, for the first time or again.
    async fn names(
        &self,
        race: Race,
        number: usize,
        again: usize,
    ) -> Result<(Verdict, Counted), End> {
        let directory = self.directory(number, &format!("-{again}"));
        let mut wanted = race.prizes(&directory, ROUNDS);
        wanted.push(directory.clone());
        self.prepared(0, &directory, wanted, move |place| {
            race.prepare(place, ROUNDS)
        })
        .await?;
        let place = directory.clone();
        self.each(|me| Some(move |_: &dyn Fn() -> bool| race.prepare_own(&place, me, ROUNDS)))
            .await?;
        // A late client does not take part in the race.
        self.group.keep_time_at_the_end().await?;
        let (go, by_root) = self.group.instant().await?;
        let mut part = None;
        if let Some(me) = self.me {
            let place = directory.clone();
            let run = move |stop: &dyn Fn() -> bool| -> Step<Vec<Attempt>> {
                let at = |round| Nanos(go.0 + round * EVERY.0);
                let instants: Vec<Nanos> = (0..ROUNDS as u64).map(at).collect();
                Ok(race.run(&place, me, &instants, stop))
            };
            let at_root = |attempt: Attempt| Attempt {
                begun: self.group.by_root(attempt.begun),
                ended: self.group.by_root(attempt.ended),
                ..attempt
            };
            let at_root = |all: Vec<Attempt>| all.into_iter().map(at_root).collect::<Vec<_>>();
            part = Some(self.part(run).await?.map(at_root));
        }
        let met = self.meet(part).await?.into_iter();
        let ends: Option<Vec<Vec<Attempt>>> = met
            .map(|all| all.filter(|all| all.len() == ROUNDS))
            .collect();
        let ends = ends.ok_or_else(End::incomplete)?;
        let (verdict, counted) = judge(race, &ends, self.slack([by_root, self.now()]));
        Ok(match verdict {
            Verdict::Broken(evidence) => {
                let path = directory;
                (Verdict::Broken(Evidence { path, ..evidence }), counted)
            }
            verdict => (verdict, counted),
        })
    }
}

/// Returns true if the calls of two clients may have overlapped, by clocks that differ by at most
/// `slack`.
fn overlap(one: &Attempt, other: &Attempt, slack: Nanos) -> bool {
    let before = |a: &Attempt, b: &Attempt| b.begun.since(a.ended) > slack;
    !before(one, other) && !before(other, one)
}

/// The verdict on the results of all rounds. A round without violation counts only if a loser's
/// call overlaps with the winner's.
fn judge(race: Race, ends: &[Vec<Attempt>], slack: Nanos) -> (Verdict, Counted) {
    let (mut none, mut several, mut others) = (0, 0, BTreeMap::new());
    let mut counted = Counted::default();
    for round in 0..ROUNDS {
        let of: Vec<Attempt> = ends.iter().map(|client| client[round]).collect();
        let winners = of.iter().filter(|ended| ended.end == 0).count();
        let odd = |ended: &&Attempt| ended.end != 0 && ended.end != race.lost as i32;
        for ended in of.iter().filter(odd) {
            *others.entry(ended.end).or_insert(0_u64) += 1;
        }
        none += u64::from(winners == 0);
        several += u64::from(winners > 1);
        let wrong = winners != 1 || of.iter().any(|ended| odd(&ended));
        let (won, lost): (Vec<Attempt>, Vec<Attempt>) = of.iter().partition(|ended| ended.end == 0);
        let raced = won
            .iter()
            .any(|a| lost.iter().any(|b| overlap(a, b, slack)));
        counted.tries += u64::from(wrong || raced);
        counted.violations += u64::from(wrong);
    }
    let unsupported = |(end, times): (&i32, &u64)| {
        let (errno, all) = (Errno::from_raw(*end), (ends.len() * ROUNDS) as u64);
        let says = UNSUPPORTED.contains(&errno) || matches!(errno, Errno::EPERM | Errno::EINVAL);
        (*times == all && says).then_some(errno)
    };
    let evidence = |errno: Option<Errno>, seen: String| Evidence {
        expected: format!("one winner, {:?} for the others", race.lost),
        seen,
        call: race.call.to_owned(),
        errno,
        ..Evidence::default()
    };
    if let Some(errno) = others.iter().find_map(unsupported) {
        let seen = described(errno);
        let verdict = Verdict::Unsupported(evidence(Some(errno), seen));
        return (verdict, Counted::default());
    }
    if counted.tries == 0 {
        let seen = format!("two clients never wanted the same name at once ({ROUNDS} names)");
        return (Verdict::Undecided(evidence(None, seen)), counted);
    }
    if counted.violations == 0 {
        return (Verdict::Holds(String::new()), counted);
    }
    let mut seen = format!("of {ROUNDS} names {none} had no winner, {several} more than one");
    for (end, times) in &others {
        let errno = Errno::from_raw(*end);
        seen.push_str(&format!(", {} {errno:?}", units::counted(*times, "time")));
    }
    let errno = others.keys().next().map(|end| Errno::from_raw(*end));
    (Verdict::Broken(evidence(errno, seen)), counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_sys::between::{Trial, all};

    const EXIST: i32 = Errno::EEXIST as i32;

    fn find(name: &str) -> Race {
        let check = all().find(|check| check.name == name);
        match check.map(|check| &check.trial) {
            Some(Trial::Race(race)) => *race,
            _ => panic!("{name}"),
        }
    }

    /// The rounds of a client, at instants of its own.
    fn client(end: i32, begun: u64) -> Vec<Attempt> {
        let one = Attempt {
            begun: Nanos(begun),
            ended: Nanos(begun + 10),
            end,
        };
        vec![one; ROUNDS]
    }

    fn check(change: impl Fn(&mut [Vec<Attempt>]), expect: (u64, u64, &str)) {
        let mut ends = vec![client(0, 100), client(EXIST, 105), client(EXIST, 300)];
        change(&mut ends);
        let (verdict, counted) = judge(find("races.mkdir"), &ends, Nanos(20));
        assert_eq!((counted.tries, counted.violations), (expect.0, expect.1));
        let seen = match verdict {
            Verdict::Holds(_) => String::new(),
            Verdict::Broken(evidence) | Verdict::Undecided(evidence) => evidence.seen,
            other => panic!("{other:?}"),
        };
        assert_eq!(seen, expect.2);
    }

    #[test]
    fn there_is_exactly_one_winner_and_one_error_for_the_rest() {
        check(|_| (), (50, 0, ""));
        let text = "of 50 names 0 had no winner, 1 more than one";
        check(|ends| ends[1][3].end = 0, (50, 1, text));
        let text = "of 50 names 1 had no winner, 0 more than one";
        check(|ends| ends[0][7].end = EXIST, (50, 1, text));
        let text = "of 50 names 0 had no winner, 0 more than one, 1 time ESTALE";
        check(|ends| ends[2][0].end = Errno::ESTALE as i32, (50, 1, text));
    }

    #[test]
    fn who_comes_when_the_name_is_gone_long_since_is_in_no_race() {
        // Within what the clocks may be apart, and not.
        check(|ends| ends[1] = client(EXIST, 130), (50, 0, ""));
        let none = "two clients never wanted the same name at once (50 names)";
        check(|ends| ends[1] = client(EXIST, 131), (0, 0, none));
        check(|ends| ends[1] = client(EXIST, 50), (0, 0, none));
        // A second winner is wrong at any time.
        let text = "of 50 names 0 had no winner, 1 more than one";
        check(
            |ends| {
                ends[1] = client(EXIST, 131);
                ends[1][0].end = 0;
            },
            (1, 1, text),
        );
    }

    #[test]
    fn what_nobody_can_do_is_not_supported() {
        let none = vec![client(Errno::EPERM as i32, 0); 2];
        let (verdict, _) = judge(find("races.link"), &none, Nanos(0));
        assert!(matches!(verdict, Verdict::Unsupported(_)), "{verdict:?}");
    }
}
