//! A sample of every option, with the field that it changes.

use rbench_core::memory::MemoryKind;
use rbench_core::steady::Criterion;
use rbench_core::{By, Call, IoPriority};
use rbench_plan::iolog::Skip;
use rbench_plan::jobs::{Advised, ExitWhat, FileLock, RangeSync, Unified};
use rbench_plan::process::{MemoryPolicy, Nodes};
use rbench_plan::spec::OnError;
use rbench_plan::spec::fio::PrioritySplit;

use super::*;
use crate::live::ServeAt;
use crate::{Communicator, FioTool, IdleReport};

/// An option of jobs without its dashes, and the change that it makes.
pub type JobSample = (&'static str, fn(&mut Settings));

fn both<T: Clone>(value: T) -> Each<Option<T>> {
    each(value.clone(), value)
}

/// One value for reads, and one for writes and trims.
fn each<T: Clone>(read: T, other: T) -> Each<Option<T>> {
    Each {
        read: Some(read),
        ..Each::same(Some(other))
    }
}

pub const JOB_OPTIONS: &[JobSample] = samples! {
    "description=words";
    "numjobs=4": plan.numjobs = 4;
    "stonewall": stonewall = Some(true);
    "wait_for_previous": stonewall = Some(true);
    "wait_for=b": wait_for = Some("b".into());
    "new_group": new_group = Some(true);
    "thread";
    "threads";
    "kb_base=1024";
    "directory=/mnt/d": plan.files.directory = "/mnt/d".into();
    "filename=a:b":
        filename = Some(vec!["a".into(), "b".into()]),
        filename_directories = vec![PathBuf::new(); 2];
    "rw_sequencer=identical": rw_identical = Some(true);
    "bs_unaligned": bs_unaligned = Some(true);
    "blocksize_unaligned=0": bs_unaligned = Some(false);
    "bs_is_seq_rand": bs_is_seq_rand = Some(true);
    "random_sequence_stride=1": random_sequence_stride = Some(true);
    "random_generator=tausworthe64": lfsr = Some(false);
    "random_generator=lfsr": lfsr = Some(true);
    "zonemode=strided": strided = Some(true);
    "zonesize=8k": zonesize = Some(8192);
    "zonerange=16k": zonerange = Some(16384);
    "zoneskip=4k": zoneskip = Some(4096);
    "softrandommap";
    "allrandrepeat=1": allrandrepeat = Some(true);
    "create_fsync=0": plan.files.create_fsync = false;
    "allow_file_create=0": plan.files.may_create = false;
    "unique_filename=0";
    "filetype=file";
    "write_barrier=8";
    "barrier=8";
    "write_hint=medium": plan.files.write_hint = Some(3);
    "dedupe_mode=working_set": dedupe_working_set = Some(true);
    "dedupe_working_set_percentage=7": dedupe_working_set_percentage = Some(7);
    "dedupe_global=1": dedupe_global = Some(true);
    "mem=shm": plan.memory.kind = MemoryKind::Shm;
    "iomem=mmaphuge:/huge/m":
        plan.memory.kind = MemoryKind::MmapHuge,
        plan.memory.file = Some("/huge/m".into());
    "hugepage-size=4m": plan.memory.huge_page = 4 << 20;
    "iomem_align=512": plan.memory.align = Some(512);
    "mem_align=1k": plan.memory.align = Some(1024);
    "lockmem=1m": plan.memory.locked = 1 << 20;
    "rate_iops_min=100,200": plan.pace.rate_iops_min = each(100, 200);
    "rate_cycle=500": plan.pace.rate_cycle = Nanos(500_000_000);
    "ratecycle=2s": plan.pace.rate_cycle = Nanos(2_000_000_000);
    "rate_ignore_thinktime=1": plan.pace.rate_ignores_think = true;
    "thinktime_blocks_type=issue": plan.pace.think_by_issue = true;
    "thinktime_iotime=2": plan.pace.think_after = Some(Nanos(2_000_000_000));
    "thinkcycles=1000": plan.pace.think_cycles = 1000;
    "latency_run=1": latency_run = Some(true);
    "ignore_error=EIO:122,ENOSPC": ignore_error = [vec![5, 122], vec![28], Vec::new()];
    "opendir=d": filename = Some(vec!["d/a".into()]), filename_directories = vec![PathBuf::new()];
    "verify_policy=fsynced": checks.synced_only = true;
    "filename_format=x.$jobnum": filename_format = Some("x.$jobnum".into());
    "nrfiles=1000": nrfiles = Some(1000);
    "nr_files=3": nrfiles = Some(3);
    "openfiles=2": openfiles = Some(2);
    "file_service_type=random:4": plan.files.service = FileService::Random(4);
    "file_service_type=sequential": plan.files.service = FileService::Sequential;
    "file_service_type=roundrobin": plan.files.service = FileService::RoundRobin(1);
    "file_service_type=roundrobin:2": plan.files.service = FileService::RoundRobin(2);
    "size=4G": size = Some(Extent::Bytes(4 << 30));
    "size=100%": size = Some(Extent::Percent(100));
    "filesize=4k": filesize = Some((4096, 4096));
    "filesize=1k-4k": filesize = Some((1024, 4096));
    "filesize=1k:4k": filesize = Some((1024, 4096));
    "io_size=2m": io_size = Some(Extent::Bytes(2 << 20));
    "io_limit=50%": io_size = Some(Extent::Percent(50));
    "offset=1m": offset = Some(Extent::Bytes(1 << 20));
    "offset=25%": offset = Some(Extent::Percent(25));
    "offset_align=16k": offset_align = Some(16_384);
    "file_append=1": file_append = Some(true);
    "unlink_each_loop=1": plan.files.unlink_each_loop = true;
    "fill_device=1": plan.files.fill = true;
    "fill_fs=1": plan.files.fill = true;
    "lockfile=none": plan.files.lock = FileLock::None;
    "lockfile=exclusive": plan.files.lock = FileLock::Exclusive;
    "error_dump=1";
    "end_syncfs=1": plan.syncing.end_syncfs = true;
    "sync_file_range=wait_before,write:8":
        plan.syncing.range = Some(RangeSync { every: 8, wait_before: true, write: true, wait_after: false });
    "fileoffset=2m": offset = Some(Extent::Bytes(2 << 20));
    "offset_increment=3m": offset_increment = Some(Extent::Bytes(3 << 20));
    "overwrite=1": overwrite = Some(true);
    "create_serialize=0";
    "create_on_open=1": plan.files.create_on_open = true;
    "create_only=1": plan.files.create_only = true;
    "fallocate=none": plan.files.fallocate = Fallocate::None;
    "fallocate=1": plan.files.fallocate = Fallocate::Posix;
    "pre_read=1": plan.files.pre_read = true;
    "invalidate=0": plan.files.invalidate = false;
    "fadvise_hint=random": plan.files.advice = Advised::Kernel(Some(true));
    "unlink=1": plan.files.unlink = true;
    "allow_mounted_write=1": plan.files.allow_mounted_write = true;
    "rw=randrw": rw = Some(Directions::MIX.at_random());
    "readwrite=write": rw = Some(Directions::WRITE);
    "rw=randtrimwrite": rw = Some(Directions::TRIM_WRITE.at_random());
    "rwmixread=80": plan.pattern.mix_read = 80;
    "rwmixwrite=80": plan.pattern.mix_read = 20;
    "bs=128k": bs = both(131_072);
    "blocksize=4k,8k": bs = each(4096, 8192);
    "bsrange=4k-64k,8k-16k": bsrange = each((4096, 65_536), (8192, 16_384));
    "blocksize_range=4k-8k": bsrange = both((4096, 8192));
    "bssplit=4k/60:8k/40,16k":
        bssplit = each(vec![(4096, Some(60)), (8192, Some(40))], vec![(16_384, None)]);
    "blockalign=8k": blockalign = both(8192);
    "ba=,8k,": blockalign.write = Some(8192);
    "ba=,,4k": blockalign.trim = Some(4096);
    "random_distribution=zipf:1.2": plan.pattern.distribution = Distribution::Zipf(1.2);
    "percentage_random=50,20": percentage_random = each(50, 20);
    "norandommap": norandommap = Some(true);
    "randrepeat=0": randrepeat = Some(false);
    "randseed=0x89": randseed = Some(0x89);
    "cpus_allowed=0-1,3": plan.process.cpus = vec![0, 1, 3];
    "cpumask=5": plan.process.cpus = vec![0, 2];
    "cpus_allowed_policy=split": plan.process.split = true;
    "numa_cpu_nodes=0,2": plan.process.nodes = Some(Nodes::Some(vec![0, 2]));
    "numa_mem_policy=interleave:all": plan.process.memory = Some(MemoryPolicy::Interleave(Nodes::All));
    "nice=-5": plan.process.nice = -5;
    "prio=3": prio = Some(3);
    "prioclass=1": prioclass = Some(1);
    "priohint=9": priohint = Some(9);
    "uid=1000": plan.process.user = Some(1000);
    "gid=100": plan.process.group = Some(100);
    "comm=load": plan.process.name = Some("load".to_owned());
    "exec_prerun=true": plan.process.before = Some("true".to_owned());
    "exec_postrun=sync": plan.process.after = Some("sync".to_owned());
    "cmdprio_percentage=20,80": cmdprio.percentage = each(20, 80);
    "cmdprio_class=2": cmdprio.class = both(2);
    "cmdprio=7": cmdprio.level = both(7);
    "cmdprio_hint=9": cmdprio.hint = both(9);
    "cmdprio_bssplit=4k/60/3/1:8k/40":
        cmdprio.split = both(vec![
            PrioritySplit { block: 4096, percent: 60, priority: Some(IoPriority::new(3, 1, 0)) },
            PrioritySplit { block: 8192, percent: 40, priority: None },
        ]);
    "ioengine=io_uring": ioengine = Some("io_uring".into());
    "iodepth=32": plan.depth = 32;
    "iodepth_batch=8": plan.batch_submit = 8;
    "iodepth_batch_submit=0": plan.batch_submit = 0;
    "iodepth_batch_complete_min=4": plan.batch_complete_min = 4;
    "iodepth_batch_complete_max=16": plan.batch_complete_max = 16;
    "iodepth_low=8": plan.depth_low = Some(8);
    "io_submit_mode=offload": plan.submission.offload = true;
    "serialize_overlap=1": plan.submission.serialize = true;
    "lockfile=readwrite": plan.files.lock = FileLock::ReadWrite;
    "iodepth_batch_complete=5": plan.batch_complete_min = 5;
    "hipri": engine_options.hipri = true;
    "hipri_percentage=30": engine_options.hipri_percentage = 30;
    "fixedbufs": engine_options.fixedbufs = Some(true);
    "registerfiles=1": engine_options.registerfiles = Some(true);
    "sqthread_poll": engine_options.sqthread_poll = true;
    "sqthread_poll_cpu=1": engine_options.sqthread_poll_cpu = Some(1);
    "nonvectored=0": engine_options.nonvectored = false;
    "nonvectored=-1";
    "force_async=4": engine_options.force_async = 4;
    "uncached=1": engine_options.uncached = true;
    "nowait=1": engine_options.nowait = true;
    "atomic=1": engine_options.atomic = true;
    "stat_type=lstat": engine_options.stat_type = Some(Call::Stat(By::Link));
    "userspace_reap": engine_options.userspace_reap = true;
    "direct=1": plan.direct = true;
    "buffered=0": plan.direct = true;
    "sync=1": plan.syncing.opens = SyncMode::Sync;
    "sync=dsync": plan.syncing.opens = SyncMode::Dsync;
    "dsync=1": plan.syncing.opens = SyncMode::Dsync;
    "fsync=8": plan.syncing.fsync = 8;
    "fdatasync=9": plan.syncing.fdatasync = 9;
    "end_fsync=1": plan.syncing.end_fsync = true;
    "fsync_on_close=1": plan.syncing.fsync_on_close = true;
    "refill_buffers": plan.buffers.refill = true;
    "scramble_buffers=0": plan.buffers.scramble = false;
    "zero_buffers=1": zero_buffers = Some(true);
    "buffer_pattern=0xdead\"x\"": buffer_pattern = Some(vec![0xde, 0xad, b'x']);
    "buffer_compress_percentage=50": buffer_compress_percentage = Some(50);
    "buffer_compress_chunk=4k": buffer_compress_chunk = Some(4096);
    "dedupe_percentage=30": plan.buffers.dedupe_percent = 30;
    "runtime=120": plan.pace.runtime = Some(Nanos(120_000_000_000));
    "timeout=1m": plan.pace.runtime = Some(Nanos(60_000_000_000));
    "time_based=1": plan.pace.time_based = true;
    "ramp_time=500ms": plan.pace.ramp = Nanos(500_000_000);
    "ramp_size=1m": plan.pace.ramp_bytes = 1 << 20;
    "steadystate_check_interval=500ms": steadystate_check_interval = Some(Nanos(500_000_000));
    "ss_interval=2": steadystate_check_interval = Some(Nanos(2_000_000_000));
    "exitall": exitall = Some(true);
    "exitall_on_error": exitall_on_error = Some(true);
    "exit_what=all": exit_what = Some(ExitWhat::All);
    "flow=3": flow = Some(3);
    "flow_id=7": flow_id = Some(7);
    "flow_sleep=10": flow_sleep = Some(Nanos(10_000));
    "flow_watermark=8";
    "startdelay=2": plan.pace.delay = Nanos(2_000_000_000);
    "loops=3": plan.pace.loops = 3;
    "number_ios=1k": plan.pace.number_ios = Some(1024);
    "rate=1m,": plan.pace.rate_bytes.read = Some(1 << 20);
    "rate_iops=1000,500": plan.pace.rate_iops = each(1000, 500);
    "rate_min=64k": plan.pace.rate_min = both(65_536);
    "ratemin=32k": plan.pace.rate_min = both(32_768);
    "rate_process=poisson": plan.pace.poisson = true;
    "thinktime=100": plan.pace.think = Nanos(100_000);
    "thinktime_spin=1ms": plan.pace.think_spin = Nanos(1_000_000);
    "thinktime_blocks=16": thinktime_blocks = Some(16);
    "latency_target=250": latency_target = Some(Nanos(250_000));
    "latency_window=5s": latency_window = Some(Nanos(5_000_000_000));
    "latency_percentile=99.9": latency_percentile = Some(99.9);
    "max_latency=2s": plan.pace.latency_max = Some(Nanos(2_000_000_000));
    "steadystate=iops_slope:0.3%":
        steadystate = Some(Criterion { bandwidth: false, slope: true, limit: 0.3, percent: true });
    "ss=bw:1000":
        steadystate = Some(Criterion { bandwidth: true, slope: false, limit: 1000.0, percent: false });
    "steadystate_duration=10": steadystate_duration = Some(Nanos(10_000_000_000));
    "ss_dur=5": steadystate_duration = Some(Nanos(5_000_000_000));
    "steadystate_ramp_time=1": steadystate_ramp_time = Some(Nanos(1_000_000_000));
    "ss_ramp=2": steadystate_ramp_time = Some(Nanos(2_000_000_000));
    "ss_ramp_time=3": steadystate_ramp_time = Some(Nanos(3_000_000_000));
    "continue_on_error=io":
        continue_on_error = Some(ContinueOn { read: true, write: true, verify: false, ..ContinueOn::default() });
    "verify=crc32c": verify = Some(Check::With(Checksum::Crc32c));
    "verify=0": verify = Some(Check::Off);
    "do_verify=0": do_verify = Some(false);
    "verify_interval=512": verify_interval = Some(512);
    "verify_pattern=0xff":
        layout.pattern = Some(VerifyPattern { bytes: vec![0xff], offsets: Vec::new() });
    "verify_fatal=1": checks.fatal = true;
    "verify_backlog=64": checks.backlog = Some(64);
    "verify_only": verify_only = Some(true);
    "verify_pattern_interval=512": layout.pattern_interval = 512;
    "verify_offset=100": layout.offset = 100;
    "verify_header_seed=0": layout.seed = false;
    "verify_write_sequence=0": layout.sequence = false;
    "verify_dump=1": checks.dump = true;
    "verify_async=2": checks.threads = 2;
    "verify_async_cpus=0,2-4": checks.cpus = vec![0, 2, 3, 4];
    "trim_percentage=30": trim_percentage = Some(30);
    "trim_backlog=16": trim_backlog = Some(16);
    "trim_backlog_batch=4": trim_backlog_batch = Some(4);
    "trim_verify_zero=0": checks.trimmed_is_zero = false;
    "verify_backlog_batch=3": verify_backlog_batch = Some(3);
    "verify_state_save=0": checks.save_state = false;
    "verify_state_load=1": checks.load_state = true;
    "experimental_verify=1": experimental_verify = Some(true);
    "verify_policy=completed": checks.synced_only = false;
    "verifysort=0";
    "verifysort_nr=64";
    "group_reporting": report.group_reporting = true;
    "unified_rw_reporting=mixed": report.shown.unified = Unified::Mixed;
    "unified_rw_reporting=2": report.shown.unified = Unified::Both;
    "disk_util=0": report.disks = false;
    "log_store_compressed=1": report.logs.compressed = true;
    "log_issue_time=1": report.logs.issue_time = true;
    "percentile_list=99:50": report.shown.percentiles = vec![99.0, 50.0];
    "clat_percentiles=0": report.shown.clat_percentiles = false;
    "lat_percentiles=1": report.shown.lat_percentiles = true;
    "write_iolog=t.log": plan.iolog = Some("t.log".into());
    "read_iolog=a:b\\:c": replay.logs = vec!["a".into(), "b:c".into()];
    "read_iolog_chunked=1": replay.chunked = true;
    "replay_no_stall=1": replay.stalls = false;
    "replay_time_scale=50": replay.speed = 50;
    "replay_redirect=/mnt/d/f": replay.redirect = Some("/mnt/d/f".into());
    "replay_scale=4": replay.scale = 4;
    "replay_align=4k": replay.align = 4096;
    "replay_skip=write,sync":
        replay.skip = Skip { write: true, sync: true, ..Skip::default() };
    "write_bw_log=b": report.logs.bandwidth = Some("b".into());
    "write_iops_log=i": report.logs.iops = Some("i".into());
    "write_lat_log=l": report.logs.latency = Some("l".into());
    "write_hist_log=h": report.logs.histogram = Some("h".into());
    "log_avg_msec=100": report.logs.average = Nanos(100_000_000);
    "log_hist_msec=1000": report.logs.histogram_every = Nanos(1_000_000_000);
    "log_offset=1": report.logs.offsets = true;
    "rw=read:-4k": rw = Some(Directions::READ), rw_number = Some(-4096);
    "slat_percentiles=1": report.shown.slat_percentiles = true;
    "stats=0": report.left_out.all = true;
    "disable_lat=1": report.left_out.lat = true;
    "disable_clat=1": report.left_out.clat = true;
    "disable_slat=1": report.left_out.slat = true;
    "disable_bw_measurement=1": report.left_out.samples = true;
    "disable_bw=1": report.left_out.samples = true;
    "gtod_reduce=1": gtod_reduce = Some(true);
    "clocksource=cpu": clocksource = Some("cpu".into());
    "job_start_clock_id=1": report.job_start_clock = 1;
    "bwavgtime=100": bwavgtime = Some(Nanos(100_000_000));
    "iopsavgtime=2s": iopsavgtime = Some(Nanos(2_000_000_000));
    "unit_base=1": report.shown.bits = true;
    "significant_figures=10": report.shown.significant_figures = 10;
    "per_job_logs=0": report.logs.one_file = true;
    "log_window_value=both": report.logs.values = rbench_plan::jobs::WindowValue::Both;
    "log_max_value=1": report.logs.values = rbench_plan::jobs::WindowValue::Max;
    "log_prio=1": report.logs.priority = true;
    "log_hist_coarseness=6": report.logs.coarseness = 6;
    "log_unix_epoch=1": report.logs.of_clock = true;
    "log_alternate_epoch=1": report.logs.of_clock = true;
    "log_alternate_epoch_clock_id=1": report.logs.clock = 1;
    "log_entries=2k";
    "log_compression=1m";
    "log_compression_cpus=0-1";
};

/// An option of the command line, and the change that it makes.
type LineSample = (&'static str, fn(&mut Line));

const LINE_OPTIONS: &[LineSample] = samples! {
    "--output=r.txt": view.output = Some("r.txt".into());
    "--output-format=json": view.formats = vec!["json"];
    "--minimal": view.formats = vec!["terse"];
    "--append-terse": append_terse = true;
    "--terse-version=4": view.terse_version = Some(4);
    "--status-interval=2": view.status_interval = Some(Nanos(2_000_000_000));
    "--eta=never": output.progress = Progress::Off;
    "--eta-newline=1":
        view.progress_every = Some(Nanos(1_000_000_000)),
        output.progress = Progress::Plain;
    "--eta-interval=500ms": view.progress_every = Some(Nanos(500_000_000));
    "--readonly": fio.readonly = true;
    "--section=a": sections = vec!["a".into()];
    "--showcmd": show_command = true;
    "--parse-only": view.parse_only = true;
    "--bandwidth-log": fio.whole.rates = true;
    "--idle-prof=percpu": fio.whole.idle = true, view.idle = Some(IdleReport::EachCpu);
    "--idle-prof=calibrate": tool = Some(FioTool::Calibrate);
    "--aux-path=a": fio.whole.aux = "a".into();
    "--trigger-file=f": fio.whole.trigger.file = Some("f".into());
    "--trigger-timeout=3": fio.whole.trigger.after = Some(Nanos(3_000_000_000));
    "--trigger-timeout=0";
    "--trigger=sync": fio.whole.trigger.command = Some("sync".into());
    "--trigger-remote=sync": fio.whole.trigger.remote = Some("sync".into());
    "--debug=file,time": view.debug = vec!["file", "time"];
    "--inflate-log=l.fz": tool = Some(FioTool::Inflate("l.fz".into()));
    "--crctest=md5,crc7":
        tool = Some(FioTool::Checksums(vec![("md5", Checksum::Md5), ("crc7", Checksum::Crc7)]));
    "--cpuclock-test": tool = Some(FioTool::ClockTest);
    "--warnings-fatal";
    "--max-jobs=100";
    "--alloc-size=65536";
    "--rbench-report": view.report = true;
    "--out=r.json": output.out = Some("r.json".into());
    "--rbench-overwrite": output.overwrite = true;
    "--label=a=b=c": output.labels = vec![("a".into(), "b=c".into())];
    "--progress=plain": output.progress = Progress::Plain;
    "--serve=127.0.0.1:9180":
        output.serve.at = Some(ServeAt::Tcp("127.0.0.1:9180".parse().expect("an address")));
    "--serve-remote": output.serve.remote = true;
    "--quiet": output.quiet = true;
    "--rbench-no-round-trip": output.no_round_trip = true;
    "--rbench-client-cache=2g": output.client_cache = Some(rbench_core::Bytes(2 << 30));
    "--rbench-watch=17": output.watch = Some(rbench_core::client::Watch::Process(17));
    "--rbench-event=failover@3s=true":
        output.events = vec!["failover@3s=true".parse().expect("an event")];
    "--iterations=2": common.iterations = Some(2);
    "--shift=2": common.shift = Some(2);
    "--ack-journal=/var/acks": fio.ack_journal = Some("/var/acks".into());
    "--drop-caches": common.drop_caches = true;
    "--private-dirs": common.leave.private_dirs = true;
    "--overfill": common.leave.overfill = true;
    "--untried": common.leave.untried = true;
    "--on-error=stop": common.limits.on_error = Some(OnError::Stop);
    "--max-errors=7": common.limits.max_errors = Some(7);
    "--op-timeout=2m": common.limits.op_timeout = Some(Nanos(120_000_000_000));
    "--on-dead-mount=continue": common.limits.on_dead_mount = Some(OnError::Continue);
    "--communicator=solo": output.start.communicator = Communicator::Solo;
    "--start-timeout=30s": output.start.timeout = Some(Nanos(30_000_000_000));
};

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

/// Returns true if an option fills the field of its name by the rules of a plain kind.
fn is_plain(option: &Opt) -> bool {
    let kinds = ["flag", "switch", "number", "size", "percent", "time"];
    kinds.contains(&option.kind)
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
        if matches!(option.does, Does::Text(_) | Does::Name) || is_plain(option) {
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
    let plain = table::options().filter(|option| is_plain(option) && option.in_files());
    for option in plain.filter(|option| !sampled.contains(&option.name)) {
        let value = match option.takes {
            Takes::Switch | Takes::Value("0|1") => "1",
            _ => "100",
        };
        all.push(format!("{}={value}", option.name));
    }
    let all = format!("--name=a --{} --rate=1m --ba=4k", all.join(" --"));
    let settings = &jobs(&all)[0].settings;
    // These have fields that no option sets. Rows that set a field of them name it, and so need a sample.
    let plan = [
        format!("{:?}", settings.plan),
        format!("{:?}", settings.report),
        format!("{:?}", settings.checks),
        format!("{:?}", settings.replay),
    ];
    let whole = format!("{settings:?}");
    let shown = plan
        .iter()
        .fold(whole, |shown, part| shown.replace(part, ""));
    assert!(!shown.contains("None,"), "{shown}");
}

#[test]
fn the_command_lines_of_the_published_evaluations_are_read_as_they_were_meant() {
    const LINES: &[JobSample] = samples! {
        "--name=big-write --directory=D --rw=write --refill_buffers --bs=4M --size=4G --numjobs=4 \
         --end_fsync=1 --group_reporting":
            plan.files.directory = "D".into(), rw = Some(Directions::WRITE),
            plan.buffers.refill = true, bs = both(4 << 20), size = Some(Extent::Bytes(4 << 30)),
            plan.numjobs = 4, plan.syncing.end_fsync = true, report.group_reporting = true;
        "--name=big-file-rand-read --directory=D --rw=randread --refill_buffers --size=4G \
         --filename=randread.bin --bs=16k --pre_read=1":
            plan.files.directory = "D".into(), rw = Some(Directions::READ.at_random()),
            plan.buffers.refill = true, size = Some(Extent::Bytes(4 << 30)),
            filename = Some(vec!["randread.bin".into()]), filename_directories = vec!["D".into()],
            bs = both(16 << 10), plan.files.pre_read = true;
        "--name=small-file-seq-write --directory=D --rw=write --file_service_type=sequential \
         --bs=128k --filesize=128k --nrfiles=1000 --numjobs=16":
            plan.files.directory = "D".into(), rw = Some(Directions::WRITE),
            plan.files.service = FileService::Sequential, bs = both(128 << 10),
            filesize = Some((128 << 10, 128 << 10)), nrfiles = Some(1000), plan.numjobs = 16;
        "-directory=D -ioengine=psync -rw=randread -bs=4k -direct=1 -group_reporting=1 -fallocate=none \
         -time_based=1 -runtime=120 -name=test_file_c1 -numjobs=64 -nrfiles=1 -size=10G":
            plan.files.directory = "D".into(), ioengine = Some("psync".into()),
            rw = Some(Directions::READ.at_random()), bs = both(4096), plan.direct = true,
            report.group_reporting = true, plan.files.fallocate = Fallocate::None,
            plan.pace.time_based = true, plan.pace.runtime = Some(Nanos(120_000_000_000)), plan.numjobs = 64,
            nrfiles = Some(1), size = Some(Extent::Bytes(10 << 30));
        "--name=big-file-multi-read --directory=D --rw=read --refill_buffers --bs=256k --size=4G \
         --numjobs=8":
            plan.files.directory = "D".into(), rw = Some(Directions::READ), plan.buffers.refill = true,
            bs = both(256 << 10), size = Some(Extent::Bytes(4 << 30)), plan.numjobs = 8;
    };
    for (text, change) in LINES {
        let mut expect = Settings::default();
        change(&mut expect);
        assert_eq!(jobs(text)[0].settings, expect, "{text}");
    }
}
