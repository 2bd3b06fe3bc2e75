//! Options of fio up to 3.42 that rbench does not support: why, and what to use instead.

/// Options refused for the same reason.
pub struct Refused {
    /// Their names.
    pub names: &'static str,
    /// Reason: a clause that follows "is not supported: ".
    pub why: &'static str,
    /// The replacement, a noun; empty: there is none. Code is in backticks.
    pub instead: &'static str,
    /// True for options of particular engines. fio knows them only once the engine is given, so
    /// they cannot be shortened.
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

/// Refused options, a row for each reason: `"names": "why" => "instead";`. Those of particular
/// engines follow `[engine]`.
macro_rules! refused {
    (@instead) => { "" };
    (@instead $instead:literal) => { $instead };
    ($($([$engine:ident])? $names:literal: $why:literal $(=> $instead:literal)?;)*) => {
        &[$($crate::fio::table::Refused {
            names: $names,
            why: $why,
            instead: refused!(@instead $($instead)?),
            of_engines: !stringify!($($engine)?).is_empty(),
        }),*]
    };
}

/// Refused options, in the order of the documentation. Those of engines that rbench has are listed
/// with the engine's supported options.
pub const REFUSED: &[Refused] = refused! {
    // Pattern and blocks
    "percentage_sequential": "fio itself refuses it as deprecated" => "`percentage_random`";
    "rwmixcycle": "fio itself refuses it as obsolete" => "`rwmixread`";
    "ignore_zone_limits job_max_open_zones max_open_zones read_beyond_wp recover_zbd_write_error \
     write_zone_remainder zone_reset_frequency zone_reset_threshold zonecapacity":
        "a mounted file system has no zones" => "`zonemode=strided`";
    "dataplacement dp_scheme fdp fdp_pli fdp_pli_select plid_select plids":
        "a mounted file system places data itself" => "`write_hint` for the expected lifetime of data";
    "num_range": "one call punches one hole" => "`bs`, whose third value is the size of trims";
    "spr_cs spr_num_regions spr_op sprandom": "it prepares the flash memory of a drive"
        => "`overwrite` to start from files with data";
    "merge-blktrace-only merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars":
        "blktrace records block devices, not files"
        => "`read_iolog` with several I/O logs, which are replayed in parallel";
    // Statistics and logs
    "gtod_cpu": "each worker reads the clock itself, which takes about 20 ns";
    "latency-log": "logs are set per job" => "`write_lat_log`";
    "block_error_percentiles":
        "it counts trims until blocks of a worn-out drive fail; files have no such blocks"
        => "`continue_on_error` to count errors";
    // The process and the machine
    "cgroup cgroup_nodelete cgroup_weight": "rbench does not manage control groups"
        => "`systemd-run --scope`";
    "ioscheduler": "rbench does not change settings of the machine" => "`/sys/block/*/queue/scheduler`";
    "client daemonize remote-config server": "ranks on several hosts are started by MPI" => "`mpirun`";
    "block device-names dir large-block-op-kbytes load numruns prep profile read-req-num-512-blocks \
     test-duration threads-per-queue":
        "rbench has no profiles" => "a job file";
    "memcpytest": "it tests fio itself";
    // Engines
    [engine] "apptag apptag_mask cdb_len cmd_type deac md_per_io_size pi_act pi_chk read_mode readfua \
     sg_write_mode skip_bad stream_id verify_bytchk verify_mode write_mode writefua xnvme_admin \
     xnvme_async xnvme_be xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec xnvme_mem xnvme_sync":
        "device commands are not I/O to a file system";
    [engine] "libblkio_driver libblkio_force_enable_completion_eventfd libblkio_num_entries libblkio_path \
     libblkio_pre_connect_props libblkio_pre_start_props libblkio_queue_size libblkio_vectored \
     libblkio_wait_mode libblkio_write_zeroes_on_trim":
        "it belongs to libblkio, which reaches block devices without a file system";
    [engine] "busy_poll clientname clustername conf pool rbd_encryption_format rbd_encryption_passphrase \
     rbdname touch_objects":
        "it belongs to rados and rbd, which reach Ceph without a mount" => "`directory` on a CephFS mount";
    [engine] "brick volume": "it belongs to gfapi, which reaches GlusterFS without a mount"
        => "`directory` on a GlusterFS mount";
    [engine] "chunk_size cont hdfs_use_direct hdfsdirectory namenode object_class single-instance \
     single_instance svcl":
        "it belongs to dfs or libhdfs, which reach DAOS and HDFS without a mount"
        => "`directory` on a mount of them";
    [engine] "http_host http_mode http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region \
     http_s3_security_token http_s3_sse_customer_algorithm http_s3_sse_customer_key \
     http_s3_storage_class http_swift_auth_token http_user http_verbose https":
        "it belongs to http, which reaches object stores without a mount"
        => "`directory` on a mount of the object store";
    [engine] "initiator nfs_url uri":
        "it belongs to libiscsi, nfs or nbd, which reach servers without a mount"
        => "`directory` on a mount of what the server exports";
    [engine] "bindname hostname interface listen mss nodelay pingpong port protocol ttl verb window_size":
        "it belongs to net or rdma, which measure a network";
    [engine] "cpuchunks cpuload cpumode exit_on_io_done": "it belongs to cpuio, which does no I/O"
        => "`thinkcycles` for work between operations";
    [engine] "arguments grace_time program std_redirect":
        "it belongs to exec, which runs a program in place of I/O" => "`exec_prerun`";
    [engine] "cuda_io gpu_dev_ids rocm_io": "rbench has no GPU buffers"
        => "`mem` for the kinds of memory that it has";
    [engine] "donorname inplace": "it belongs to e4defrag, which moves blocks of ext4";
    [engine] "dummy no_completion_thread":
        "it belongs to an engine of another system, or to fio's example of one";
};
