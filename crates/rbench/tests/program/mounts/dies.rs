//! Tests runs whose mount dies, or refuses writes, while files are laid out: the result file says what failed.

mod needs_fuse {
    use rbench_report::RunResult;

    use crate::common::{Place, Server, text};

    const IO: &str = "io --dir mnt --rw randread --size 4m --threads 2";

    /// The result of a run with this fault in its layout, which ends with exit code 1.
    fn failed_in_the_layout(line: &str, fault: &str) -> RunResult {
        let place = Place::new();
        let server = Server::start(&place, &format!("--fault {fault}"));
        let output = place.run(&format!("{line} --out out.json"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        let result = place.result("out.json");
        assert!(!result.complete, "{line}");
        let codes: Vec<&str> = result.warnings.iter().map(|w| w.code.as_str()).collect();
        assert!(codes.contains(&"ended-early"), "{line}: {codes:?}");
        let rows: Vec<&str> = result.phases.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(rows, ["layout"], "{line}");
        assert!(!result.phases[0].errors.is_empty(), "{line}");
        server.end();
        result
    }

    #[test]
    fn a_file_system_that_refuses_the_layout_is_in_the_result() {
        let result = failed_in_the_layout(IO, "write:EIO@after=2");
        assert!(result.dead_mounts.is_empty());
    }

    /// The file system ends its mount, which needs root.
    mod needs_root {
        use super::*;

        #[test]
        fn a_mount_that_dies_in_the_layout_is_in_the_result_with_what_failed_there() {
            let fio = "fio --name=a --directory=mnt --rw=randread --bs=4k --size=4m --numjobs=2";
            for line in [IO, fio] {
                let result = failed_in_the_layout(line, "write:die@nth=4");
                let [dead] = &result.dead_mounts[..] else {
                    panic!("{line}: {:?}", result.dead_mounts);
                };
                let phase = &dead.phase;
                assert!(
                    dead.failed > 0 && phase.starts_with("laying out files"),
                    "{line}: {dead:?}"
                );
                let rows: Vec<&str> = dead.rows.iter().map(|row| row.name.as_str()).collect();
                assert_eq!(rows, ["layout"], "{line}");
            }
        }
    }
}
