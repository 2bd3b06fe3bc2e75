//! Tests runs on a file system that does not answer: before the first phase the notice after 10 s, the limit, and the
//! end after a signal; in a phase what is known of it.

mod needs_fuse {
    use std::fs;
    use std::process::{Child, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use crate::common::{Place, Server, wait_until};

    /// A run on a file system with a request that hangs.
    struct Hanging {
        place: Place,
        server: Server,
        run: Child,
    }

    impl Hanging {
        /// The first mkdir hangs, before any phase.
        fn in_its_set_up(options: &str) -> Hanging {
            let line = format!("io --dir mnt --rw randwrite --size 64k --time 1 {options}");
            Hanging::on_a_mount("mkdir:hang@nth=1", &line)
        }

        fn on_a_mount(fault: &str, line: &str) -> Hanging {
            let place = Place::new();
            let server = Server::start(&place, &format!("--fault {fault}"));
            let said = fs::File::create(place.path("said")).expect("made");
            let run = place
                .command(line)
                .stderr(said)
                .stdout(Stdio::null())
                .spawn();
            let run = run.expect("starts");
            Hanging { place, server, run }
        }

        fn said(&self) -> String {
            fs::read_to_string(self.place.path("said")).expect("read")
        }

        /// Waits for a message, then releases the call, since the process cannot end before. Returns the exit code and
        /// all messages, and the directory.
        fn end(mut self, message: &str) -> (Option<i32>, String, Place) {
            wait_until(message, || self.said().contains(message));
            send(&self.server.child, Signal::SIGUSR2);
            let code = self.run.wait().expect("ends").code();
            let said = self.said();
            self.server.end();
            (code, said, self.place)
        }
    }

    fn send(to: &Child, signal: Signal) {
        kill(Pid::from_raw(to.id().cast_signed()), signal).expect("it is ours");
    }

    #[test]
    fn a_call_of_the_set_up_is_given_up_at_its_limit_and_ends_with_1() {
        let hanging = Hanging::in_its_set_up("--op-timeout 10s --out out.json");
        let (code, said, _) = hanging.end("and is abandoned");
        let limit = said.contains("rank 0 on ") && said.contains("(--op-timeout) and is abandoned");
        assert!(limit && said.contains("mkdir"), "{said}");
        assert_eq!(code, Some(1), "{said}");
    }

    #[test]
    fn a_call_of_the_set_up_is_reported_after_10_s_and_nobody_waits_for_it_after_a_signal() {
        let hanging = Hanging::in_its_set_up("");
        wait_until("it is reported", || {
            // On a busy machine a second later.
            hanging.said().contains("has not returned for 1")
        });
        send(&hanging.run, Signal::SIGINT);
        let (code, said, _) = hanging.end("(the run is to stop) and is abandoned");
        assert_eq!(code, Some(130), "{said}");
    }

    #[test]
    fn counters_say_nothing_of_a_phase_in_which_a_worker_was_given_up() {
        // Only the phase that reads opens files.
        let line = "meta --dir mnt --depth 0 --items 40 --files-only --threads 3 \
                    --phases file-create,file-stat,file-read --op-timeout 20s --out out.json";
        let hanging = Hanging::on_a_mount("open:hang@nth=20", line);
        let (code, said, place) = hanging.end("and is abandoned");
        assert_eq!(code, Some(1), "{said}");
        let result = place.result("out.json");
        let row = |name: &str| {
            let mut rows = result.phases.iter();
            rows.find(|row| row.name == name).expect("it has run")
        };
        let counters = |name: &str| {
            let (row, cost) = (row(name), row(name).client.as_ref().expect("it is watched"));
            let evidence = &row.residency.as_ref().expect("it asks").total;
            assert_eq!(evidence.operations, row.items + row.error_count());
            assert!(cost.cpu_s.is_some());
            let per_operation = cost.cpu_us_per_operation.is_some();
            (evidence.requests.is_some(), cost.operations, per_operation)
        };
        assert_eq!(counters("file-stat"), (true, Some(40), true));
        assert_eq!(counters("file-read"), (false, None, false));
        // The call did not end, so no slice has it.
        let read = row("file-read");
        let slices: u64 = read.timeline.iter().map(|slice| slice.errors).sum();
        assert_eq!((read.errors.get("ETIMEDOUT"), slices), (Some(&1), 0));
        let lost = read.given_up.as_ref().expect("one").lost;
        // Who gets the processor decides whose open it is: perhaps the first of its worker, or one
        // after its last read, which checks the cache.
        let done = lost + read.items;
        assert!((19..=40).contains(&done), "{lost} and {}", read.items);
    }
}
