//! The sets of published figures: their sources, their set-ups, and the rows of rbench that measure
//! the same.

/// Figures that were published together.
#[derive(Debug)]
pub struct Set {
    /// Name on the command line.
    pub name: &'static str,
    /// The measured systems.
    pub title: &'static str,
    /// The publication.
    pub published: &'static str,
    /// The set-up of all its workloads, like [`Workload::set_up`].
    pub(super) set_up: &'static [(&'static str, &'static str)],
    /// Notes for the reader.
    pub notes: &'static [&'static str],
    /// The workloads of its tables.
    pub workloads: &'static [Workload],
    /// The file with its figures.
    pub(super) table: &'static str,
    pub(super) source: Source,
}

/// Selects the lines of a file that form a set, and its columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// The lines of this edition; a column for each metadata engine.
    JuiceFs(&'static str),
    /// A column for each file size, or otherwise for each number of clients and of processes.
    CubeFs { by_size: bool },
}

/// One way of measuring, with its set-up.
#[derive(Debug)]
pub struct Workload {
    /// Name in the table.
    pub name: &'static str,
    /// The command that measures the same; `None` if there is none.
    pub measure_with: Option<&'static str>,
    /// The set-up. CLIENTS, RANKS and COLUMN are replaced by those of the column.
    pub(super) set_up: &'static [(&'static str, &'static str)],
    pub(super) rows: &'static [Mapping],
}

/// The row of rbench that measures a published figure.
#[derive(Debug)]
pub(super) struct Mapping {
    /// The published operation, in the words of the table.
    pub operation: &'static str,
    /// The figure of rbench.
    pub figure: &'static str,
    pub want: Want,
}

/// Selects the row that measures the same.
#[derive(Debug)]
pub(super) enum Want {
    /// The row with this name, on comparable files.
    Row(&'static str, Need),
    /// The row with this name in the table of `rbench ops`.
    OpsRow(&'static str),
    /// A row of such operations on whole files of this size.
    WholeFile { op: &'static str, bytes: u64 },
    /// A row that moves blocks of this size, at random or in sequence.
    Blocks {
        op: &'static str,
        bytes: u64,
        random: bool,
    },
    /// None, for this reason.
    Never(&'static str),
}

/// Requirement on the files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// None.
    Nothing,
    /// They hold this many bytes.
    Files(u64),
    /// Like `Files`, and reading only opens and closes them.
    FilesThatAreNotRead(u64),
    /// They are as large as those of the column.
    FilesOfTheColumn,
    /// Like `FilesOfTheColumn`, and reading reads them whole.
    FilesOfTheColumnRead,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

const fn mapping(operation: &'static str, figure: &'static str, want: Want) -> Mapping {
    Mapping {
        operation,
        figure,
        want,
    }
}

const fn row(operation: &'static str, name: &'static str, need: Need) -> Mapping {
    mapping(operation, "rate", Want::Row(name, need))
}

const fn ops(name: &'static str) -> Mapping {
    mapping(name, "mean", Want::OpsRow(name))
}

const fn never(operation: &'static str, reason: &'static str) -> Mapping {
    mapping(operation, "mean", Want::Never(reason))
}

const fn small_file(operation: &'static str, op: &'static str) -> Mapping {
    let bytes = 128 * KIB;
    mapping(operation, "rate", Want::WholeFile { op, bytes })
}

const fn blocks(
    operation: &'static str,
    figure: &'static str,
    (op, bytes, random): (&'static str, u64, bool),
) -> Mapping {
    mapping(operation, figure, Want::Blocks { op, bytes, random })
}

const TREE: &str =
    "mdtest divides the rate of trees by the number of ranks when each has its own (-u)";
const IN_CACHE: &str =
    "answered from the client's cache, in less than 1 us: the publication calls it not comparable";
const COUNTERS: &str = "it comes from the mount's own counters";

const META_API: Workload = Workload {
    name: "meta-api",
    measure_with: Some("rbench ops"),
    set_up: &[
        (
            "tool",
            "Go benchmark of the metadata engine's API (pkg/meta/benchmarks_test.go)",
        ),
        ("accessed through", "the client's library, in one process"),
        ("hosts", "1"),
        ("ranks", "1"),
        ("threads of each", "1"),
    ],
    rows: &[
        ops("mkdir"),
        ops("mvdir"),
        ops("rmdir"),
        ops("readdir_10"),
        ops("readdir_1k"),
        ops("mknod"),
        ops("create"),
        ops("rename"),
        ops("unlink"),
        ops("lookup"),
        ops("getattr"),
        ops("setattr"),
        ops("access"),
        ops("setxattr"),
        ops("getxattr"),
        ops("removexattr"),
        ops("listxattr_1"),
        ops("listxattr_10"),
        ops("link"),
        ops("symlink"),
        never(
            "newchunk",
            "chunks are allocated inside the client: no system call asks for one",
        ),
        never(
            "write",
            "it only records data that is already stored; a system call also stores the data",
        ),
        never("read_1", IN_CACHE),
        never("read_10", IN_CACHE),
    ],
};

const JUICEFS_BENCH: Workload = Workload {
    name: "juicefs-bench -p 4",
    measure_with: Some(
        "rbench io --threads 4 --bs 1M --size 1G --fsync close, and --files 100 --file-size 128k --fsync close",
    ),
    set_up: &[
        ("tool", "juicefs bench -p 4"),
        ("hosts", "1"),
        ("ranks", "1"),
        ("threads of each", "4"),
        ("sync of writes", "close"),
    ],
    rows: &[
        blocks("Write big file", "bandwidth", ("write", MIB, false)),
        blocks("Read big file", "bandwidth", ("read", MIB, false)),
        small_file("Write small file", "write-file"),
        small_file("Read small file", "read-file"),
        row("Stat file", "file-stat", Need::Files(128 * KIB)),
        never("FUSE operation", COUNTERS),
        never("Update meta", COUNTERS),
    ],
};

const JUICEFS_EMPTY: Workload = Workload {
    name: "mdtest empty-files",
    measure_with: Some("mpirun -np 12 rbench mdtest -b 3 -z 1 -I 100 -u"),
    set_up: &[
        ("tool", "mdtest 3.3.0"),
        ("hosts", "3"),
        ("ranks", "12"),
        ("threads of each", "1"),
        ("items of each rank", "400"),
        ("file size", "0B"),
    ],
    rows: &[
        row("Directory creation", "dir-create", Need::Nothing),
        row("Directory stat", "dir-stat", Need::Nothing),
        row("Directory removal", "dir-remove", Need::Nothing),
        row("File creation", "file-create", Need::Files(0)),
        row("File stat", "file-stat", Need::Files(0)),
        row("File read", "file-read", Need::FilesThatAreNotRead(0)),
        row("File removal", "file-remove", Need::Files(0)),
        never("Tree creation", TREE),
        never("Tree removal", TREE),
    ],
};

const JUICEFS_SMALL: Workload = Workload {
    name: "mdtest small-files",
    measure_with: Some("mpirun -np 12 rbench mdtest -F -w 102400 -I 1000 -z 0 -u"),
    set_up: &[
        ("tool", "mdtest 3.3.0"),
        ("hosts", "3"),
        ("ranks", "12"),
        ("threads of each", "1"),
        ("items of each rank", "1000"),
        ("file size", "100KiB"),
    ],
    rows: &[
        row("File creation", "file-create", Need::Files(100 * KIB)),
        row("File stat", "file-stat", Need::Files(100 * KIB)),
        row(
            "File read",
            "file-read",
            Need::FilesThatAreNotRead(100 * KIB),
        ),
        row("File removal", "file-remove", Need::Files(100 * KIB)),
        never("Tree creation", TREE),
        never("Tree removal", TREE),
    ],
};

const JUICEFS_FIO: Workload = Workload {
    name: "fio big-write 4M x4",
    measure_with: Some(
        "rbench fio --name=big-write --rw=write --refill_buffers --bs=4M --size=4G --numjobs=4 --end_fsync=1 \
         --group_reporting",
    ),
    set_up: &[
        ("tool", "fio 3.28"),
        ("hosts", "1"),
        ("ranks", "1"),
        ("threads of each", "4"),
        ("block size", "4MiB"),
        ("data of each worker", "4GiB"),
        ("sync of writes", "end"),
    ],
    rows: &[blocks(
        "Write bandwidth",
        "bandwidth",
        ("write", 4 * MIB, false),
    )],
};

const JUICEFS_WORKLOADS: &[Workload] = &[
    META_API,
    JUICEFS_BENCH,
    JUICEFS_EMPTY,
    JUICEFS_SMALL,
    JUICEFS_FIO,
];

const JUICEFS_TABLE: &str = include_str!("juicefs-metadata-engines.csv");

const CUBEFS_TABLE: &str = include_str!("cubefs-evaluation.csv");

/// A job of fio on blocks of this size, with this `--rw` of `rbench io`.
macro_rules! cubefs_fio {
    ($name:literal, $rw:literal, $bs:literal: $block:literal, ($op:literal, $bytes:expr, $random:literal)) => {
        Workload {
            name: concat!("fio ", $name, " ", $bs),
            measure_with: Some(concat!(
                "rbench io --rw ",
                $rw,
                " --bs ",
                $bs,
                " --direct --size 10G --time 120"
            )),
            set_up: &[
                ("tool", "fio, 120 s"),
                ("hosts", "CLIENTS"),
                ("ranks", "RANKS"),
                ("threads of each", "1"),
                ("block size", $block),
                ("data of each worker", "10GiB"),
                ("direct I/O", "yes"),
            ],
            rows: &[
                blocks("bandwidth", "bandwidth", ($op, $bytes, $random)),
                blocks("iops", "rate", ($op, $bytes, $random)),
                blocks("mean latency", "mean", ($op, $bytes, $random)),
            ],
        }
    };
}

const CUBEFS_WORKLOADS: &[Workload] = &[
    cubefs_fio!("seq-read", "read", "128k": "128KiB", ("read", 128 * KIB, false)),
    cubefs_fio!("seq-write", "write", "128k": "128KiB", ("write", 128 * KIB, false)),
    cubefs_fio!("rand-read", "randread", "4k": "4KiB", ("read", 4 * KIB, true)),
    cubefs_fio!("rand-write", "randwrite", "4k": "4KiB", ("write", 4 * KIB, true)),
    Workload {
        name: "mdtest -n 5000 -u -z 2 -i 3",
        measure_with: Some("rbench mdtest -n 5000 -u -z 2 -i 3"),
        set_up: &[
            ("tool", "mdtest"),
            ("hosts", "CLIENTS"),
            ("ranks", "RANKS"),
            ("threads of each", "1"),
            ("items of each rank", "4998"),
            ("file size", "0B"),
        ],
        rows: &[
            row("Directory creation", "dir-create", Need::Nothing),
            row("Directory stat", "dir-stat", Need::Nothing),
            row("Directory removal", "dir-remove", Need::Nothing),
            row("File creation", "file-create", Need::Files(0)),
            row("File removal", "file-remove", Need::Files(0)),
            never("Tree creation", TREE),
            never("Tree removal", TREE),
        ],
    },
];

const CUBEFS_SMALL_FILES: &[Workload] = &[Workload {
    name: "mdtest small-file 512 ranks",
    measure_with: Some(
        "mpirun -np 512 rbench mdtest -n 1000 -w SIZE -e SIZE -y -u -i 3 -N 1 -F -R",
    ),
    set_up: &[
        ("tool", "mdtest"),
        ("ranks", "512"),
        ("threads of each", "1"),
        ("items of each rank", "1000"),
    ],
    rows: &[
        row("File creation", "file-create", Need::FilesOfTheColumn),
        row("File read", "file-read", Need::FilesOfTheColumnRead),
        row("File removal", "file-remove", Need::FilesOfTheColumn),
        row("File stat", "file-stat", Need::FilesOfTheColumn),
    ],
}];

const JUICEFS_SET_UP: &[(&str, &str)] = &[
    ("file system", "JuiceFS 1.1.0-beta1"),
    ("client host", "Amazon c5.xlarge: 4 CPUs, 8 GiB"),
    (
        "backed by",
        "COLUMN on c5d.xlarge with a local SSD; data in Amazon S3",
    ),
];

const CUBEFS_SET_UP: &[(&str, &str)] = &[
    ("file system", "CubeFS, 3 replicas of data and metadata"),
    (
        "backed by",
        "10 nodes with 32 CPUs, 32 GB and 16 SSDs each, 10 Gb/s",
    ),
];

/// Every set.
pub const SETS: &[Set] = &[
    Set {
        name: "juicefs-1.1",
        title: "JuiceFS 1.1.0-beta1, metadata engines",
        published: "juicefs.com/docs/community/metadata_engines_benchmark, English edition",
        set_up: JUICEFS_SET_UP,
        notes: &[],
        workloads: JUICEFS_WORKLOADS,
        table: JUICEFS_TABLE,
        source: Source::JuiceFs("juicefs-metadata-engines-en"),
    },
    Set {
        name: "juicefs-1.1-zh",
        title: "JuiceFS, metadata engines, with PostgreSQL",
        published: "juicefs.com/docs/zh/community/metadata_engines_benchmark, Chinese edition",
        // Only the set-up of the workloads is known for this edition.
        set_up: &[("file system", "JuiceFS"), ("backed by", "COLUMN")],
        notes: &[],
        workloads: JUICEFS_WORKLOADS,
        table: JUICEFS_TABLE,
        source: Source::JuiceFs("juicefs-metadata-engines-zh"),
    },
    Set {
        name: "cubefs",
        title: "CubeFS, I/O and metadata, CLIENTSxPROCESSES",
        published: "cubefs.io/docs, evaluation: I/O performance, metadata performance",
        set_up: CUBEFS_SET_UP,
        notes: &[
            "bandwidths are published as MB/s; operations per second times block size say that these are MiB/s",
        ],
        workloads: CUBEFS_WORKLOADS,
        table: CUBEFS_TABLE,
        source: Source::CubeFs { by_size: false },
    },
    Set {
        name: "cubefs-small-files",
        title: "CubeFS, small files by their size",
        published: "cubefs.io/docs, evaluation: small file performance",
        set_up: CUBEFS_SET_UP,
        notes: &[],
        workloads: CUBEFS_SMALL_FILES,
        table: CUBEFS_TABLE,
        source: Source::CubeFs { by_size: true },
    },
];
