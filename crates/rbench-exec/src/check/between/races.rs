//! All clients want the same names at the same instants: how many got each.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rbench_core::Nanos;
use rbench_core::wire::{Reader, Writer};
use rbench_sys::between::{Race, Step, make};
use rbench_sys::promises::{Evidence, Verdict};

use super::{Clients, Counted, End, Part, UNSUPPORTED, told};

/// Names, and the time from one to the next.
const ROUNDS: usize = 50;
const EVERY: Nanos = Nanos(4_000_000);

impl Clients<'_, '_> {
    pub(super) async fn race(&self, race: Race, number: usize) -> Result<(Verdict, Counted), End> {
        let directory = self.directory(number, "");
        let place = directory.clone();
        let mut wanted = race.prizes(&directory, ROUNDS);
        wanted.push(directory.clone());
        self.prepared(0, wanted, move || {
            make(&place)?;
            race.prepare(&place, ROUNDS)
        })
        .await?;
        let mut part = Part::None;
        if let Some(me) = self.me {
            let place = directory.clone();
            let prepare = move |_: &dyn Fn() -> bool| race.prepare_own(&place, me, ROUNDS);
            part = told(self.part(prepare).await?, |()| Vec::new());
        }
        self.meet(part).await?;
        // Who is late is not in the race.
        self.group.keep_time_at_the_end().await?;
        let (go, _) = self.group.instant().await?;
        let mut part = Part::None;
        if let Some(me) = self.me {
            let place = directory.clone();
            let run = move |stop: &dyn Fn() -> bool| -> Step<Vec<Result<(), Errno>>> {
                let at = |round| Nanos(go.0 + round * EVERY.0);
                let instants: Vec<Nanos> = (0..ROUNDS as u64).map(at).collect();
                Ok(race.run(&place, me, &instants, stop))
            };
            part = told(self.part(run).await?, |ends| {
                let mut w = Writer::default();
                for end in ends {
                    w.number(end.err().map_or(0, |errno| errno as i32) as u64);
                }
                w.finish()
            });
        }
        let met = self.meet(part).await?;
        let ends: Option<Vec<_>> = met.iter().map(|message| read(message)).collect();
        let ends = ends
            .ok_or_else(|| End::undecided("what a client told did not arrive whole".to_owned()))?;
        let (verdict, counted) = judge(race, &ends);
        Ok(match verdict {
            Verdict::Broken(evidence) => {
                let path = directory;
                (Verdict::Broken(Evidence { path, ..evidence }), counted)
            }
            verdict => (verdict, counted),
        })
    }
}

/// How each round ended for a client: 0, or the error's number.
fn read(message: &[u8]) -> Option<Vec<i32>> {
    let mut r = Reader::new(message);
    let one = |_| Some(r.number()? as i32);
    (0..ROUNDS).map(one).collect()
}

/// What follows from how each round ended for each client.
fn judge(race: Race, ends: &[Vec<i32>]) -> (Verdict, Counted) {
    let (mut none, mut several, mut others) = (0, 0, BTreeMap::new());
    let mut counted = Counted::default();
    for round in 0..ROUNDS {
        let of: Vec<i32> = ends.iter().map(|client| client[round]).collect();
        let winners = of.iter().filter(|end| **end == 0).count();
        let odd = |end: &&i32| **end != 0 && **end != race.lost() as i32;
        for end in of.iter().filter(odd) {
            *others.entry(*end).or_insert(0_u64) += 1;
        }
        none += u64::from(winners == 0);
        several += u64::from(winners > 1);
        let wrong = winners != 1 || of.iter().any(|end| odd(&end));
        counted.tries += 1;
        counted.violations += u64::from(wrong);
    }
    let unsupported = |(end, times): (&i32, &u64)| {
        let (errno, all) = (Errno::from_raw(*end), (ends.len() * ROUNDS) as u64);
        let says = UNSUPPORTED.contains(&errno) || matches!(errno, Errno::EPERM | Errno::EINVAL);
        (*times == all && says).then_some(errno)
    };
    let evidence = |errno: Option<Errno>, seen: String| Evidence {
        expected: format!("one winner, {:?} for the others", race.lost()),
        seen,
        call: race.call().to_owned(),
        errno,
        ..Evidence::default()
    };
    if let Some(errno) = others.iter().find_map(unsupported) {
        let seen = format!("{errno:?} ({})", errno.desc());
        let verdict = Verdict::Unsupported(evidence(Some(errno), seen));
        return (verdict, Counted::default());
    }
    if counted.violations == 0 {
        return (Verdict::Holds(String::new()), counted);
    }
    let mut seen =
        format!("of {ROUNDS} names {none} without a winner, {several} with more than one");
    for (end, times) in &others {
        let errno = Errno::from_raw(*end);
        seen.push_str(&format!(", {times} times {errno:?}"));
    }
    let errno = others.keys().next().map(|end| Errno::from_raw(*end));
    (Verdict::Broken(evidence(errno, seen)), counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIST: i32 = Errno::EEXIST as i32;

    fn check(change: impl Fn(&mut [Vec<i32>]), expect: (u64, &str)) {
        let mut ends = vec![vec![0; ROUNDS], vec![EXIST; ROUNDS], vec![EXIST; ROUNDS]];
        change(&mut ends);
        let (verdict, counted) = judge(Race::Mkdir, &ends);
        assert_eq!(counted.violations, expect.0);
        let seen = match verdict {
            Verdict::Holds(_) => String::new(),
            Verdict::Broken(evidence) | Verdict::Unsupported(evidence) => evidence.seen,
            other => panic!("{other:?}"),
        };
        assert_eq!(seen, expect.1);
    }

    #[test]
    fn there_is_exactly_one_winner_and_one_error_for_the_rest() {
        check(|_| (), (0, ""));
        check(
            |ends| ends[1][3] = 0,
            (1, "of 50 names 0 without a winner, 1 with more than one"),
        );
        check(
            |ends| ends[0][7] = EXIST,
            (1, "of 50 names 1 without a winner, 0 with more than one"),
        );
        check(
            |ends| ends[2][0] = Errno::ESTALE as i32,
            (
                1,
                "of 50 names 0 without a winner, 0 with more than one, 1 times ESTALE",
            ),
        );
    }

    #[test]
    fn what_nobody_can_do_is_not_supported() {
        let none = vec![vec![Errno::EPERM as i32; ROUNDS]; 2];
        let (verdict, _) = judge(Race::Link, &none);
        assert!(matches!(verdict, Verdict::Unsupported(_)), "{verdict:?}");
    }
}
