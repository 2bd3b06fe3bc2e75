//! A sample of every option, with the field that it changes.

use rbench_core::memory::MemoryKind;
use rbench_core::steady::Criterion;
use rbench_core::{By, Call};
use rbench_plan::iolog::Skip;
use rbench_plan::jobs::{Advised, ExitWhat, FileLock, RangeSync, Unified};
use rbench_plan::process::{MemoryPolicy, Nodes};
use rbench_plan::spec::OnError;

use super::*;
use crate::live::ServeAt;
use crate::{Communicator, FioTool, IdleReport};

/// An option of jobs without its dashes, and the change that it makes.
pub type JobSample = (&'static str, fn(&mut Settings));

const fn both<T: Copy>(value: T) -> Each<Option<T>> {
    Each {
        read: Some(value),
        write: Some(value),
        trim: Some(value),
    }
}

pub const JOB_OPTIONS: &[JobSample] = &[
    ("description=words", |_| {}),
    ("numjobs=4", |s| s.numjobs = Some(4)),
    ("stonewall", |s| s.stonewall = Some(true)),
    ("wait_for_previous", |s| s.stonewall = Some(true)),
    ("wait_for=b", |s| s.wait_for = Some("b".into())),
    ("new_group", |s| s.new_group = Some(true)),
    ("thread", |_| {}),
    ("threads", |_| {}),
    ("kb_base=1024", |_| {}),
    ("directory=/mnt/d", |s| s.directory = Some("/mnt/d".into())),
    ("filename=a:b", |s| {
        s.filename = Some(vec!["a".into(), "b".into()]);
        s.filename_directories = vec![PathBuf::new(); 2];
    }),
    ("rw_sequencer=identical", |s| s.rw_identical = Some(true)),
    ("bs_unaligned", |s| s.bs_unaligned = Some(true)),
    ("blocksize_unaligned=0", |s| s.bs_unaligned = Some(false)),
    ("bs_is_seq_rand", |s| s.bs_is_seq_rand = Some(true)),
    ("random_sequence_stride=1", |s| {
        s.random_sequence_stride = Some(true)
    }),
    ("random_generator=tausworthe64", |s| s.lfsr = Some(false)),
    ("random_generator=lfsr", |s| s.lfsr = Some(true)),
    ("zonemode=strided", |s| s.strided = Some(true)),
    ("zonesize=8k", |s| s.zonesize = Some(8192)),
    ("zonerange=16k", |s| s.zonerange = Some(16384)),
    ("zoneskip=4k", |s| s.zoneskip = Some(4096)),
    ("softrandommap", |_| {}),
    ("allrandrepeat=1", |s| s.allrandrepeat = Some(true)),
    ("create_fsync=0", |s| s.create_fsync = Some(false)),
    ("allow_file_create=0", |s| s.allow_file_create = Some(false)),
    ("unique_filename=0", |_| {}),
    ("filetype=file", |_| {}),
    ("write_barrier=8", |_| {}),
    ("barrier=8", |_| {}),
    ("write_hint=medium", |s| s.write_hint = Some(3)),
    ("dedupe_mode=working_set", |s| {
        s.dedupe_working_set = Some(true)
    }),
    ("dedupe_working_set_percentage=7", |s| {
        s.dedupe_working_set_percentage = Some(7)
    }),
    ("dedupe_global=1", |s| s.dedupe_global = Some(true)),
    ("mem=shm", |s| s.mem = Some((MemoryKind::Shm, None))),
    ("iomem=mmaphuge:/huge/m", |s| {
        s.mem = Some((MemoryKind::MmapHuge, Some("/huge/m".into())))
    }),
    ("hugepage-size=4m", |s| s.hugepage_size = Some(4 << 20)),
    ("iomem_align=512", |s| s.iomem_align = Some(512)),
    ("mem_align=1k", |s| s.iomem_align = Some(1024)),
    ("lockmem=1m", |s| s.lockmem = Some(1 << 20)),
    ("rate_iops_min=100,200", |s| {
        s.rate_iops_min = Each {
            read: Some(100),
            write: Some(200),
            trim: Some(200),
        }
    }),
    ("rate_cycle=500", |s| {
        s.rate_cycle = Some(Nanos(500_000_000))
    }),
    ("ratecycle=1s", |s| s.rate_cycle = Some(Nanos::SECOND)),
    ("rate_ignore_thinktime=1", |s| {
        s.rate_ignore_thinktime = Some(true)
    }),
    ("thinktime_blocks_type=issue", |s| {
        s.thinktime_by_issue = Some(true)
    }),
    ("thinktime_iotime=2", |s| {
        s.thinktime_iotime = Some(Nanos(2_000_000_000))
    }),
    ("thinkcycles=1000", |s| s.thinkcycles = Some(1000)),
    ("latency_run=1", |s| s.latency_run = Some(true)),
    ("ignore_error=EIO:122,ENOSPC", |s| {
        s.ignore_error = [vec![5, 122], vec![28], Vec::new()]
    }),
    ("opendir=d", |s| {
        s.filename = Some(vec!["d/a".into()]);
        s.filename_directories = vec![PathBuf::new()];
    }),
    ("verify_policy=fsynced", |s| s.verify_fsynced = Some(true)),
    ("filename_format=x.$jobnum", |s| {
        s.filename_format = Some("x.$jobnum".into())
    }),
    ("nrfiles=1000", |s| s.nrfiles = Some(1000)),
    ("nr_files=3", |s| s.nrfiles = Some(3)),
    ("openfiles=2", |s| s.openfiles = Some(2)),
    ("file_service_type=random:4", |s| {
        s.file_service_type = Some(FileService::Random(4))
    }),
    ("file_service_type=sequential", |s| {
        s.file_service_type = Some(FileService::Sequential)
    }),
    ("file_service_type=roundrobin", |s| {
        s.file_service_type = Some(FileService::RoundRobin(1))
    }),
    ("size=4G", |s| s.size = Some(Extent::Bytes(4 << 30))),
    ("size=100%", |s| s.size = Some(Extent::Percent(100))),
    ("filesize=4k", |s| s.filesize = Some((4096, 4096))),
    ("filesize=1k-4k", |s| s.filesize = Some((1024, 4096))),
    ("filesize=1k:4k", |s| s.filesize = Some((1024, 4096))),
    ("io_size=2m", |s| s.io_size = Some(Extent::Bytes(2 << 20))),
    ("io_limit=50%", |s| s.io_size = Some(Extent::Percent(50))),
    ("offset=1m", |s| s.offset = Some(Extent::Bytes(1 << 20))),
    ("offset=25%", |s| s.offset = Some(Extent::Percent(25))),
    ("offset_align=16k", |s| s.offset_align = Some(16_384)),
    ("file_append=1", |s| s.file_append = Some(true)),
    ("unlink_each_loop=1", |s| s.unlink_each_loop = Some(true)),
    ("fill_device=1", |s| s.fill_device = Some(true)),
    ("fill_fs=1", |s| s.fill_device = Some(true)),
    ("lockfile=none", |s| s.lockfile = Some(FileLock::None)),
    ("error_dump=1", |_| {}),
    ("end_syncfs=1", |s| s.end_syncfs = Some(true)),
    ("sync_file_range=wait_before,write:8", |s| {
        s.sync_file_range = Some(RangeSync {
            every: 8,
            wait_before: true,
            write: true,
            wait_after: false,
        })
    }),
    ("fileoffset=2m", |s| s.offset = Some(Extent::Bytes(2 << 20))),
    ("offset_increment=3m", |s| {
        s.offset_increment = Some(Extent::Bytes(3 << 20))
    }),
    ("overwrite=1", |s| s.overwrite = Some(true)),
    ("create_serialize=0", |_| {}),
    ("create_on_open=1", |s| s.create_on_open = Some(true)),
    ("create_only=1", |s| s.create_only = Some(true)),
    ("fallocate=none", |s| s.fallocate = Some(Fallocate::None)),
    ("fallocate=1", |s| s.fallocate = Some(Fallocate::Posix)),
    ("pre_read=1", |s| s.pre_read = Some(true)),
    ("invalidate=0", |s| s.invalidate = Some(false)),
    ("fadvise_hint=random", |s| {
        s.fadvise_hint = Some(Advised::Kernel(Some(true)))
    }),
    ("unlink=1", |s| s.unlink = Some(true)),
    ("allow_mounted_write=1", |s| {
        s.allow_mounted_write = Some(true)
    }),
    ("rw=randrw", |s| {
        s.rw = Some(Directions {
            read: true,
            write: true,
            trim: false,
            random: true,
        });
    }),
    ("readwrite=write", |s| {
        s.rw = Some(Directions {
            read: false,
            write: true,
            trim: false,
            random: false,
        });
    }),
    ("rw=randtrimwrite", |s| {
        s.rw = Some(Directions {
            read: false,
            write: true,
            trim: true,
            random: true,
        });
    }),
    ("rwmixread=80", |s| s.rwmixread = Some(80)),
    ("rwmixwrite=80", |s| s.rwmixread = Some(20)),
    ("bs=128k", |s| s.bs = both(131_072)),
    ("blocksize=4k,8k", |s| {
        s.bs = Each {
            read: Some(4096),
            write: Some(8192),
            trim: Some(8192),
        };
    }),
    ("bsrange=4k-64k,8k-16k", |s| {
        s.bsrange = Each {
            read: Some((4096, 65_536)),
            write: Some((8192, 16_384)),
            trim: Some((8192, 16_384)),
        };
    }),
    ("blocksize_range=4k-8k", |s| s.bsrange = both((4096, 8192))),
    ("bssplit=4k/60:8k/40,16k", |s| {
        s.bssplit = Each {
            read: Some(vec![(4096, Some(60)), (8192, Some(40))]),
            write: Some(vec![(16_384, None)]),
            trim: Some(vec![(16_384, None)]),
        };
    }),
    ("blockalign=8k", |s| s.blockalign = both(8192)),
    ("ba=,8k,", |s| s.blockalign.write = Some(8192)),
    ("ba=,,4k", |s| s.blockalign.trim = Some(4096)),
    ("random_distribution=zipf:1.2", |s| {
        s.random_distribution = Some(Distribution::Zipf(1.2));
    }),
    ("percentage_random=50,20", |s| {
        s.percentage_random = Each {
            read: Some(50),
            write: Some(20),
            trim: Some(20),
        };
    }),
    ("norandommap", |s| s.norandommap = Some(true)),
    ("randrepeat=0", |s| s.randrepeat = Some(false)),
    ("randseed=0x89", |s| s.randseed = Some(0x89)),
    ("cpus_allowed=0-1,3", |s| {
        s.cpus_allowed = Some(vec![0, 1, 3])
    }),
    ("cpumask=5", |s| s.cpus_allowed = Some(vec![0, 2])),
    ("cpus_allowed_policy=split", |s| s.cpus_split = Some(true)),
    ("numa_cpu_nodes=0,2", |s| {
        s.numa_cpu_nodes = Some(Nodes::Some(vec![0, 2]))
    }),
    ("numa_mem_policy=interleave:all", |s| {
        s.numa_mem_policy = Some(MemoryPolicy::Interleave(Nodes::All))
    }),
    ("nice=-5", |s| s.nice = Some(-5)),
    ("prio=3", |s| s.prio = Some(3)),
    ("prioclass=1", |s| s.prioclass = Some(1)),
    ("priohint=9", |s| s.priohint = Some(9)),
    ("uid=1000", |s| s.uid = Some(1000)),
    ("gid=100", |s| s.gid = Some(100)),
    ("comm=load", |s| s.comm = Some("load".to_owned())),
    ("exec_prerun=true", |s| {
        s.exec_prerun = Some("true".to_owned())
    }),
    ("exec_postrun=sync", |s| {
        s.exec_postrun = Some("sync".to_owned())
    }),
    ("ioengine=io_uring", |s| {
        s.ioengine = Some("io_uring".into())
    }),
    ("iodepth=32", |s| s.iodepth = Some(32)),
    ("iodepth_batch=8", |s| s.iodepth_batch = Some(8)),
    ("iodepth_batch_submit=0", |s| s.iodepth_batch = Some(0)),
    ("iodepth_batch_complete_min=4", |s| {
        s.iodepth_batch_complete_min = Some(4)
    }),
    ("iodepth_batch_complete_max=16", |s| {
        s.iodepth_batch_complete_max = Some(16)
    }),
    ("iodepth_low=8", |s| s.iodepth_low = Some(8)),
    ("io_submit_mode=offload", |s| s.offload = Some(true)),
    ("serialize_overlap=1", |s| s.serialize_overlap = Some(true)),
    ("lockfile=readwrite", |s| {
        s.lockfile = Some(FileLock::ReadWrite)
    }),
    ("iodepth_batch_complete=5", |s| {
        s.iodepth_batch_complete_min = Some(5)
    }),
    ("hipri", |s| s.engine_options.hipri = true),
    ("hipri_percentage=30", |s| {
        s.engine_options.hipri_percentage = 30
    }),
    ("fixedbufs", |s| s.engine_options.fixedbufs = Some(true)),
    ("registerfiles=1", |s| {
        s.engine_options.registerfiles = Some(true)
    }),
    ("sqthread_poll", |s| s.engine_options.sqthread_poll = true),
    ("sqthread_poll_cpu=1", |s| {
        s.engine_options.sqthread_poll_cpu = Some(1)
    }),
    ("nonvectored=0", |s| s.engine_options.nonvectored = false),
    ("force_async=4", |s| s.engine_options.force_async = 4),
    ("uncached=1", |s| s.engine_options.uncached = true),
    ("nowait=1", |s| s.engine_options.nowait = true),
    ("atomic=1", |s| s.engine_options.atomic = true),
    ("stat_type=lstat", |s| {
        s.engine_options.stat_type = Some(Call::Stat(By::Link))
    }),
    ("userspace_reap", |s| s.engine_options.userspace_reap = true),
    ("direct=1", |s| s.direct = Some(true)),
    ("buffered=0", |s| s.direct = Some(true)),
    ("sync=1", |s| s.sync = Some(SyncMode::Sync)),
    ("sync=dsync", |s| s.sync = Some(SyncMode::Dsync)),
    ("dsync=1", |s| s.sync = Some(SyncMode::Dsync)),
    ("fsync=8", |s| s.fsync = Some(8)),
    ("fdatasync=9", |s| s.fdatasync = Some(9)),
    ("end_fsync=1", |s| s.end_fsync = Some(true)),
    ("fsync_on_close=1", |s| s.fsync_on_close = Some(true)),
    ("refill_buffers", |s| s.refill_buffers = Some(true)),
    ("scramble_buffers=0", |s| s.scramble_buffers = Some(false)),
    ("zero_buffers=1", |s| s.zero_buffers = Some(true)),
    ("buffer_pattern=0xdead\"x\"", |s| {
        s.buffer_pattern = Some(vec![0xde, 0xad, b'x']);
    }),
    ("buffer_compress_percentage=50", |s| {
        s.buffer_compress_percentage = Some(50)
    }),
    ("buffer_compress_chunk=4k", |s| {
        s.buffer_compress_chunk = Some(4096)
    }),
    ("dedupe_percentage=30", |s| s.dedupe_percentage = Some(30)),
    ("runtime=120", |s| s.runtime = Some(Nanos(120_000_000_000))),
    ("timeout=1m", |s| s.runtime = Some(Nanos(60_000_000_000))),
    ("time_based=1", |s| s.time_based = Some(true)),
    ("ramp_time=500ms", |s| {
        s.ramp_time = Some(Nanos(500_000_000))
    }),
    ("ramp_size=1m", |s| s.ramp_size = Some(1 << 20)),
    ("steadystate_check_interval=500ms", |s| {
        s.steadystate_check_interval = Some(Nanos(500_000_000))
    }),
    ("ss_interval=2", |s| {
        s.steadystate_check_interval = Some(Nanos(2_000_000_000))
    }),
    ("exitall", |s| s.exitall = Some(true)),
    ("exitall_on_error", |s| s.exitall_on_error = Some(true)),
    ("exit_what=all", |s| s.exit_what = Some(ExitWhat::All)),
    ("flow=3", |s| s.flow = Some(3)),
    ("flow_id=7", |s| s.flow_id = Some(7)),
    ("flow_sleep=10", |s| s.flow_sleep = Some(Nanos(10_000))),
    ("flow_watermark=8", |_| {}),
    ("startdelay=2", |s| {
        s.startdelay = Some(Nanos(2_000_000_000))
    }),
    ("loops=3", |s| s.loops = Some(3)),
    ("number_ios=1k", |s| s.number_ios = Some(1024)),
    ("rate=1m,", |s| s.rate.read = Some(1 << 20)),
    ("rate_iops=1000,500", |s| {
        s.rate_iops = Each {
            read: Some(1000),
            write: Some(500),
            trim: Some(500),
        };
    }),
    ("rate_min=64k", |s| s.rate_min = both(65_536)),
    ("ratemin=32k", |s| s.rate_min = both(32_768)),
    ("rate_process=poisson", |s| s.poisson = Some(true)),
    ("thinktime=100", |s| s.thinktime = Some(Nanos(100_000))),
    ("thinktime_spin=1ms", |s| {
        s.thinktime_spin = Some(Nanos(1_000_000))
    }),
    ("thinktime_blocks=16", |s| s.thinktime_blocks = Some(16)),
    ("latency_target=250", |s| {
        s.latency_target = Some(Nanos(250_000))
    }),
    ("latency_window=5s", |s| {
        s.latency_window = Some(Nanos(5_000_000_000))
    }),
    ("latency_percentile=99.9", |s| {
        s.latency_percentile = Some(99.9)
    }),
    ("max_latency=2s", |s| {
        s.max_latency = Some(Nanos(2_000_000_000))
    }),
    ("steadystate=iops_slope:0.3%", |s| {
        s.steadystate = Some(Criterion {
            bandwidth: false,
            slope: true,
            limit: 0.3,
            percent: true,
        });
    }),
    ("ss=bw:1000", |s| {
        s.steadystate = Some(Criterion {
            bandwidth: true,
            slope: false,
            limit: 1000.0,
            percent: false,
        });
    }),
    ("steadystate_duration=10", |s| {
        s.steadystate_duration = Some(Nanos(10_000_000_000))
    }),
    ("ss_dur=5", |s| {
        s.steadystate_duration = Some(Nanos(5_000_000_000))
    }),
    ("steadystate_ramp_time=1", |s| {
        s.steadystate_ramp_time = Some(Nanos(1_000_000_000))
    }),
    ("ss_ramp=2", |s| {
        s.steadystate_ramp_time = Some(Nanos(2_000_000_000))
    }),
    ("ss_ramp_time=3", |s| {
        s.steadystate_ramp_time = Some(Nanos(3_000_000_000))
    }),
    ("continue_on_error=io", |s| {
        s.continue_on_error = Some(ContinueOn {
            read: true,
            write: true,
            verify: false,
            ..ContinueOn::default()
        });
    }),
    ("verify=crc32c", |s| {
        s.verify = Some(Check::With(Checksum::Crc32c))
    }),
    ("verify=0", |s| s.verify = Some(Check::Off)),
    ("do_verify=0", |s| s.do_verify = Some(false)),
    ("verify_interval=512", |s| s.verify_interval = Some(512)),
    ("verify_pattern=0xff", |s| {
        s.verify_pattern = Some(VerifyPattern {
            bytes: vec![0xff],
            offsets: Vec::new(),
        })
    }),
    ("verify_fatal=1", |s| s.verify_fatal = Some(true)),
    ("verify_backlog=64", |s| s.verify_backlog = Some(64)),
    ("verify_only", |s| s.verify_only = Some(true)),
    ("verify_pattern_interval=512", |s| {
        s.verify_pattern_interval = Some(512)
    }),
    ("verify_offset=100", |s| s.verify_offset = Some(100)),
    ("verify_header_seed=0", |s| {
        s.verify_header_seed = Some(false)
    }),
    ("verify_write_sequence=0", |s| {
        s.verify_write_sequence = Some(false)
    }),
    ("verify_dump=1", |s| s.verify_dump = Some(true)),
    ("verify_async=2", |s| s.verify_async = Some(2)),
    ("verify_async_cpus=0,2-4", |s| {
        s.verify_async_cpus = Some(vec![0, 2, 3, 4])
    }),
    ("trim_percentage=30", |s| s.trim_percentage = Some(30)),
    ("trim_backlog=16", |s| s.trim_backlog = Some(16)),
    ("trim_backlog_batch=4", |s| s.trim_backlog_batch = Some(4)),
    ("trim_verify_zero=0", |s| s.trim_verify_zero = Some(false)),
    ("verify_backlog_batch=3", |s| {
        s.verify_backlog_batch = Some(3)
    }),
    ("verify_state_save=0", |s| s.verify_state_save = Some(false)),
    ("verify_state_load=1", |s| s.verify_state_load = Some(true)),
    ("experimental_verify=1", |s| {
        s.experimental_verify = Some(true)
    }),
    ("verify_policy=completed", |s| {
        s.verify_fsynced = Some(false)
    }),
    ("verifysort=0", |_| ()),
    ("verifysort_nr=64", |_| ()),
    ("group_reporting", |s| s.group_reporting = Some(true)),
    ("unified_rw_reporting=mixed", |s| {
        s.unified = Some(Unified::Mixed)
    }),
    ("unified_rw_reporting=2", |s| {
        s.unified = Some(Unified::Both)
    }),
    ("disk_util=0", |s| s.disk_util = Some(false)),
    ("log_store_compressed=1", |s| s.logs.compressed = true),
    ("log_issue_time=1", |s| s.logs.issue_time = true),
    ("percentile_list=99:50", |s| {
        s.percentile_list = Some(vec![99.0, 50.0])
    }),
    ("clat_percentiles=0", |s| s.clat_percentiles = Some(false)),
    ("lat_percentiles=1", |s| s.lat_percentiles = Some(true)),
    ("write_iolog=t.log", |s| {
        s.write_iolog = Some("t.log".into())
    }),
    ("read_iolog=a:b\\:c", |s| {
        s.read_iolog = Some(vec!["a".into(), "b:c".into()])
    }),
    ("read_iolog_chunked=1", |s| {
        s.read_iolog_chunked = Some(true)
    }),
    ("replay_no_stall=1", |s| s.replay_no_stall = Some(true)),
    ("replay_time_scale=50", |s| s.replay_time_scale = Some(50)),
    ("replay_redirect=/mnt/d/f", |s| {
        s.replay_redirect = Some("/mnt/d/f".into())
    }),
    ("replay_scale=4", |s| s.replay_scale = Some(4)),
    ("replay_align=4k", |s| s.replay_align = Some(4096)),
    ("replay_skip=write,sync", |s| {
        s.replay_skip = Some(Skip {
            write: true,
            sync: true,
            ..Skip::default()
        })
    }),
    ("write_bw_log=b", |s| s.logs.bandwidth = Some("b".into())),
    ("write_iops_log=i", |s| s.logs.iops = Some("i".into())),
    ("write_lat_log=l", |s| s.logs.latency = Some("l".into())),
    ("write_hist_log=h", |s| s.logs.histogram = Some("h".into())),
    ("log_avg_msec=100", |s| s.logs.average = Nanos(100_000_000)),
    ("log_hist_msec=1000", |s| {
        s.logs.histogram_every = Nanos(1_000_000_000)
    }),
    ("log_offset=1", |s| s.logs.offsets = true),
    ("rw=read:-4k", |s| {
        s.rw = Some(Directions {
            read: true,
            write: false,
            trim: false,
            random: false,
        });
        s.rw_number = Some(-4096);
    }),
    ("slat_percentiles=1", |s| s.slat_percentiles = Some(true)),
    ("stats=0", |s| s.stats = Some(false)),
    ("disable_lat=1", |s| s.disable_lat = Some(true)),
    ("disable_clat=1", |s| s.disable_clat = Some(true)),
    ("disable_slat=1", |s| s.disable_slat = Some(true)),
    ("disable_bw_measurement=1", |s| s.disable_bw = Some(true)),
    ("disable_bw=0", |s| s.disable_bw = Some(false)),
    ("gtod_reduce=1", |s| s.gtod_reduce = Some(true)),
    ("clocksource=cpu", |s| s.clocksource = Some("cpu".into())),
    ("job_start_clock_id=1", |s| s.job_start_clock = Some(1)),
    ("bwavgtime=100", |s| s.bwavgtime = Some(Nanos(100_000_000))),
    ("iopsavgtime=2s", |s| {
        s.iopsavgtime = Some(Nanos(2_000_000_000));
    }),
    ("unit_base=1", |s| s.bits = Some(true)),
    ("significant_figures=10", |s| {
        s.significant_figures = Some(10)
    }),
    ("per_job_logs=0", |s| s.logs.one_file = true),
    ("log_window_value=both", |s| {
        s.logs.values = rbench_plan::jobs::WindowValue::Both;
    }),
    ("log_max_value=1", |s| {
        s.logs.values = rbench_plan::jobs::WindowValue::Max;
    }),
    ("log_prio=1", |s| s.logs.priority = true),
    ("log_hist_coarseness=6", |s| s.logs.coarseness = 6),
    ("log_unix_epoch=1", |s| s.logs.of_clock = true),
    ("log_alternate_epoch=1", |s| s.logs.of_clock = true),
    ("log_alternate_epoch_clock_id=1", |s| s.logs.clock = 1),
    ("log_entries=2k", |_| {}),
    ("log_compression=1m", |_| {}),
    ("log_compression_cpus=0-1", |_| {}),
];

/// An option of the command line, and the change that it makes.
type LineSample = (&'static str, fn(&mut Line));

const LINE_OPTIONS: &[LineSample] = &[
    ("--output=r.txt", |l| l.view.output = Some("r.txt".into())),
    ("--output-format=json", |l| {
        l.view.formats = vec![FioFormat::Json]
    }),
    ("--minimal", |l| l.view.formats = vec![FioFormat::Terse]),
    ("--append-terse", |l| l.append_terse = true),
    ("--terse-version=4", |l| l.view.terse_version = Some(4)),
    ("--status-interval=2", |l| {
        l.view.status_interval = Some(Nanos(2_000_000_000));
    }),
    ("--eta=never", |l| l.output.progress = Progress::Off),
    ("--eta-newline=1", |l| {
        l.view.progress_every = Some(Nanos(1_000_000_000));
        l.output.progress = Progress::Plain;
    }),
    ("--eta-interval=500ms", |l| {
        l.view.progress_every = Some(Nanos(500_000_000));
    }),
    ("--readonly", |l| l.fio.readonly = true),
    ("--section=a", |l| l.sections = vec!["a".into()]),
    ("--showcmd", |l| l.show_command = true),
    ("--parse-only", |l| l.view.parse_only = true),
    ("--bandwidth-log", |l| l.fio.whole.rates = true),
    ("--idle-prof=percpu", |l| {
        l.fio.whole.idle = true;
        l.view.idle = Some(IdleReport::EachCpu);
    }),
    ("--idle-prof=calibrate", |l| {
        l.tool = Some(FioTool::Calibrate)
    }),
    ("--aux-path=a", |l| l.fio.whole.aux = "a".into()),
    ("--trigger-file=f", |l| {
        l.fio.whole.trigger.file = Some("f".into());
    }),
    ("--trigger-timeout=3", |l| {
        l.fio.whole.trigger.after = Some(Nanos(3_000_000_000));
    }),
    ("--trigger-timeout=0", |_| {}),
    ("--trigger=sync", |l| {
        l.fio.whole.trigger.command = Some("sync".into());
    }),
    ("--trigger-remote=sync", |l| {
        l.fio.whole.trigger.remote = Some("sync".into());
    }),
    ("--debug=file,time", |l| l.view.debug = vec!["file", "time"]),
    ("--inflate-log=l.fz", |l| {
        l.tool = Some(FioTool::Inflate("l.fz".into()));
    }),
    ("--crctest=md5,crc7", |l| {
        let asked = vec![("md5", Checksum::Md5), ("crc7", Checksum::Crc7)];
        l.tool = Some(FioTool::Checksums(asked));
    }),
    ("--cpuclock-test", |l| l.tool = Some(FioTool::ClockTest)),
    ("--warnings-fatal", |_| {}),
    ("--max-jobs=100", |_| {}),
    ("--alloc-size=65536", |_| {}),
    ("--rbench-report", |l| l.view.report = true),
    ("--out=r.json", |l| l.output.out = Some("r.json".into())),
    ("--rbench-overwrite", |l| l.output.overwrite = true),
    ("--label=a=b=c", |l| {
        l.output.labels = vec![("a".into(), "b=c".into())];
    }),
    ("--progress=plain", |l| l.output.progress = Progress::Plain),
    ("--serve=127.0.0.1:9180", |l| {
        let at = "127.0.0.1:9180".parse().expect("an address");
        l.output.serve.at = Some(ServeAt::Tcp(at));
    }),
    ("--serve-remote", |l| l.output.serve.remote = true),
    ("--quiet", |l| l.output.quiet = true),
    ("--rbench-no-round-trip", |l| l.output.no_round_trip = true),
    ("--rbench-client-cache=2g", |l| {
        l.output.client_cache = Some(rbench_core::Bytes(2 << 30));
    }),
    ("--rbench-watch=17", |l| {
        l.output.watch = Some(rbench_core::client::Watch::Process(17));
    }),
    ("--rbench-event=failover@3s=true", |l| {
        l.output.events = vec!["failover@3s=true".parse().expect("an event")];
    }),
    ("--iterations=2", |l| l.iterations = Some(2)),
    ("--shift=2", |l| l.shift = Some(2)),
    ("--ack-journal=/var/acks", |l| {
        l.fio.ack_journal = Some("/var/acks".into());
    }),
    ("--drop-caches", |l| l.drop_caches = true),
    ("--private-dirs", |l| l.leave.private_dirs = true),
    ("--overfill", |l| l.leave.overfill = true),
    ("--untried", |l| l.leave.untried = true),
    ("--on-error=stop", |l| {
        l.limits.on_error = Some(OnError::Stop);
    }),
    ("--max-errors=7", |l| l.limits.max_errors = Some(7)),
    ("--op-timeout=2m", |l| {
        l.limits.op_timeout = Some(Nanos(120_000_000_000));
    }),
    ("--on-dead-mount=continue", |l| {
        l.limits.on_dead_mount = Some(OnError::Continue);
    }),
    ("--communicator=solo", |l| {
        l.output.start.communicator = Communicator::Solo
    }),
    ("--start-timeout=30s", |l| {
        l.output.start.timeout = Some(Nanos(30_000_000_000));
    }),
];

#[test]
fn each_option_changes_what_it_stands_for_and_nothing_else() {
    for (text, change) in JOB_OPTIONS {
        let mut expect = Settings::default();
        change(&mut expect);
        let name = text.split('=').next().expect("a name");
        let option = table::exact(name).expect("an option");
        if option.of_engines() {
            expect.of_engines = vec![(name, option.engines)];
        }
        assert_eq!(
            jobs(&format!("--name=a --{text}"))[0].settings,
            expect,
            "{text}"
        );
    }
    for (text, change) in LINE_OPTIONS {
        let mut expect = Line::default();
        change(&mut expect);
        assert_eq!(read_line(&words(text)), Ok(expect), "{text}");
    }
}

#[test]
fn no_option_is_without_a_sample_and_no_field_without_an_option() {
    let job = JOB_OPTIONS.iter().map(|(text, _)| *text);
    let line = LINE_OPTIONS
        .iter()
        .map(|(text, _)| text.trim_start_matches('-'));
    let sampled: Vec<&str> = job
        .chain(line)
        .map(|text| text.split('=').next().unwrap_or(text))
        .collect();
    for option in table::options() {
        if matches!(option.does, Does::Text(_) | Does::Name) || option.plain {
            continue;
        }
        for name in option.names() {
            assert!(sampled.contains(&name), "{name} has no sample");
        }
    }
    let mut all: Vec<String> = JOB_OPTIONS
        .iter()
        .map(|(text, _)| (*text).to_owned())
        .collect();
    let plain = table::options().filter(|option| option.plain && option.in_files());
    for option in plain.filter(|option| !sampled.contains(&option.name)) {
        let value = match option.takes {
            Takes::Switch | Takes::Value("0|1") => "1",
            _ => "100",
        };
        all.push(format!("{}={value}", option.name));
    }
    let all = format!("--name=a --{} --rate=1m --ba=4k", all.join(" --"));
    let shown = format!("{:?}", jobs(&all)[0].settings);
    assert!(!shown.contains("None,"), "{shown}");
}

#[test]
fn the_command_lines_of_the_published_evaluations_are_read_as_they_were_meant() {
    let d = || Some("D".into());
    let of = |read, write, random| {
        Some(Directions {
            read,
            write,
            trim: false,
            random,
        })
    };
    let check = |text: &str, expect: Settings| {
        assert_eq!(jobs(text)[0].settings, expect, "{text}");
    };
    check(
        "--name=big-write --directory=D --rw=write --refill_buffers --bs=4M --size=4G --numjobs=4 \
         --end_fsync=1 --group_reporting",
        Settings {
            directory: d(),
            rw: of(false, true, false),
            refill_buffers: Some(true),
            bs: both(4 << 20),
            size: Some(Extent::Bytes(4 << 30)),
            numjobs: Some(4),
            end_fsync: Some(true),
            group_reporting: Some(true),
            ..Settings::default()
        },
    );
    check(
        "--name=big-file-rand-read --directory=D --rw=randread --refill_buffers --size=4G \
         --filename=randread.bin --bs=16k --pre_read=1",
        Settings {
            directory: d(),
            rw: of(true, false, true),
            refill_buffers: Some(true),
            size: Some(Extent::Bytes(4 << 30)),
            filename: Some(vec!["randread.bin".into()]),
            filename_directories: d().into_iter().collect(),
            bs: both(16 << 10),
            pre_read: Some(true),
            ..Settings::default()
        },
    );
    check(
        "--name=small-file-seq-write --directory=D --rw=write --file_service_type=sequential \
         --bs=128k --filesize=128k --nrfiles=1000 --numjobs=16",
        Settings {
            directory: d(),
            rw: of(false, true, false),
            file_service_type: Some(FileService::Sequential),
            bs: both(128 << 10),
            filesize: Some((128 << 10, 128 << 10)),
            nrfiles: Some(1000),
            numjobs: Some(16),
            ..Settings::default()
        },
    );
    check(
        "-directory=D -ioengine=psync -rw=randread -bs=4k -direct=1 -group_reporting=1 -fallocate=none \
         -time_based=1 -runtime=120 -name=test_file_c1 -numjobs=64 -nrfiles=1 -size=10G",
        Settings {
            directory: d(),
            ioengine: Some("psync".into()),
            rw: of(true, false, true),
            bs: both(4096),
            direct: Some(true),
            group_reporting: Some(true),
            fallocate: Some(Fallocate::None),
            time_based: Some(true),
            runtime: Some(Nanos(120_000_000_000)),
            numjobs: Some(64),
            nrfiles: Some(1),
            size: Some(Extent::Bytes(10 << 30)),
            ..Settings::default()
        },
    );
    check(
        "--name=big-file-multi-read --directory=D --rw=read --refill_buffers --bs=256k --size=4G \
         --numjobs=8",
        Settings {
            directory: d(),
            rw: of(true, false, false),
            refill_buffers: Some(true),
            bs: both(256 << 10),
            size: Some(Extent::Bytes(4 << 30)),
            numjobs: Some(8),
            ..Settings::default()
        },
    );
}
