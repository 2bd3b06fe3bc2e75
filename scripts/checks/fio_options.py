"""Every option of fio against fio itself, or why it is refused.

usage: fio_options.py PROGRAM [--only NAME…] [--write]
       --only: these options, with what differs
       --write: writes docs/fio-options.md, which otherwise has to be what the checks found

fio (3.33, as Debian has it) and the program run the same command lines, each in a folder of its own. What has to be
the same is said by the line's kind:
  same    exit code, files and their sizes, I/Os, bytes and syncs of each direction of each entry, keys of the JSON,
          names, lines and columns of logs
  sum     the same, but reads and writes of a mix are drawn: their sum
  timed   the same, but time decides how much is done: that there is some. Tried again, since fio itself fails where
          a busy machine keeps it from its latency or rate
  files   exit code and files only
  data    the same as `same`, and the files hold the same bytes
  disks   the same as `same` on a disk, with the same devices and keys of them
  inflated  the same as `same`, and each tool inflates the compressed logs of both to the same text
  ratio   the same as `timed` for two jobs of a flow, and their I/Os are in the ratio of its weights
  fails   both refuse it or fail, and the files are the same
A third entry says why the two differ, on purpose; when they do not any more, that is a failure as well.
"""

import argparse
import atexit
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from common import check, finish, heading

DOC = pathlib.Path(__file__).resolve().parents[2] / "docs/fio-options.md"
DIRECTIONS = ("read", "write", "trim")
# What depends on time is tried so often before it counts as wrong.
TRIES = 5
# Of disks, which not every file system has, and what depends on what was measured.
VARIABLE = {"disk_util", "percentile", "bins", "steadystate"}
# Options that fio has gained after 3.33; they can only be held against their description.
NEWER = {
    "comm": "jobs/process.rs", "end_syncfs": "rbench-exec, jobs/filled.rs", "filetype": "accepted, it changes nothing: files are looked at",
    "job_start_clock_id": "rbench-cli, that it is read", "log_window_value": "rbench-report, unit tests of logs",
    "log_issue_time": "rbench-report, unit tests of logs", "priohint": "rbench-plan, unit tests of process", "ramp_size": "rbench-exec, jobs/course.rs",
    "random_sequence_stride": "scripts/checks/offsets.py", "steadystate_check_interval": "rbench-exec, jobs/course.rs",
    "thinkcycles": "jobs/pace.rs", "verify_header_seed": "rbench-cli, that it is read",
    "verify_write_sequence": "rbench-cli, that it is read", "verify_pattern_interval": "rbench-exec, unit tests of the layout",
    "verify_policy": "rbench-exec, unit tests of progress and jobs/verify.rs",
}

# Option → (kind, what follows `--name=o`), in {dir} a folder with a file "have" of 64 KiB and one "job.fio".
WRITE, READ = "--rw=write --size=64k", "--rw=read --size=64k"
RAND, MIX = "--rw=randread --size=256k", "--rw=randrw --size=256k"
LIBAIO = "--ioengine=libaio --iodepth=8 --rw=randread --size=256k"
URING = "--ioengine=io_uring --iodepth=8 --rw=randread --size=256k"
VERIFY = "--rw=write --size=64k --verify=crc32c"
LONG = "--rw=read --size=64k --time_based --runtime=60"
# Two jobs of a flow, by time.
RATIO = "--ioengine=null --rw=read --size=1m --time_based --runtime=1 --thread"
NAMES = "--ioengine={} --filesize=16k --nrfiles=10"
TRIM, TRIMWRITE = "--ioengine=falloc --rw=trim --size=64k", "--ioengine=falloc --rw=trimwrite --size=64k"
TRIM_BACKLOG = "fio 3.33 is aborted by an assertion where a job that writes is to trim"
CASES = {
    "allow_file_create": [("same", f"{WRITE} --allow_file_create=1"), ("fails", f"{WRITE} --allow_file_create=0")],
    "allow_mounted_write": [("same", f"{WRITE} --allow_mounted_write=0")],
    "allrandrepeat": [("same", f"{RAND} --allrandrepeat=1")],
    "atomic": [("files", f"{WRITE} --ioengine=libaio --atomic=0")],
    "ba": [("same", f"{RAND} --ba=8k --norandommap"), ("same", f"{RAND} --blockalign=8k --norandommap")],
    "block_error_percentiles": [("same", f"{READ} --block_error_percentiles=1")],
    "bs": [("same", f"{WRITE} --bs=16k"), ("same", f"{WRITE} --blocksize=8k,4k"),
           ("same", f"{TRIM} --bs=4k,8k,16k"), ("same", f"{TRIM} --bs=4k,8k"), ("same", f"{TRIM} --bs=8k,8k,"),
           ("same", f"{TRIMWRITE} --bs=4k,8k,16k", "fio leaves the end of what it has trimmed unwritten"),
           ("same", f"{TRIMWRITE} --bs=4k,8k,4k", "fio loses the trims of the blocks behind the first two")],
    "bs_is_seq_rand": [("same", "--rw=read --size=256k --bs=16k,4k --bs_is_seq_rand=1"),
                       ("same", "--rw=randread --size=256k --bs=16k,4k --bs_is_seq_rand=1",
                        "fio's map has as many blocks as there are of the other size, and most of the file is left out")],
    "bs_unaligned": [("sum", "--rw=write --io_size=64k --size=64k --bsrange=512-4k --bs_unaligned=1")],
    "bsrange": [("sum", "--rw=write --size=1m --bsrange=4k-4k"), ("same", f"{TRIM} --bsrange=4k-8k,4k-8k,16k-16k")],
    "bssplit": [("same", "--rw=write --size=1m --bssplit=4k/100"), ("same", f"{TRIM} --bssplit=4k/100,8k/100,16k/100")],
    "buffer_compress_chunk": [("same", f"{WRITE} --buffer_compress_percentage=50 --buffer_compress_chunk=1k")],
    "buffer_compress_percentage": [("same", f"{WRITE} --buffer_compress_percentage=50")],
    "buffer_pattern": [("data", f"{WRITE} --buffer_pattern=0xdeadface"), ("data", f'{WRITE} --buffer_pattern="abcd"'),
                       ("data", f'{WRITE} --buffer_pattern="ab"-7'), ("data", f'{WRITE} --buffer_pattern="ab"-120x11'), ("fails", f'{WRITE} --buffer_pattern="ab"-7-0x12'),
                       ("fails", f"{WRITE} --buffer_pattern=%o"),
                       ("data", f"{WRITE} --buffer_pattern='{{dir}}/pattern'")],
    "buffered": [("same", f"{WRITE} --buffered=1")],
    "bwavgtime": [("timed", f"{READ} --time_based --runtime=1 --bwavgtime=100")],
    "clat_percentiles": [("same", f"{READ} --clat_percentiles=0")],
    "clocksource": [("same", f"{READ} --clocksource=clock_gettime"), ("same", f"{READ} --clocksource=gettimeofday")],
    "continue_on_error": [("same", f"{READ} --continue_on_error=all")],
    "cpumask": [("same", f"{READ} --cpumask=1")],
    "cpus_allowed": [("same", f"{READ} --cpus_allowed=0"), ("same", f"{READ} --cpus_allowed=0-1"),
                     ("fails", f"{WRITE} --cpus_allowed=4000")],
    "cpus_allowed_policy": [("same", f"{READ} --numjobs=3 --cpus_allowed=0-1 --cpus_allowed_policy=split")],
    "create_fsync": [("same", f"{READ} --create_fsync=0")],
    "create_on_open": [("same", f"{WRITE} --create_on_open=1")],
    "create_only": [("same", f"{READ} --create_only=1")],
    "create_serialize": [("same", f"{READ} --create_serialize=0 --numjobs=2")],
    "dedupe_global": [("same", "--rw=write --size=1m --dedupe_percentage=50 --dedupe_mode=working_set --dedupe_global=1")],
    "dedupe_mode": [("same", "--rw=write --size=1m --dedupe_percentage=50 --dedupe_mode=working_set"),
                    ("same", f"{WRITE} --dedupe_percentage=50 --dedupe_mode=repeat")],
    "dedupe_percentage": [("same", f"{WRITE} --dedupe_percentage=50")],
    "dedupe_working_set_percentage": [("same", f"{WRITE} --dedupe_percentage=50 --dedupe_mode=working_set "
                                               "--dedupe_working_set_percentage=20")],
    "description": [("same", f"{READ} --description=words")],
    "direct": [("same", f"{WRITE} --direct=1"), ("same", f"{RAND} --direct=1")],
    "directory": [("same", f"{WRITE} --directory={{dir}}"), ("same", f"{WRITE} --nrfiles=4 --directory={{dir}}/d1:{{dir}}/d2"),
                  ("same", f"{WRITE} --numjobs=3 --directory={{dir}}/d1:{{dir}}/d2"),
                  ("same", f"{WRITE} --filename=x --directory={{dir}}/d1"), ("fails", f"{WRITE} --directory={{dir}}/none")],
    "disable_bw_measurement": [("same", f"{READ} --disable_bw_measurement=1")],
    "disable_clat": [("same", f"{READ} --disable_clat=1")],
    "disable_lat": [("same", f"{READ} --disable_lat=1")],
    "disable_slat": [("same", f"{LIBAIO} --disable_slat=1")],
    "disk_util": [("same", f"{READ} --disk_util=0"), ("disks", f"{WRITE} --end_fsync=1"),
                  ("disks", f"{WRITE} --nrfiles=3 --directory={{dir}}/d1:{{dir}}/d2 --disk_util=1")],
    "do_verify": [("same", f"{VERIFY} --do_verify=0"), ("same", f"{VERIFY} --do_verify=1")],
    "end_fsync": [("same", f"{WRITE} --end_fsync=1")],
    "error_dump": [("same", f"{READ} --error_dump=1")],
    "exec_postrun": [("same", f"{READ} --exec_postrun=true")],
    "exec_prerun": [("same", f"{READ} --exec_prerun=true"), ("fails", f"{READ} --exec_prerun=false",
                                                             "fio ends without a report, and with exit code 0")],
    "exit_what": [("timed", f"{READ} --rate_iops=100 --exitall --exit_what=group --name=p --rw=read --size=64k --time_based --runtime=30"),
                  ("timed", f"{READ} --rate_iops=100 --exitall --exit_what=stonewall --name=p --new_group {LONG}"),
                  ("timed", f"{READ} --rate_iops=100 --exitall --exit_what=all --name=p --new_group {LONG}"),
                  ("fails", f"{READ} --exitall --exit_what=none")],
    "exitall": [("timed", f"{READ} --rate_iops=100 --exitall --name=p {LONG}")],
    "exitall_on_error": [("same", f"{READ} --exitall_on_error")],
    "experimental_verify": [("same", f"{VERIFY} --experimental_verify=1")],
    "fadvise_hint": [("same", f"{READ} --fadvise_hint=0"), ("same", f"{READ} --fadvise_hint=random")],
    "fallocate": [("same", f"{WRITE} --fallocate={how}") for how in ("none", "native", "posix", "keep", "truncate")],
    "fdatasync": [("same", f"{WRITE} --fdatasync=4", "fio 3.33 counts fdatasync among short reads, not among syncs")],
    "file_append": [("same", "--rw=write --size=64k --filename={dir}/have --file_append=1"),
                    ("same", "--rw=write --size=16k --file_append=1 --nrfiles=2"),
                    ("same", "--rw=write --size=16k --filename={dir}/have --file_append=1 --numjobs=2"),
                    ("same", "--rw=read --size=16k --filename={dir}/have --file_append=1",
                     "fio lays out what it reads behind the end: rbench refuses")],
    "file_service_type": [("same", f"{WRITE} --nrfiles=4 --file_service_type={how}")
                          for how in ("random", "roundrobin", "sequential", "roundrobin:2")],
    "filename": [("same", f"{WRITE} --filename=x:y"), ("same", "--rw=read --size=64k --filename={dir}/have")],
    "filename_format": [("same", f"{WRITE} --nrfiles=2 --filename_format=q.$jobname.$filenum")],
    "filesize": [("same", "--rw=write --filesize=8k --nrfiles=4"), ("same", "--rw=read --filesize=16k")],
    "fill_device": [("files", f"{READ} --fill_device=0")],
    "flow": [("same", f"{READ} --flow=1"), ("same", f"{READ} --flow=1 --name=p --rw=write --size=32k --flow=3"),
             ("ratio", f"{RATIO} --flow=3 --name=p {RATIO} --flow=1"),
             ("ratio", f"{RATIO} --flow=1 --flow_sleep=100 --name=p {RATIO} --flow=4 --flow_sleep=100")], "flow_id": [("same", f"{READ} --flow=1 --flow_id=3")],
    "flow_sleep": [("same", f"{READ} --flow=1 --flow_sleep=10")], "flow_watermark": [("same", f"{READ} --flow_watermark=1k")],
    "fsync": [("same", f"{WRITE} --fsync=4")],
    "fsync_on_close": [("same", f"{WRITE} --fsync_on_close=1")],
    "gid": [("same", f"{READ} --gid=0")],
    "group_reporting": [("same", f"{WRITE} --numjobs=3 --group_reporting")],
    "gtod_cpu": [], "gtod_reduce": [("same", f"{READ} --gtod_reduce=1")],
    "hugepage-size": [("same", f"{READ} --hugepage-size=2m"), ("same", f"{READ} --mem=mmap --hugepage-size=4m")],
    "ignore_error": [("same", f"{READ} --ignore_error=EIO,ENOSPC")],
    "invalidate": [("same", f"{READ} --invalidate=0")],
    "io_size": [("same", f"{WRITE} --io_size=256k"), ("same", f"{RAND} --io_size=64k"), ("same", f"{READ} --io_limit=16k"),
                ("same", f"{TRIMWRITE} --io_size=16k"), ("same", f"{TRIM} --io_size=128k"),
                ("same", "--rw=read --io_size=50% --filename={dir}/have"), ("fails", f"{READ} --io_size=200%")],
    # With offload fio 3.33 itself hangs now and then, reading, too: rbench-exec, jobs/course.rs.
    "io_submit_mode": [("same", f"{WRITE} --io_submit_mode=inline"), ("fails", f"{WRITE} --io_submit_mode=foo")],
    "iodepth": [("same", LIBAIO), ("same", URING)],
    "iodepth_batch": [("same", f"{LIBAIO} --iodepth_batch=4"), ("same", f"{LIBAIO} --iodepth_batch_submit=8")],
    "iodepth_batch_complete_max": [("same", f"{LIBAIO} --iodepth_batch_complete_max=4")],
    "iodepth_batch_complete_min": [("same", f"{LIBAIO} --iodepth_batch_complete_min=2")],
    "iodepth_low": [("same", f"{LIBAIO} --iodepth_low=2")],
    "ioengine": [("same", f"{WRITE} --ioengine={name}") for name in
                 ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "posixaio", "io_uring", "splice")]
    + [("same", f"{WRITE} --ioengine=null"), ("same", f"{WRITE} --ioengine=falloc"),
       ("same", "--rw=write --size=64k --ioengine=ftruncate"),
       ("same", f"{NAMES.format('filecreate')} --fallocate=none --create_on_open=1 --openfiles=1"),
       ("same", f"{NAMES.format('filecreate')} --rw=randwrite --unlink=1"), ("same", f"{NAMES.format('filestat')} --loops=3"),
       ("same", f"{NAMES.format('filestat')} --rw=write --bs=4k,1k --numjobs=2"), ("sum", f"{NAMES.format('filestat')} --rw=rw"),
       ("same", NAMES.format("filedelete")), ("same", f"{NAMES.format('filedelete')} --filename=x:y --create_fsync=0"),
       ("fails", f"{NAMES.format('filedelete')} --loops=2"), ("fails", f"{NAMES.format('filestat')} --create_on_open=1"),
       ("same", f"{NAMES.format('filestat')} --iodepth=8 --direct=1 --file_service_type=random")],
    "iopsavgtime": [("timed", f"{READ} --time_based --runtime=1 --iopsavgtime=100")],
    "kb_base": [("same", "--kb_base=1000 --rw=write --size=64k --bs=4k"), ("same", "--rw=write --size=64ki --bs=4ki"),
                ("same", "--rw=write --size=64kib --bs=4KiB")],
    "lat_percentiles": [("same", f"{READ} --lat_percentiles=1")],
    "latency_percentile": [("timed", f"{READ} --time_based --runtime=1 --latency_target=30s --latency_window=100ms "
                                     "--latency_percentile=50")],
    "latency_run": [("timed", f"{LIBAIO} --time_based --runtime=1 --latency_target=30s --latency_window=100ms "
                              "--latency_run=1")],
    "latency_target": [("timed", f"{READ} --time_based --runtime=1 --latency_target=30s --latency_window=100ms")],
    "latency_window": [("timed", f"{READ} --time_based --runtime=1 --latency_target=30s --latency_window=50ms")],
    "lockfile": [("same", f"{WRITE} --lockfile=none"),
                 ("same", f"{WRITE} --lockfile=exclusive"), ("same", f"{WRITE} --lockfile=readwrite --filename=x --numjobs=2 --thread"),
                 ("fails", f"{WRITE} --lockfile=foo")],
    "lockmem": [("same", f"{READ} --lockmem=1m"), ("same", f"{READ} --lockmem=64k --numjobs=2")],
    "log_alternate_epoch": [("same", f"{READ} --write_bw_log=l --log_alternate_epoch=1")],
    "log_alternate_epoch_clock_id": [("same", f"{READ} --write_bw_log=l --log_alternate_epoch=1 "
                                              "--log_alternate_epoch_clock_id=1")],
    "log_avg_msec": [("timed", f"{READ} --time_based --runtime=1 --write_bw_log=l --log_avg_msec=100")],
    "log_compression": [("same", f"{READ} --write_lat_log=l --log_compression=64k")],
    "log_compression_cpus": [("same", f"{READ} --write_lat_log=l --log_compression=64k --log_compression_cpus=0")],
    "log_entries": [("same", f"{READ} --write_lat_log=l --log_entries=2k"), ("fails", f"{READ} --write_lat_log=l --log_entries=64")],
    "log_hist_coarseness": [("timed", f"{READ} --time_based --runtime=1 --write_hist_log=l --log_hist_msec=200 "
                                      "--log_hist_coarseness=3")],
    "log_hist_msec": [("timed", f"{READ} --time_based --runtime=1 --write_hist_log=l --log_hist_msec=200")],
    "log_max_value": [("timed", f"{READ} --time_based --runtime=1 --write_lat_log=l --log_avg_msec=100 --log_max_value=1")],
    "log_offset": [("same", f"{READ} --write_lat_log=l --log_offset=1"),
                   ("same", f"{TRIMWRITE} --write_lat_log=l --log_offset=1")],
    "log_prio": [("same", f"{READ} --write_lat_log=l --log_prio=1")],
    "log_store_compressed": [("inflated", f"{READ} --write_lat_log=l --log_compression=64k --log_store_compressed=1"),
                             ("inflated", f"{WRITE} --numjobs=2 --write_lat_log=l --write_bw_log=l --log_offset=1 --log_prio=1 "
                                          "--per_job_logs=0 --log_store_compressed=1")],
    "log_unix_epoch": [("same", f"{READ} --write_bw_log=l --log_unix_epoch=1")],
    "loops": [("same", f"{WRITE} --loops=3"), ("same", f"{READ} --loops=2"), ("same", f"{TRIMWRITE} --loops=2")],
    "max_latency": [("same", f"{READ} --max_latency=10s")],
    "mem": [("same", f"{READ} --mem=malloc"), ("same", f"{READ} --iomem=mmap"), ("same", f"{READ} --mem=shm"),
            ("same", f"{READ} --mem=mmapshared"), ("same", f"{WRITE} --mem=mmap:{{dir}}/m"), ("fails", f"{WRITE} --mem=shmhuge"),
            ("fails", f"{WRITE} --mem=mmaphuge", "fio makes the file before it says so"), ("fails", f"{WRITE} --mem=cudamalloc"), ("fails", f"{WRITE} --mem=foo"),
            ("data", f"{WRITE} --mem=shm --buffer_pattern=0xdeadface"),
            ("data", f"{WRITE} --mem=mmap:{{dir}}/m --buffer_pattern=0xdeadface --iomem_align=512")],
    "iomem_align": [("same", f"{READ} --iomem_align=512"), ("same", f"{WRITE} --direct=1 --mem_align=4k"),
                    ("same", f"{LIBAIO} --direct=1 --iomem_align=512")],
    "name": [("same", f"{READ} --name=second --rw=write --size=32k")],
    "new_group": [("same", f"{READ} --group_reporting --name=p --new_group --rw=read --size=64k")],
    "nice": [("same", f"{READ} --nice=2")],
    "norandommap": [("same", f"{RAND} --norandommap")],
    "nrfiles": [("same", f"{WRITE} --nrfiles=4"), ("same", f"{READ} --nrfiles=3 --numjobs=2")],
    "numa_cpu_nodes": [("same", f"{READ} --numa_cpu_nodes=0")],
    "numa_mem_policy": [("same", f"{READ} --numa_mem_policy=bind:0"), ("same", f"{READ} --numa_mem_policy=local")],
    "number_ios": [("same", f"{WRITE} --number_ios=5"), ("same", f"{RAND} --number_ios=7"),
                   ("same", f"{TRIMWRITE} --number_ios=3")],
    "numjobs": [("same", f"{WRITE} --numjobs=3")],
    "offset": [("same", f"{WRITE} --offset=16k"), ("same", "--rw=read --size=100% --offset=25% --filename={dir}/have"),
               ("same", "--rw=read --filesize=64k --offset=16k --nrfiles=2"),
               ("same", f"{READ} --offset=25%", "of a file that is not there fio takes 0 bytes, and of the one it has left 25%"),
               ("same", "--rw=write --size=64k --offset=25% --filename={dir}/have",
                "fio makes the file longer, by 25% more with every run")],
    "offset_align": [("same", "--rw=read --size=16k --offset=30% --offset_align=4k --filename={dir}/have"),
                     ("same", "--rw=read --size=16k --offset=30% --offset_align=16k --filename={dir}/have")],
    "offset_increment": [("same", "--rw=read --size=16k --offset_increment=16k --numjobs=3 --filename={dir}/have"),
                         ("same", "--rw=read --size=8k --offset_increment=10% --numjobs=3 --filename={dir}/have")],
    "opendir": [("same", "--rw=read --opendir={dir}/tree"), ("same", "--rw=read --opendir={dir}/tree --filename={dir}/have"),
                ("fails", "--rw=read --opendir={dir}/none")],
    "openfiles": [("same", f"{WRITE} --nrfiles=4 --openfiles=2")],
    "overwrite": [("same", f"{WRITE} --overwrite=1")],
    "per_job_logs": [("same", f"{READ} --numjobs=2 --write_lat_log=l --per_job_logs=0"),
                     ("same", f"{READ} --numjobs=2 --write_lat_log=l --per_job_logs=1")],
    "percentage_random": [("same", f"{RAND} --percentage_random=50 --norandommap"),
                          ("same", "--ioengine=falloc --rw=randtrim --size=256k --percentage_random=50,50,0")],
    "percentage_sequential": [],
    "percentile_list": [("same", f"{READ} --percentile_list=50:99.9")],
    "pre_read": [("same", f"{READ} --pre_read=1")],
    "prio": [("same", f"{READ} --prio=3")], "prioclass": [("same", f"{READ} --prioclass=2")],
    "ramp_time": [("timed", f"{READ} --time_based --runtime=1 --ramp_time=200ms")],
    "random_distribution": [("same", f"{RAND} --random_distribution={how}") for how in
                            ("random", "zipf:1.1", "pareto:0.2", "normal:20", "zoned:50/10:50/90",
                             "zoned_abs:50/64k:50/192k")],
    "random_generator": [("same", f"{RAND} --random_generator={how}") for how in ("tausworthe", "lfsr", "tausworthe64")],
    "randrepeat": [("same", f"{RAND} --randrepeat=0")], "randseed": [("same", f"{RAND} --randseed=7")],
    "rate": [("timed", f"{READ} --time_based --runtime=1 --rate=1m"), ("same", f"{READ} --rate=10m"), ("same", f"{TRIM} --rate=1,1,10m")],
    "rate_cycle": [("same", f"{READ} --rate=10m --rate_min=1k --rate_cycle=500")],
    "rate_ignore_thinktime": [("same", f"{READ} --rate=10m --thinktime=10 --rate_ignore_thinktime=1")],
    "rate_iops": [("same", f"{READ} --rate_iops=1000"), ("same", f"{TRIM} --rate_iops=1,1,1000")],
    "rate_iops_min": [("same", f"{READ} --rate_iops=1000 --rate_iops_min=1")],
    "rate_min": [("same", f"{READ} --rate=10m --rate_min=1k")],
    "rate_process": [("same", f"{READ} --rate_iops=1000 --rate_process=poisson")],
    "read_iolog": [("same", "--read_iolog={dir}/trace.log"), ("same", "--read_iolog={dir}/trace3.log"),
                   ("same", "--read_iolog={dir}/trace.log:{dir}/trace3.log --numjobs=3"), ("fails", "--read_iolog={dir}/have"),
                   ("fails", "--read_iolog={dir}/none"), ("same", "--read_iolog={dir}/trace.log --directory={dir}",
                                                          "fio is ended by a segmentation fault")],
    "read_iolog_chunked": [("same", "--read_iolog={dir}/trace.log --read_iolog_chunked=1"),
                           ("same", "--read_iolog={dir}/trace3.log --read_iolog_chunked=1")],
    "refill_buffers": [("same", f"{WRITE} --refill_buffers")],
    "replay_align": [("same", "--read_iolog={dir}/trace.log --replay_align=4k"),
                     ("fails", "--read_iolog={dir}/trace.log --replay_align=3000")],
    "replay_no_stall": [("same", "--read_iolog={dir}/trace3.log --replay_no_stall=1")],
    "replay_redirect": [("same", "--read_iolog={dir}/trace.log --replay_redirect={dir}/have")],
    "replay_scale": [("same", "--read_iolog={dir}/trace.log --replay_scale=2"),
                     ("same", "--read_iolog={dir}/trace.log --replay_scale=0")],
    "replay_skip": [("same", "--read_iolog={dir}/trace.log --replay_skip=write",
                     "fio 3.33 skips nothing but in traces of blktrace"),
                    ("fails", "--read_iolog={dir}/trace.log --replay_skip=bogus")],
    "replay_time_scale": [("same", "--read_iolog={dir}/trace3.log --replay_time_scale=50"),
                          ("fails", "--read_iolog={dir}/trace3.log --replay_time_scale=0")],
    "runtime": [("timed", f"{READ} --time_based --runtime=1"), ("same", f"{READ} --runtime=10")],
    "rw": [("same", f"--rw={rw} --size=64k") for rw in ("read", "write", "randread", "randwrite")]
    + [("sum", f"--rw={rw} --size=64k") for rw in ("rw", "readwrite", "randrw")]
    + [("same", f"--rw={rw} --size=64k") for rw in ("read:4k", "write:4k", "randwrite:2")]
    + [("same", f"{engine} --rw={rw} --size=64k") for engine in ("--ioengine=falloc", "--ioengine=null")
       for rw in ("trim", "randtrim", "trimwrite", "randtrimwrite")]
    + [("same", f"--rw={rw} --size=64k", "fio trims nothing but block devices (ENOTTY); here a trim of a file is a punched hole")
       for rw in ("trim", "randtrim", "trimwrite", "randtrimwrite")],
    "rw_sequencer": [("same", "--rw=randread:4 --rw_sequencer=sequential --size=64k"),
                     ("same", "--rw=randread:4 --rw_sequencer=identical --size=64k")],
    "rwmixcycle": [], "rwmixread": [("sum", f"{MIX} --rwmixread=30")], "rwmixwrite": [("sum", f"{MIX} --rwmixwrite=30")],
    "scramble_buffers": [("same", f"{WRITE} --scramble_buffers=0")],
    "serialize_overlap": [("same", f"{LIBAIO} --serialize_overlap=1"), ("same", f"{LIBAIO} --norandommap --serialize_overlap=1")],
    "significant_figures": [("same", f"{READ} --significant_figures=6")],
    "size": [("same", "--rw=write --size=100k"), ("same", "--rw=write --size=10000"),
             ("same", "--rw=read --size=50% --filename={dir}/have"), ("same", "--rw=read --size=50% --filesize=64k --nrfiles=2"),
             ("same", "--rw=read --size=50% --offset=48k --filename={dir}/have:{dir}/patterned"), ("fails", f"{READ} --size=1%")],
    "slat_percentiles": [("same", f"{LIBAIO} --slat_percentiles=1")],
    "softrandommap": [("same", f"{RAND} --softrandommap=1")],
    "startdelay": [("same", f"{READ} --startdelay=100ms")],
    "stats": [("same", f"{READ} --stats=0 --name=p --rw=read --size=64k",
                                                                    "fio prints an entry without a name for such jobs"), ("same", f"{READ} --stats=1")],
    "steadystate": [("timed", f"{READ} --time_based --runtime=2 --ss=iops:90% --ss_dur=1s")],
    "steadystate_duration": [("timed", f"{READ} --time_based --runtime=2 --steadystate=bw:90% --steadystate_duration=1s")],
    "steadystate_ramp_time": [("timed", f"{READ} --time_based --runtime=3 --ss=iops:90% --ss_dur=1s --ss_ramp=1s")],
    "stonewall": [("same", f"{READ} --name=p --stonewall --rw=read --size=64k")],
    "sync": [("same", f"{WRITE} --sync=1"), ("same", f"{WRITE} --sync=dsync")],
    "sync_file_range": [("same", f"{WRITE} --sync_file_range=wait_before,write:4",
                         "fio 3.33 counts them among short reads, not among syncs"),
                        ("same", f"{WRITE} --sync_file_range=write:0"), ("same", f"{READ} --sync_file_range=write:4"),
                        ("fails", f"{WRITE} --sync_file_range=none:4")],
    "thinktime": [("same", f"{READ} --thinktime=100")], "thinktime_blocks": [("same", f"{READ} --thinktime=100 "
                                                                                     "--thinktime_blocks=4")],
    "thinktime_blocks_type": [("same", f"{READ} --thinktime=100 --thinktime_blocks_type=issue")],
    "thinktime_iotime": [("same", f"{READ} --thinktime=100 --thinktime_iotime=10ms")],
    "thinktime_spin": [("same", f"{READ} --thinktime=100 --thinktime_spin=50")],
    "thread": [("same", f"{READ} --thread")], "time_based": [("timed", f"{READ} --time_based --runtime=1")],
    "trim_backlog": [("same", f"{WRITE} --trim_percentage=50 --trim_backlog=4"), ("same", f"{VERIFY} --trim_backlog=4"),
                     ("same", f"{VERIFY} --trim_percentage=100 --trim_backlog=4", TRIM_BACKLOG)],
    "trim_backlog_batch": [("same", f"{WRITE} --trim_percentage=50 --trim_backlog=4 --trim_backlog_batch=2"),
                           ("same", f"{VERIFY} --trim_percentage=100 --trim_backlog=4 --trim_backlog_batch=2", TRIM_BACKLOG)],
    "trim_percentage": [("same", f"{WRITE} --trim_percentage=50"), ("same", f"{VERIFY} --trim_percentage=50")],
    "trim_verify_zero": [("same", f"{WRITE} --trim_percentage=50 --trim_verify_zero=1"),
                         ("same", f"{VERIFY} --trim_percentage=100 --trim_backlog=4 --trim_verify_zero=0", TRIM_BACKLOG)],
    "uid": [("same", f"{READ} --uid=0")],
    "unified_rw_reporting": [("same", f"{MIX} --unified_rw_reporting=1"), ("sum", f"{MIX} --unified_rw_reporting=both"),
                             ("same", f"{WRITE} --unified_rw_reporting=2")],
    "unique_filename": [("same", f"{WRITE} --unique_filename=0")],
    "unit_base": [("same", f"{READ} --unit_base=8")],
    "unlink": [("same", f"{WRITE} --unlink=1")],
    "unlink_each_loop": [("same", f"{WRITE} --loops=2 --unlink_each_loop=1"),
                         ("same", f"{NAMES.format('filecreate')} --loops=3 --unlink_each_loop=1"),
                         ("fails", f"{READ} --loops=2 --unlink_each_loop=1")],
    "verify": [("same", f"--rw=write --size=64k --verify={how}") for how in
               ("md5", "crc64", "crc32", "crc32c", "crc32c-intel", "crc16", "crc7", "xxhash", "sha1", "sha256", "sha512",
                "sha3-224", "sha3-256", "sha3-384", "sha3-512", "meta", "null")]
    + [("same", "--rw=randwrite --size=64k --verify=crc32c"), ("timed", "--rw=randrw --size=64k --verify=crc32c")],
    "verify_async": [("same", f"{VERIFY} --verify_async=2")],
    "verify_async_cpus": [("same", f"{VERIFY} --verify_async=2 --verify_async_cpus=0")],
    "verify_backlog": [("same", f"{VERIFY} --verify_backlog=4")],
    "verify_backlog_batch": [("same", f"{VERIFY} --verify_backlog=4 --verify_backlog_batch=2")],
    "verify_dump": [("same", f"{VERIFY} --verify_dump=1")],
    "verify_fatal": [("same", f"{VERIFY} --verify_fatal=1")],
    "verify_interval": [("same", f"{VERIFY} --verify_interval=512")],
    "verify_offset": [("same", f"{VERIFY} --verify_offset=64")],
    "verify_only": [("same", "--rw=write --size=64k --verify=pattern --verify_pattern=0x5a --filename={dir}/patterned "
                             "--verify_only=1", "fio saves the state of writes that there were none of"), ("fails", f"{VERIFY} --filename={{dir}}/have --verify_only=1")],
    "verify_pattern": [("data", "--rw=write --size=64k --verify=pattern --verify_pattern=0xff%o\"abc\"-12"),
                       ("data", "--rw=write --size=64k --verify=pattern --verify_pattern=%o")],
    "verify_state_load": [("same", f"{VERIFY} --verify_state_load=0")],
    "verify_state_save": [("same", f"{VERIFY} --verify_state_save=1 --do_verify=0"), ("same", f"{VERIFY} --verify_state_save=0")],
    "verifysort": [("same", f"{VERIFY} --verifysort=0")], "verifysort_nr": [("same", f"{VERIFY} --verifysort_nr=4")],
    "wait_for": [("same", f"{READ} --name=p --wait_for=o --rw=read --size=64k")],
    "write_barrier": [("same", f"{WRITE} --write_barrier=4")],
    "write_bw_log": [("same", f"{READ} --write_bw_log=l"), ("fails", f"{READ} --write_bw_log")],
    "write_hint": [("same", f"{WRITE} --write_hint=none"), ("files", f"{WRITE} --write_hint=short")],
    "write_hist_log": [("timed", f"{READ} --time_based --runtime=1 --write_hist_log=l --log_hist_msec=200")],
    "write_iolog": [("same", f"{WRITE} --write_iolog=t.log"), ("same", f"{READ} --nrfiles=2 --write_iolog=t.log")],
    "write_iops_log": [("same", f"{READ} --write_iops_log=l")],
    "write_lat_log": [("same", f"{WRITE} --write_lat_log=l")],
    "zero_buffers": [("data", f"{WRITE} --zero_buffers=1 --scramble_buffers=0")],
    "zonerange": [("same", "--rw=read --size=256k --zonemode=strided --zonesize=16k --zonerange=64k --io_size=64k")],
    "zonesize": [("same", "--rw=read --size=256k --zonemode=strided --zonesize=16k --zonerange=64k --io_size=64k")],
    "zoneskip": [("same", "--rw=read --size=256k --zonemode=strided --zonesize=16k --zonerange=16k --zoneskip=48k "
                          "--io_size=64k")],
    "zonemode": [("same", f"{READ} --zonemode=none")],
    # Options of engines.
    "fixedbufs": [("same", f"{URING} --fixedbufs=1")], "registerfiles": [("same", f"{URING} --registerfiles=1")],
    "force_async": [("same", f"{URING} --force_async=4")], "nonvectored": [("same", f"{URING} --nonvectored=1")],
    "sqthread_poll": [("same", f"{URING} --sqthread_poll=1")],
    "sqthread_poll_cpu": [("same", f"{URING} --sqthread_poll=1 --sqthread_poll_cpu=0")],
    "hipri": [("files", "--ioengine=pvsync2 --rw=write --size=64k --hipri=0")],
    "hipri_percentage": [("same", "--ioengine=pvsync2 --rw=write --size=64k --hipri_percentage=50")],
    "uncached": [("files", "--ioengine=pvsync2 --rw=write --size=64k --uncached=0")],
    "nowait": [("files", f"{LIBAIO} --nowait=0")], "userspace_reap": [("same", f"{LIBAIO} --userspace_reap")],
    "stat_type": [("same", f"{NAMES.format('filestat')} --stat_type={how}") for how in ("stat", "lstat", "statx")]
    + [("fails", f"{READ} --stat_type=stat")],
}
# Of the command line alone: what they print is looked at here or by the check that is named.
LINE = {
    "output": "fio.py", "output-format": "fio.py", "minimal": "fio.py", "terse-version": "fio.py", "section": "fio.py",
    "status-interval": "fio.py", "readonly": "fio.py", "showcmd": "fio.py", "parse-only": "fio.py", "append-terse": "fio.py",
}


def options_of_fio():
    """Names and aliases of all options of jobs, and those of engines."""
    shown = subprocess.run(["fio", "--cmdhelp=all"], capture_output=True, text=True, check=False).stdout
    names = set(re.findall(r"^([a-z][\w-]*) *:", shown, re.M))
    for engine in ("io_uring", "libaio", "pvsync2", "filestat"):
        shown = subprocess.run(["fio", f"--enghelp={engine}"], capture_output=True, text=True, check=False).stdout
        names |= set(re.findall(r"^([a-z][\w-]*) *:", shown, re.M))
    # What the list of all leaves out, as it is read by its first word only.
    return names | {"bs_is_seq_rand", "iomem_align", "percentage_sequential", "read_iolog_chunked", "replay_align",
                    "replay_no_stall", "replay_redirect", "replay_scale", "replay_skip", "replay_time_scale", "rwmixcycle",
                    "softrandommap", "verifysort", "verifysort_nr", "verify_async_cpus"}


def prepare(folder):
    """What command lines may refer to."""
    (folder / "have").write_bytes(bytes(range(256)) * 256)
    (folder / "pattern").write_bytes(b"pattern of a file")
    (folder / "patterned").write_bytes(b"\x5a" * 65536)
    for name in ("d1", "d2", "tree", "tree/below"):
        (folder / name).mkdir()
    for name in ("tree/a", "tree/b", "tree/below/c"):
        (folder / name).write_bytes(b"x" * 16384)
    have = folder / "have"
    lines = [f"{have} add", f"{have} open"]
    lines += [f"{have} {what} {offset} 4096" for what, offset in (("read", 0), ("write", 8192), ("read", 4096))]
    lines += [f"{have} sync 0 0", f"{have} wait 20 0", f"{have} close"]
    (folder / "trace.log").write_text("fio version 2 iolog\n" + "\n".join(lines) + "\n")
    lines = [f"0 {have} add", f"0 {have} open", f"1 {have} read 0 4096", f"2 {have} write 4096 4096", f"3 {have} close"]
    (folder / "trace3.log").write_text("fio version 3 iolog\n" + "\n".join(lines) + "\n")


def keys(value, path=""):
    """Paths of all keys, but those below what varies."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            if key not in VARIABLE:
                yield from keys(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        yield from keys(value[0], f"{path}[]")


def words_of(line, folder):
    """As a shell would split it, but for quotes, which are fio's."""
    return [word.replace("{dir}", str(folder)) for word in line.split()]


def started_by(pid):
    """A process and all that it has started, in sessions of their own too."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            found += map(int, pathlib.Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


def ended(tool, line, folder, tries):
    """The tool at its end. fio itself hangs now and then, with log_compression for example: it is started anew."""
    prepare(folder)
    words = [*tool, "--output=out.json", "--output-format=json", "--name=o", *words_of(line, folder)]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = process.communicate(timeout=120 if tries == 1 else 60)
        return subprocess.CompletedProcess(words, process.returncode, *said)
    except subprocess.TimeoutExpired:
        for one in reversed(started_by(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.communicate()
        if tries == 1:
            raise
    print(f"   {' '.join(words)}: has not ended within 60 s, once more", flush=True)
    shutil.rmtree(folder)
    folder.mkdir()
    return ended(tool, line, folder, tries - 1)


def run(tool, line, folder):
    done = ended(tool, line, folder, 3 if tool == ["fio"] else 1)
    out = folder / "out.json"
    text = out.read_text() if out.exists() else ""
    start = re.search(r"^\{", text, re.M)
    # What fio says of an error may stand behind it.
    document = json.JSONDecoder().raw_decode(text[start.start():])[0] if start else {"jobs": []}
    out.unlink(missing_ok=True)
    return done, document


def files(folder):
    return {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}


def is_log(name):
    return name.endswith((".log", ".txt", ".state", ".fz"))


def amounts(job, kind):
    ways = [job[way] for way in (*DIRECTIONS, "mixed") if way in job]
    if kind in ("timed", "ratio"):
        return [way["total_ios"] > 0 for way in ways]
    counts = [(way["total_ios"], way["io_bytes"]) for way in ways]
    if kind == "sum":
        counts = [sum(column) for column in zip(*counts)]
    return counts + [job.get("sync", {}).get("total_ios")]


def ratios(line, document):
    """What is wrong with the I/Os of the two jobs of a flow, as sentences."""
    weights = [int(weight) for weight in re.findall(r"--flow=(\d+)", line)]
    first, second = (job["read"]["total_ios"] for job in document["jobs"])
    ratio, meant = first / max(second, 1), weights[0] / weights[1]
    return [] if 0.8 * meant < ratio < 1.25 * meant else [f"{first} and {second} I/Os: a ratio of {ratio:.2f}"]


def shape(folder, name, kind):
    """Columns of a log's lines, and how many there are where that does not depend on time."""
    lines = (folder / name).read_text(errors="replace").splitlines() if name.endswith(".log") else []
    columns = {len(line.split(",")) for line in lines}
    return columns, len(lines) if kind in ("same", "inflated") else bool(lines)


def inflated(folders):
    """What is wrong with compressed logs, as sentences: each tool reads those of both."""
    found = []
    for path in sorted(path for folder in folders for path in folder.glob("*.fz")):
        texts = [subprocess.run([*tool, f"--inflate-log={path}"], capture_output=True, text=True, check=False).stdout
                 for tool in (["fio"], [PROGRAM, "fio"])]
        lines = [line.split(", ") for line in texts[0].splitlines()]
        if texts[0] != texts[1] or (not lines and "slat" not in path.name):
            found.append(f"{path.name}: inflated to {texts}")
    counts = [{path.name: path.stat().st_size > 20 for path in folder.glob("*.fz")} for folder in folders]
    if counts[0] != counts[1] or not counts[0]:
        found.append(f"compressed logs: {counts}")
    return found


def devices(document):
    """Names of devices and the kinds of what is said of them, without what later versions added."""
    return [(disk["name"], [(key, type(value).__name__) for key, value in disk.items() if "sectors" not in key])
            for disk in document.get("disk_util", [])]


def differences(kind, line, ran, folders):
    """What is not the same, as sentences."""
    (theirs, fio), (ours, rbench) = ran
    found = []
    if kind == "ratio":
        found = [f"{tool}: {one}" for tool, document in (("fio", fio), ("rbench", rbench)) for one in ratios(line, document)]

    def same(what, a, b):
        if a != b:
            found.append(f"{what}: fio {a}, rbench {b}")

    if kind == "fails":
        same("fails", theirs.returncode != 0, ours.returncode != 0)
    else:
        same("exit code", theirs.returncode, ours.returncode)
    if found:
        return found + [ours.stderr.strip()[-300:]]
    if kind == "disks":
        same("devices", devices(fio), devices(rbench))
        kind = "same"
    all_files = [files(folder) for folder in folders]
    plain = [{name: size for name, size in one.items() if not is_log(name)} for one in all_files]
    same("files", *plain)
    if kind != "fails":
        same("logs", *[sorted(name for name in one if is_log(name)) for one in all_files])
    if kind in ("files", "fails") or found:
        return found
    for name in all_files[0]:
        if is_log(name) and not name.startswith("trace"):
            same(f"{name}: columns, lines", *[shape(folder, name, kind) for folder in folders])
    if kind == "inflated":
        found += inflated(folders)
    if kind == "data":
        for name in plain[0]:
            same(f"data of {name}", *[hash((folder / name).read_bytes()) for folder in folders])
    jobs = [document["jobs"] for document in (fio, rbench)]
    same("entries", *[[(job["jobname"], job["groupid"], job["error"]) for job in one] for one in jobs])
    if not found:
        for a, b in zip(*jobs):
            same("I/Os and bytes", amounts(a, kind), amounts(b, kind))
        missing = set(keys(fio)) - set(keys(rbench))
        same("keys", set(), {key for key in missing if not key.startswith(".disk_util")})
        same("job options", *[[job.get("job options") for job in one] for one in jobs])
    if ours.stderr:
        found.append(f"standard error is not empty: {ours.stderr.strip()[:200]}")
    return found


def side_by_side(program, kind, line):
    tools = (["fio"], [program, "fio"])
    root = DISK if kind == "disks" else ROOT
    folders = [pathlib.Path(tempfile.mkdtemp(prefix="o", dir=root)) for _ in tools]
    # Paths in command lines are as long for both.
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ran = list(pool.map(run, tools, [line] * 2, folders))
        for folder, (_, document) in zip(folders, ran):
            text = json.dumps(document).replace(str(folder), "DIR")
            ran[folders.index(folder)] = (ran[folders.index(folder)][0], json.loads(text))
        return differences(kind, line, ran, folders)
    except (subprocess.TimeoutExpired, json.JSONDecodeError, OSError, KeyError) as error:
        return [f"{type(error).__name__}: {error}"]
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def refusal(program, name):
    """Why the program refuses an option; None if it knows it."""
    done = subprocess.run([program, "fio", f"--{name}=1", "--name=x", "--parse-only"], capture_output=True, text=True,
                          check=False)
    found = re.search(rf"'?--{re.escape(name)}'? is not supported: (.*)", done.stderr)
    return found[1].strip() if found else None


def shown(kind, line, differs=None):
    return f"`{line}` ({kind})" if differs is None else f"`{line}`: differs, {differs}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("program", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    global ROOT, DISK, PROGRAM
    PROGRAM = options.program
    ROOT, DISK = [pathlib.Path(tempfile.mkdtemp(prefix="check-fio-options-", dir=place)) for place in ("/dev/shm", "/tmp")]
    for folder in (ROOT, DISK):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = sorted(options.only or options_of_fio() | set(NEWER))
    heading(f"{len(names)} options: held against fio, or refused with a reason")
    rows, tested, refused = [], 0, 0
    for name in names:
        why = refusal(options.program, name)
        cases = CASES.get(name, [])
        if why:
            refused += 1
            rows.append(f"| `{name}` | refused: {why} |")
            continue
        if name in NEWER:
            check(NEWER[name], f"{name}: newer than fio 3.33, and no test is named")
            rows.append(f"| `{name}` | newer than fio 3.33: {NEWER[name]} |")
            continue
        check(cases, f"{name}: accepted, and held against nothing")
        wrong = []
        for kind, line, *differs in cases:
            found = side_by_side(options.program, kind, line)
            for _ in range(TRIES - 1):
                if not found or differs or kind not in ("timed", "ratio"):
                    break
                found = side_by_side(options.program, kind, line)
            if found and not differs:
                wrong.append(f"{name}: {line}: {'; '.join(found)}")
            elif differs and not found:
                wrong.append(f"{name}: {line}: they do not differ: {differs[0]}")
        for one in wrong:
            check(False, one)
        tested += not wrong
        lines = "<br>".join(shown(*case) for case in cases)
        rows.append(f"| `{name}` | {lines} |")
    print(f"   {tested} held against fio, {refused} refused, {len(names) - tested - refused} others", flush=True)
    if not options.only:
        text = DOC.read_text() if DOC.exists() else ""
        head = ("# Every option of fio 3.33: how it is held against fio, or why it is refused\n\n"
                "Made by `scripts/checks/fio_options.py`, which runs fio and rbench with these lines after `--name=o` and says what\n"
                "each kind compares.\n\n| option | |\n|---|---|\n")
        made = head + "\n".join(rows) + "\n"
        if options.write:
            DOC.write_text(made)
        else:
            check(text == made, f"{DOC.name} is not what was found: write it with --write")
    finish()


if __name__ == "__main__":
    main()
