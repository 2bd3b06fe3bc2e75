"""Checks names in flight: a ring with several operations per worker, compared with the file system's own figures, with
threads, and with plain calls. strace cannot see the operations of a ring.

usage: flight.py PROGRAM
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import PATIENCE_S, Testfs, attempt, check, check_phase, finish, heading, longer_than, phases, result, run

# Latency of each request: the machine's own speed hardly matters beside it.
SLOW_MS = 20
SLOW_NS = SLOW_MS * 10**6
DEPTH = 32
# Phases with one request per item, which always reaches the file system.
SINGLE = {"file-stat": "getattr", "file-link": "link", "link-remove": "unlink", "file-symlink": "symlink",
          "symlink-remove": "unlink", "file-setxattr": "setxattr", "file-truncate": "setattr", "file-rename": "rename"}
MEASURED = ["dir-create", "dir-stat", "dir-rename", "dir-remove", "file-create", "file-read", "file-remove", *SINGLE]


def spread(items):
    """Returns options for one directory per item: the kernel serialises changes of a directory."""
    return ["--branch", items, "--depth", 1, "--items", 1, "--leaf-only"]


def ring(depth):
    return ["--engine", "io_uring", "--iodepth", depth]


class Used:
    """A run, with its processor time and memory."""

    def __init__(self, command, expect=0):
        with tempfile.TemporaryFile("w+") as printed:
            started = subprocess.Popen([str(word) for word in command], stdout=printed, stderr=printed)
            _, status, usage = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
            printed.seek(0)
            self.printed = printed.read()
        words = " ".join(str(word) for word in command)
        check(started.returncode == expect, f"exit code {started.returncode}: {words}\n{self.printed}")
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.memory_mib = usage.ru_maxrss / 1024


def meta(program, mount, out, *words):
    return [program, "meta", "--dir", mount, "--no-round-trip", "--quiet", "--out", out, "--overwrite", *words]


def depths(program, folder):
    """Checks with one worker that 32 in flight multiply the rate, and that the file system confirms the times."""
    heading(f"{DEPTH} in flight against one, each request {SLOW_MS} ms")
    wanted = ["--phases", ",".join(MEASURED)]

    def measured(depth):
        files = Testfs(program, "--latency", f"all={SLOW_MS}ms", "--attr-timeout", "0", "--entry-timeout", "1000s", "--threads", 4)
        out = folder / f"depth-{depth}.json"
        run(meta(program, files.mountpoint, out, *ring(depth), *wanted, *spread(8 * max(depth, 3))), quiet=True)
        stats = files.stats()
        files.end()
        document = result(out)
        check(document["spec"].get("iodepth") == str(depth), f"the result says the depth: {document['spec']}")
        for phase in document["phases"]:
            check_phase(phase, f"depth {depth} {phase['name']}")
        return phases(document), stats

    one, _ = measured(1)

    def once():
        many, stats = measured(DEPTH)
        wrong = []
        for name in MEASURED:
            times = many[name]["rate"] / one[name]["rate"]
            mean_ms = [rows[name]["latency"]["service"]["mean_ns"] / 1e6 for rows in (one, many)]
            print(f"   {name:15} {one[name]['rate']:7.0f}/s {many[name]['rate']:7.0f}/s  {times:5.1f} times"
                  f"   {mean_ms[0]:6.2f} ms {mean_ms[1]:6.2f} ms", flush=True)
            if times < 20:
                wrong.append(f"{name}: {times:.1f} times the rate of one at a time")
            for rows, depth in ((one, 1), (many, DEPTH)):
                late = longer_than(rows[name]["latency"]["service"], SLOW_NS)
                check(late == rows[name]["items"], f"{name}, {depth} in flight: {late} operations took {SLOW_MS} ms")
            if name in SINGLE and mean_ms[1] > 3 * SLOW_MS:
                wrong.append(f"{name}: {mean_ms[1]:.1f} ms where the file system took {SLOW_MS} ms")
        check(stats["setxattr"]["min_ns"] >= SLOW_NS, "the file system kept its own time")
        return "; ".join(wrong)

    attempt(3, once)


# A mix in which each step is one request, and one with random operations.
STEPS = {"create": "create", "append": "write", "fsync": "fsync", "close": "flush", "stat": "getattr", "delete": "unlink"}
LIST = ["--list", "create, append 4k, fsync, close, stat last, delete last", "--files", 1024, "--prepared", 0, "--width", 2]
DRAWN = ["--ops", "stat=2,read=1", "--files", 64, "--prepared", 100, "--file-size", "4k"]


def mix(program, mount, out, *words):
    return [program, "mix", "--dir", mount, "--no-round-trip", "--quiet", "--untried", "--out", out, "--overwrite", "--seed", 7, *words]


def mixes(program, folder):
    """Checks rounds of one worker in flight: they multiply the rate, and each step takes as long as its request."""
    heading(f"a mix with {DEPTH} rounds in flight against one, each request {SLOW_MS} ms")
    slow = ",".join(f"{kind}={SLOW_MS}ms" for kind in (*STEPS.values(), "read", "open"))

    def measured(words, depth):
        files = Testfs(program, "--latency", slow, "--attr-timeout", "0", "--entry-timeout", "1000s", "--threads", 4)
        out = folder / f"mix-{depth}.json"
        run(mix(program, files.mountpoint, out, *words, "--rounds", 12 * max(depth, 4), *ring(depth)), quiet=True)
        files.end()
        found = phases(result(out))
        for row in found.values():
            check_phase(row, f"mix, depth {depth} {row['name']}")
            check(row["items"] == 0 or not row["missed"], f"mix, depth {depth} {row['name']}: missed {row['missed']}")
        return found

    for words, counted, steps in ((LIST, "round", STEPS), (DRAWN, "all", {"stat": "getattr"})):
        def once():
            # Both are measured again: either may have run on a busy machine.
            one, many = measured(words, 1), measured(words, DEPTH)
            times = many[counted]["rate"] / one[counted]["rate"]
            wrong = [f"{counted}: {times:.1f} times the rate of one at a time"] if times < 20 else []
            print(f"   {counted:8} {one[counted]['rate']:7.1f}/s {many[counted]['rate']:7.1f}/s  {times:5.1f} times", flush=True)
            for name in steps:
                means = [rows[name]["latency"]["service"]["mean_ns"] / 1e6 for rows in (one, many)]
                print(f"   {name:8} {means[0]:6.2f} ms {means[1]:6.2f} ms", flush=True)
                for rows in (one, many):
                    late = longer_than(rows[name]["latency"]["service"], SLOW_NS)
                    check(late == rows[name]["items"], f"{name}: {late} operations took {SLOW_MS} ms")
                if max(means) > 2 * SLOW_MS:
                    wrong.append(f"{name}: {max(means):.1f} ms where the file system took {SLOW_MS} ms")
            if counted == "round":
                late = longer_than(many["round"]["latency"]["service"], len(STEPS) * SLOW_NS)
                check(late == many["round"]["items"], f"a round is all of its steps: {late}")
            return "; ".join(wrong)

        attempt(3, once)


def left_by(folder):
    """Returns names and lengths below the run's own directory."""
    found = {}
    for place, _, names in os.walk(folder):
        parts = pathlib.Path(place).relative_to(folder).parts[1:]
        found.update({"/".join((*parts, name)): os.path.getsize(os.path.join(place, name)) for name in names if len(parts) > 1})
    return found


def mixes_are_the_same(program, folder):
    """Compares the requests and remaining files of profiles: plain calls, a ring of one, and a ring of eight."""
    heading("profiles of one worker: requests, bytes and tree with calls, one and eight rounds in flight")
    kinds = ("create", "unlink", "open", "write", "fsync", "flush", "rename", "setattr", "mkdir")
    for name in ("varmail", "fileserver", "webserver", "webproxy"):
        found = {}
        for label, words in (("calls", []), ("1", ring(1)), ("8", ring(8))):
            files = Testfs(program, "--attr-timeout", "0", "--direct-io")
            out = folder / "same.json"
            options = ["--profile", name, "--threads", 1, "--scale", 0.1, "--scale-size", 0.1, "--rounds", 60, "--keep"]
            run(mix(program, files.mountpoint, out, *options, *words), quiet=True)
            stats, tree = files.stats(), left_by(files.mountpoint)
            # The marker's length depends on the length of the process number.
            own = sum(os.path.getsize(note) for note in pathlib.Path(files.mountpoint).glob("*/.rbench-run"))
            written = stats["write"]["bytes"] - own
            files.end()
            requests = {kind: stats[kind]["count"] for kind in kinds if kind in stats}
            rows = {row: (phase["items"], phase["missed"]) for row, phase in phases(result(out)).items()}
            found[label] = (requests, rows, written, tree, stats["read"]["bytes"], stats["read"]["count"])
        calls, one, eight = found.values()
        check(one == calls, f"{name}, one in flight: {one} and not {calls}")
        # The size of a file is written by whichever round has taken it, so the bytes of whole files differ.
        same = 3 if name != "fileserver" else 2
        check(eight[:same] == calls[:same], f"{name}, eight in flight: {eight[:same]} and not {calls[:same]}")
        check(len(eight[3]) == len(calls[3]) > 50, f"{name}: as many files are left: {len(eight[3])}, {len(calls[3])}")
        print(f"   {name}: {calls[0]}, {calls[2]} bytes written, {len(calls[3])} files left", flush=True)


def beside_threads(program, folder):
    """Prints the figures of docs/reference/in-flight.md: a ring compared with the same number of threads."""
    heading(f"{DEPTH} in flight of one worker, {DEPTH} workers with one each; 1 ms")
    names = "file-create,file-stat,file-read,file-remove"
    print(f"   {'':16}" + "".join(f"{name:>14}" for name in names.split(",")) + "   CPU/op  memory")
    rates = {}
    for label, files_made, words in ((f"ring, {DEPTH}", 2048, ring(DEPTH)), (f"threads, {DEPTH}", 2048, ["--threads", DEPTH]),
                                     ("ring, 1", 256, ring(1)), ("threads, 1", 256, [])):
        files = Testfs(program, "--latency", "all=1ms", "--attr-timeout", "0")
        out = folder / "beside.json"
        used = Used(meta(program, files.mountpoint, out, *words, *spread(files_made), "--phases", names))
        files.end()
        rows = phases(result(out))
        operations = sum(row["items"] for row in rows.values())
        rates[label] = {name: rows[name]["rate"] for name in names.split(",")}
        shown = "".join(f"{rates[label][name]:12.0f}/s" for name in names.split(","))
        print(f"   {label:16}{shown}{used.cpu_s / operations * 1e6:6.0f} us {used.memory_mib:5.0f} MiB", flush=True)
    for name, rate in rates[f"ring, {DEPTH}"].items():
        check(rate > rates["threads, 1"][name], f"{name}: {rate:.0f}/s in flight is more than one at a time")


def on_memory(program, folder):
    """Measures the cost of the ring itself, where the file system takes no time."""
    heading("tmpfs: the cost of an operation")
    names = "file-create,file-stat,file-read,file-remove"
    with tempfile.TemporaryDirectory(prefix="check-flight-", dir="/dev/shm") as memory:
        for label, words in (("calls", []), ("ring, 1", ring(1)), (f"ring, {DEPTH}", ring(DEPTH))):
            out = folder / "memory.json"
            used = Used(meta(program, memory, out, "--items", 20000, "--depth", 0, "--phases", names, *words))
            rows = phases(result(out))
            operations = sum(row["items"] for row in rows.values())
            shown = "".join(f"{1e6 / rows[name]['rate']:11.2f} us" for name in names.split(","))
            print(f"   {label:10}{shown}{used.cpu_s / operations * 1e6:9.2f} us of CPU", flush=True)
            check(all(not row["errors"] for row in rows.values()), f"{label}: no errors")
        check(not os.listdir(memory), "nothing is left")


def hanging(program, folder):
    """A request that never returns, in the middle of an operation, ends like with one operation at a time."""
    heading("a write that hangs in the middle of creating a file, and of a round of a mix")
    created = lambda *words: meta(program, *words, "--items", 20, "--write", "4k", "--files-only")
    mixed = lambda *words: mix(program, *words, "--list", "create, append 4k, close, delete last", "--prepared", 0, "--rounds", 60)
    for label, made, row, words in (
        ("calls", created, "file-create", []),
        ("ring", created, "file-create", ring(8)),
        ("mix", mixed, "create", []),
        ("mix-ring", mixed, "create", ring(8)),
    ):
        files = Testfs(program, "--fault", "write:hang@nth=30", faults=True)
        out = folder / f"hang-{label}.json"
        command = [*made(files.mountpoint, out), "--op-timeout", 1, *words]
        started = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # It is reported while the call still hangs; the process itself ends with the file system.
        for line in started.stderr:
            if "has not returned" in line and "no longer" in line:
                print(f"   {line.strip()[:150]}", flush=True)
            if line.startswith("rbench: an operation did not return"):
                break
        document = result(out)
        check(len([fault for fault in files.fault_log() if fault["action"] == "hang"]) == 1, f"{label}: one write hung")
        files.bury()
        started.communicate(timeout=PATIENCE_S)
        check(started.returncode == 1, f"{label}: exit code {started.returncode}")
        errors = {name: phase["errors"] for name, phase in phases(document).items() if phase["errors"]}
        check(sum(errors.get(row, {}).values()) == errors.get(row, {}).get("ETIMEDOUT") == 1, f"{label}: {errors}")
        check(not document["complete"], f"{label}: the run is not complete")


def refusals(program, folder):
    heading("what cannot be in flight is refused before anything is made")
    place = folder / "untouched"
    place.mkdir()
    for words, sentence in (
        (["--iodepth", 4], "--iodepth 4 needs --engine io_uring"),
        (["--engine", "libaio"], "--engine libaio is not one of sync, io_uring"),
        (ring(0), "--iodepth must be at least 1"),
        (ring(5000), "--iodepth 5000 is more than 4096"),
        ([*ring(4), "--phases", "dir-list"], "does not perform dir-list"),
        ([*ring(4), "--phases", "file-utimes"], "does not perform file-utimes"),
    ):
        done = run([program, "meta", "--dir", place, *words], expect=2)
        check(sentence in done.stderr, f"{words}: {done.stderr}")
    limited = run(["prlimit", "--nproc=16", program, "meta", "--dir", place, *ring(64)], expect=2)
    check("--iodepth 64: the limit on processes (ulimit -u)" in limited.stderr, limited.stderr)
    for words, sentence in (
        (["--ops", "stat=1,list=1", *ring(4)], "--ops: --engine io_uring does not perform list: use --engine sync"),
        (["--profile", "smallfile", *ring(4)], "does not perform chmod, readlink, list"),
        (["--list", "create, close", "--iodepth", 4], "--iodepth 4 needs --engine io_uring"),
        (["--list", "create, close", "--files", 3, *ring(4)], "3 names for 4 rounds in flight"),
    ):
        done = run([program, "mix", "--dir", place, *words], expect=2)
        check(sentence in done.stderr, f"{words}: {done.stderr}")
    many = ["--list", "open, close", *ring(64)]
    limited = run(["prlimit", "--nproc=16", program, "mix", "--dir", place, *many], expect=2)
    check("--iodepth 64: the limit on processes (ulimit -u)" in limited.stderr, limited.stderr)
    limited = run(["prlimit", "--nofile=100", program, "mix", "--dir", place, *many], expect=2)
    check("--threads 1 and --iodepth 64 need 130 open files per rank" in limited.stderr, limited.stderr)
    for words, sentence in ((["-k"], "does not perform mknod"), (["-w", 8, "--verify-write"], "--verify-write cannot be combined")):
        done = run([program, "mdtest", "-d", place, "-n", 4, *words, *ring(4)], expect=2)
        check(sentence in done.stderr, f"{words}: {done.stderr}")
    check(not os.listdir(place), f"nothing was made: {os.listdir(place)}")


def told(program, folder):
    heading("results say how operations were made, and comparisons that it differs")
    place = folder / "told"
    place.mkdir()
    files = {}
    for label, words in (("calls", []), ("ring", ring(8))):
        files[label] = folder / f"told-{label}.json"
        run(meta(program, place, files[label], "--items", 200, "--phases", "file-create,file-remove", *words), quiet=True)
    spec = result(files["ring"])["spec"]
    check((spec["engine"], spec["iodepth"]) == ("io_uring", "8"), f"{spec}")
    shown = run([program, "show", files["ring"]], quiet=True)
    check("engine io_uring" in shown.stdout and "iodepth 8" in shown.stdout, shown.stdout)
    compared = run([program, "compare", files["calls"], files["ring"]], expect=2, quiet=True)
    named = "engine (- against io_uring); iodepth (- against 8)"
    check(named in compared.stderr, f"the difference is named: {compared.stderr}")
    io = run([program, "io", "--dir", place, "--size", "1M", "--engine", "io_uring", "--iodepth", 4, "--format", "json"], quiet=True)
    check(json.loads(io.stdout)["spec"]["depth"] == "4", "--iodepth is --depth of rbench io")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="check-flight-") as name:
        folder = pathlib.Path(name)
        refusals(program, folder)
        told(program, folder)
        depths(program, folder)
        mixes(program, folder)
        mixes_are_the_same(program, folder)
        beside_threads(program, folder)
        on_memory(program, folder)
        hanging(program, folder)
    finish()


main()
