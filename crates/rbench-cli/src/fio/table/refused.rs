//! Options of fio 3.33 that rbench does not support: why, and what to use instead.

/// Options that are refused for one reason.
pub struct Refused {
    /// Their names.
    pub names: &'static str,
    /// Why: a clause that follows "is not supported: ".
    pub why: &'static str,
    /// What to use instead, a noun; empty: nothing does the same. Code is in
    /// backticks.
    pub instead: &'static str,
    /// Whether they belong to particular engines: fio knows them only once the
    /// engine is given, so they cannot be shortened.
    pub of_engines: bool,
}

impl Refused {
    /// Their names, one by one.
    pub fn each(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_whitespace()
    }

    /// The error message about one of them, after its name.
    pub fn sentence(&self) -> String {
        let instead = match self.instead {
            "" => String::new(),
            instead => format!("; use {instead}"),
        };
        format!("is not supported: {}{instead}", self.why).replace('`', "'")
    }
}

const fn refused(names: &'static str, why: &'static str, instead: &'static str) -> Refused {
    Refused {
        names,
        why,
        instead,
        of_engines: false,
    }
}

const fn of_engine(names: &'static str, why: &'static str, instead: &'static str) -> Refused {
    Refused {
        of_engines: true,
        ..refused(names, why, instead)
    }
}

/// Every option that is refused, in the order of the documentation.
pub const REFUSED: &[Refused] = &[
    // Pattern and blocks
    refused(
        "percentage_sequential",
        "fio itself refuses it as deprecated",
        "`percentage_random`",
    ),
    refused(
        "rwmixcycle",
        "fio itself refuses it as obsolete",
        "`rwmixread`",
    ),
    refused(
        "ignore_zone_limits job_max_open_zones max_open_zones read_beyond_wp zone_reset_frequency \
         zone_reset_threshold zonecapacity",
        "a mounted file system has no zones",
        "`zonemode=strided`",
    ),
    refused(
        "merge-blktrace-only merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars",
        "blktrace records block devices, not files",
        "`read_iolog` with several I/O logs, which are replayed in parallel",
    ),
    // Statistics and logs
    refused(
        "gtod_cpu",
        "each worker reads the clock itself, which takes about 20 ns",
        "",
    ),
    refused("latency-log", "logs are set per job", "`write_lat_log`"),
    refused(
        "block_error_percentiles",
        "it counts trims until blocks of a worn-out drive fail; files have no such blocks",
        "`continue_on_error` to count errors",
    ),
    // The process and the machine
    refused(
        "cgroup cgroup_nodelete cgroup_weight",
        "rbench does not manage control groups",
        "`systemd-run --scope`",
    ),
    refused(
        "ioscheduler",
        "rbench does not change settings of the machine",
        "`/sys/block/*/queue/scheduler`",
    ),
    refused(
        "client daemonize remote-config server",
        "ranks on several hosts are started by MPI",
        "`mpirun`",
    ),
    refused(
        "block device-names dir large-block-op-kbytes load numruns prep profile read-req-num-512-blocks \
         test-duration threads-per-queue",
        "rbench has no profiles",
        "a job file",
    ),
    refused("memcpytest", "it tests fio itself", ""),
    // Engines
    of_engine(
        "cmdprio cmdprio_bssplit cmdprio_class cmdprio_percentage",
        "requests have no priority",
        "`ionice`",
    ),
    of_engine(
        "cmd_type",
        "device commands are not I/O to a file system",
        "",
    ),
    of_engine("thp", "the system chooses the pages of mappings", ""),
    of_engine(
        "arguments bindname brick busy_poll clientname clustername conf cpuchunks cpuload cpumode \
         donorname exit_on_io_done grace_time hostname inplace interface listen mss nodelay pingpong \
         pool port program protocol rbdname readfua sg_write_mode single-instance skip_bad \
         std_redirect stream_id touch_objects ttl uri verb volume window_size writefua",
        "it belongs to an engine that rbench does not have",
        "",
    ),
];

/// The entry of an option of fio that is not supported.
pub fn refusal(name: &str) -> Option<&'static Refused> {
    REFUSED
        .iter()
        .find(|refused| refused.each().any(|known| known == name))
}
