//! All clients want the same lock again and again: whether two had it at once, and how long it
//! took to go from one to the next.

use rbench_core::Nanos;
use rbench_sys::between::{HELD, Held, Lock, contend, place};
use rbench_sys::promises::{Evidence, Verdict};

use super::sights::add;
use super::{Clients, Counted, End, Pair, judged};

/// Time for which they contend for it.
const DURING: Nanos = Nanos(1_000_000_000);

impl Clients<'_, '_> {
    pub(super) async fn exclusion(
        &self,
        lock: Lock,
        number: usize,
    ) -> Result<(Verdict, Counted), End> {
        let directory = self.directory(number, "");
        let path = directory.join("lock");
        let made = path.clone();
        self.prepared(0, &directory, vec![path.clone()], move |_| place(&made))
            .await?;
        // Holders are compared by clocks, which are compared before and after it.
        self.group.keep_time_at_the_end().await?;
        let (go, began) = self.group.instant().await?;
        let mut taken = None;
        if self.me.is_some() {
            let path = path.clone();
            let take = move |stop: &dyn Fn() -> bool| contend(&path, lock, (go, DURING), stop);
            taken = Some(self.part(take).await?);
        }
        self.group.keep_time_at_the_end().await?;
        let by_root = |held: Held| Held {
            asked: self.group.by_root(held.asked),
            got: self.group.by_root(held.got),
            let_go: self.group.by_root(held.let_go),
        };
        let by_root = |all: Vec<Held>| all.into_iter().map(by_root).collect::<Vec<Held>>();
        let met = self.meet(taken.map(|all| all.map(by_root))).await?;
        let slack = self.slack([began, Nanos(began.0 + DURING.0 / 2), self.now()]);
        if slack.0 * 2 > HELD.0 {
            return Err(End::undecided(format!(
                "the hosts' clocks are known only to {slack}, too coarse for a lock held for {HELD}"
            )));
        }
        let mut all = Vec::new();
        for (client, held) in met.into_iter().enumerate() {
            all.extend(held.into_iter().flatten().map(|held| (client, held)));
        }
        let (counted, apart) = judge(all, slack);
        let (tries, violations) = (counted.tries, counted.violations);
        // Clients that never wait for each other prove nothing about the lock.
        if violations == 0 && counted.pairs.iter().all(|pair| pair.times.is_empty()) {
            return Err(End::undecided(format!(
                "the lock was taken {tries} times, but no client ever waited for another one"
            )));
        }
        Ok(judged(counted, String::new(), || Evidence {
            expected: "one holder at a time".to_owned(),
            seen: format!(
                "{violations} of {tries} times another client also held it, for up to {apart}"
            ),
            call: match lock {
                Lock::Flock => "flock".to_owned(),
                Lock::Posix | Lock::Ofd => "fcntl".to_owned(),
            },
            path,
            ..Evidence::default()
        }))
    }
}

/// Counts who had it while another client did, and how it went from one to the next. What two
/// clocks may be apart counts for nobody. Also for how long two had it at worst.
fn judge(mut all: Vec<(usize, Held)>, slack: Nanos) -> (Counted, Nanos) {
    all.sort_by_key(|(_, held)| held.got);
    let mut counted = Counted::default();
    let mut worst = Nanos(0);
    // The holder with the latest release until now.
    let mut last: Option<(usize, Held)> = None;
    for (client, held) in all {
        counted.tries += 1;
        if let Some((from, before)) = last.filter(|(from, _)| *from != client) {
            let both = before.let_go.since(held.got);
            let wrong = both > slack;
            counted.violations += u64::from(wrong);
            worst = if wrong { worst.max(both) } else { worst };
            let waited = held.asked < before.let_go && !wrong;
            add(
                &mut counted.pairs,
                Pair {
                    from,
                    to: client,
                    tries: 1,
                    violations: u64::from(wrong),
                    times: waited
                        .then(|| held.got.since(before.let_go))
                        .into_iter()
                        .collect(),
                    worse: u64::from(wrong),
                    gap: slack,
                    ..Pair::default()
                },
            );
        }
        if last.is_none_or(|(_, before)| before.let_go < held.let_go) {
            last = Some((client, held));
        }
    }
    (counted, worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(asked: u64, got: u64, let_go: u64) -> Held {
        Held {
            asked: Nanos(asked),
            got: Nanos(got),
            let_go: Nanos(let_go),
        }
    }

    #[test]
    fn two_holders_at_once_are_counted_and_hand_overs_timed() {
        let all = vec![
            (0, held(0, 10, 100)),
            (1, held(5, 130, 200)),
            // Nobody waited for it.
            (0, held(210, 220, 300)),
            // Within what the clocks may be apart.
            (1, held(240, 295, 400)),
            (0, held(310, 350, 450)),
        ];
        let (counted, worst) = judge(all, Nanos(10));
        assert_eq!((counted.tries, counted.violations), (5, 1));
        assert_eq!(worst, Nanos(50));
        assert!(counted.pairs.iter().all(|pair| pair.gap == Nanos(10)));
        let times: Vec<&[Nanos]> = counted.pairs.iter().map(|p| p.times.as_slice()).collect();
        assert_eq!(times, [&[Nanos(30), Nanos(0)][..], &[]]);
    }
}
