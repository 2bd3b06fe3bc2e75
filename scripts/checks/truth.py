"""Reports held against what rbench-testfs counted and measured itself, with
known latencies, a known stall, and the system calls that strace sees.

usage: truth.py PROGRAM
"""

import os
import pathlib
import re
import sys
import tempfile

from common import Testfs, check, finish, heading, longer_than, mpirun, phases, result, run

QUANTILES = ["p50_ns", "p99_ns", "p999_ns"]


def files(program, target, workers, out):
    # Each rank has a directory of its own: the kernel lets only one create
    # at a time into a directory.
    run([*mpirun("mpirun", workers), program, "meta", "--dir", target.mountpoint, "--files-only", "--depth", "0",
         "--items", "3000", "--write", "4k", "--out", out, "--quiet"], quiet=True)
    document = phases(result(out))
    out.unlink()
    return document


def known_latency(program, folder):
    heading("2 ms injected into create, 500 us into read")
    uncached = ["--attr-timeout", "0", "--entry-timeout", "0"]
    print("   workers  phase        what      " + "".join(f"{q:>12}" for q in QUANTILES) + "   (us)")
    for workers in [1, 4, 16]:
        plain = Testfs(program, *uncached)
        without = files(program, plain, workers, folder / "plain.json")
        plain.end()
        slow = Testfs(program, *uncached, "--latency", "create=2ms,read=500us")
        reported = files(program, slow, workers, folder / "slow.json")
        measured = slow.stats()
        slow.end()
        for name, kind, injected in [("file-create", "create", 2e6), ("file-read", "read", 5e5)]:
            compare(workers, name, injected, reported[name]["latency"]["service"], measured[kind],
                    without[name]["latency"]["service"])
            enclosed(workers, name, reported[name], measured[kind])


def enclosed(workers, name, phase, truth):
    """However late the machine wakes its threads: all requests of a worker lie in its operations, and these one
    behind the other in the phase."""
    spent = phase["latency"]["service"]["mean_ns"] * phase["items"]
    label = f"{workers} workers, {name}"
    check(spent >= truth["mean_ns"] * truth["count"] * 0.999, f"{label}: operations are shorter than their requests")
    room = workers * phase["elapsed_s"] * 1e9
    check(spent <= room * 1.001, f"{label}: {spent / 1e9:.3f} s of operations in {room / 1e9:.3f} s")


def compare(workers, name, injected, reported, truth, without):
    rows = {"reported": reported, "truth": truth, "without": without}
    for what, values in rows.items():
        numbers = "".join(f"{values[q] / 1000:12.1f}" for q in QUANTILES)
        print(f"   {workers:7}  {name:11}  {what:8}  {numbers}", flush=True)
    above = [reported[q] - truth[q] for q in QUANTILES]
    within = ["yes" if a <= without[q] else "no" for a, q in zip(above, QUANTILES)]
    print(f"   {workers:7}  {name:11}  above by  " + "".join(f"{a / 1000:12.1f}" for a in above)
          + "   within the latency without injection: " + ", ".join(within), flush=True)
    for quantile in QUANTILES:
        label = f"{workers} workers, {name}, {quantile}"
        check(truth[quantile] >= injected, f"{label}: the file system kept its own time")
        # How far above is in the table: it depends on how late this machine wakes threads.
        check(reported[quantile] >= truth[quantile], f"{label}: reported below the truth")


def request_counts(program, folder):
    heading("with cache times at 0 the file system counts what the report says")
    target = Testfs(program, "--attr-timeout", "0", "--entry-timeout", "0")
    out = folder / "counts.json"
    run([*mpirun("mpirun", 4), program, "meta", "--dir", target.mountpoint, "--write", "4k", "--out", out, "--quiet",
         "--no-round-trip"])
    counted = {kind: row["count"] for kind, row in target.stats().items()}
    target.end()
    got = {name: phase["items"] for name, phase in phases(result(out)).items()}
    # The run's directory with its marker, and that of the iteration, are made
    # and removed around the phases; the marker is read back by other ranks.
    expected = {
        "mkdir": got["tree-create"] + got["dir-create"] + 2,
        "rmdir": got["dir-remove"] + got["tree-remove"] + 2,
        "create": got["file-create"] + 1,
        "write": got["file-create"] + 1,
        "unlink": got["file-remove"] + 1,
        "rename": got["dir-rename"] + got["file-rename"],
    }
    for kind, number in expected.items():
        check(counted.get(kind) == number, f"{kind}: {counted.get(kind)} requests, {number} expected")
    stats = got["dir-stat"] + got["file-stat"]
    check(stats <= counted["getattr"] <= stats + 64, f"getattr: {counted['getattr']} requests for {stats} stats")
    print(f"   {counted}")


def stall(program, folder):
    heading("one 500 ms stall in an open loop of 1000/s")
    target = Testfs(program, "--fault", "read:stall=500ms@nth=1000")
    out = folder / "stall.json"
    run([program, "io", "--dir", target.mountpoint, "--rw", "randread", "--bs", "4k", "--size", "16M", "--direct", "--untried",
         "--rate", "1000", "--time", "3", "--out", out, "--quiet"])
    target.end()
    latency = phases(result(out))["randread"]["latency"]
    for what in ["service", "response"]:
        times = ", ".join(f"{q[:-3]} {latency[what][q] / 1e6:.3f} ms" for q in [*QUANTILES, "max_ns"])
        print(f"   {what}: {times}")
    # Whoever was to start in the first half of the stall waits for more than the other half.
    late = {what: longer_than(latency[what], 250_000_000) for what in ["service", "response"]}
    print(f"   longer than 250 ms: {late}")
    check(1 <= late["service"] <= 20, f"one service time shows the stall, and no others: {late}")
    check(late["response"] >= 240, f"so do the response times of all that was to start in it: {late}")


def whole(lines):
    """The lines of a trace, where a call that another thread's came between has its end on a line of its own."""
    calls, begun = [], {}
    for line in lines:
        thread, _, call = line.partition(" ")
        resumed = re.match(r" *<\.\.\. \w+ resumed>(.*)", call)
        if resumed and thread in begun:
            calls[begun.pop(thread)] += resumed.group(1)
            continue
        if line.endswith("<unfinished ...>"):
            begun[thread] = len(calls)
            line = line.removesuffix("<unfinished ...>").rstrip()
        calls.append(line)
    return calls


def system_calls(program, folder):
    heading("strace: within a phase only the phase's own calls reach the mount")
    # The counter of requests is read around phases: it is left out here.
    target = Testfs(program, "--stats-file", "off")
    trace = folder / "strace"
    run(["strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=%file,%desc", program, "meta", "--dir",
         target.mountpoint, "--items", "3", "--branch", "2", "--write", "1k", "--quiet"])
    target.end()
    lines = [line for line in whole(trace.read_text().splitlines()) if str(target.mountpoint) in line]
    # A worker closes its copies of the run's directories, which are open with O_PATH: names, of which the file
    # system never hears. Asking /proc what a descriptor is called does not reach it either.
    names = {match.group(1) for line in lines if "O_PATH" in line and (match := re.search(r"= (\d+<.*?>)", line))}
    asks = re.compile(r'readlink\("/proc/|close\((' + "|".join(map(re.escape, names)) + r")\)")
    lines = [line for line in lines if not asks.search(line)]
    in_tree = [i for i, line in enumerate(lines) if "tree." in line and "ENOENT" not in line]
    # All that reaches the mount from the first call of a phase to the last.
    lines = lines[in_tree[0]:in_tree[-1] + 1]
    calls = [match.group(1) for match in (re.match(r"\d+ +(\w+)\(", line) for line in lines) if match]
    n, nodes = 9, 3
    expected = (
        ["mkdirat"] * nodes
        + ["mkdirat"] * n + ["newfstatat"] * n + ["renameat"] * n
        + ["openat", "getdents64", "getdents64", "close"] * nodes + ["unlinkat"] * n
        + ["openat", "write", "close"] * n + ["newfstatat"] * n
        + ["openat", "read", "close"] * n
        + ["renameat"] * n + ["unlinkat"] * n
        + ["unlinkat"] * nodes
    )
    check(calls == expected, f"calls differ from those of the phases:\n{calls}\n{expected}")
    if calls == expected:
        print(f"   {len(calls)} calls, exactly those of the twelve phases")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ["RBENCH_DIR"] = ""
    with tempfile.TemporaryDirectory(prefix="check-truth-") as name:
        folder = pathlib.Path(name)
        system_calls(program, folder)
        request_counts(program, folder)
        stall(program, folder)
        known_latency(program, folder)
    finish()


main()
