//! Tests random operations on a defective file system: the defect is found, and minimised to a few
//! operations that show it.

use rbench_report::schema::PromiseVerdict;

use super::check::{checked, promises};
use crate::common::{Place, Server};

/// The verdict on a promise, and the observation.
fn tried(options: &str, promise: &str, seed: u32) -> (PromiseVerdict, String) {
    let place = Place::new();
    let server = Server::start(&place, &format!("--memory 1g --allow-other {options}"));
    let result = checked(&place, "mnt", &format!("{promise} --seed {seed}"));
    let [promise_result] = promises(&result) else {
        panic!("{:?}", result.hosts);
    };
    assert_eq!(place.entries("mnt"), [""; 0]);
    server.end();
    (
        promise_result.verdict,
        promise_result.seen.clone().unwrap_or_default(),
    )
}

mod needs_fuse {
    use super::super::on_one_processor;
    use super::*;

    /// Number of operations before the defect showed, and number of operations after minimising.
    fn shrunk(broken: &str, promise: &str) -> (usize, usize) {
        let options = format!("--broken {broken}");
        let (verdict, seen) = on_one_processor(|| tried(&options, promise, 3));
        assert_eq!(verdict, PromiseVerdict::Broken, "{broken}: {seen}");
        let numbers = || {
            let (_, rest) = seen.split_once(" after ")?;
            let (first, rest) = rest.split_once(" operations; reproduced with these ")?;
            let (number, _) = rest.split_once(": ")?;
            Some((first.parse().ok()?, number.parse().ok()?))
        };
        numbers().unwrap_or_else(|| panic!("{broken}: {seen}"))
    }

    #[test]
    fn what_goes_wrong_for_one_worker_is_shrunk_to_three_operations() {
        // The operations of one worker follow from the seed alone.
        assert_eq!(shrunk("write-flips-rarely", "model.file"), (2284, 3));
        assert_eq!(shrunk("punch-rounds", "model.file"), (64, 3));
        assert_eq!(shrunk("rename-empties", "model.tree"), (293, 3));
    }

    #[test]
    fn what_goes_wrong_for_four_workers_with_files_of_their_own_is_shrunk() {
        assert!(shrunk("punch-rounds", "model.files").1 <= 10);
    }

    #[test]
    fn what_goes_wrong_for_four_workers_with_trees_of_their_own_is_shrunk() {
        assert!(shrunk("rename-keeps-source", "model.trees").1 <= 10);
    }

    #[test]
    fn what_goes_wrong_for_four_workers_in_one_directory_is_shrunk() {
        assert!(shrunk("rename-keeps-source", "model.shared-names").1 <= 10);
    }

    #[test]
    fn what_four_workers_read_wrongly_in_one_file_is_found() {
        // Without caching in the kernel, the reads of a worker do not depend on the others.
        let options = "--direct-io --broken write-flips-rarely";
        let (verdict, seen) = tried(options, "model.shared-file", 3);
        assert_eq!(verdict, PromiseVerdict::Broken, "{seen}");
    }

    #[test]
    fn a_late_write_is_harmless_where_opening_a_file_keeps_its_pages() {
        let options = "--keep-cache --broken write-late";
        let (verdict, seen) = tried(options, "model.shared-file", 3);
        assert_eq!(verdict, PromiseVerdict::Holds, "{seen}");
    }
}

/// The defect depends on how four workers meet in the pages of a file, and may be overwritten
/// before it is read.
mod timing {
    mod needs_fuse {
        use super::super::*;

        fn found(broken: &str) {
            let options = format!("--attr-timeout 0 --entry-timeout 0 --broken {broken}");
            let each = (3..9).map(|seed| tried(&options, "model.shared-file", seed));
            let mut held = Vec::new();
            for (verdict, seen) in each {
                match verdict {
                    PromiseVerdict::Broken => return,
                    _ => held.push(seen),
                }
            }
            panic!("{broken} is not found: {held:?}");
        }

        #[test]
        fn a_byte_that_is_changed_on_its_way_is_found_beside_pages_that_are_kept() {
            found("write-flips-rarely");
        }

        #[test]
        fn a_page_from_before_a_late_write_is_found() {
            found("write-late");
        }
    }
}
