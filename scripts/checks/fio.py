"""Compares fio's command line with fio itself: published commands, the structure of all outputs, groups, percentiles,
logs, damage, many workers, wrong usage, other people's charts.

usage: fio.py PROGRAM [--plot PYTHON]
       --plot: a Python that has the package fio-plot, which then draws charts of our files

fio (3.33, as in Debian) runs the same command lines in directories on the same file system.
"""

import argparse
import atexit
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from common import Testfs, attempt, check, finish, heading, result, run
from offsets import offsets
from switches import switches
from verification import verification

# Number of attempts for results that depend on time.
TRIES = 5
# Keys of later versions of fio, and keys that fio has only for files on a block device.
NEWER = {"job_start", "latency_target_ns", "latency_window_us"} | {f"{way}_sectors" for way in ("read", "write")}
OF_DISKS = {"disk_util"}
DIRECTIONS = ("read", "write", "trim", "mixed")


class Tool:
    """fio, or the program in its place."""

    def __init__(self, name, words):
        self.name, self.words = name, words

    def run(self, *arguments, cwd="/", expect=0):
        return run(["env", "-C", cwd, *self.words, *arguments], expect=expect, quiet=True)

    def json(self, *arguments, plus=False, **how):
        """Returns the JSON report, which must be the only output."""
        done = self.run(*arguments, f"--output-format=json{'+' if plus else ''}", **how)
        text = done.stdout
        if self.name == "fio":
            # Notes precede the report on the same stream.
            text = text[re.search(r"^\{$", text, re.M).start():]
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            check(False, f"standard output is JSON and nothing else: {error}: {text[:200]}")
            return {"jobs": []}


class Place:
    """Both tools, directories in memory and on a disk; all removed at the end."""

    def __init__(self, program):
        self.fio = Tool("fio", ["fio"])
        self.ours = Tool("rbench", [program, "fio"])
        self.both = (self.fio, self.ours)
        self.memory = self.root("/dev/shm")
        self.disk = self.root(tempfile.gettempdir())
        self.count = 0

    def root(self, parent):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="check-fio-", dir=parent))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def folder(self, root=None):
        self.count += 1
        folder = (root or self.memory) / str(self.count)
        folder.mkdir()
        return folder

    def side_by_side(self, what, root=None):
        """Returns `what(tool, folder)` for fio and for the program, run at the same time in their own directories. For
        runs that wait, or whose speed does not matter."""
        folders = [self.folder(root) for _ in self.both]
        with concurrent.futures.ThreadPoolExecutor(len(self.both)) as pool:
            return list(pool.map(what, self.both, folders))


def files(folder):
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def amounts(document):
    """Returns (I/Os, bytes, short I/Os) by direction and entry, and the syncs."""
    return [
        [(job[way]["total_ios"], job[way]["io_bytes"], job[way]["short_ios"]) for way in DIRECTIONS if way in job]
        + [job.get("sync", {}).get("total_ios")]
        for job in document["jobs"]
    ]


def rate(document):
    """Returns the bytes per second of all entries over the longest run time."""
    ways = [job[way] for job in document["jobs"] for way in ("read", "write") if job[way]["runtime"] > 0]
    return sum(way["io_bytes"] for way in ways) * 1000 / max((way["runtime"] for way in ways), default=1)


def published_lines():
    """Yields (command line, whether time determines the number of I/Os, whether it needs a disk)."""
    # A part of a file that stays a part at any speed of the disk.
    yield ("-ioengine=psync -rw=write -bs=4k -direct=1 -group_reporting=1 -fallocate=none -number_ios=100 -name=part "
           "-numjobs=4 -nrfiles=1 -size=64M", False, True)
    yield ("--name=big-write --rw=write --refill_buffers --bs=4M --size=64M --numjobs=4 --end_fsync=1 "
           "--group_reporting", False, False)
    for bs in ("4k", "16k", "64k", "256k"):
        common = f"--name=big-file-rand-read --rw=randread --refill_buffers --size=64M --filename=randread.bin --bs={bs}"
        yield f"{common} --pre_read=1", False, False
    yield common, False, False
    for rw in ("read", "write"):
        for jobs in ("", " --numjobs=4", " --numjobs=16"):
            yield (f"--name=small-file-seq-{rw} --rw={rw} --file_service_type=sequential --bs=4k --filesize=4k "
                   f"--nrfiles=1000{jobs}", False, False)
    for rw, bs, jobs in (("read", "128k", 4), ("write", "128k", 4), ("randread", "4k", 16), ("randwrite", "4k", 4)):
        yield (f"-ioengine=psync -rw={rw} -bs={bs} -direct=1 -group_reporting=1 -fallocate=none -time_based=1 -runtime=1 "
               f"-name=test_file_c1 -numjobs={jobs} -nrfiles=1 -size=64M", True, True)
    for rw in ("read", "write"):
        for jobs in (4, 16):
            yield f"--name=big-file-multi-{rw} --rw={rw} --refill_buffers --bs=256k --size=64M --numjobs={jobs}", False, False
        yield f"--name=big-file-sequential-{rw} --rw={rw} --refill_buffers --bs=256k --size=64M", False, False
    for bs in ("4k", "16k", "64k", "256k"):
        yield f"--name=big-file-random-write --rw=randwrite --refill_buffers --size=64M --bs={bs}", False, False


def grown(line, files):
    """Returns whether these files of a timed line are possible: a slow disk leaves shorter files of timed writes. Files
    to read are laid out completely first."""
    size, block = (int(re.search(rf"-{name}=(\d+)", line)[1]) << shift for name, shift in (("size", 20), ("bs", 10)))
    least = 1 if "write" in line else size
    return all(least <= length <= size and length % block == 0 for length in files.values())


def published(place):
    heading("the published command lines: files, I/Os, bandwidth (MiB/s: fio twice, rbench twice)")
    for line, timed, disk in published_lines():
        folders = [place.folder(place.disk if disk else None) for _ in place.both]
        rates, counts, found = {tool.name: [] for tool in place.both}, {}, {}
        # The second time each tool works on the files of the other.
        for turn in (folders, folders[::-1]):
            for tool, folder in zip(place.both, turn):
                document = tool.json(f"--directory={folder}", *line.split())
                rates[tool.name].append(rate(document))
                counts.setdefault(tool.name, amounts(document))
                check(counts[tool.name] == amounts(document) or timed, f"{tool.name}: the second run does the same: {line}")
                check(all(job["error"] == 0 for job in document["jobs"]), f"{tool.name}: no error: {line}")
                there, before = files(folder), found.get(folder, {})
                if timed:
                    check(grown(line, there), f"{tool.name}: files {there}: {line}")
                    # fio itself recreates files that are too short.
                    longer = all(there.get(name, 0) >= length for name, length in before.items())
                    kept = longer or tool is place.fio
                else:
                    kept = not before or there == before
                check(kept, f"{tool.name}: the other's files {before} are now {there}: {line}")
                found[folder] = there
        theirs, ours = ((set(found[folder]) if timed else found[folder]) for folder in folders)
        check(theirs == ours, f"the same files: {theirs}, {ours}: {line}")
        check(timed or counts["fio"] == counts["rbench"], f"the same I/Os: {counts}: {line}")

        def too_slow():
            """Reports speeds far below fio's, repeatedly."""
            if max(rates["rbench"]) < 0.5 * min(rates["fio"]):
                said = f"bandwidth {rates}: {line}"
                for tool, folder in zip(place.both, folders):
                    rates[tool.name].append(rate(tool.json(f"--directory={folder}", *line.split())))
                return said
            return None

        # With several short jobs the result depends on the scheduler: fio counts each job from its first run.
        if timed or "numjobs" not in line:
            attempt(TRIES, too_slow)
        shown = [f"{value / 2**20:7.0f}" for tool in place.both for value in rates[tool.name][:2]]
        print(f"   {shown[0]} {shown[1]}  {shown[2]} {shown[3]}  {line}", flush=True)
        for folder in folders:
            shutil.rmtree(folder)


ENGINES = """
    libaio --rw=randwrite --direct=1 --iodepth=32
    libaio --rw=randread --direct=1 --iodepth=32 --iodepth_batch=8 --iodepth_batch_complete_min=4
    libaio --rw=randrw --iodepth=8 --userspace_reap --fsync=16
    libaio --rw=write --verify=crc32c --iodepth=4 --nrfiles=3
    libaio --rw=read --direct=1 --nowait=1
    posixaio --rw=randread --iodepth=8 --numjobs=4
    posixaio --rw=randwrite --verify=crc32c --iodepth=8 --numjobs=4
    splice --rw=write --bs=128k --end_fsync=1
    splice --rw=randread --bs=100k
    splice --rw=randwrite --direct=1 --verify=md5
    falloc --rw=write
    falloc --rw=read
    falloc --rw=write --fsync=4
    ftruncate --rw=write
    ftruncate --rw=read
    io_uring --rw=randrw --iodepth=8 --fixedbufs --registerfiles
    io_uring --rw=randwrite --direct=1 --iodepth=8 --nonvectored=0 --force_async=4
    io_uring --rw=randread --iodepth=4 --sqthread_poll
    io_uring --rw=randread --iodepth=4 --direct=1 --hipri
    pvsync2 --rw=randrw --hipri --hipri_percentage=40
    pvsync2 --rw=randread --nowait=1
    psync --rw=read --fixedbufs
    libaio --rw=read --hipri
"""


def engines(place):
    heading("engines and their options: files, blocks, I/Os, errors")
    for line in filter(None, map(str.strip, ENGINES.splitlines())):
        def one(tool, folder):
            words = f"--name=e --size=1M --bs=4k --directory={folder} --ioengine={line}".split()
            done = tool.run(*words, "--output-format=json", expect=None)
            start = re.search(r"^\{$", done.stdout, re.M)
            jobs = json.loads(done.stdout[start.start():])["jobs"] if start else []
            # In a mix, the directions are random.
            ways = [[(job[way]["total_ios"], job[way]["io_bytes"]) for way in ("read", "write")] for job in jobs
                    if not job["error"]]
            counts = [[sum(column) for column in zip(*way)] if "randrw" in line else way for way in ways]
            errors = [job["error"] for job in jobs]
            there = {path.name: (path.stat().st_size, path.stat().st_blocks > 0)
                     for path in folder.iterdir() if path.name.startswith("e.")}
            return bool(done.returncode), errors, counts, there

        theirs, ours = place.side_by_side(one, place.disk)
        check(theirs == ours, f"fio {theirs}, rbench {ours}: {line}")


def relative(place):
    heading("a directory that is not absolute, one that is not there, files in the working directory")
    for tool in place.both:
        folder = place.folder()
        (folder / "sub").mkdir()
        tool.json("--name=a", "--directory=sub", "--size=64k", "--rw=write", cwd=folder)
        tool.json("--name=b", "--size=64k", "--rw=write", cwd=folder)
        check((folder / "sub/a.0.0").exists() and (folder / "b.0.0").exists(), f"{tool.name}: files lie where they belong")
        tool.run("--name=a", "--directory=none", "--size=64k", cwd=folder, expect=1)


SECTIONS = """
[global]
size=1m
bs=16k
rw=write
[one]
numjobs=2
[two]
stonewall
rw=randread
[three]
stonewall
rw=rw
"""

ASSORTED = {
    "a write of a group": "--name=w --rw=write --bs=256k --size=4M --numjobs=3 --end_fsync=1 --group_reporting",
    "a mix": "--name=m --rw=randrw --rwmixread=70 --bs=4k --size=4M",
    "workers apart": "--name=r --rw=randread --bs=4k --size=2M --numjobs=2 --lat_percentiles=1",
    "sections of a file": "FILE",
    "syncs": "--name=s --rw=write --bs=4k --size=128k --fsync=4",
    "a ring": "--name=u --rw=randread --bs=4k --size=2M --ioengine=io_uring --iodepth=8",
    "verification": "--name=v --rw=write --bs=16k --size=2M --verify=crc32c",
    "a latency target": "--name=t --rw=randread --bs=4k --size=1M --latency_target=50000 --latency_window=100000 "
                         "--latency_percentile=95 --number_ios=4000",
    "a steady state": "--name=y --ioengine=null --zero_buffers --rw=read --bs=4k --size=1g --rate_iops=1000 --time_based "
                       "--runtime=3 --ss=iops_slope:50% --ss_dur=2",
    "errors, a list of percentiles": "--name=e --rw=read --bs=4k --size=64k --continue_on_error=all --percentile_list=50:99.9",
    "both directions in one": "--name=o --rw=randrw --bs=4k --size=2M --unified_rw_reporting=1 --clat_percentiles=0",
}


def shapes(path, theirs, ours):
    """Yields differences in keys, their order, and the types of values."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        theirs = {key: value for key, value in theirs.items() if key not in OF_DISKS}
        ours = {key: value for key, value in ours.items() if key not in NEWER or key in theirs}
        if path.endswith(".bins"):
            whole = all(key.isdigit() and isinstance(value, int) for key, value in ours.items())
            return [] if whole and ours else [f"{path}: {list(ours.items())[:3]}"]
        if list(theirs) != list(ours):
            return [f"{path}: fio has {list(theirs)}, rbench {list(ours)}"]
        return [line for key in theirs for line in shapes(f"{path}.{key}", theirs[key], ours[key])]
    if isinstance(theirs, list) and isinstance(ours, list):
        if ".data." in path:
            return [line for value in ours for line in shapes(f"{path}[]", theirs[0], value)]
        if len(theirs) != len(ours):
            return [f"{path}: fio has {len(theirs)} entries, rbench {len(ours)}"]
        return [line for n, pair in enumerate(zip(theirs, ours)) for line in shapes(f"{path}[{n}]", *pair)]
    return [] if type(theirs) is type(ours) else [f"{path}: fio has {theirs!r}, rbench {ours!r}"]


def never_above(path, value):
    """Returns our percentiles that are above their maximum."""
    if isinstance(value, list):
        return [line for n, one in enumerate(value) for line in never_above(f"{path}[{n}]", one)]
    if not isinstance(value, dict):
        return []
    top = max(value.get("percentile", {"": 0}).values())
    above = [f"{path}: {top} above {value['max']}"] if "percentile" in value and top > value["max"] else []
    return above + [line for key in value for line in never_above(f"{path}.{key}", value[key])]


def kind(field):
    """Returns the kind of a field in the terse output."""
    patterns = {
        "percentile": r"\d+(\.\d{6})?%=\d+",
        "part": r"\d+\.\d{6}%",
        "share": r"\d+\.\d{1,2}%",
        "real": r"\d+\.\d{6}",
        "whole": r"-?\d+",
    }
    return next((name for name, pattern in patterns.items() if re.fullmatch(pattern, field)), "text")


def without_disk(line):
    """Returns a terse line without the nine fields of each disk."""
    fields = line.split(";")
    # Version, name and group come first; a disk starts with its name.
    while (named := next((n for n, f in enumerate(fields) if n > 4 and re.match(r"[a-z]", f)), None)) is not None:
        del fields[named:named + 9]
    return fields


N, SHORT = r"\s*-?\d+(?:\.\d+)?", r"\s*\d+(?:\.\d+)?[kMGTPE]?"
BYTES = r"\d+(?:\.\d+)?(?:[KMGTPE]i|[kMGTPE])?B"
PARTS = rf"\S+={N}%(?:, \S+={N}%)*"
LINES = {
    "entry": r"\S+: \(groupid=\d+, jobs=\d+\): err=\s*\d+.*: pid=\d+: \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}",
    "direction": rf"  (?:read|write|mixed): IOPS={SHORT}, BW={BYTES}/s \({BYTES}/s\)\({BYTES}/\d+msec\)(?:; 0 zone resets)?",
    "latency": rf"    (?:slat|clat| lat) \([num]sec\): min={SHORT}, max={SHORT}, avg={N}, stdev={N}",
    "percentiles": r"    c?lat percentiles \([num]sec\):",
    "row": rf"     \|(?: {N}th=\[{N}\],?)+",
    "bw": rf"   bw \(  [KM]iB/s\): min={N}, max={N}, per={N}%, avg={N}, stdev={N}, samples=\d+",
    "iops": rf"   iops        : min={N}, max={N}, avg={N}, stdev={N}, samples=\d+",
    "spread": rf"  lat \([num]sec\)   : {PARTS}",
    "fsync": r"  fsync/fdatasync/sync_file_range:",
    "sync": rf"    sync \([num]sec\): min={SHORT}, max={SHORT}, avg={N}, stdev={N}",
    "sync percentiles": r"    sync percentiles \([num]sec\):",
    "cpu": rf"  cpu          : usr={N}%, sys={N}%, ctx=\d+, majf=\d+, minf=\d+",
    "depths": rf"  IO depths    : {PARTS}",
    "submit": rf"     submit    : {PARTS}",
    "complete": rf"     complete  : {PARTS}",
    "issued": r"     issued rwts: total=\d+,\d+,0,\d+ short=\d+,\d+,0,0 dropped=0,0,0,0",
    "errors": r"     errors    : total=\d+, first_error=\d+/<.*>",
    "target": rf"     latency   : target=\d+, window=\d+, percentile={N}%, depth=\d+",
    "steady": r"  steadystate  : attained=(?:yes|no), bw=.*, iops=.*, (?:iops|bw) (?:slope|mean dev)=.*",
    "group": r"Run status group \d+ \(all jobs\):",
    "total": rf" *(?:READ|WRITE|MIXED): bw={BYTES}/s \({BYTES}/s\), {BYTES}/s-{BYTES}/s \({BYTES}/s-{BYTES}/s\), "
             rf"io={BYTES} \({BYTES}\), run=\d+-\d+msec",
}
# Lines whose number depends on the measurements.
DEPENDING = {"row", "spread"}
# Lines that appear after half a second, so short runs on a busy machine may lack them.
SAMPLED = {"bw", "iops"}


def line_kinds(text, depending=frozenset(DEPENDING)):
    """Returns the kinds of lines in a normal report, except those that depend on the machine; and unknown lines."""
    text = text[re.search(r"^\S+: \(groupid=", text, re.M).start():].split("\nDisk stats")[0]
    kinds, strange = [], []
    for line in filter(None, text.splitlines()):
        found = [name for name, pattern in LINES.items() if re.fullmatch(pattern, line.rstrip())]
        strange += [] if found else [line]
        kinds += [name for name in found[:1] if name not in depending]
    return kinds, strange


def outputs(place):
    heading(f"eleven jobs: json, json+, terse and normal have fio's form (but for {sorted(NEWER | OF_DISKS)})")
    jobfile = place.folder() / "sections.fio"
    jobfile.write_text(SECTIONS)
    for name, line in ASSORTED.items():
        words = line.replace("FILE", str(jobfile)).split()

        def all_forms(tool, folder):
            """Returns JSON, JSON+, the terse lines and the normal report, each of a separate run."""
            job = [f"--directory={folder}", *words]
            documents = [tool.json(*job, plus=plus) for plus in (False, True)]
            return *documents, tool.run(*job, "--output-format=terse").stdout, tool.run(*job).stdout

        theirs, ours = place.side_by_side(all_forms)
        for plus in (False, True):
            differences = shapes("", theirs[plus], ours[plus])
            check(not differences, f"{name}, json{'+' * plus}:\n   " + "\n   ".join(differences[:5]))
            check(not never_above("", ours[plus]), f"{name}: {never_above('', ours[plus])[:3]}")
        terse = ([without_disk(row) for row in one[2].splitlines() if row.startswith("3;")] for one in (theirs, ours))
        their_terse, our_terse = terse
        check([len(row) for row in their_terse] == [len(row) for row in our_terse],
              f"{name}: terse fields {[len(row) for row in our_terse]}, not {[len(row) for row in their_terse]}")
        strange = [(a, b) for row in zip(their_terse, our_terse) for a, b in zip(*row) if kind(a) != kind(b)]
        check(not strange, f"{name}: terse: {strange[:5]}")
        depending = DEPENDING if "--runtime" in line else DEPENDING | SAMPLED
        (their_lines, odd), (our_lines, strange) = (line_kinds(one[3], depending) for one in (theirs, ours))
        check(not strange and not odd, f"{name}: normal lines of no kind: {strange[:3]} {odd[:3]}")
        check(their_lines == our_lines, f"{name}: normal lines {our_lines}, not {their_lines}")
        print(f"   {name}: {line.replace('FILE', 'three sections of a file')}", flush=True)


GROUPS = {
    "three sections behind stonewalls": SECTIONS,
    "new_group and group_reporting": """
[global]
size=1m
rw=write
group_reporting
[a]
numjobs=2
[b]
[c]
new_group
numjobs=3
[d]
stonewall
group_reporting=0
numjobs=2
""",
}


def groups(place):
    heading("groups of the report")
    for name, text in GROUPS.items():
        folder = place.folder()
        jobfile = folder / "jobs.fio"
        jobfile.write_text(text)
        found, normal = {}, {}
        for tool in place.both:
            document = tool.json(f"--directory={folder}", jobfile)
            found[tool.name] = [
                (job["jobname"], job["groupid"], job["read"]["total_ios"] + job["write"]["total_ios"])
                for job in document["jobs"]
            ]
            shown = tool.run(f"--directory={folder}", jobfile).stdout
            normal[tool.name] = re.findall(r"\(groupid=\d+, jobs=\d+\)|^Run status group \d+", shown, re.M)
        check(found["fio"] == found["rbench"], f"{name}: {found}")
        check(normal["fio"] == normal["rbench"], f"{name}: {normal}")
        check(text is not SECTIONS or len({g for _, g, _ in found["rbench"]}) == 3, "three groups")
        print(f"   {name}: {found['rbench']}")


def table(path):
    return [[int(field) for field in line.split(", ")] for line in path.read_text().splitlines()]


def latency_log(place):
    heading("percentiles against the log of every I/O")
    lines = {"--rw=randread": "psync", "--rw=randrw --numjobs=2": "psync", "--rw=randread --iodepth=8": "io_uring"}
    for line, engine in lines.items():
        folder = place.folder()
        document = place.ours.json(f"--directory={folder}", "--name=p", "--size=8M", "--bs=4k", f"--ioengine={engine}",
                                   "--write_lat_log=p", "--lat_percentiles=1", *line.split(), cwd=folder)
        for number, job in enumerate(document["jobs"], 1):
            for name in ("slat", "clat", "lat"):
                rows = table(folder / f"p_{name}.{number}.log")
                for direction, way in enumerate(("read", "write")):
                    values = sorted(row[1] for row in rows if row[2] == direction)
                    held = job[way][f"{name}_ns"]
                    check(len(values) == held["N"], f"{line}: {len(values)} lines of {way} {name}, N={held['N']}")
                    if not values:
                        continue
                    check((values[0], values[-1]) == (held["min"], held["max"]), f"{line}: extremes of {name}")
                    mean = sum(values) / len(values)
                    check(abs(mean - held["mean"]) <= 1e-3, f"{line}: mean {held['mean']}, not {mean}")
                    for key, got in held.get("percentile", {}).items():
                        exact = values[max(math.ceil(float(key) / 100 * len(values) - 1e-9), 1) - 1]
                        near = abs(got - exact) <= exact * 0.001 + 1
                        check(near and got <= held["max"], f"{line}: {name} {key}: {got}, not {exact}")
        print(f"   {line} ({engine}): {sum(len(table(p)) for p in folder.glob('*.log'))} lines")


def logs(place):
    heading("logs of bandwidth, IOPS, latency and histograms")
    every = "--write_bw_log=x --write_iops_log=x --write_lat_log=x --write_hist_log=x".split()
    cases = {
        "each I/O": (["--number_ios=300", "--log_offset=1", "--log_hist_msec=100", "--rate_iops=600,600"], 0),
        "averaged": (["--time_based", "--runtime=2", "--rate_iops=400", "--log_avg_msec=100", "--log_hist_msec=200"], 0.35),
    }
    for name, (options, slack) in cases.items():

        def once():
            """Runs both tools. Returns wrong numbers of lines, which may differ on a busy machine."""
            def tables(tool, folder):
                tool.run(f"--directory={folder}", "--name=a", "--rw=randrw", "--size=4M", "--bs=4k", *every, *options, cwd=folder)
                return {path.name: table(path) for path in folder.glob("*.log")}

            wrong = None
            theirs, ours = place.side_by_side(tables)
            check(set(theirs) == set(ours), f"{name}: logs {sorted(ours)}, not {sorted(theirs)}")
            for log in sorted(set(theirs) & set(ours)):
                widths = [{len(row) for row in rows} for rows in (theirs[log], ours[log])]
                check(widths[0] == widths[1], f"{name}: {log}: columns {widths}")
                check({row[2 if "hist" not in log else 1] for row in ours[log]} <= {0, 1}, f"{name}: {log}: directions")
                times = [row[0] for row in ours[log]]
                check(times == sorted(times), f"{name}: {log}: lines in the order of time")
                # fio samples histograms by a separate clock.
                near = slack or (0.35 if "hist" in log else 0)
                counts = len(theirs[log]), len(ours[log])
                good = abs(counts[0] - counts[1]) <= near * counts[0] + (2 if near else 0)
                check(good or near, f"{name}: {log}: lines {counts}")
                wrong = wrong if good else f"{name}: {log}: lines {counts}"
            print(f"   {name}: {({log: len(rows) for log, rows in sorted(ours.items())})}")
            return wrong

        attempt(TRIES, once)


def charts(place, python):
    if not python:
        return
    heading("fio-plot draws its charts of our files")
    folder = place.folder()
    data = folder / "data"
    data.mkdir()
    for depth in (1, 4):
        for jobs in (1, 2):
            name = f"{data}/randread-iodepth-{depth}-numjobs-{jobs}"
            place.ours.run(f"--directory={folder}", "--name=iops", "--rw=randread", "--bs=4k", "--size=8M", "--time_based",
                           "--runtime=1", "--ioengine=io_uring", f"--iodepth={depth}", f"--numjobs={jobs}", "--group_reporting",
                           f"--write_bw_log={name}", f"--write_iops_log={name}", f"--write_lat_log={name}",
                           "--log_avg_msec=100", "--output-format=json", f"--output={name}.json")
    wanted = {
        "3d": ["-L", "-t", "iops"],
        "depths": ["-l", "-d", "1", "4", "-n", "1"],
        "depths with cpu": ["-l", "-d", "1", "4", "-n", "2", "--show-cpu"],
        "jobs": ["-N", "-d", "1", "-n", "1", "2"],
        "histogram": ["-H", "-d", "1", "-n", "1"],
        "log of rates": ["-g", "-t", "bw", "iops", "lat", "-d", "4", "-n", "1", "2"],
        "log of latency": ["-g", "-t", "slat", "clat", "-d", "1", "4", "-n", "1"],
        "comparison": ["-C", "-d", "4", "-n", "2"],
    }
    plot = pathlib.Path(python).with_name("fio-plot")
    for name, options in wanted.items():
        out = folder / f"{name.replace(' ', '-')}.png"
        inputs = ["-i", data, data] if name == "comparison" else ["-i", data]
        done = run([plot, *inputs, "-T", name, "-r", "randread", "-o", out, *options], quiet=True)
        said = done.stdout + done.stderr
        drawn = out.exists() and out.read_bytes()[:4] == b"\x89PNG"
        check(drawn and "rror" not in said and "Traceback" not in said, f"the chart {name}: {said[-400:]}")
        print(f"   {name}: {out.stat().st_size if out.exists() else 0} bytes")


def flipped(data):
    data[10 * 4096 + 1000] ^= 4


def zeroed(data):
    data[11 * 4096:12 * 4096] = bytes(4096)


def swapped(data):
    one, other = slice(11 * 4096, 12 * 4096), slice(20 * 4096, 21 * 4096)
    data[one], data[other] = data[other], data[one]


def truncated(data):
    del data[255 * 4096 + 100:]


DAMAGE = {
    flipped: ([40960], r"flipped: 1 bit, the first in byte 1000; found 0x\w\w there, expected 0x\w\w"),
    zeroed: ([45056], r"zeroed: every byte is 0"),
    swapped: ([45056, 81920], r"misplaced: found the block of offset \d+, expected that of \d+"),
    truncated: ([1044480], r"expected 4096 bytes at offset \d+, but the file ends at 1044580"),
}


def damage(place):
    heading("damaged files: exit code 1, errno 84, and a line for each block that names file, offset and both values")
    for checksum in ("crc32c", "crc64", "xxhash", "md5", "sha256"):
        folder = place.folder()
        words = ["--name=v", f"--directory={folder}", "--rw=write", "--bs=4k", "--size=1M", f"--verify={checksum}"]
        file = folder / "v.0.0"
        place.ours.json(*words)
        out = folder / "result.json"
        place.ours.json(*words, "--verify_only", f"--out={out}")
        reads = {phase["name"]: phase for phase in result(out)["phases"]}["v-read"]
        check(reads["items"] == 256 and reads["rate"] > 0, f"{checksum}: {reads['items']} items, {reads['rate']} a second")
        out.unlink()
        whole = file.read_bytes()
        for harm, (offsets, pattern) in DAMAGE.items():
            data = bytearray(whole)
            harm(data)
            file.write_bytes(data)
            done = place.ours.run(*words, "--verify_only", "--output-format=json", expect=1)
            lines = [line for line in done.stderr.splitlines() if "MISMATCH" in line]
            # Reported at once, and again at the end with all others.
            first = [line for line in lines if "the first failed operation: " in line]
            check(len(first) == 1, f"{checksum}, {harm.__name__}: {done.stderr}")
            lines = [line for line in lines if line not in first]
            named = [line for line in lines if str(file) in line and re.search(pattern, line)]
            found = [int(re.search(r"at offset (\d+)", line)[1]) for line in named]
            check(found == offsets and len(lines) == len(offsets), f"{checksum}, {harm.__name__}: {done.stderr}")
            check(json.loads(done.stdout)["jobs"][0]["error"] == 84, f"{checksum}, {harm.__name__}: error in the JSON")
            if checksum == "crc32c":
                print("\n".join("   " + line.removeprefix("rbench: ") for line in lines), flush=True)
        file.write_bytes(whole)
        place.ours.json(*words, "--verify_only")


def many_workers(place):
    heading("numjobs 1 to 64, random reads of 4k with O_DIRECT on a disk (IOPS)")
    for jobs in (1, 4, 16, 64):
        def once(tool, folder):
            document = tool.json(
                f"-directory={folder}", "-ioengine=psync", "-rw=randread", "-bs=4k", "-direct=1", "-group_reporting=1",
                "-fallocate=none", "-time_based=1", "-runtime=1", "-name=c", f"-numjobs={jobs}", "-nrfiles=1", "-size=16M")
            entry = document["jobs"][0]
            whole = len(document["jobs"]) == 1 and entry["error"] == 0 and entry["read"]["total_ios"] > 0
            check(whole, f"{tool.name}: {jobs} jobs: {entry['error']}")
            # Requests in flight at the end are awaited.
            longest = 1000 + entry["read"]["clat_ns"]["max"] / 1e6
            took = entry["read"]["runtime"]
            check(900 <= took <= longest + 10_000, f"{tool.name}: {jobs} jobs run {took} ms, not 1000 to {longest:.0f}")
            check(len(files(folder)) == jobs, f"{tool.name}: {jobs} files")
            shutil.rmtree(folder)
            return f"{tool.name} {entry['read']['iops']:9.0f}"

        print(f"   numjobs={jobs:2}: {', '.join(once(tool, place.folder(place.disk)) for tool in place.both)}", flush=True)


def one_sentence(done, code, *parts, report=""):
    """Checks a refused command line: one paragraph that names the mistake, and no output, or fio's report of a job that
    could not be set up."""
    said = [line for line in done.stderr.splitlines() if line and not line.startswith("For more information")]
    said = [line for line in said if not line.startswith("  tip:")]
    output = report in done.stdout if report else done.stdout == ""
    good = output and len(said) == 1 and all(part in said[0] for part in parts)
    check(good and done.returncode == code, f"exit code {done.returncode}, wanted {code} and {parts}: {done.stdout}{done.stderr}")


def behaviour(place):
    heading("outputs, refusals and exit codes")
    folder = place.folder()
    job = [f"--directory={folder}", "--name=a", "--size=1M"]
    ours = lambda *words, code: place.ours.run(*words, cwd=folder, expect=code)
    one_sentence(ours(*job, "--rw=write", "--readonly", code=2), 2, "'a'", "readonly")
    one_sentence(ours(*job, "--nosuch=1", code=2), 2, "--nosuch")
    one_sentence(ours(*job, "--zonemode=zbd", code=2), 2, "--zonemode", "not supported")
    one_sentence(ours(*job, "--ioengine=rbd", code=2), 2, "rbd", "io_uring")
    one_sentence(ours(*job, "--fixedbufs", code=2), 2, "fixedbufs", "io_uring")
    one_sentence(ours(*job, "--bs=4x", code=2), 2, "--bs", "4x")
    one_sentence(ours("none.fio", code=2), 2, "none.fio")
    one_sentence(ours("--name=none", "--rw=read", code=1), 1, "none.0.0", "give size=", report="none: (groupid=0, jobs=1): err= 2 ")
    quiet = ours(*job, "--rw=randwrite", "--fsync=8", "--unlink=1", code=0)
    check(quiet.stderr == "", f"nothing is wrong, and standard error has: {quiet.stderr}")
    (folder / "wrong.fio").write_text("[a]\nsize=1m\nnosuch=1\n")
    one_sentence(ours("wrong.fio", code=2), 2, "wrong.fio, line 3", "nosuch")
    check(set(files(folder)) == {"wrong.fio"}, f"nothing was made: {files(folder)}")
    (folder / "good.fio").write_text("[global]\nsize=64k\n[b]\nrw=write\n[c]\nstonewall\n")
    shown = ours("--showcmd", "good.fio", code=0).stdout
    check(shown == "fio --size=64k --name=b --rw=write --name=c --stonewall\n", f"--showcmd: {shown}")
    parsed = ours("--parse-only", "good.fio", code=0)
    check(parsed.stdout + parsed.stderr == "" and not (folder / "b.0.0").exists(), f"--parse-only: {parsed}")
    check("fio-3.33" in ours("--version", code=0).stdout, "--version names the fio whose form this is")

    done = ours(*job, "--rw=write", "--output-format=normal,json", "--output=both.txt", code=0)
    both = (folder / "both.txt").read_text()
    check(done.stdout == "", f"with --output nothing is on standard output: {done.stdout}")
    check(line_kinds(both[:both.index("\n{\n")])[1] == [], "the normal report comes first")
    check(json.loads(both[both.index("\n{\n"):])["jobs"][0]["write"]["io_bytes"] == 1 << 20, "then JSON")

    def states_on_the_way():
        """Runs for two seconds. Returns deviations that a busy machine may cause."""
        (folder / "paced.json").unlink(missing_ok=True)
        begun = time.monotonic()
        done = ours(*job, "--rw=randread", "--time_based", "--runtime=2", "--rate_iops=1000", "--status-interval=500ms",
                    "--output-format=json", "--out=paced.json", code=0)
        took = time.monotonic() - begun
        check(took > 1.9, f"a run of two seconds has ended after {took:.1f} s")
        decoder, rest, states = json.JSONDecoder(), done.stdout.strip(), []
        while rest:
            state, end = decoder.raw_decode(rest)
            states, rest = [*states, state], rest[end:].strip()
        counted = [job["read"]["total_ios"] for state in states for job in state["jobs"]]
        check(all(len(state["jobs"]) == 1 for state in states), f"every report has the job: {[len(s['jobs']) for s in states]}")
        check(counted == sorted(counted) and 0 < counted[-1] <= 2000, f"--status-interval: {counted}")
        print(f"   {len(states)} reports on the way: {counted}")
        if took > 6 or not 4 <= len(states) <= 6 or counted[-1] < 2000:
            return f"{len(states)} reports in {took:.1f} s: {counted}"
        told = [warning["code"] for warning in result(folder / "paced.json")["warnings"]]
        if "open-loop-behind" in told:
            return f"a rate that is kept is not missed: {told}"
        return None

    attempt(TRIES, states_on_the_way)

    out = folder / "result.json"
    done = ours(*job, "--rw=read", "--out=result.json", "--rbench-report", code=0)
    check("Run status group 0" in done.stdout and "The run is complete" in done.stdout, "both reports")
    check(result(out)["complete"], "--out holds the result")


def placed(place):
    heading("directories, names and forms of logs as in fio")
    size = ["--rw=write", "--size=64k", "--bs=16k", "--eta=never", "--output=/dev/null"]
    for line in ("--directory=a:b --name=j --numjobs=3 --nrfiles=2", "--name=j --filename=f --directory=a",
                 "--filename=f --name=j --directory=a", "--directory=a:b --name=j --filename=f --numjobs=2",
                 "--directory=a --filename=f --name=j --directory=b --filename=g", "--name=j --filename=f --filename=g",
                 "--directory=a:b --name=j --numjobs=2 --filename_format=x.$jobnum", "--directory=a:none --name=j",
                 "--name=j --write_lat_log=x --write_bw_log=x --per_job_logs=0 --numjobs=2"):
        def names(tool, folder):
            for name in "ab":
                (folder / name).mkdir()
            done = attempt_run(tool, [*size, *line.split()], folder)
            return done, sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

        theirs, ours = place.side_by_side(names)
        check(theirs == ours, f"{line}: fio {theirs}, rbench {ours}")

    def columns(options):
        """Returns the columns of each line of a log, without digits."""
        def of(tool, folder):
            attempt_run(tool, [*size, "--name=j", *options.split()], folder)
            text = "".join(path.read_text() for path in sorted(folder.glob("x_*.log")))
            return {re.sub(r"(?<!x)[0-9]+", "N", line.replace("0x0000", "PRIO")) for line in text.splitlines()}

        theirs, ours = place.side_by_side(of)
        check(theirs == ours and ours, f"{options}: fio {theirs}, rbench {ours}")

    for options in ("--write_lat_log=x", "--write_lat_log=x --log_prio=1", "--write_bw_log=x --log_offset=1",
                    "--write_lat_log=x --log_unix_epoch=1",
                    "--write_hist_log=x --log_hist_msec=100 --log_hist_coarseness=4 --time_based --runtime=1"):
        columns(options)

    def logged(tool, folder):
        attempt_run(tool, [*size, "--name=j", "--write_lat_log=x", "--log_unix_epoch=1"], folder)
        return int((folder / "x_lat.1.log").read_text().split(",")[0])

    now = time.time() * 1000
    for at in place.side_by_side(logged):
        check(abs(at - now) < 600_000, f"log_unix_epoch: {at} is not near {now:.0f} ms")


def attempt_run(tool, words, folder):
    """Returns the exit code."""
    done = subprocess.run(["env", "-C", str(folder), *tool.words, *words], capture_output=True, text=True)
    return done.returncode


def left_out(place):
    heading("what a report is not to have, as in fio")
    for options in ("--disable_lat=1", "--disable_clat=1", "--disable_slat=1", "--disable_bw_measurement=1",
                    "--gtod_reduce=1"):
        def counts(tool, folder):
            document = tool.json(f"--directory={folder}", "--name=a", "--rw=write", "--bs=4k", "--size=64k",
                                 "--lat_percentiles=1", *options.split())
            way = document["jobs"][0]["write"]
            return [(key, way[key]["N"], "percentile" in way[key]) for key in ("slat_ns", "clat_ns", "lat_ns")]

        theirs, ours = place.side_by_side(counts)
        check(theirs == ours, f"{options}: fio {theirs}, rbench {ours}")
    paced = ["--name=a", "--ioengine=null", "--size=1g", "--rw=read", "--rate_iops=1000", "--time_based", "--runtime=2"]

    def sampled():
        way = place.ours.json(*paced, "--bwavgtime=100")["jobs"][0]["read"]
        samples = way["bw_samples"], way["iops_samples"]
        check(samples[1] <= 4, f"IOPS are sampled every 500 ms: {samples}")
        return None if samples[0] >= 2 * samples[1] else f"samples of 100 ms and of 500 ms: {samples}"

    attempt(TRIES, sampled)


EXAMPLES = pathlib.Path("/usr/share/doc/fio/examples")
# Examples of Debian's package fio-examples that run on any machine; each of the others uses an engine, option or
# variable that is missing.
PARSED = "1mbs_clients filecreate-ioengine filedelete-ioengine filestat-ioengine null rand-zones tiobench-example zipf".split()


def examples(place):
    heading("the example job files of fio's package")
    names = sorted(path.name for path in EXAMPLES.glob("*.fio"))
    check(len(names) > 80, f"{EXAMPLES} has {len(names)} examples: install fio-examples")
    parsed = []
    for name in names:
        done = subprocess.run([*place.ours.words, "--parse-only", str(EXAMPLES / name)], capture_output=True, text=True)
        if done.returncode == 0:
            parsed.append(name.removesuffix(".fio"))
            continue
        said = [line for line in done.stderr.splitlines() if line and not line.startswith(("For more", "  tip:"))]
        named = all(name in line or line.startswith("rbench: job '") for line in said)
        check(done.returncode == 2 and said and named, f"{name}: {done.returncode}, {done.stderr}")
    print(f"   {len(parsed)} of {len(names)} run, the others are refused with their reasons: {' '.join(parsed)}")
    check(set(PARSED) <= set(parsed), f"these did once: {set(PARSED) - set(parsed)}")


def passes(place):
    heading("how often cached pages are dropped, by system call")
    lines = (
        "--rw=read", "--rw=read --loops=3", "--rw=read --loops=3 --invalidate=0", "--rw=read --loops=2 --pre_read=1",
        "--rw=read --nrfiles=2 --loops=3", "--rw=read --nrfiles=4 --openfiles=1 --loops=2", "--rw=read --io_size=7M",
        "--rw=read --nrfiles=4 --io_size=7M", "--rw=randread --norandommap --loops=2", "--rw=randrw --loops=2",
        "--rw=randread --loops=4 --ioengine=io_uring --iodepth=8", "--rw=randread --loops=2 --ioengine=libaio --iodepth=8",
        "--rw=write --verify=crc32c", "--rw=randwrite --verify=crc32c --loops=2", "--rw=write --verify=crc32c --invalidate=0",
    )
    # With a rate, the number of passes in a time is known: slightly more than three.
    timed = "--size=1M --time_based --runtime=1 --rate_iops=800"
    lines += tuple(f"{timed} {line}" for line in ("--rw=randread", "--rw=read", "--rw=randread --nrfiles=2",
                                                  "--rw=randread --norandommap", "--rw=randread --iodepth=4 --ioengine=libaio"))

    def dropped(tool, line):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            job = ["--name=a", f"--directory={folder}", "--bs=4k", "--size=2M", *line.split()]
            # Excludes the layout of the files.
            run(["env", "-C", folder, *tool.words, *job, "--create_only=1"], quiet=True)
            run(["env", "-C", folder, "strace", "-f", "-e", "trace=fadvise64", "-o", trace, *tool.words, *job], quiet=True)
            return trace.read_text().count("POSIX_FADV_DONTNEED")

    for line in lines:
        def once(line=line):
            theirs, ours = dropped(place.fio, line), dropped(place.ours, line)
            return None if ours == theirs else f"{line}: pages are dropped {ours} times, by fio {theirs} times"

        attempt(TRIES, once)


def rates(place):
    heading("rates: each direction keeps its own, as in fio")
    for options, limits in (("--rate_iops=1000,500", (1000, 500)), ("--rate=2m,8m --bs=4k", (512, 2048)),
                            ("--rate_iops=1000 --rate_process=poisson", (1000, 1000))):
        line = f"--name=r --rw=randrw --size=64M --time_based --runtime=2 {options}"

        def once():
            """Returns what both tools reached, and whether ours matches the request."""
            def reached(tool, folder):
                job = tool.json(f"--directory={folder}", *line.split())["jobs"][0]
                shutil.rmtree(folder)
                return [round(job[way]["iops"]) for way in ("read", "write")]

            shown = place.side_by_side(reached)
            print(f"   {options}: fio {shown[0]}, rbench {shown[1]}", flush=True)
            near = all(abs(got - limit) <= 0.12 * limit for got, limit in zip(shown[1], limits))
            return None if near else f"{options}: {shown[1]} I/Os a second, not {limits}; fio has {shown[0]}"

        attempt(TRIES, once)


# Run times determined by rates and think times: (command line, minimum run time of reads and writes in ms, whether both
# directions have the same run time).
TIMED = (
    ("--name=t --rw=randrw --rwmixread=99 --size=400k --thinktime=10ms", (1000, 1000), True),
    ("--name=t --rw=write --size=40k --thinktime=50ms --end_fsync=1", (0, 500), False),
    ("--name=t --rw=write --size=400k --rate_iops=200 --verify=crc32c", (0, 495), False),
    ("--name=t --rw=write --size=400k --thinktime=5ms --verify=crc32c --loops=2", (0, 1000), False),
    ("--name=t --rw=write --size=400k --rate_iops=200 --time_based --runtime=1 --ramp_time=1 --startdelay=1", (0, 1000), False),
    ("--name=t --rw=write --size=400k --rate_iops=1 --time_based --runtime=2500ms", (0, 2500), False),
    ("--group_reporting --name=a --rw=read --size=200k --thinktime=5ms --name=b --rw=write --size=200k --thinktime=20ms",
     (250, 1000), False),
)


def run_times(place):
    """Checks the run time of each direction, which its rates refer to. A busy machine extends them, so both tools have
    the same lower limits, and the job's total time as upper limit."""
    heading("run times of directions, as in fio")
    for options, least, same in TIMED:
        def times_of(tool, folder):
            document = tool.json(f"--directory={folder}", "--bs=4k", *options.split())
            check(len(document["jobs"]) == 1, f"{tool.name}: {options}: {len(document['jobs'])} entries")
            job = document["jobs"][0]
            times = [job[way]["runtime"] for way in ("read", "write")]
            what = f"{tool.name}: {options}: {times} ms of {job['job_runtime']}"
            check(all(time >= bound for time, bound in zip(times, least)), what)
            # Rounded up, twice.
            check("name=b" in options or max(times) <= job["job_runtime"] + 2, what)
            check("randrw" in options or "name=b" in options or sum(times) <= job["job_runtime"] + 3, what)
            check(not same or times[0] == times[1], what)
            for way in ("read", "write"):
                ios, time, iops = job[way]["total_ios"], job[way]["runtime"], job[way]["iops"]
                check(abs(iops - (ios * 1000 / time if time else 0)) < 0.01, f"{what}: {iops} I/Os a second")
            return times

        shown = place.side_by_side(times_of)
        print(f"   {options}: fio {shown[0]}, rbench {shown[1]} ms", flush=True)
    options = TIMED[0][0]
    for tool in place.both:
        words = [f"--directory={place.folder()}", "--bs=4k", *options.split(), "--output-format=normal,terse"]
        text = tool.run(*words).stdout
        ends = [int(time) for pair in re.findall(r"run=(\d+)-(\d+)msec", text) for time in pair]
        terse = next(line for line in text.splitlines() if line.startswith("3;")).split(";")
        # Fields 9 and 50 of version 3, counted from 1.
        ends += [int(terse[8]), int(terse[49])]
        check(len(ends) == 6 and len(set(ends)) == 1 and ends[0] >= 1000, f"{tool.name}: {options}: {ends} ms")


def many_jobs(place):
    """Checks that each worker holds only its own job's data: memory grows linearly with the jobs."""
    heading("1000 jobs side by side stay below 1 GB")
    folder = place.folder()
    common = f"[global]\nbs=4k\nsize=4k\nrw=write\nfallocate=none\ndirectory={folder}\n"
    for engine in ("null", "psync"):
        lines = {"1000 sections": "".join(f"[j{n}]\n" for n in range(1000)), "numjobs=1000": "[j]\nnumjobs=1000\n"}
        for what, sections in lines.items():
            (folder / "many.fio").write_text(f"{common}ioengine={engine}\n{sections}")
            words = [*place.ours.words, "--output-format=json", f"--output={folder}/many.json", str(folder / "many.fio")]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            said = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            check(process.returncode == 0, f"{what}, {engine}: exit code {process.returncode}: {said}")
            check(usage.ru_maxrss < 1 << 20, f"{what}, {engine}: {usage.ru_maxrss >> 10} MiB")
            document = json.loads((folder / "many.json").read_text())
            done = [job["write"]["total_ios"] for job in document["jobs"]]
            check(done == [1] * 1000, f"{what}, {engine}: {len(done)} entries, {sum(done)} writes")
            print(f"   {what}, {engine}: {usage.ru_maxrss >> 10} MiB", flush=True)


def errors(place, program):
    heading("a file system that is full: errno 28 in the reports, exit code 1")
    for tool in place.both:
        target = Testfs(program, "--fault", "write:ENOSPC@after=100")
        words = [f"--directory={target.mountpoint}", "--name=e", "--rw=write", "--bs=4k", "--size=1M", "--fallocate=none"]
        done = tool.run(*words, "--output-format=json", expect=1)
        report = json.loads(done.stdout[done.stdout.index("{\n"):]) if "{\n" in done.stdout else {"jobs": [{}]}
        job = report["jobs"][0]
        check(job.get("error") == 28, f"{tool.name}: {job.get('error')}: {done.stderr}")
        check(tool is place.fio or "ENOSPC" in done.stderr, f"the error is named: {done.stderr}")
        target.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--plot")
    options = parser.parse_args()
    version = run(["fio", "--version"], quiet=True).stdout.strip()
    check(version == "fio-3.33", f"the fio to compare with is {version}, not fio-3.33")
    place = Place(options.program)
    begun = time.monotonic()
    published(place)
    engines(place)
    relative(place)
    offsets(place)
    placed(place)
    left_out(place)
    examples(place)
    outputs(place)
    groups(place)
    latency_log(place)
    logs(place)
    charts(place, options.plot)
    damage(place)
    verification(place)
    switches(place)
    many_workers(place)
    passes(place)
    rates(place)
    run_times(place)
    many_jobs(place)
    errors(place, options.program)
    behaviour(place)
    print(f"fio's command line was checked in {time.monotonic() - begun:.0f} s", flush=True)
    finish()


if __name__ == "__main__":
    main()
