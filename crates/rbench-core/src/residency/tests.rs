use super::*;

const OWN: Share = Share {
    parts: 4,
    made: 4,
    touched: 0,
};
const OTHERS: Share = Share {
    parts: 4,
    made: 0,
    touched: 0,
};

/// Rounds over a hundred items; the first took 200 ms.
const ROUND: Round = Round {
    after: Nanos(200_000_000),
    once: 100,
    done: 6_800,
};

fn requests(pairs: &[(&str, u64)]) -> Option<Requests> {
    Some(Requests {
        source: "a counter".to_owned(),
        by_kind: pairs.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect(),
    })
}

/// A hundred operations on 4 KiB.
fn look(share: Option<Share>) -> CacheLook {
    CacheLook {
        host: "client1".to_owned(),
        operations: 100,
        bytes: 409_600,
        asked: 100,
        returned: 409_600,
        share,
        ..CacheLook::default()
    }
}

fn row(ground: Evidence, caches: Vec<CacheLook>) -> Residency {
    Residency {
        ground,
        caches,
        ..Residency::default()
    }
}

fn one(ground: Evidence, op: OpKind, look: CacheLook) -> Verdict {
    row(ground, vec![look]).verdict(op).0
}

fn pages(cached: u64) -> Pages {
    Pages {
        files: 1,
        of: 1,
        pages: 100,
        cached,
    }
}

#[test]
fn attributes_that_are_asked_for_past_the_caches_are_forced_unless_nothing_was_asked() {
    let asked = |getattr: u64| CacheLook {
        requests: requests(&[("getattr", getattr)]),
        ..look(Some(OWN))
    };
    let of = |look| one(Evidence::Client, OpKind::Getattr, look);
    assert_eq!(of(look(Some(OWN))), Verdict::Forced);
    assert_eq!(of(asked(100)), Verdict::Forced);
    assert_eq!(of(asked(50)), Verdict::Mixed);
    assert_eq!(of(asked(0)), Verdict::Memory);
    assert_eq!(
        one(Evidence::Memory, OpKind::Getattr, asked(100)),
        Verdict::Memory
    );
    // A lookup with the same evidence is not.
    assert_eq!(
        one(Evidence::Client, OpKind::Lookup, asked(100)),
        Verdict::Perhaps
    );
}

#[test]
fn without_measurements_only_who_has_used_the_items_is_known() {
    let of = |share| one(Evidence::Client, OpKind::Stat, look(share));
    assert_eq!(of(Some(OWN)), Verdict::Perhaps);
    assert_eq!(of(Some(OTHERS)), Verdict::Cold);
    assert_eq!(of(None), Verdict::Unknown);
    let half = Share {
        parts: 4,
        made: 1,
        touched: 1,
    };
    assert_eq!(of(Some(half)), Verdict::Mixed);
}

#[test]
fn no_requests_are_memory_whoever_made_the_items() {
    for share in [Some(OWN), Some(OTHERS), None] {
        let look = CacheLook {
            requests: requests(&[("statfs", 7)]),
            ..look(share)
        };
        assert_eq!(one(Evidence::Client, OpKind::Stat, look), Verdict::Memory);
    }
}

#[test]
fn requests_to_a_client_program_leave_open_what_it_remembers() {
    let at = |ground, share, count| {
        let look = CacheLook {
            requests: requests(&[("lookup", count)]),
            ..look(share)
        };
        one(ground, OpKind::Stat, look)
    };
    assert_eq!(at(Evidence::Client, Some(OWN), 100), Verdict::Perhaps);
    assert_eq!(at(Evidence::Client, Some(OTHERS), 100), Verdict::Cold);
    assert_eq!(at(Evidence::Client, None, 100), Verdict::Unknown);
    // There is no cache between the kernel and the server.
    assert_eq!(at(Evidence::Kernel, Some(OWN), 100), Verdict::Cold);
    assert_eq!(at(Evidence::Client, Some(OWN), 50), Verdict::Mixed);
}

#[test]
fn a_few_requests_may_carry_many_reads() {
    let of = |count, bytes| {
        let look = CacheLook {
            requests: requests(&[("read", count)]),
            bytes,
            returned: bytes,
            ..look(Some(OTHERS))
        };
        one(Evidence::Client, OpKind::Read, look)
    };
    // 800 requests of 128 KiB each fetch 100 MiB.
    assert_eq!(of(800, 100 << 20), Verdict::Cold);
    assert_eq!(of(0, 100 << 20), Verdict::Memory);
    // At most 1 MiB of 100, and at most 50.
    assert_eq!(of(1, 100 << 20), Verdict::Memory);
    assert_eq!(of(50, 100 << 20), Verdict::Mixed);
}

#[test]
fn pages_in_memory_answer_reads_through_the_page_cache_only() {
    let at = |cached, direct| {
        let look = CacheLook {
            before: pages(cached),
            ..look(Some(OWN))
        };
        let row = Residency {
            direct,
            ..row(Evidence::Kernel, vec![look])
        };
        row.verdict(OpKind::Read)
    };
    assert_eq!(at(100, false), (Verdict::Memory, Reason::Resident));
    assert_eq!(at(50, false), (Verdict::Mixed, Reason::Partly));
    assert_eq!(at(0, false), (Verdict::Cold, Reason::Reached));
    assert_eq!(at(100, true), (Verdict::Cold, Reason::Emptied));
}

#[test]
fn dropping_or_passing_the_kernels_caches_says_nothing_of_others() {
    let done = |ground, dropped, direct| {
        let row = Residency {
            dropped,
            direct,
            ..row(ground, vec![look(Some(OWN))])
        };
        row.verdict(OpKind::Read).0
    };
    assert_eq!(done(Evidence::Kernel, true, false), Verdict::Cold);
    assert_eq!(done(Evidence::Kernel, false, true), Verdict::Cold);
    for (dropped, direct) in [(true, false), (false, true), (true, true)] {
        assert_eq!(done(Evidence::Client, dropped, direct), Verdict::Perhaps);
        assert_eq!(done(Evidence::Memory, dropped, direct), Verdict::Memory);
    }
}

#[test]
fn what_was_not_fetched_came_from_memory() {
    let of = |fetched| {
        let look = CacheLook {
            fetched: Some(fetched),
            ..look(Some(OWN))
        };
        one(Evidence::Kernel, OpKind::ReadFile, look)
    };
    assert_eq!(of(0), Verdict::Memory);
    assert_eq!(of(204_800), Verdict::Mixed);
    assert_eq!(of(409_600), Verdict::Cold);
}

#[test]
fn a_row_that_comes_round_is_cold_only_until_then() {
    let at = |share, ground, count: Option<u64>| {
        let look = CacheLook {
            requests: count.and_then(|count| requests(&[("read", count)])),
            returned: 68 << 20,
            ..look(Some(share))
        };
        let row = Residency {
            round: Some(ROUND),
            ..row(ground, vec![look])
        };
        row.verdict(OpKind::Read).0
    };
    assert_eq!(
        at(OTHERS, Evidence::Client, Some(1)),
        Verdict::ColdThenMemory
    );
    assert_eq!(at(OTHERS, Evidence::Client, None), Verdict::ColdThenPerhaps);
    assert_eq!(at(OWN, Evidence::Client, None), Verdict::Perhaps);
    let cached = CacheLook {
        before: pages(0),
        after: pages(100),
        ..look(Some(OTHERS))
    };
    let kept = Residency {
        round: Some(ROUND),
        ..row(Evidence::Client, vec![cached])
    };
    assert_eq!(kept.verdict(OpKind::Read).0, Verdict::ColdThenMemory);
    // Enough requests for all passes; then few enough that each may have carried much.
    assert_eq!(at(OTHERS, Evidence::Kernel, Some(600)), Verdict::Cold);
    assert_eq!(
        at(OTHERS, Evidence::Kernel, Some(100)),
        Verdict::ColdThenPerhaps
    );
    assert_eq!(
        Verdict::ColdThenPerhaps.cache(),
        Some(crate::outcome::Cache::Mixed)
    );
}

#[test]
fn hosts_that_differ_are_mixed_and_idle_ones_do_not_count() {
    let idle = CacheLook {
        operations: 0,
        ..look(Some(OWN))
    };
    let both = |a: CacheLook, b: CacheLook| row(Evidence::Client, vec![a, b]).verdict(OpKind::Stat);
    assert_eq!(
        both(look(Some(OWN)), look(Some(OTHERS))),
        (Verdict::Mixed, Reason::Hosts)
    );
    assert_eq!(
        both(idle, look(Some(OTHERS))),
        (Verdict::Cold, Reason::Untouched)
    );
    assert_eq!(both(look(None), look(Some(OTHERS))).0, Verdict::Unknown);
    let memory = CacheLook {
        requests: requests(&[]),
        ..look(Some(OWN))
    };
    assert_eq!(both(memory, look(Some(OWN))).0, Verdict::Perhaps);
}

#[test]
fn file_systems_are_told_by_their_type() {
    assert_eq!(Evidence::of("tmpfs"), Evidence::Memory);
    assert_eq!(Evidence::of("ext4"), Evidence::Kernel);
    assert_eq!(Evidence::of("fuse.juicefs"), Evidence::Client);
    assert_eq!(Evidence::of("fuseblk"), Evidence::Client);
    assert_eq!(Evidence::of("zfs"), Evidence::Unknown);
}

#[test]
fn without_pages_there_is_no_share_in_memory() {
    let share = |pages, cached| {
        let pages = Pages {
            pages,
            cached,
            ..Pages::default()
        };
        pages.share()
    };
    assert_eq!(share(0, 0), None);
    assert_eq!(share(4, 0), Some(0.0));
    assert_eq!(share(4, 3), Some(0.75));
}
