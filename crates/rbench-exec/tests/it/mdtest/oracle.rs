//! A small model of mdtest: the calls of each rank, derived from mdtest's description and not from
//! the tested code. It takes only the order within a phase from that code: item numbers ascend,
//! trees go from the root down and back up, and loops follow one another.

use rbench_plan::spec::Mdtest;

/// Expected results of a run.
pub struct Expected {
    /// Name and number of operations of each phase, over all ranks.
    pub phases: Vec<(String, u64)>,
    /// The calls of each rank.
    pub calls: Vec<Vec<String>>,
}

/// Expected calls of `options` on ranks that are placed on `hosts`. `there`: true if the
/// directories of `-d` already exist.
pub fn expected(options: &Mdtest, hosts: &[u32], there: bool) -> Expected {
    let mut machine = Machine {
        options,
        hosts,
        dirs: options
            .dirs
            .iter()
            .map(|dir| dir.display().to_string())
            .collect(),
        iteration: 0,
        out: Expected {
            phases: Vec::new(),
            calls: vec![Vec::new(); hosts.len()],
        },
    };
    machine.run(there);
    machine.out
}

/// The letters of two options that cannot be combined, or of an impossible option.
pub fn excluded(options: &Mdtest) -> Option<&'static str> {
    let o = options;
    let (n, each) = (o.items.unwrap_or(0), o.items_per_dir.unwrap_or(0));
    let depth = o.depth.unwrap_or(0);
    let leaves = o.branch.unwrap_or(1).pow(depth);
    let inner: u64 = (0..depth)
        .map(|level| o.branch.unwrap_or(1).pow(level))
        .sum();
    let places = if o.leaf_only { leaves } else { inner + leaves };
    let does_not_divide = if each > 0 {
        n > 0 && (o.unique_dir || !n.is_multiple_of(each))
    } else {
        n > 0 && n < places
    };
    if o.shared && o.dirs_only {
        Some("-S")
    } else if does_not_divide {
        Some("-n")
    } else {
        (o.shared && (o.unique_dir || o.collective)).then_some("-S")
    }
}

/// A directory or a file.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Dir,
    File,
}

/// The calls for each object that a rank works on.
type Work = Vec<Vec<String>>;

struct Machine<'o> {
    options: &'o Mdtest,
    hosts: &'o [u32],
    dirs: Vec<String>,
    iteration: u32,
    out: Expected,
}

impl Machine<'_> {
    fn ranks(&self) -> usize {
        self.hosts.len()
    }

    /// `-N` in ranks.
    fn stride(&self) -> usize {
        let nodes = 1 + *self.hosts.iter().max().expect("a rank") as usize;
        let by_block = self.hosts.is_sorted();
        let factor = if nodes > 1 && by_block {
            self.ranks() / nodes
        } else {
            1
        };
        self.options.stride.unwrap_or(0) as usize * factor
    }

    fn loops(&self) -> u64 {
        match (self.options.items, self.options.items_per_dir) {
            (Some(n), Some(each)) => n / each,
            _ => 1,
        }
    }

    fn test_dirs(&self, dir: &str) -> Vec<String> {
        (0..self.loops())
            .map(|nth| format!("{dir}/test-dir.{}-{nth}", self.iteration))
            .collect()
    }

    /// Directories of the tree `number` below `test_dir`, and the number of those above the lowest
    /// level.
    fn tree(&self, test_dir: &str, number: usize) -> (Vec<String>, usize) {
        let word = if self.options.unique_dir {
            format!("mdtest_tree.{number}")
        } else {
            "mdtest_tree".to_owned()
        };
        let mut nodes = vec![format!("{test_dir}/{word}.0")];
        let mut level = 0..1;
        for _ in 0..self.options.depth.unwrap_or(0) {
            for parent in level.clone() {
                for _ in 0..self.options.branch.unwrap_or(1) {
                    nodes.push(format!("{}/{word}.{}", nodes[parent], nodes.len()));
                }
            }
            level = level.end..nodes.len();
        }
        (nodes, level.start)
    }

    /// The paths that `rank` works on in each loop, with names shifted by `times` strides.
    /// Directories are shifted by one stride more.
    fn items(&self, rank: usize, times: usize, kind: Kind) -> Vec<Vec<String>> {
        let shifted = |times: usize| (rank + times * self.stride()) % self.ranks();
        let whose = if self.options.shared {
            "shared".to_owned()
        } else {
            shifted(times).to_string()
        };
        let word = if kind == Kind::Dir { "dir" } else { "file" };
        let dir = &self.dirs[rank % self.dirs.len()];
        let one_loop = |test_dir: String| {
            let (nodes, inner) = self.tree(&test_dir, shifted(times + 1));
            let first = if self.options.leaf_only { inner } else { 0 };
            let places = nodes.len() - first;
            let each = match (self.options.items_per_dir, self.options.items) {
                (Some(each), _) => each as usize,
                (None, Some(n)) => n as usize / places,
                (None, None) => 0,
            };
            (first..nodes.len())
                .flat_map(|node| (0..each).map(move |i| (node, node * each + i)))
                .map(|(node, k)| format!("{}/{word}.mdtest.{whose}.{k}", nodes[node]))
                .collect()
        };
        self.test_dirs(dir).into_iter().map(one_loop).collect()
    }

    /// Like `items`, as one list.
    fn all_items(&self, rank: usize, times: usize, kind: Kind) -> Vec<String> {
        self.items(rank, times, kind).concat()
    }

    /// Work of every rank. With `-c`, rank 0 does the work of all in phases that are `collective`.
    fn each(&self, collective: bool, work: impl Fn(usize) -> Work) -> Vec<Work> {
        let mut all: Vec<Work> = (0..self.ranks()).map(work).collect();
        if collective && self.options.collective {
            let by_first = all.concat();
            all.fill(Vec::new());
            all[0] = by_first;
        }
        all
    }

    /// Work of rank 0 only.
    fn first(&self, work: Work) -> Vec<Work> {
        let mut all = vec![Vec::new(); self.ranks()];
        all[0] = work;
        all
    }

    fn phase(&mut self, name: &str, work: Vec<Work>) {
        let operations = work.iter().map(|w| w.len() as u64).sum();
        if operations == 0 {
            return;
        }
        self.out.phases.push((name.to_owned(), operations));
        let sync = self.options.sync && !name.starts_with("tree");
        for (calls, work) in self.out.calls.iter_mut().zip(work) {
            calls.extend(work.concat());
            calls.extend(sync.then(|| "sync".to_owned()));
        }
    }

    fn run(&mut self, there: bool) {
        let o = self.options;
        let all = !(o.create || o.stat || o.read || o.remove || o.rename);
        let (create, remove) = (all || o.create, all || o.remove);
        if create {
            for (rank, dir) in self.dirs.iter().enumerate() {
                let result = if there { " = EEXIST" } else { "" };
                self.out.calls[rank].push(format!("mkdir {dir}{result}"));
            }
        }
        for iteration in 0..o.iterations.unwrap_or(1) {
            self.iteration = iteration;
            if create {
                self.around("mkdir");
                let trees = self.trees("mkdir");
                self.phase("tree-create", trees);
            }
            if !o.files_only && !o.shared {
                self.directories(all);
            }
            if !o.dirs_only {
                self.files(all);
            }
            if remove {
                let mut trees = self.trees("rmdir");
                trees.iter_mut().for_each(|of_rank| of_rank.reverse());
                self.phase("tree-remove", trees);
                self.around("rmdir");
            }
        }
        if create && remove && !there {
            for (rank, dir) in self.dirs.iter().enumerate() {
                self.out.calls[rank].push(format!("rmdir {dir}"));
            }
        }
    }

    /// Creates or removes the test directories.
    fn around(&mut self, call: &str) {
        for (rank, dir) in self.dirs.clone().iter().enumerate() {
            let calls = self.test_dirs(dir);
            self.out.calls[rank].extend(calls.iter().map(|path| format!("{call} {path}")));
        }
    }

    /// Tree directories from the root down.
    fn trees(&self, call: &str) -> Vec<Work> {
        let of = |dir_of: usize, number: usize| -> Work {
            self.test_dirs(&self.dirs[dir_of % self.dirs.len()])
                .iter()
                .flat_map(|test_dir| self.tree(test_dir, number).0)
                .map(|path| vec![format!("{call} {path}")])
                .collect()
        };
        if !self.options.unique_dir {
            return self.first(of(0, 0));
        }
        if self.options.collective {
            // One owner after the other, each with the tree of its items.
            return self.each(true, |r| of(r, (r + self.stride()) % self.ranks()));
        }
        self.each(false, |rank| of(rank, rank))
    }

    fn directories(&mut self, all: bool) {
        let o = self.options;
        let calls = |call: &str, rank: usize, times: usize| -> Work {
            self.all_items(rank, times, Kind::Dir)
                .iter()
                .map(|path| vec![format!("{call} {path}")])
                .collect()
        };
        let mut phases = Vec::new();
        if all || o.create {
            phases.push(("dir-create", self.each(true, |r| calls("mkdir", r, 0))));
        }
        if all || o.stat {
            phases.push(("dir-stat", self.each(false, |r| calls("stat", r, 1))));
        }
        // A single item has no other name to take.
        let several = self.items(0, 0, Kind::Dir)[0].len() > 1;
        if (all || o.rename) && several {
            phases.push(("dir-rename", self.each(false, |r| self.chains(r))));
        }
        if all || o.remove {
            phases.push((
                "dir-remove",
                self.each(true, |r| calls("rmdir", r, removal(o))),
            ));
        }
        for (name, work) in phases {
            self.phase(name, work);
        }
    }

    /// Renaming in a chain: the first item moves aside, each other one takes the name before its
    /// own, and the first takes the last name but one.
    fn chains(&self, rank: usize) -> Work {
        let chain = |items: Vec<String>| {
            let aside = format!("{}-XX", items[0]);
            let mut calls = vec![format!("rename {} -> {aside}", items[0])];
            for pair in items[..items.len() - 1].windows(2) {
                calls.push(format!("rename {} -> {}", pair[1], pair[0]));
            }
            calls.push(format!("rename {aside} -> {}", items[items.len() - 2]));
            calls
        };
        self.items(rank, 1, Kind::Dir)
            .into_iter()
            .flat_map(chain)
            .map(|call| vec![call])
            .collect()
    }

    fn files(&mut self, all: bool) {
        let o = self.options;
        let (write, read) = (
            o.write_bytes.unwrap_or_default().0,
            o.read_bytes.unwrap_or_default().0,
        );
        let direct = if o.direct { " direct" } else { "" };
        let filled = |path: &str, mode: &str, filled: bool| -> Vec<String> {
            let mut calls = vec![format!("open {path} {mode}{direct}")];
            if filled && write > 0 {
                calls.push(format!("write {path} {write}"));
                calls.extend(o.fsync.then(|| format!("fsync {path}")));
            }
            calls.push(format!("close {path}"));
            calls
        };
        let of = |rank: usize, times: usize, calls: &dyn Fn(&str) -> Vec<String>| -> Work {
            self.all_items(rank, times, Kind::File)
                .iter()
                .map(|path| calls(path))
                .collect()
        };
        let made = |path: &str| match o.mknod {
            true => vec![format!("mknod {path}")],
            false => filled(path, "read-write", !o.collective),
        };
        let reread = |path: &str| {
            let mut calls = vec![format!("open {path} read{direct}")];
            calls.extend((read > 0).then(|| format!("read {path} {read}")));
            calls.push(format!("close {path}"));
            calls
        };
        let mut phases = Vec::new();
        if all || o.create {
            phases.push(("file-create", self.each(true, |r| of(r, 0, &made))));
        }
        if (all || o.create) && o.collective {
            let again = |path: &str| filled(path, "write-existing", true);
            phases.push(("file-write", self.each(false, |r| of(r, 0, &again))));
        }
        if all || o.stat {
            let stat = |path: &str| vec![format!("stat {path}")];
            phases.push(("file-stat", self.each(false, |r| of(r, 1, &stat))));
        }
        if all || o.read {
            phases.push(("file-read", self.each(false, |r| of(r, 2, &reread))));
        }
        if all || o.remove {
            let unlink = |path: &str| vec![format!("unlink {path}")];
            let work = match o.shared {
                true => self.first(of(0, 0, &unlink)),
                false => self.each(true, |r| of(r, removal(o), &unlink)),
            };
            phases.push(("file-remove", work));
        }
        for (name, work) in phases {
            self.phase(name, work);
        }
    }
}

/// The shift of removal; a removal by one rank for all is not shifted.
fn removal(options: &Mdtest) -> usize {
    if options.collective { 0 } else { 3 }
}
