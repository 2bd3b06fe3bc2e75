use super::*;

fn spot(directory: &Path) -> Spot {
    Spot {
        directory: directory.to_owned(),
        number: 0,
        program: PathBuf::new(),
    }
}

#[test]
fn names_are_unique_begin_with_their_group_and_have_a_sentence() {
    let mut names: std::collections::BTreeSet<&str> =
        crate::promises::all().map(|promise| promise.name).collect();
    for group in GROUPS {
        for check in group.promises {
            assert!(names.insert(check.name), "{} twice", check.name);
            assert!(crate::promises::names(group.name, check.name));
            assert!(!check.says.is_empty() && !check.says.ends_with('.'));
        }
    }
    assert!(all().count() >= 35);
}

/// The other client is this process itself: every change is visible at once.
#[test]
fn what_is_done_in_a_local_directory_is_seen_at_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for check in all() {
        let Trial::Sight(sight) = check.trial else {
            continue;
        };
        if sight.lock.is_some() {
            continue;
        }
        let directory = dir.path().join(check.name);
        make(&directory).expect("ours");
        let spot = spot(&directory);
        let hand = sight.prepare(&spot).expect(check.name);
        let looker = sight
            .meet(spot.clone(), std::time::Duration::ZERO, &|| false)
            .expect(check.name);
        let (hand, begun, done) = sight.act(&spot, hand).expect(check.name);
        assert!(begun <= done);
        let long = rbench_core::Nanos(60_000_000_000);
        let seen = sight.watch(&looker, (begun, long), &|| false);
        assert!(seen.settled.is_some(), "{}: {seen:?}", check.name);
        assert_eq!(seen.other, None, "{}", check.name);
        assert!(!seen.back && seen.odd.is_none());
        drop(hand);
    }
}

#[test]
fn what_is_not_yet_done_is_told_from_what_is_never_seen() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let check = all().find(|check| check.name == "coherence.create.stat");
    let Some(Trial::Sight(sight)) = check.map(|check| &check.trial) else {
        panic!("there is one");
    };
    let spot = spot(dir.path());
    let now = rbench_core::Clock::now(&rbench_core::MonotonicClock);
    let short = rbench_core::Nanos(3_000_000);
    let none = std::time::Duration::ZERO;
    let looker = sight.meet(spot.clone(), none, &|| false).expect("missing");
    let seen = sight.watch(&looker, (now, short), &|| false);
    assert_eq!(seen.settled, None);
    assert_eq!(seen.other.map(|(_, what)| what), Some("ENOENT".to_owned()));
    // The new state exists already.
    std::fs::write(dir.path().join("0"), b"new").expect("ours");
    let met = sight.meet(spot, none, &|| false);
    assert_eq!(met.expect_err("it is there").seen, "there");
}
