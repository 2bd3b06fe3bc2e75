//! One client does something, the others look until they see it: each client in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rbench_core::{Clock as _, MonotonicClock, Nanos};
use rbench_sys::between::{Hand, Looker, Sight, Spot, Step, Watched, make};
use rbench_sys::promises::{Evidence, Verdict};
use serde::{Deserialize, Serialize};

use super::{Clients, Counted, End, Pair, Part, Unfinished, judged};

/// Number of items at a time ...
const WIDTH: usize = 8;
/// ... and again up to so often, while all of it takes less than this.
const ROUNDS: usize = 4;
const ENOUGH: Nanos = Nanos(1_000_000_000);
/// Longest time until a change must be seen.
const WITHIN: Duration = Duration::from_secs(10);

/// Time of a change, on rank 0's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Acted {
    begun: Nanos,
    done: Nanos,
}

/// A wrong observation of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wrong {
    seen: String,
    /// Time after the change at which it was still so.
    behind: Nanos,
    /// The clients that changed and observed it.
    from: usize,
    to: usize,
}

/// A round of a check, with the client that acts in it.
#[derive(Debug, Clone, Copy)]
struct Round {
    check: usize,
    number: usize,
    actor: usize,
    clients: usize,
    width: usize,
}

/// The report of a client on a round, on rank 0's clock: its changes or its observations of all
/// items in their order; the others are empty.
type Told = (Vec<Acted>, Vec<Watched>);

/// Counts of a round, and its worst observation.
type Found = (Vec<Pair>, Option<Wrong>);

/// Objects that an acting client keeps, and the times of its changes.
type Acts = (Vec<Hand>, Vec<(Nanos, Nanos)>);

impl Round {
    /// The items that a client watches: where pollers disturb each other, each item has one.
    fn items(self, sight: &Sight, client: usize) -> impl Iterator<Item = usize> + use<> {
        let alone = sight.lock.is_some();
        let place = (client + self.clients - self.actor).wrapping_sub(1) % self.clients;
        let mine = move |item: usize| (item + self.number) % (self.clients - 1) == place;
        (0..self.width).filter(move |item| client != self.actor && (!alone || mine(*item)))
    }
}

impl Clients<'_, '_> {
    pub(super) async fn sight(
        &self,
        sight: &'static Sight,
        check: usize,
    ) -> Result<(Verdict, Counted), End> {
        let clients = self.asked.clients.len();
        let width = match sight.lock {
            Some(_) => WIDTH.max(clients - 1),
            None => WIDTH,
        };
        let mut pairs: Vec<Pair> = Vec::new();
        let mut worst = None;
        for actor in 0..clients {
            // The clocks' error hides late observations.
            self.group.keep_time_at_the_end().await?;
            let begun = MonotonicClock.now();
            for number in 0..ROUNDS {
                let more = || number == 0 || MonotonicClock.now().since(begun) < ENOUGH;
                if !self.group.decided(more).await? {
                    break;
                }
                let round = Round {
                    check,
                    number,
                    actor,
                    clients,
                    width,
                };
                let (found, wrong) = self.round(sight, round).await?;
                found.into_iter().for_each(|pair| add(&mut pairs, pair));
                worst = worse(worst, wrong);
            }
        }
        let counted = Counted {
            tries: pairs.iter().map(|pair| pair.tries).sum(),
            violations: pairs.iter().map(|pair| pair.violations).sum(),
            pairs,
        };
        let (tries, violations) = (counted.tries, counted.violations);
        Ok(judged(counted, String::new(), || {
            Evidence {
            expected: match sight.lock {
                Some(_) => format!("'{}' until the change is complete, then '{}'", sight.old, sight.new),
                None => format!("'{}' immediately", sight.new),
            },
            seen: worst.map_or_else(String::new, |wrong| {
                format!(
                    "something else in {violations} of {tries} tries; at worst {} {}, for a change made {}",
                    wrong.seen,
                    self.client(wrong.to),
                    self.client(wrong.from)
                )
            }),
            path: self.directory(check, ""),
            ..Evidence::default()
        }
        }))
    }

    async fn round(&self, sight: &'static Sight, round: Round) -> Result<Found, End> {
        let Round { number, actor, .. } = round;
        let directory = self.directory(round.check, &format!("-{actor}-{number}"));
        let spots: Vec<Spot> = (0..round.width)
            .map(|number| Spot {
                directory: directory.clone(),
                number,
                program: self.asked.program.to_owned(),
            })
            .collect();
        let acts = self.me == Some(actor);
        let (mut hands, mut lookers) = (Vec::new(), Vec::new());
        let mut part = None;
        if acts {
            let spots = spots.clone();
            let prepare = move |_: &dyn Fn() -> bool| -> Step<Vec<Hand>> {
                make(&directory)?;
                spots.iter().map(|spot| sight.prepare(spot)).collect()
            };
            part = kept(self.part(prepare).await?, &mut hands);
        }
        if let Err(end) = self.meet(part).await {
            self.release(hands).await?;
            return Err(end);
        }
        let within = WITHIN.min(self.asked.longest / 2);
        let mine: Vec<Spot> = self.me.map_or_else(Vec::new, |me| {
            let mine = round.items(sight, me);
            mine.map(|item| spots[item].clone()).collect()
        });
        let mut part = None;
        if !mine.is_empty() {
            let look = move |stop: &dyn Fn() -> bool| -> Step<Vec<Looker>> {
                let look = |spot| sight.meet(spot, within, stop);
                mine.into_iter().map(look).collect()
            };
            part = kept(self.part(look).await?, &mut lookers);
        }
        if let Err(end) = self.meet(part).await {
            self.release((hands, lookers)).await?;
            return Err(end);
        }
        let (go, by_root) = self.group.instant().await?;
        let within = Nanos(within.as_nanos() as u64);
        let mut part = None;
        if acts {
            let prepared = std::mem::take(&mut hands);
            let act = move |stop: &dyn Fn() -> bool| act(sight, &spots, prepared, go, stop);
            let acted = self.part(act).await?.map(|(held, times)| {
                hands = held;
                let by_root = |(begun, done): (Nanos, Nanos)| Acted {
                    begun: self.group.by_root(begun),
                    done: self.group.by_root(done),
                };
                (times.into_iter().map(by_root).collect(), Vec::new())
            });
            part = Some(acted);
        } else if !lookers.is_empty() {
            let watch = move |stop: &dyn Fn() -> bool| watch(sight, &lookers, go, within, stop);
            let by_root = |seen: Watched| on_clock(seen, |at| self.group.by_root(at));
            let watched = |seen: Vec<Watched>| seen.into_iter().map(by_root).collect();
            part = Some(
                self.part(watch)
                    .await?
                    .map(|seen| (Vec::new(), watched(seen))),
            );
        }
        let met = self.meet(part).await;
        self.release(hands).await?;
        self.fold(sight, round, &met?, (by_root, within))
    }

    /// Evaluates the reports of all clients on a round, which started at the instant `go` of rank
    /// 0's clock.
    fn fold(
        &self,
        sight: &Sight,
        round: Round,
        told: &[Option<Told>],
        (go, within): (Nanos, Nanos),
    ) -> Result<Found, End> {
        let Round { actor, width, .. } = round;
        let acted = match &told[actor] {
            Some((acted, _)) if acted.len() == width => acted,
            _ => return Err(End::incomplete()),
        };
        let slow = |acted: &Acted| acted.done.since(go).0 > within.0 / 2;
        if acted.iter().any(slow) {
            return Err(End::undecided(format!(
                "the change was so slow {} that the other clients may have stopped watching too early",
                self.client(actor)
            )));
        }
        let slack = self.slack([go, self.now()]);
        let (mut pairs, mut worst) = (Vec::new(), None);
        for (to, told) in told.iter().enumerate() {
            let mut pair = Pair {
                from: actor,
                to,
                ..Pair::default()
            };
            let mut all = told.iter().flat_map(|(_, watched)| watched);
            for item in round.items(sight, to) {
                let seen = all.next().ok_or_else(End::incomplete)?;
                let wrong = judge(sight, acted[item], seen, slack, &mut pair);
                worst = worse(worst, wrong);
            }
            if pair.tries > 0 {
                pairs.push(pair);
            }
        }
        Ok((pairs, worst))
    }
}

/// Keeps what a part has opened.
fn kept<T>(part: Result<Vec<T>, Unfinished>, all: &mut Vec<T>) -> Part<()> {
    Some(part.map(|made| *all = made))
}

fn worse(known: Option<Wrong>, other: Option<Wrong>) -> Option<Wrong> {
    match (known, other) {
        (Some(known), Some(other)) if other.behind > known.behind => Some(other),
        (known, other) => known.or(other),
    }
}

/// Adds what a round counted of two clients to what is known of them.
pub(super) fn add(pairs: &mut Vec<Pair>, pair: Pair) {
    let of = |known: &&mut Pair| known.from == pair.from && known.to == pair.to;
    let Some(known) = pairs.iter_mut().find(of) else {
        pairs.push(pair);
        return;
    };
    let Pair {
        from: _,
        to: _,
        tries,
        violations,
        times,
        gap,
        late,
        worse,
    } = pair;
    known.tries += tries;
    known.violations += violations;
    known.times.extend(times);
    known.gap = known.gap.max(gap);
    known.late = known.late.max(late);
    known.worse += worse;
}

/// Does all of it, one after the other.
fn act(
    sight: &Sight,
    spots: &[Spot],
    hands: Vec<Hand>,
    go: Nanos,
    stop: &dyn Fn() -> bool,
) -> Step<Acts> {
    let (mut kept, mut times) = (Vec::new(), Vec::new());
    rbench_sys::between::wait_until(go, stop);
    for (spot, hand) in spots.iter().zip(hands) {
        let (hand, begun, done) = sight.act(spot, hand)?;
        kept.push(hand);
        times.push((begun, done));
    }
    Ok((kept, times))
}

/// Watches all items, each in a thread of its own.
fn watch(
    sight: &Sight,
    lookers: &[Looker],
    go: Nanos,
    within: Nanos,
    stop: &dyn Fn() -> bool,
) -> Step<Vec<Watched>> {
    const STEP: Duration = Duration::from_millis(5);
    let ended = AtomicBool::new(false);
    let ends = || ended.load(Ordering::Relaxed);
    let lost = |seen: String| Evidence::new("", seen, "");
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(lookers.len());
        for looker in lookers {
            let look = || sight.watch(looker, (go, within), &ends);
            match std::thread::Builder::new().spawn_scoped(scope, look) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    ended.store(true, Ordering::Relaxed);
                    return Err(lost(format!("cannot start a watching thread: {e}")));
                }
            }
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            ended.fetch_or(stop(), Ordering::Relaxed);
            std::thread::sleep(STEP);
        }
        let seen = threads.into_iter().map(|thread| thread.join());
        seen.map(|seen| seen.map_err(|_| lost("a watching thread ended unexpectedly".to_owned())))
            .collect()
    })
}

/// Converts its instants to another clock.
fn on_clock(seen: Watched, there: impl Fn(Nanos) -> Nanos) -> Watched {
    Watched {
        settled: seen.settled.map(&there),
        other: seen.other.map(|(began, what)| (there(began), what)),
        first: seen.first.map(&there),
        odd: seen.odd,
        back: seen.back,
    }
}

/// Counts what a client saw of one thing; what is wrong with it. `slack`: how far instants of
/// both may be apart that are the same.
fn judge(
    sight: &Sight,
    acted: Acted,
    seen: &Watched,
    slack: Nanos,
    pair: &mut Pair,
) -> Option<Wrong> {
    pair.tries += 1;
    let stale = seen.other.as_ref().and_then(|(began, what)| {
        let lag = began.since(acted.done);
        (lag > slack).then_some((lag, *began, what))
    });
    if let Some(settled) = seen.settled {
        let time = match stale {
            Some((_, began, _)) => {
                pair.gap = pair.gap.max(settled.since(began));
                settled.since(acted.done)
            }
            None => {
                // The first look after it may have started long after it.
                pair.gap = pair.gap.max(settled.since(acted.done));
                Nanos(0)
            }
        };
        pair.times.push(time);
    }
    let (now, before) = (sight.new, sight.old);
    let early = seen
        .first
        .is_some_and(|first| acted.begun.since(first) > slack);
    // An item that is made again may be missing or empty in between.
    let between = |odd: &&str| !sight.always && ["ENOENT", ""].contains(odd);
    let odd = seen.odd.as_deref().filter(|odd| !between(odd));
    // A change that was stale to the end is late by at least the time for which it was watched.
    let never = seen.settled.is_none() && stale.is_none();
    let worse = never || early || seen.back || odd.is_some();
    let lag = stale.map_or(Nanos(0), |(lag, ..)| lag);
    let what = match stale {
        Some((lag, _, what)) if seen.settled.is_none() => {
            format!("'{what}' to the end, {lag} after the change,")
        }
        Some((lag, _, what)) => format!("'{what}' still {lag} after the change"),
        None if seen.settled.is_none() => "nothing".to_owned(),
        None if early => format!("'{now}' before the change"),
        None if seen.back => format!("'{now}' and then '{before}' again"),
        None => match odd {
            Some(odd) => format!("'{odd}'"),
            None => return None,
        },
    };
    pair.violations += 1;
    pair.worse += u64::from(worse);
    pair.late = pair.late.max(lag);
    Some(Wrong {
        seen: what,
        behind: lag,
        from: pair.from,
        to: pair.to,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_sys::between::{Trial, all};

    const ACTED: Acted = Acted {
        begun: Nanos(1_000),
        done: Nanos(2_000),
    };

    fn find(name: &str) -> &'static Sight {
        let check = all().find(|check| check.name == name);
        match check.map(|check| &check.trial) {
            Some(Trial::Sight(sight)) => sight,
            _ => panic!("{name}"),
        }
    }

    /// Compares the text, the times, and the gap.
    fn check(name: &str, seen: &Watched, expect: (Option<&str>, &[u64], u64)) {
        let mut pair = Pair::default();
        let wrong = judge(find(name), ACTED, seen, Nanos(100), &mut pair);
        let text = wrong.map(|wrong| wrong.seen);
        assert_eq!(text.as_deref(), expect.0, "{name}: {seen:?}");
        let times: Vec<u64> = pair.times.iter().map(|time| time.0).collect();
        assert_eq!(times, expect.1, "{name}: {seen:?}");
        assert_eq!(pair.gap, Nanos(expect.2));
        assert_eq!(pair.violations, u64::from(expect.0.is_some()));
        assert_eq!(pair.tries, 1);
    }

    fn seen(settled: Option<u64>, other: Option<u64>) -> Watched {
        Watched {
            settled: settled.map(Nanos),
            other: other.map(|at| (Nanos(at), "ENOENT".to_owned())),
            odd: None,
            first: settled.map(Nanos),
            back: false,
        }
    }

    #[test]
    fn only_looks_behind_the_act_tell_that_something_is_late() {
        let name = "coherence.create.stat";
        check(name, &seen(Some(5_000), Some(1_500)), (None, &[0], 3_000));
        check(name, &seen(Some(1_500), None), (None, &[0], 0));
        // Within what the clocks may be apart.
        check(name, &seen(Some(5_000), Some(2_100)), (None, &[0], 3_000));
        let late = seen(Some(3_005_000), Some(3_002_000));
        let text = "'ENOENT' still 3.00 ms after the change";
        check(name, &late, (Some(text), &[3_003_000], 3_000));
        let never = seen(None, Some(4_002_000));
        let text = "'ENOENT' to the end, 4.00 ms after the change,";
        check(name, &never, (Some(text), &[], 0));
        check(name, &seen(None, None), (Some("nothing"), &[], 0));
    }

    #[test]
    fn what_is_seen_before_it_is_done_or_forgotten_again_is_wrong() {
        let name = "locks-between.flock.unlocked";
        let early = Watched {
            first: Some(Nanos(800)),
            ..seen(Some(5_000), None)
        };
        check(
            name,
            &early,
            (Some("'free' before the change"), &[0], 3_000),
        );
        let back = Watched {
            back: true,
            ..seen(Some(5_000), Some(1_900))
        };
        let text = "'free' and then 'taken' again";
        check(name, &back, (Some(text), &[0], 3_000));
        let odd = Watched {
            odd: Some("EIO".to_owned()),
            ..seen(Some(5_000), Some(1_900))
        };
        let wrong = (Some("'EIO'"), &[0][..], 3_000);
        check(name, &odd, wrong);
        check("coherence.recreate.content", &odd, wrong);
        let missing = Watched {
            odd: Some("ENOENT".to_owned()),
            ..odd
        };
        let wrong = (Some("'ENOENT'"), &[0][..], 3_000);
        check("coherence.rename-over.content", &missing, wrong);
        // While a file is unlinked and made again, it may be missing.
        let none = (None, &[0][..], 3_000);
        check("coherence.recreate.content", &missing, none);
    }

    #[test]
    fn what_is_stale_to_the_end_is_late_and_what_nobody_saw_is_worse() {
        let worse = |seen: &Watched| {
            let mut pair = Pair::default();
            let sight = find("coherence.create.stat");
            judge(sight, ACTED, seen, Nanos(100), &mut pair);
            (pair.violations, pair.worse, pair.late)
        };
        assert_eq!(
            worse(&seen(None, Some(4_002_000))),
            (1, 0, Nanos(4_000_000))
        );
        assert_eq!(worse(&seen(None, None)), (1, 1, Nanos(0)));
        let odd = Watched {
            odd: Some("ESTALE".to_owned()),
            ..seen(Some(5_000_000), Some(4_002_000))
        };
        assert_eq!(worse(&odd), (1, 1, Nanos(4_000_000)));
    }

    #[test]
    fn every_lock_is_looked_at_by_one_client_and_the_rest_by_all() {
        let round = |number| Round {
            check: 0,
            number,
            actor: 1,
            clients: 4,
            width: 8,
        };
        let lock = find("locks-between.posix.killed");
        let mut all: Vec<usize> = (0..4).flat_map(|c| round(2).items(lock, c)).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(round(0).items(lock, 1).count(), 0);
        let plain = find("coherence.create.stat");
        assert_eq!(round(0).items(plain, 3).count(), 8);
    }
}
