"""Reads the interval log of --hlog with the Python package hdrhistogram. Its numbers must equal those of the result
file, summed over ranks. A killed run leaves it up to the last interval, and no other file is overwritten.

usage: hlog.py PROGRAM [--mpirun MPIRUN]     (with a Python that has the package hdrhistogram)
"""

import argparse
import collections
import json
import math
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from common import check, finish, heading, in_attempts, in_session, regular, run, wait_until

HIGHEST_NS = 3_600_000_000_000


def read(path):
    """Returns the histograms of a log by tag and start, in ms since the epoch, with the parts of an interval summed.
    Also the lengths in ms, and the start of the run in s since the epoch."""
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, 3))
    found, lengths = collections.defaultdict(dict), {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        tag, start = histogram.get_tag(), round(histogram.get_start_time_stamp(), 3)
        lengths[tag, start] = histogram.get_end_time_stamp() - histogram.get_start_time_stamp()
        histogram.parts = 1
        if start in found[tag]:
            found[tag][start].add(histogram)
            found[tag][start].parts += 1
        else:
            found[tag][start] = histogram
    reader.close()
    return found, lengths, reader.get_start_time_sec()


def ranked(histogram, quantile):
    """Returns the value of this rank, at the end of its bucket."""
    rank = max(1, math.ceil(quantile * histogram.get_total_count()))
    for item in histogram.get_recorded_iterator():
        rank -= item.count_added_in_this_iter_step
        if rank <= 0:
            return item.value_iterated_to
    raise ValueError("fewer values than the rank")


def bucket(ns):
    """Returns the timeline's bucket of a time: 64 buckets per power of two, 16 ns wide below 2048 ns."""
    shift = max(ns.bit_length() - 7, 4)
    return shift, ns >> shift


def same(histogram, quantile, expected_ns):
    """Returns whether a quantile is in the bucket of the result. Parts of an interval end at their own maximum, which
    is inside the timeline's bucket."""
    found = ranked(histogram, quantile)
    if histogram.parts > 1 and quantile < 1:
        return bucket(found) == bucket(expected_ns)
    return histogram.values_are_equivalent(found, expected_ns)


def numbers(program, before, folder, name):
    """Compares intervals of 10 ms over 2 s with the timeline, whose rows have the same length."""
    heading(f"the log against the result: {name}")
    out, log = folder / f"{name}.json", folder / f"{name}.hlog"
    command = [*before, program, "io", "--dir", folder, "--rw", "randread,randrw", "--size", "1m", "--bs", "4k"]
    command += ["--time", "2", "--rate", "4000", "--interval", "10ms", "--no-round-trip", "--quiet", "--threads", "2"]
    before_s = time.time()
    run([*command, "--out", out, "--hlog", log])
    after_s = time.time()
    found, lengths, start_s = read(log)
    check(before_s < start_s < after_s, f"{name}: the run began at {start_s}, between {before_s} and {after_s}")
    # The log has no closes, since the need for their row is known only at the end.
    phases = {phase["name"]: phase for phase in regular(json.loads(out.read_text()))}
    tags = {tag for row in phases for tag in (row, f"{row}.response")} - {"randrw-fsync.response"}
    check(set(found) == tags, f"{name}: the log has {sorted(found)}, the result {sorted(tags)}")
    compared = 0
    for row in ("randread", "randrw-read", "randrw-write"):
        phase = phases[row]
        check(phase["timeline_step_s"] == 0.01, f"{name}: rows of {phase['timeline_step_s']} s")
        first_ms = min(found[row])
        for tag, times in ((row, lambda slice: slice), (f"{row}.response", lambda slice: slice["response"])):
            intervals = dict(found[tag])
            sums = sum(histogram.get_total_count() for histogram in intervals.values())
            check(sums == phase["items"], f"{name}: {tag} has {sums} values, and there were {phase['items']} items")
            # The first line may belong to a later interval.
            shift = next(i for i, slice in enumerate(phase["timeline"]) if slice["items"])
            for number, slice in enumerate(phase["timeline"]):
                start = first_ms + (number - shift) * 10
                near = [known for known in intervals if abs(known - start) < 2]
                histogram = intervals.pop(near[0]) if near else None
                count = histogram.get_total_count() if histogram else 0
                check(count == slice["items"], f"{name}: {tag}, interval {number}: {count} and {slice['items']} items")
                if not histogram:
                    continue
                for quantile, field in ((0.5, "p50_ns"), (0.99, "p99_ns"), (1, "max_ns")):
                    expected = times(slice)[field]
                    said = f"{name}: {tag}, interval {number}, {field}: {ranked(histogram, quantile)} and {expected}"
                    check(same(histogram, quantile, expected), said)
                    compared += 1
            check(not intervals, f"{name}: {tag} has intervals that the result has not: {sorted(intervals)}")
        # 64 buckets per power of two, compared with three digits.
        whole = HdrHistogram(1, HIGHEST_NS, 3)
        for histogram in found[row].values():
            whole.add(histogram)
        for quantile, field in ((0.5, "p50_ns"), (0.99, "p99_ns"), (0.999, "p999_ns")):
            ours, theirs = phase["latency"]["service"][field], ranked(whole, quantile)
            check(ours * 0.999 <= theirs <= max(ours * 1.017, ours + 16), f"{name}: {row} {field}: {theirs} and {ours}")
        last = max(start for tag, start in lengths if tag == row)
        check(all(round(ms, 3) == 10 for (tag, s), ms in lengths.items() if tag == row and s < last), f"{name}: lengths of {row}")
        check(lengths[row, last] < 10.001, f"{name}: the last one is {lengths[row, last]} ms long")
    print(f"   {compared} numbers of {sum(map(len, found.values()))} intervals", flush=True)


def killed(program, before, folder, name):
    """Kills all ranks of a run, and checks that the log has everything until then."""
    heading(f"killed: {name}")
    log = folder / f"{name}-killed.hlog"
    log.unlink(missing_ok=True)
    command = [*before, program, "io", "--dir", folder, "--rw", "randread", "--size", "1m", "--bs", "4k", "--quiet"]
    command += ["--time", "60", "--think", "1ms", "--interval", "500ms", "--no-round-trip", "--hlog", log]
    process = subprocess.Popen([str(word) for word in command], start_new_session=True, stdout=subprocess.DEVNULL)
    lines = lambda: log.read_text().count("Tag=") if log.exists() else 0
    check(wait_until(lambda: lines() > 0, 60), f"{name}: the first interval is there")
    begun = time.monotonic()
    wait_until(lambda: lines() >= 7, 60)
    there = lines()
    for rank in in_session(process.pid):
        try:
            os.kill(rank, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    lasted_s = time.monotonic() - begun
    found, _, _ = read(log)
    (intervals,) = found.values()
    told = f"{name}: {len(intervals)} intervals in {lasted_s:.1f} s, {there} of them before the end"
    check(len(intervals) >= there, told, always=True)
    check(there >= 7, told)
    starts = sorted(intervals)
    steps = {round(b - a) for a, b in zip(starts, starts[1:])}
    check(steps == {500}, f"{name}: they are {steps} ms apart")
    check(all(histogram.get_total_count() > 0 for histogram in intervals.values()), f"{name}: each has values")
    print(f"   {len(intervals)} intervals of 500 ms", flush=True)


def refused(program, folder):
    """Checks that existing files stay, except interval logs that may be replaced."""
    heading("files that are there")
    log, other, link = folder / "a.hlog", folder / "precious", folder / "link"
    command = [program, "io", "--dir", folder, "--size", "64k", "--no-round-trip", "--quiet"]
    run([*command, "--hlog", log])
    other.write_text("precious")
    link.symlink_to(log)
    content = log.read_text()
    for words, code in (
        (["--hlog", log], 2),
        (["--hlog", other, "--overwrite"], 2),
        (["--hlog", link, "--overwrite"], 2),
        (["--hlog", folder / "nowhere" / "log"], 2),
        (["--hlog", folder / "x", "--out", folder / "x"], 2),
    ):
        done = subprocess.run([str(word) for word in [*command, *words]], capture_output=True, text=True, check=False)
        check(done.returncode == code and "--hlog" in done.stderr, f"{words}: {done.returncode} {done.stderr}")
        check("Operation" not in done.stdout, f"{words}: refused before anything is measured")
    check(log.read_text() == content and other.read_text() == "precious" and link.is_symlink(), "all is as it was")
    check(not (folder / "x").exists(), "nothing was made")
    run([*command, "--hlog", log, "--overwrite"])
    check(log.read_text() != content, "a log of rbench is replaced")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun")
    given = parser.parse_args()
    program = given.program.resolve()
    with tempfile.TemporaryDirectory(prefix="rbench-hlog-") as folder:
        folder = pathlib.Path(folder)
        refused(program, folder)
        for before, name in (([], "one rank"), ([given.mpirun, "-np", "4"], "four ranks")):
            if before and not given.mpirun:
                continue
            # A Python that decodes a thousand histograms takes minutes. So this runs once, with many ranks if possible.
            if before or not given.mpirun:
                numbers(program, before, folder, name)
            # A busy machine may do nothing for half a second.
            in_attempts(3, killed, program, before, folder, name)
    finish()


if __name__ == "__main__":
    main()
