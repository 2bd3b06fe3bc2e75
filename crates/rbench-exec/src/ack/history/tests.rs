use super::*;
use proptest::prelude::*;
use rbench_core::random::Stream;

const BLOCK: u64 = 4096;
const FILE: u64 = 3;

/// A history of one block from words: `o`pen, `s`ync begins, `S`ync
/// acknowledged, `X` sync failed; `w1` write 1 begins, `W1` acknowledged, `f1`
/// failed.
fn history(words: &str) -> History {
    let mut history = History::new(BLOCK);
    for word in words.split_whitespace() {
        history.take(record(word)).expect("in order");
    }
    history
}

fn record(word: &str) -> Record {
    let kind = match &word[..1] {
        "o" => Kind::Opened,
        "s" => Kind::SyncStarted,
        "S" => Kind::SyncAcknowledged,
        "X" => Kind::SyncFailed,
        "w" => Kind::WriteStarted,
        "W" => Kind::WriteAcknowledged,
        _ => Kind::WriteFailed,
    };
    match word[1..].parse() {
        Ok(generation) => Record {
            kind,
            file: FILE,
            offset: BLOCK,
            generation,
            length: BLOCK as u32,
        },
        Err(_) => Record::of_file(kind, FILE),
    }
}

/// Permitted contents of the block: generations, and 0 for nothing.
fn check(words: &str, permitted: &[u64], current: &[u64]) {
    let history = history(words);
    let block = history.block(FILE, BLOCK).expect("written");
    let mut may: Vec<u64> = block.permitted().collect();
    if block.durable.is_none() {
        may.insert(0, 0);
    }
    assert_eq!(may, permitted, "{words}");
    may.retain(|generation| block.is_current(*generation));
    assert_eq!(may, current, "{words}");
}

#[test]
fn what_is_not_durable_may_be_gone() {
    check("o w1", &[0, 1], &[]);
    check("o w1 W1", &[0, 1], &[1]);
    check("o w1 f1", &[0, 1], &[]);
    check("o w1 W1 w2 W2", &[0, 1, 2], &[2]);
    check("o w1 W1 s", &[0, 1], &[1]);
    assert_eq!(history("o w1").block(FILE, 0), None);
}

#[test]
fn a_write_is_durable_behind_a_sync_that_began_after_its_acknowledgement() {
    check("o w1 W1 s S", &[1], &[1]);
    check("o w1 W1 w2 W2 s S", &[2], &[2]);
    check("o w1 W1 s S w2", &[1, 2], &[1]);
    check("o w1 W1 s S w2 W2 w3 f3", &[1, 2, 3], &[2]);
    // Under way when the sync began.
    check("o w1 s W1 S", &[0, 1], &[1]);
    check("o w1 s W1 S s S", &[1], &[1]);
    // Failed writes are not made durable.
    check("o w1 f1 s S", &[0, 1], &[]);
    check("o w1 f1 w2 W2 s S", &[2], &[2]);
}

#[test]
fn writes_at_the_same_time_have_no_order() {
    check("o w1 w2 W1 W2 s S", &[1, 2], &[1, 2]);
    check("o w1 w2 W2 W1 s S", &[1, 2], &[1, 2]);
    check("o w1 w2 W2 s S", &[1, 2], &[2]);
    check("o w1 w2 W1 W2 s S w3 W3 s S", &[3], &[3]);
}

#[test]
fn a_sync_that_fails_makes_nothing_durable_and_no_later_one_does() {
    check("o w1 W1 s X", &[0, 1], &[1]);
    check("o w1 W1 s X s S", &[0, 1], &[1]);
    check("o w1 W1 s X w2 W2 s S", &[2], &[2]);
    check("o w1 W1 s S w2 W2 s X s S", &[1, 2], &[2]);
    // A write in flight may have been dropped before it was acknowledged.
    check("o w1 s X W1 s S", &[0, 1], &[1]);
}

#[test]
fn a_sync_covers_what_was_written_through_the_same_descriptor() {
    check("o w1 W1 o s S", &[0, 1], &[1]);
    check("o w1 o W1 s S", &[0, 1], &[1]);
    check("o w1 W1 s S o w2 W2 o s S", &[1, 2], &[2]);
}

#[test]
fn records_without_an_order_are_refused() {
    let refused = |words: &str, expect: &str| {
        let mut history = History::new(BLOCK);
        let taken: Result<(), String> = words
            .split_whitespace()
            .try_for_each(|word| history.take(record(word)));
        assert_eq!(taken, Err(expect.to_owned()), "{words}");
    };
    refused("o W1", "its record 1 ends a write that was not started");
    refused(
        "o w1 W1 W1",
        "its record 3 ends a write that was not started",
    );
    let mut history = History::new(BLOCK);
    let odd = Record {
        length: 100,
        ..record("w1")
    };
    assert!(history.take(odd).is_err());
}

/// A block on a disk with a cache: what its content can be is drawn as it
/// goes.
struct Disk {
    chance: Stream,
    cache: u64,
    disk: u64,
}

impl Disk {
    /// A write reaches the cache.
    fn apply(&mut self, generation: u64) {
        self.cache = generation;
        self.age();
    }

    /// The cache may be written out at any time.
    fn age(&mut self) {
        if self.chance.below(3) == 0 {
            self.disk = self.cache;
        }
    }
}

/// Drives a disk as a worker with several writes under way would, and takes
/// everything down; the content after a crash at the end.
fn simulate(seed: u64, steps: u64, depth: usize) -> (u64, History) {
    let mut chance = Stream::new(&[seed, 1]);
    let mut disk = Disk {
        chance: Stream::new(&[seed, 2]),
        cache: 0,
        disk: 0,
    };
    let mut history = History::new(BLOCK);
    let mut next = 1;
    // Under way, and whether they have reached the cache.
    let mut under_way: Vec<(u64, bool)> = Vec::new();
    let mut take = |word: String| history.take(record(&word)).expect("in order");
    take("o".to_owned());
    for _ in 0..steps {
        disk.age();
        match chance.below(8) {
            0..=2 if under_way.len() < depth => {
                take(format!("w{next}"));
                under_way.push((next, false));
                next += 1;
            }
            3..=4 if !under_way.is_empty() => {
                let nth = chance.below(under_way.len() as u64) as usize;
                let (generation, applied) = &mut under_way[nth];
                if !*applied {
                    disk.apply(*generation);
                    *applied = true;
                }
            }
            5 if !under_way.is_empty() => {
                let nth = chance.below(under_way.len() as u64) as usize;
                let (generation, applied) = under_way.remove(nth);
                if chance.below(5) == 0 {
                    take(format!("f{generation}"));
                } else {
                    if !applied {
                        disk.apply(generation);
                    }
                    take(format!("W{generation}"));
                }
            }
            6 => {
                take("s".to_owned());
                if chance.below(4) == 0 {
                    // The kernel drops what it could not write.
                    disk.cache = disk.disk;
                    take("X".to_owned());
                } else {
                    disk.disk = disk.cache;
                    take("S".to_owned());
                }
            }
            7 if under_way.is_empty() => {
                // The file system starts again: the cache is empty.
                disk.cache = disk.disk;
                take("o".to_owned());
            }
            _ => {}
        }
    }
    (disk.disk, history)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn no_disk_that_keeps_its_promises_is_blamed(seed: u64, steps in 0_u64..60, depth in 1_usize..4) {
        let (found, history) = simulate(seed, steps, depth);
        if let Some(block) = history.block(FILE, BLOCK) {
            let permitted = if found == 0 {
                block.durable.is_none()
            } else {
                block.permitted().any(|generation| generation == found)
            };
            prop_assert!(permitted, "{found} of {block:?}");
        } else {
            prop_assert_eq!(found, 0);
        }
    }
}
