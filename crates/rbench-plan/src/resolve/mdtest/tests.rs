use super::*;
use crate::spec::{Common, Spec, Workload};
use crate::testing::check_error;
use crate::{Plan, Work, task_counts};

/// Twelve ranks on three hosts, placed host by host.
const BY_BLOCK: [u32; 12] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];

fn plan_on(facts: &Facts, change: impl FnOnce(&mut Common, &mut Mdtest)) -> Result<Plan, String> {
    let (mut common, mut options) = (Common::default(), Mdtest::default());
    change(&mut common, &mut options);
    facts.plan(common, Workload::Mdtest(Box::new(options)))
}

/// A plan for twelve ranks on three hosts.
fn plan(change: impl FnOnce(&mut Mdtest)) -> Result<Plan, String> {
    plan_on(&Facts::on(&BY_BLOCK), |_, options| change(options))
}

/// The work of a valid plan for them.
fn meta(change: impl FnOnce(&mut Mdtest)) -> MetaPlan {
    work(&plan(change).expect("valid")).clone()
}

fn work(plan: &Plan) -> &MetaPlan {
    match &plan.work {
        Work::Meta(meta) => meta,
        other => panic!("{other:?}"),
    }
}

fn names(plan: &Plan) -> String {
    let names: Vec<&str> = work(plan).kinds().map(|kind| kind.info().name).collect();
    names.join(" ")
}

fn check_refused(expect: &str, change: impl FnOnce(&mut Mdtest)) {
    check_error(plan(change), expect);
}

/// Refusals: the sentence, and the options that lead to it.
macro_rules! refused {
    ($($expect:literal: $($field:ident = $value:expr),+;)+) => {
        $(check_refused($expect, |o| { $(o.$field = $value;)+ });)+
    };
}

#[test]
fn options_that_exclude_each_other_are_refused_by_their_letters() {
    refused! {
        "-F and -D": files_only = true, dirs_only = true;
        "-S shares files: it cannot be combined with -D": shared = true, dirs_only = true;
        "-U renames directories: it cannot be combined with -F":
            rename = true, files_only = true, items = Some(5);
        "-S and -u": shared = true, unique_dir = true;
        "-S and -c": shared = true, collective = true;
        "-c and -W": collective = true, stonewall = Some(Nanos(1)), items = Some(5);
        "-k and -w": mknod = true, write_bytes = Some(Bytes(1));
        "-n, -I and -u": items = Some(6), items_per_dir = Some(3), unique_dir = true;
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused_by_their_letters() {
    refused! {
        "-b must be at least 1": branch = Some(0);
        "-n 7 is not a multiple of -I 3": items = Some(7), items_per_dir = Some(3);
        "-n 6 is less than one item for each of the 7":
            items = Some(6), branch = Some(2), depth = Some(2);
        "-n 3 is less than one item for each of the 4":
            items = Some(3), branch = Some(2), depth = Some(2), leaf_only = true;
        "-b 2 -z 100 is a tree of over 2^62": branch = Some(2), depth = Some(100);
        "-z 600 makes paths longer": depth = Some(600);
        "-z 4294967295 makes paths longer": depth = Some(u32::MAX);
        "-U needs more than one item": rename = true, items = Some(1);
        "-U needs more than one item": rename = true;
    }
    // Each loop has one item: there is no other name in it.
    check_refused("-U needs more than one item", |o| {
        (o.rename, o.items, o.items_per_dir) = (true, Some(5), Some(1));
    });
}

#[test]
fn a_refusal_names_the_option_that_is_too_large() {
    check_refused("-I", |o| o.items_per_dir = Some(1 << 63));
    check_refused("-n", |o| o.items = Some(1 << 63));
}

#[test]
fn a_directory_that_is_too_long_is_refused_by_its_letter() {
    check_refused("-d", |o| o.dirs = vec!["/x".repeat(2040).into()]);
}

#[test]
fn no_iteration_is_refused_by_its_letter() {
    let got = plan_on(&Facts::on(&[0]), |common, options| {
        (common.iterations, options.iterations) = (Some(0), Some(0));
    });
    let got = got.expect_err("no iteration");
    assert!(got.contains("-i ") || got.contains("-i:"), "{got}");
}

#[test]
fn sizes_that_do_not_fit_are_refused_by_their_letters() {
    const GIB: u64 = 1 << 30;
    refused! {
        "-w": write_bytes = Some(Bytes(GIB + 1));
        "-e": read = true, read_bytes = Some(Bytes(GIB + 1));
        "needs -w to be a multiple of 512": direct = true, write_bytes = Some(Bytes(1000));
        "needs -e to be a multiple of 512": direct = true, read_bytes = Some(Bytes(1000));
    }
    let both = |o: &mut Mdtest| {
        (o.write_bytes, o.read_bytes) = (Some(Bytes(10)), Some(Bytes(11)));
        o.items = Some(5);
    };
    check_refused("-e 11 is more than the 10 bytes that -w writes", both);
    check_refused("-e 11", |o| {
        both(o);
        (o.create, o.read, o.stat) = (true, true, true);
    });
    // Only a run that both writes and reads files.
    for change in [
        (|o| o.read = true) as fn(&mut Mdtest),
        |o| (o.create, o.stat) = (true, true),
        |o| o.dirs_only = true,
    ] {
        let plan = plan(|o| {
            both(o);
            change(o);
        });
        assert!(plan.is_ok(), "{plan:?}");
    }
}

#[test]
fn verification_needs_something_that_can_be_verified() {
    let full = |o: &mut Mdtest| {
        (o.write_bytes, o.read_bytes) = (Some(Bytes(8)), Some(Bytes(8)));
        o.verify_read = true;
        o.items = Some(5);
    };
    assert!(plan(full).is_ok());
    for change in [
        (|o| o.read_bytes = None) as fn(&mut Mdtest),
        |o| (o.create, o.stat) = (true, true),
        |o| o.dirs_only = true,
    ] {
        check_refused("-X needs the read phase of files and -e", |o| {
            full(o);
            change(o);
        });
    }
    check_refused("-X on files of an earlier run needs its -G", |o| {
        full(o);
        o.read = true;
    });
    let later = plan(|o| {
        full(o);
        (o.read, o.data_seed) = (true, Some(3));
    });
    assert!(work(&later.expect("valid")).verify_read);
    check_refused("--verify-write needs -w", |o| o.verify_write = true);
}

#[test]
fn several_directories_need_a_tree_for_each_rank_and_a_rank_for_each() {
    let two = || vec!["/a".into(), "/b".into()];
    check_refused("-d with several directories needs -u", |o| o.dirs = two());
    check_refused("-d with several directories and -N", |o| {
        (o.dirs, o.unique_dir, o.stride) = (two(), true, Some(1));
    });
    let alone = plan_on(&Facts::on(&[0]), |_, o| {
        (o.dirs, o.unique_dir) = (two(), true);
    });
    check_error(alone, "-d names 2 directories");
    check_refused("-d ''", |o| o.dirs = vec!["".into()]);
    let plan = meta(|o| (o.dirs, o.unique_dir, o.stride) = (two(), true, Some(0)));
    assert_eq!(plan.site, Location::TestDirs(two()));
}

#[test]
fn a_bare_mdtest_makes_and_removes_one_directory_in_out() {
    let plan = plan(|_| ()).expect("valid");
    assert_eq!(names(&plan), "tree-create tree-remove");
    let work = work(&plan);
    assert_eq!(work.site, Location::TestDirs(vec!["./out".into()]));
    assert_eq!((work.nodes, work.items_per_rank, work.loops), (1, 0, 1));
    assert_eq!((plan.threads, plan.iterations), (1, 1));
    assert_eq!(plan.notes, [""; 0]);
    assert!(!plan.embedded());
}

#[test]
fn all_phases_run_where_none_is_named_and_else_those_that_are() {
    let check = |expect: &str, change: fn(&mut Mdtest)| {
        let plan = plan(|o| {
            o.items = Some(5);
            change(o);
        });
        let plan = plan.expect("valid");
        assert_eq!(names(&plan), expect);
        assert_eq!(plan.notes, [""; 0]);
    };
    let dirs = "dir-create dir-stat dir-rename dir-remove";
    let files = "file-create file-stat file-read file-remove";
    each! { check:
        &format!("tree-create {dirs} {files} tree-remove") => |_| ();
        "tree-create file-create file-write file-stat file-read file-remove tree-remove" =>
            |o| (o.files_only, o.collective) = (true, true);
        &format!("tree-create {dirs} tree-remove") => |o| o.dirs_only = true;
        "tree-create dir-create file-create" => |o| o.create = true;
        "dir-stat file-stat" => |o| o.stat = true;
        "file-read" => |o| o.read = true;
        "dir-rename" => |o| o.rename = true;
        "dir-remove file-remove tree-remove" => |o| o.remove = true;
    }
}

#[test]
fn what_is_left_out_or_rounded_is_said() {
    let check = |expect: &str, facts: &Facts, change: fn(&mut Mdtest)| {
        let plan = plan_on(facts, |_, o| change(o)).expect("valid");
        assert_eq!(plan.notes, [expect]);
    };
    let twelve = Facts::on(&BY_BLOCK);
    each! { check:
        "-n 5000 does not divide evenly over 3 tree directories: each rank gets 4998" =>
            &twelve => |o| (o.items, o.depth) = (Some(5000), Some(2));
        "-S works on files only: directories are left out" =>
            &twelve => |o| (o.shared, o.items) = (true, Some(5));
        "renaming needs more than one item, and is left out" => &twelve => |o| o.items = Some(1);
        "-x s does not exist: -n or -I gives the number of items" =>
            &twelve => |o| (o.stat, o.items, o.status_file) = (true, Some(2), Some("s".into()));
    }
    // No note without a request.
    for change in [
        (|o| (o.shared, o.files_only) = (true, true)) as fn(&mut Mdtest),
        |o| o.files_only = true,
        |o| o.create = true,
    ] {
        let plan = plan(|o| {
            o.items = Some(1);
            change(o);
        });
        assert_eq!(plan.expect("valid").notes, [""; 0]);
    }
}

#[test]
fn items_are_told_by_directory_or_by_rank() {
    let check = |expect: (u64, u64, u64), change: fn(&mut Mdtest)| {
        let work = meta(change);
        let items = (work.shape.items_per_node, work.items_per_rank, work.loops);
        assert_eq!(items, expect);
    };
    each! { check:
        (100, 400, 1) => |o| (o.items_per_dir, o.branch, o.depth) = (Some(100), Some(3), Some(1));
        (1666, 4998, 1) => |o| (o.items, o.depth) = (Some(5000), Some(2));
        (2, 8, 1) => |o| {
            (o.items, o.branch, o.depth, o.leaf_only) = (Some(9), Some(2), Some(2), true);
        };
        (3, 6, 2) => |o| (o.items, o.items_per_dir) = (Some(6), Some(3));
        // Every loop has the whole tree.
        (3, 18, 2) => |o| (o.items, o.items_per_dir, o.depth) = (Some(6), Some(3), Some(2));
        // 0 means the same as no option.
        (6, 6, 1) => |o| (o.items, o.items_per_dir, o.unique_dir) = (Some(6), Some(0), true);
        (3, 3, 1) => |o| (o.items, o.items_per_dir) = (Some(0), Some(3));
    }
}

#[test]
fn a_stride_counts_in_hosts_where_ranks_are_placed_host_by_host() {
    let who = |hosts: &[u32], stride: u32, kind: PhaseKind| {
        let plan = plan_on(&Facts::on(hosts), |_, o| {
            (o.items, o.stride, o.unique_dir) = (Some(5), Some(stride), true);
        });
        let plan = plan.expect("valid");
        let phases = &work(&plan).phases;
        let phase = phases.iter().find(|p| p.kind == kind).expect("it runs");
        match phase.who {
            ItemOwner::Each { ahead } => ahead,
            other => panic!("{other:?}"),
        }
    };
    let in_turn = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2];
    let check = |hosts: &[u32], stride: u32, expect: [u32; 5]| {
        let kinds = [
            PhaseKind::FileCreate,
            PhaseKind::DirRename,
            PhaseKind::FileStat,
            PhaseKind::FileRead,
            PhaseKind::FileRemove,
        ];
        assert_eq!(kinds.map(|kind| who(hosts, stride, kind)), expect);
    };
    check(&BY_BLOCK, 0, [0; 5]);
    check(&BY_BLOCK, 1, [0, 4, 4, 8, 0]);
    check(&BY_BLOCK, 4, [0, 4, 4, 8, 0]);
    check(&in_turn, 1, [0, 1, 1, 2, 3]);
    check(&in_turn, 5, [0, 5, 5, 10, 3]);
    check(&[0; 12], 4, [0, 4, 4, 8, 0]);
    check(&[0, 1, 2], 1, [0, 1, 1, 2, 0]);
    check(&[0], 4, [0; 5]);
    // Large numbers do not overflow.
    check(&BY_BLOCK, u32::MAX, [0, 0, 0, 0, 0]);
    check(&[0; 12], u32::MAX, [0, 3, 3, 6, 9]);
}

#[test]
fn only_the_creation_of_files_has_a_deadline() {
    for phase in meta(|o| (o.items, o.stonewall) = (Some(5), Some(Nanos(9)))).phases {
        let expect = (phase.kind == PhaseKind::FileCreate).then_some(Nanos(9));
        assert_eq!(phase.deadline, expect, "{:?}", phase.kind);
    }
}

#[test]
fn a_stonewall_of_no_time_is_none() {
    let plan = meta(|o| {
        (o.items, o.stonewall, o.status_file) = (Some(5), Some(Nanos(0)), Some("s".into()));
    });
    assert!(plan.phases.iter().all(|p| p.deadline.is_none()));
    let collective = super::tests::plan(|o| (o.collective, o.stonewall) = (true, Some(Nanos(0))));
    assert!(collective.is_ok());
}

#[test]
fn without_a_number_of_items_files_are_made_until_the_deadline() {
    let open = |change: fn(&mut Mdtest)| {
        plan(|o| {
            (o.create, o.files_only) = (true, true);
            o.stonewall = Some(Nanos(1));
            change(o);
        })
    };
    let endless = open(|_| ()).expect("valid");
    assert_eq!(work(&endless).items_per_rank, UNTIL_THE_DEADLINE);
    // Directories have no deadline: without a number none is created, and no file
    // either.
    let no_items = plan(|o| (o.create, o.stonewall) = (true, Some(Nanos(1)))).expect("valid");
    assert_eq!(work(&no_items).items_per_rank, 0);
    let notes = no_items.notes;
    assert!(notes.iter().any(|note| note.contains("-W")), "{notes:?}");
    let tree = open(|o| o.depth = Some(1)).expect_err("a tree");
    assert!(tree.contains("-z") && tree.contains("-n or -I"), "{tree}");
    // The lowest level of a chain is one directory.
    assert!(open(|o| (o.depth, o.leaf_only) = (Some(1), true)).is_ok());
}

#[test]
fn an_earlier_run_tells_the_number_of_items_in_its_file() {
    let later = |told: Option<u64>, change: fn(&mut Mdtest)| {
        let facts = Facts {
            stonewalled: told,
            ..Facts::on(&BY_BLOCK)
        };
        plan_on(&facts, |_, o| {
            (o.stat, o.files_only, o.status_file) = (true, true, Some("s".into()));
            change(o);
        })
    };
    let items = |change: fn(&mut Mdtest)| {
        let planned = later(Some(17), change).expect("valid");
        (work(&planned).made, work(&planned).items_per_rank)
    };
    assert_eq!(items(|_| ()), (Some(17), 17));
    // -n determines their distribution over the tree.
    let over_a_tree = items(|o| (o.items, o.depth) = (Some(30), Some(1)));
    assert_eq!(over_a_tree, (Some(17), 30));
    for (told, expect) in [
        (Some(0), "-x s: it records no items"),
        (None, "-x s does not exist"),
    ] {
        check_error(later(told, |_| ()), expect);
    }
    check_error(later(Some(17), |o| o.depth = Some(1)), "-z");
    // A run that creates records the number and does not read it.
    let first = later(Some(17), |o| {
        (o.create, o.items) = (true, Some(5));
    });
    assert_eq!(work(&first.expect("valid")).made, None);
}

#[test]
fn the_file_of_the_stonewall_is_written_by_runs_that_have_one_and_read_by_others() {
    let file = Some(PathBuf::from("s"));
    let check = |change: fn(&mut Mdtest), reads: bool, writes: bool| {
        let mut options = Mdtest {
            status_file: file.clone(),
            ..Mdtest::default()
        };
        change(&mut options);
        assert_eq!(options.status_to_read(), file.as_ref().filter(|_| reads));
        assert_eq!(options.status_to_write(), file.as_ref().filter(|_| writes));
    };
    each! { check:
        |_| () => false => false;
        |o| o.stonewall = Some(Nanos(1)) => false => true;
        |o| o.stonewall = Some(Nanos(0)) => false => false;
        |o| (o.create, o.stonewall) = (true, Some(Nanos(1))) => false => true;
        |o| o.stat = true => true => false;
        |o| (o.remove, o.stonewall) = (true, Some(Nanos(1))) => true => false;
        |o| (o.stat, o.status_file) = (true, None) => false => false;
    }
}

#[test]
fn what_is_left_out_has_mdtests_default() {
    let work = meta(|o| (o.items, o.fsync, o.pause) = (Some(5), true, None));
    assert!(!work.fsync, "there is nothing to bring to storage");
    let packet = crate::meta::Packet::Timestamp;
    assert_eq!(work.content, Content::Packet { packet, seed: 7 });
    assert_eq!((work.write, work.read), (Bytes(0), Bytes(0)));
    assert_eq!(work.making, Making::Open);
    assert_eq!(work.renaming, Renaming::Chain);
    assert!(work.barriers && !work.direct);
    assert_eq!(work.around, Hooks::default());
    assert_eq!(work.layout, Layout::Shared);
}

#[test]
fn stat_and_read_alone_can_be_in_random_order() {
    let plan = meta(|o| (o.items, o.random) = (Some(5), true));
    let shuffled = plan.phases.iter().filter(|phase| phase.shuffled);
    let shuffled: Vec<&str> = shuffled.map(|phase| phase.kind.info().name).collect();
    assert_eq!(shuffled, ["dir-stat", "file-stat", "file-read"]);
}

#[test]
fn every_option_makes_another_plan() {
    let changes: [fn(&mut Mdtest); 24] = [
        |_| (),
        |o| o.dirs = vec!["/other".into()],
        |o| o.items = Some(6),
        |o| o.branch = Some(2),
        |o| (o.depth, o.leaf_only) = (Some(1), true),
        |o| o.depth = Some(1),
        |o| o.unique_dir = true,
        |o| o.files_only = true,
        |o| o.dirs_only = true,
        |o| o.create = true,
        |o| o.write_bytes = Some(Bytes(1)),
        |o| (o.write_bytes, o.fsync) = (Some(Bytes(1)), true),
        |o| o.sync = true,
        |o| o.stride = Some(1),
        |o| o.random = true,
        |o| o.collective = true,
        |o| o.no_barriers = true,
        |o| o.pause = Some(Nanos(1)),
        |o| o.mknod = true,
        |o| o.stonewall = Some(Nanos(1)),
        |o| o.before = Some("true".into()),
        |o| o.after = Some("true".into()),
        |o| o.backend = crate::meta::Backend::Dummy,
        |o| o.direct = true,
    ];
    let digests = changes.map(|change| {
        let plan = plan(|o| {
            o.items = Some(5);
            change(o);
        });
        plan.expect("valid").digest()
    });
    let mut digests = digests.to_vec();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), changes.len());
}

/// The numbers of ranks with these options `-f`, `-l` and `-s`.
fn counts([first, last, task_stride]: [Option<u32>; 3]) -> Result<Vec<u32>, PlanError> {
    let options = Mdtest {
        first,
        last,
        task_stride,
        ..Mdtest::default()
    };
    let spec = Spec {
        common: Common::default(),
        workload: Workload::Mdtest(Box::new(options)),
    };
    task_counts(&spec, 12)
}

#[test]
fn task_counts_go_from_the_first_to_the_last_by_the_stride() {
    let check = |options: [Option<u32>; 3], expect: &[u32]| {
        assert_eq!(counts(options).as_deref(), Ok(expect));
    };
    check([None, None, None], &[12]);
    check([None, None, Some(5)], &[12]);
    check([Some(12), None, None], &[12]);
    check([Some(10), None, None], &[10, 11, 12]);
    check([None, Some(4), None], &[4]);
    check([Some(2), Some(4), None], &[2, 3, 4]);
    check([Some(1), Some(12), Some(5)], &[1, 6, 11]);
    check([Some(3), Some(12), Some(3)], &[3, 6, 9, 12]);
    check([Some(4), Some(4), Some(100)], &[4]);
    check([Some(1), Some(12), Some(u32::MAX)], &[1]);
}

#[test]
fn task_counts_that_cannot_be_are_refused_by_their_letters() {
    let check = |expect: &str, options| check_error(counts(options), expect);
    each! { check:
        "-f must be at least 1" => [Some(0), None, None];
        "-s must be at least 1" => [None, None, Some(0)];
        "-l 13 is more than the number of ranks that were started, 12" => [None, Some(13), None];
        "-f 5 is more than -l 4" => [Some(5), Some(4), None];
        "-f 13 is more than the ranks that were started" => [Some(13), None, None];
        "-l" => [None, Some(0), None];
    }
}

#[test]
fn the_shift_is_stated_in_ranks_and_the_random_order_as_it_was_asked_for() {
    let stated = |stride, random| {
        let plan = meta(|o| (o.items, o.stride, o.random) = (Some(5), Some(stride), random));
        (plan.stated_shift, plan.stated_random)
    };
    // Four ranks on each of three hosts; mdtest does not reduce the number.
    assert_eq!(stated(0, false), (0, false));
    assert_eq!(stated(1, true), (4, true));
    assert_eq!(stated(5, false), (20, false));
}

#[test]
fn private_directories_need_trees_that_nobody_shares() {
    let of = |change: fn(&mut Mdtest)| {
        plan_on(&Facts::on(&BY_BLOCK), |common, options| {
            common.leave.private_dirs = true;
            change(options);
        })
    };
    let check = |expect: &str, change: fn(&mut Mdtest)| {
        let got = of(change).expect_err(expect);
        assert!(got.starts_with(expect), "{got}");
    };
    check("--private-dirs needs -u", |_| ());
    check("--private-dirs cannot be combined with -N", |o| {
        (o.unique_dir, o.stride) = (true, Some(4));
    });
    let alone = of(|o| o.unique_dir = true).expect("valid");
    assert!(alone.leave.private_dirs);
    assert!(plan(|_| ()).is_ok());
}
