//! Properties of mdtest's command line, up to the plan.

use rbench_core::Rank;
use rbench_plan::meta::Location;
use rbench_plan::resolve::Work;
use rbench_plan::tree::{Forest, ItemKind, PATH_MAX, Paths, Private};
use rbench_plan::{MetaPlan, spec::Workload};

use crate::{plans, refusal};

/// Tests `input` as the words of `rbench mdtest`, one per line. The result must be a refusal, or a
/// plan whose paths are short enough.
pub fn mdtest_line(input: &[u8]) {
    let argv = plans::words(&["rbench", "mdtest"], input);
    let invocation = match rbench_cli::parse(&argv, None) {
        Ok(invocation) => invocation,
        Err(stop) => return refusal::of_line(&stop),
    };
    let (spec, output) = plans::workload(invocation);
    assert!(matches!(spec.workload, Workload::Mdtest(_)));
    assert_eq!(rbench_cli::start(&argv), output.start);
    for facts in plans::worlds() {
        let Some(plan) = plans::plan(&spec, &facts, input.len()) else {
            continue;
        };
        match plan.work {
            Work::Meta(meta) => tree(&meta, facts.ranks()),
            other => panic!("mdtest became {other:?}"),
        }
    }
}

/// Checks that the path of the last tree's last item is short enough for a system call.
fn tree(meta: &MetaPlan, ranks: u32) {
    let all = meta.items_per_rank.checked_mul(u64::from(ranks));
    let all = all.expect("the items of all ranks can be counted");
    assert!(all <= 1 << 62, "{all} items");
    for phase in &meta.phases {
        if let rbench_plan::meta::ItemOwner::Each { ahead } = phase.who {
            assert!(ahead < ranks, "{phase:?}");
        }
    }
    let Location::TestDirs(dirs) = &meta.site else {
        panic!("mdtest works in directories of its own: {:?}", meta.site);
    };
    let prefixes = dirs
        .iter()
        .map(|dir| format!("{}/test-dir.4294967295-", dir.display()));
    let forest = Forest {
        shape: meta.shape,
        naming: meta.naming,
        prefixes: prefixes.collect(),
        numbered: Some(meta.loops),
        private: Some(Private {
            ahead: meta.tree_ahead,
            ranks,
        }),
    };
    let mut paths = Paths::new(forest.into(), Rank(ranks - 1), ItemKind::File);
    let last_node = (meta.nodes - 1).saturating_add(meta.nodes.saturating_mul(meta.loops - 1));
    assert!(paths.node(last_node).count_bytes() < PATH_MAX);
    if meta.items_per_rank > 0 {
        let path = paths.item(meta.items_per_rank - 1);
        assert!(path.count_bytes() < PATH_MAX);
    }
}
