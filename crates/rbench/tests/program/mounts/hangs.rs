//! Tests runs on a file system that does not answer before the first phase: the notice after 10 s, the limit, and the
//! end after a signal.

mod needs_fuse {
    use std::fs;
    use std::process::{Child, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use crate::common::{Place, Server, wait_until};

    /// A run on a file system whose first mkdir hangs.
    struct Hanging {
        place: Place,
        server: Server,
        run: Child,
    }

    impl Hanging {
        fn on_a_mount(options: &str) -> Hanging {
            let place = Place::new();
            let server = Server::start(&place, "--fault mkdir:hang@nth=1");
            let said = fs::File::create(place.path("said")).expect("made");
            let line = format!("io --dir mnt --rw randwrite --size 64k --time 1 {options}");
            let run = place
                .command(&line)
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
        /// all messages.
        fn end(mut self, message: &str) -> (Option<i32>, String) {
            wait_until(message, || self.said().contains(message));
            send(&self.server.child, Signal::SIGUSR2);
            let code = self.run.wait().expect("ends").code();
            let said = self.said();
            self.server.end();
            (code, said)
        }
    }

    fn send(to: &Child, signal: Signal) {
        kill(Pid::from_raw(to.id().cast_signed()), signal).expect("it is ours");
    }

    #[test]
    fn a_call_of_the_set_up_is_given_up_at_its_limit_and_ends_with_1() {
        let hanging = Hanging::on_a_mount("--op-timeout 500ms --out out.json");
        let (code, said) = hanging.end("and is abandoned");
        let limit = said.contains("rank 0 on ") && said.contains("(--op-timeout) and is abandoned");
        assert!(limit && said.contains("mkdir"), "{said}");
        assert_eq!(code, Some(1), "{said}");
    }

    #[test]
    fn a_call_of_the_set_up_is_reported_after_10_s_and_nobody_waits_for_it_after_a_signal() {
        let hanging = Hanging::on_a_mount("");
        wait_until("it is reported", || {
            // On a busy machine a second later.
            hanging.said().contains("has not returned for 1")
        });
        send(&hanging.run, Signal::SIGINT);
        let (code, said) = hanging.end("(the run is to stop) and is abandoned");
        assert_eq!(code, Some(130), "{said}");
    }
}
