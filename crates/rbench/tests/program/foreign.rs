//! Tests runs of root in another user's directory. That user replaces the run's entries by links while it runs; nothing
//! outside may be touched.

mod needs_root {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
    use std::os::unix::process::CommandExt as _;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Output, Stdio};

    use crate::common::{Place, text};

    /// A user id that nobody has.
    const STRANGER: u32 = 54_323;

    /// A directory of the stranger, and files of root elsewhere.
    struct Scene {
        place: Place,
    }

    /// Entries by path: mode, owner, change time and content. The change time reveals entries that were created and
    /// removed again.
    type Found = BTreeMap<PathBuf, (u32, u32, (i64, i64), Vec<u8>)>;

    impl Scene {
        fn new() -> Scene {
            let place = Place::new();
            // The stranger must be able to reach the target.
            let top = place.target();
            let top = top.parent().expect("it is in a directory");
            fs::set_permissions(top, fs::Permissions::from_mode(0o711)).expect("allowed");
            chown(place.target(), Some(STRANGER), Some(STRANGER)).expect("given away");
            let victim = place.path("victim");
            // The same names as runs use in their directories, so that a path that leads here exists.
            for pass in ["0", "1"] {
                for folder in ["", "0", "tree", "w0"] {
                    let folder = victim.join(pass).join(folder);
                    fs::create_dir_all(&folder).expect("made");
                    for name in ["data", "data.0", "data.1", "f", "small.0"] {
                        fs::write(folder.join(name), "of root's\n").expect("written");
                    }
                }
            }
            fs::write(victim.join("secret"), "of root's\n").expect("written");
            Scene { place }
        }

        fn victim(&self) -> PathBuf {
            self.place.path("victim")
        }

        /// All entries below the victim.
        fn found(&self) -> Found {
            fn look(at: &Path, into: &mut Found) {
                let meta = at.symlink_metadata().expect("it is there");
                let content = match meta.is_file() {
                    true => fs::read(at).expect("read"),
                    false => Vec::new(),
                };
                let changed = (meta.mtime(), meta.mtime_nsec());
                into.insert(at.to_owned(), (meta.mode(), meta.uid(), changed, content));
                if meta.is_dir() {
                    for entry in fs::read_dir(at).expect("listing") {
                        look(&entry.expect("entry").path(), into);
                    }
                }
            }
            let mut entries = Found::new();
            look(&self.victim(), &mut entries);
            entries
        }

        /// Starts the stranger's script in the target, in a loop.
        fn attack(&self, script: &str) -> Attack {
            let looped = format!("n=0; while :; do n=$((n+1)); {script}\ndone");
            let child = Command::new("sh")
                .args(["-c", &looped])
                .env("VICTIM", self.victim())
                .current_dir(self.place.target())
                .uid(STRANGER)
                .gid(STRANGER)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            Attack(child.expect("sh starts"))
        }

        /// Runs each line during the attack, and checks that nothing of root's changes.
        fn withstands(&self, script: &str, lines: &[&str]) {
            let before = self.found();
            let attack = self.attack(script);
            let said: Vec<(&str, Output)> = lines.iter().map(|l| (*l, self.place.run(l))).collect();
            drop(attack);
            let after = self.found();
            for (line, output) in said {
                let code = output.status.code();
                assert!(
                    code.is_some_and(|code| code < 100),
                    "{line}: {code:?} {}",
                    text(&output.stderr)
                );
            }
            assert_eq!(before, after, "{lines:?}");
        }
    }

    struct Attack(Child);

    impl Drop for Attack {
        fn drop(&mut self) {
            // It must not have ended by itself.
            self.0.kill().expect("it runs");
            self.0.wait().expect("ended");
        }
    }

    /// Replaces directories whose names match by links.
    fn swap(names: &str) -> String {
        format!(
            "for d in {names}; do \
               if [ -d \"$d\" ] && [ ! -L \"$d\" ]; then mv \"$d\" \"aside.$n.$d\" && ln -s \"$VICTIM\" \"$d\"; fi; \
             done"
        )
    }

    /// Like `swap`, and the directories come back after a moment.
    fn swap_and_back(names: &str) -> String {
        format!(
            "for d in {names}; do \
               if [ -d \"$d\" ] && [ ! -L \"$d\" ]; then \
                 mv \"$d\" \".aside\" && ln -s \"$VICTIM\" \"$d\"; rm -f \"$d\"; mv .aside \"$d\"; \
               fi; \
             done"
        )
    }

    #[test]
    fn a_run_whose_directory_is_swapped_for_a_link_touches_nothing_outside() {
        let scene = Scene::new();
        let lines = [
            "io --dir target --size 256k --bs 4k --rw write,read,randwrite,randrw",
            "io --dir target --size 256k --bs 4k --rw write,randwrite --layout shared",
            "io --dir target --files 20 --file-size 4k --rw write,read",
            "io --dir target --size 64k --bs 4k --rw write --engine mmap",
            "meta --dir target --items 50 --threads 2",
            "mix --dir target --ops stat=40,create=20,write=20,unlink=20 --files 50 --time 1",
        ];
        scene.withstands(&swap("rbench.*"), &lines);
        scene.withstands(&swap_and_back("rbench.*"), &lines);
    }

    #[test]
    fn a_run_does_not_take_a_directory_of_somebody_elses_for_its_own() {
        let scene = Scene::new();
        let script = "for d in rbench.*; do \
               if [ -d \"$d\" ] && [ ! -O \"$d\" ]; then mv \"$d\" \"aside.$n\" && mkdir \"$d\" && ln -s \"$VICTIM/0\" \"$d/0\"; fi; \
             done";
        let line = "io --dir target --size 256k --bs 4k --rw write,read,randwrite";
        scene.withstands(script, &[line; 10]);
    }

    #[test]
    fn what_a_trace_opens_up_is_open_to_nobody_else() {
        let scene = Scene::new();
        let mut trace = String::from(
            "7 1700000000.000000 mkdir(\"/src/d\", 0777) = 0 <0.000010>\n\
             7 1700000000.100000 chmod(\"/src/d\", 0777) = 0 <0.000010>\n\
             7 1700000000.200000 chmod(\"/src\", 0777) = 0 <0.000010>\n",
        );
        for nth in 0..20 {
            let at = 1_700_000_001.0 + f64::from(nth) / 20.0;
            trace += &format!(
                "7 {at:.6} openat(AT_FDCWD, \"/src/d/f{nth}\", O_WRONLY|O_CREAT, 0644) = 3 <0.000010>\n\
                 7 {:.6} write(3, \"\"..., 100) = 100 <0.000010>\n\
                 7 {:.6} close(3) = 0 <0.000010>\n\
                 7 {:.6} truncate(\"/src/d/f{nth}\", 7) = 0 <0.000010>\n\
                 7 {:.6} setxattr(\"/src/d/f{nth}\", \"user.a\", \"b\", 1, 0) = 0 <0.000010>\n",
                at + 0.001,
                at + 0.002,
                at + 0.003,
                at + 0.004,
            );
        }
        fs::write(scene.place.path("trace"), trace).expect("written");
        let plant = "for d in rbench.*/*/*/d rbench.*/*/*; do \
               for f in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do \
                 [ -w \"$d\" ] && ln -s \"$VICTIM/secret\" \"$d/f$f\"; \
               done; \
             done";
        let line = "replay trace --dir target --below /src --cwd /src";
        scene.withstands(plant, &[line]);
        // If the path itself is replaced, calls by path must not follow it either.
        for pass in ["0", "1"] {
            let folder = scene.victim().join(pass).join("0/d");
            fs::create_dir_all(&folder).expect("made");
            for nth in 0..20 {
                fs::write(
                    folder.join(format!("f{nth}")),
                    "of root's, longer than that",
                )
                .expect("written");
            }
        }
        scene.withstands(&swap("rbench.*"), &[line]);
        scene.withstands(&swap_and_back("rbench.*"), &[line]);
    }

    #[test]
    fn trees_of_mdtest_are_made_and_removed_where_its_directories_were() {
        let scene = Scene::new();
        let lines = [
            "mdtest -d target -n 60 -i 3 -w 100",
            "mdtest -d target -n 60 -b 2 -z 2 -u",
            "mdtest -d target/deeper -n 60 -F -C -T -r",
        ];
        scene.withstands(&swap("test-dir.* deeper"), &lines);
        scene.withstands(&swap_and_back("test-dir.* deeper/test-dir.*"), &lines);
    }

    #[test]
    fn clean_follows_nothing_and_leaves_what_is_not_a_run_s() {
        let scene = Scene::new();
        let kept = scene.place.run("meta --dir target --items 5 --keep");
        assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
        let names = scene.place.entries("target");
        let run = names
            .iter()
            .find(|name| name.starts_with("rbench."))
            .expect("it was kept");
        let marker = scene.place.target().join(run).join(".rbench-run");
        let marker = fs::read(marker).unwrap_or_default();
        // A directory of the stranger that looks like a run's, with links that lead away.
        let false_run = scene.place.target().join("rbench.false");
        fs::create_dir(&false_run).expect("made");
        fs::write(false_run.join(".rbench-run"), marker).expect("written");
        symlink(scene.victim(), false_run.join("0")).expect("made");
        fs::create_dir(false_run.join("1")).expect("made");
        for path in [
            &false_run,
            &false_run.join("1"),
            &false_run.join(".rbench-run"),
        ] {
            chown(path, Some(STRANGER), Some(STRANGER)).expect("given away");
        }
        let script = "if [ -d rbench.false/1 ] && [ ! -L rbench.false/1 ]; then \
               mv rbench.false/1 rbench.false/2; ln -s \"$VICTIM\" rbench.false/1; \
             else rm -f rbench.false/1; mkdir -p rbench.false/1/a/b/c; fi";
        scene.withstands(script, &["clean target --kept --force"; 5]);
        scene.withstands(&swap("rbench.*"), &["clean target --kept --force"; 5]);
    }

    #[test]
    fn a_recorded_trace_is_its_owners_alone_and_no_link_is_followed_to_it() {
        let scene = Scene::new();
        for folder in ["data", "mnt"] {
            fs::create_dir(scene.place.path(folder)).expect("made");
        }
        symlink(
            scene.victim().join("secret"),
            scene.place.target().join("trace"),
        )
        .expect("made");
        let before = scene.found();
        let refused = scene
            .place
            .run("record data mnt --trace target/trace -- true");
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        let line = "record data mnt --trace target/other -- cp /etc/hostname mnt/copy";
        let recorded = scene.place.run(line);
        assert_eq!(
            recorded.status.code(),
            Some(0),
            "{}",
            text(&recorded.stderr)
        );
        let trace = scene
            .place
            .target()
            .join("other")
            .metadata()
            .expect("it is there");
        assert_eq!(trace.mode() & 0o777, 0o600);
        assert_eq!(scene.found(), before);
    }
}
