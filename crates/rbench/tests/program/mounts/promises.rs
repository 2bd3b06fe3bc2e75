//! Tests that sound file systems keep all promises, except those that they report as unsupported.

use std::collections::BTreeSet;

use rbench_report::schema::PromiseVerdict;

use super::check::{checked, with_verdict};
use crate::common::Place;

/// All checks except random operations, which take some seconds.
const ALL: &str =
    "names,rename,links,owners,times,open,size,space,content,listing,xattr,locks,full";

/// Tests promises in `directory`: none may be broken or undecided, and only those in `lacks` unsupported. Only previous
/// entries may remain.
fn sound(place: &Place, directory: &str, only: &str, lacks: &[&str]) {
    let before = place.entries(directory);
    let result = checked(place, directory, only);
    assert_eq!(result.hosts.len(), 1);
    for verdict in [PromiseVerdict::Broken, PromiseVerdict::Undecided] {
        let wrong = with_verdict(&result, verdict);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    let names = |verdict| {
        let promises = with_verdict(&result, verdict).into_iter();
        promises
            .map(|p| p.name.clone())
            .collect::<BTreeSet<String>>()
    };
    let mut more = names(PromiseVerdict::Unsupported);
    more.retain(|name| !lacks.contains(&&**name));
    assert!(more.is_empty(), "{directory} lacks {more:?}");
    assert!(!names(PromiseVerdict::Holds).is_empty());
    assert!(result.passed);
    assert_eq!(place.entries(directory), before);
}

mod needs_root {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::super::Mounted;
    use super::*;
    use crate::common::text;

    #[test]
    fn tmpfs_keeps_every_promise() {
        let place = Place::new();
        let mounted = Mounted::new(&["-t", "tmpfs", "none"], place.target());
        let lacks = ["space.collapse", "space.insert", "space.zero.zeros"];
        sound(&place, "target", "", &lacks);
        drop(mounted);
    }

    /// Tests a file system on a loop device with an image in memory: on a shared disk a promise may exceed its time
    /// limit.
    fn on_a_loop_device(kind: &str, mib: u64, lacks: &[&str]) {
        let place = Place::new();
        let memory = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        let image = memory.path().join("image");
        make(kind, mib, &image);
        let image = image.to_str().expect("text");
        let mounted = Mounted::new(&["-o", "loop", image], place.target());
        sound(&place, "target", "", lacks);
        drop(mounted);
    }

    fn make(kind: &str, mib: u64, image: &Path) {
        let file = fs::File::create(image).expect("made");
        file.set_len(mib << 20).expect("sparse");
        let mkfs = Command::new(format!("mkfs.{kind}"))
            .arg("-q")
            .arg(image)
            .output();
        let mkfs = mkfs.expect("it is installed (scripts/install-packages test)");
        assert!(mkfs.status.success(), "{}", text(&mkfs.stderr));
    }

    #[test]
    fn ext4_keeps_every_promise() {
        // Targets and attributes must fit into a block, here 1 KiB.
        let lacks = ["links.symbolic.long-target", "xattr.value-1000"];
        on_a_loop_device("ext4", 200, &lacks);
    }

    #[test]
    fn xfs_keeps_every_promise() {
        // Targets have at most 1023 bytes.
        on_a_loop_device("xfs", 400, &["links.symbolic.long-target"]);
    }

    #[test]
    fn btrfs_keeps_every_promise() {
        let lacks = ["space.collapse", "space.insert"];
        on_a_loop_device("btrfs", 400, &lacks);
    }
}

mod needs_fuse {
    use super::super::on_one_processor;
    use super::*;
    use crate::common::Server;

    /// Tests the built-in file system with these options.
    fn built_in(options: &str, only: &str) {
        let place = Place::new();
        let server = Server::start(&place, &format!("--memory 1g --allow-other {options}"));
        let lacks = [
            "open.tmpfile.exclusive",
            "open.tmpfile.hidden",
            "open.tmpfile.named",
            "space.collapse",
            "space.insert",
            "space.zero.zeros",
        ];
        sound(&place, "mnt", only, &lacks);
        server.end();
    }

    const ASKED: &str = "--attr-timeout 0 --entry-timeout 0 --keep-cache";
    const FOUR: &str = "model.files,model.trees,model.shared-file,model.shared-names";

    // If each open drops the pages, the kernel may keep old ones next to a write: see `write-late`.

    #[test]
    fn the_built_in_file_system_keeps_every_promise_when_it_is_asked_each_time() {
        built_in(ASKED, ALL);
    }

    #[test]
    fn it_keeps_them_when_the_kernel_remembers_names_and_attributes() {
        built_in("--keep-cache", ALL);
    }

    #[test]
    fn it_keeps_them_without_pages_in_the_kernel() {
        built_in("--direct-io", ALL);
    }

    #[test]
    fn it_keeps_them_when_it_is_full() {
        built_in("--keep-cache --quota 64m", ALL);
    }

    #[test]
    fn random_operations_of_one_worker_come_out_right() {
        on_one_processor(|| built_in("--keep-cache", "model.file,model.tree"));
    }

    #[test]
    fn random_operations_of_one_worker_come_out_right_without_pages_in_the_kernel() {
        on_one_processor(|| built_in("--direct-io", "model.file,model.tree"));
    }

    #[test]
    fn random_operations_of_four_workers_come_out_right() {
        built_in("--keep-cache", FOUR);
    }

    #[test]
    fn random_operations_of_four_workers_come_out_right_without_pages_in_the_kernel() {
        built_in("--direct-io", FOUR);
    }

    #[test]
    fn random_operations_on_files_come_out_right_when_it_is_asked_each_time() {
        built_in(ASKED, "model.file,model.files,model.shared-file");
    }

    #[test]
    fn random_operations_on_names_come_out_right_when_it_is_asked_each_time() {
        // With one worker it takes half a minute.
        built_in(ASKED, "model.trees,model.shared-names");
    }
}
