"""The per-operation table against the built-in file system with a latency of its own for each request, against the
system calls that strace sees, and on 12 ranks.

usage: ops.py PROGRAM
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile

from common import Testfs, attempt, check, finish, heading, mpirun, phases, result, run

# The requests of each row; rows that share a kind differ in their calls. Before it changes what is in a file the
# kernel asks for the attribute security.capability.
REQUESTS = {
    "mkdir": ["mkdir"], "mvdir": ["rename"], "rmdir": ["rmdir"], "mknod": ["mknod"], "create": ["create"],
    "close": ["flush"], "rename": ["rename"], "unlink": ["unlink"], "link": ["link"], "symlink": ["symlink"],
    "readlink": ["readlink"], "setattr": ["setattr"], "utimes": ["setattr"], "truncate": ["setattr", "getxattr"],
    "access": ["access"], "setxattr": ["setxattr"], "getxattr": ["getxattr"], "removexattr": ["removexattr"],
    "listxattr_1": ["listxattr"], "listxattr_10": ["listxattr"], "statfs": ["statfs"], "write": ["getxattr", "write", "fsync"],
    "read_1": ["read"], "read_10": ["read"],
}
KINDS = sorted({kind for kinds in REQUESTS.values() for kind in kinds})
LATENCY_MS = {kind: 4 + 2 * place for place, kind in enumerate(KINDS)}
CACHED = ["--attr-timeout", "100", "--entry-timeout", "100"]
# What the caches would answer, or takes many requests to prepare, is asked in runs of its own: (row, kind, requests of
# an operation, time-outs, ms of latency). A path is looked up name by name: those of the pass, the rank and the item, and for
# `resolve` of the four below it.
ASKED = [
    ("readdir_10", "opendir", 1, CACHED, 20),
    ("readdir_1k", "opendir", 1, CACHED, 20),
    ("getattr", "getattr", 1, CACHED, 10),
    ("lookup", "lookup", 3, ["--attr-timeout", "100", "--entry-timeout", "0"], 5),
    ("resolve", "lookup", 7, ["--attr-timeout", "100", "--entry-timeout", "0"], 5),
]
# Kinds of which preparing and removing take thousands.
PREPARING = ["mkdir", "mknod", "unlink"]
# The system calls of a row on its items, in a worker that only does that; those that are timed are in TIMED.
SYSTEM_CALLS = {
    "mkdir": "mkdirat", "mvdir": "renameat", "rmdir": "unlinkat", "mknod": "mknodat", "create": "openat close",
    "close": "openat close", "rename": "renameat", "unlink": "unlinkat", "link": "linkat", "symlink": "symlinkat",
    "readlink": "readlinkat", "lookup": "statx", "resolve": "statx", "getattr": "openat statx close",
    "setattr": "fchmodat", "utimes": "utimensat", "truncate": "openat ftruncate close", "access": "faccessat",
    "setxattr": "openat fsetxattr close", "getxattr": "openat fgetxattr close",
    "removexattr": "openat fremovexattr close", "listxattr_1": "openat flistxattr close",
    "listxattr_10": "openat flistxattr close", "statfs": "openat fstatfs close",
    "write": "openat pwrite64 fsync close", "read_1": "openat pread64 close", "read_10": "openat pread64 close",
    "readdir_10": "openat getdents64 getdents64 close", "readdir_1k": "openat getdents64 getdents64 close",
}


def rows(program, target, folder, *options):
    out = folder / "ops.json"
    run([program, "ops", "--dir", target.mountpoint, "--out", out, "--quiet", *options], quiet=True)
    found = phases(result(out))
    out.unlink()
    return found


def mean_ms(phase):
    return phase["latency"]["service"]["mean_ns"] / 1e6


def own(name, reported, expected, base):
    """What is wrong with the mean of a row (ms)."""
    if reported < expected or reported > 1.1 * expected + base:
        return f"{name}: {reported:.3f} ms reported, {expected} ms injected, {base:.3f} ms without"
    print(f"   {name:13} {reported:9.3f} ms, {expected} ms injected, {base:.3f} ms without")
    return None


def own_latencies(program, folder, right):
    """What is wrong with rows that are not among those that were `right` before: a row that measures something else
    never is, and one that waited for a processor is the next time."""
    heading("each row reports the latency of its own request, and of no other")
    wrong = mean_latencies(program, folder, [name for name in REQUESTS if name not in right])
    for asked in ASKED:
        if asked[0] not in right:
            wrong[asked[0]] = asked_latencies(program, folder, *asked)
    right.update(name for name, text in wrong.items() if not text)
    return "; ".join(text for text in wrong.values() if text)


def mean_latencies(program, folder, names):
    """Of each row, what is wrong with its mean when every request has a latency of its own."""
    if not names:
        return {}
    only = ",".join(names)
    plain = Testfs(program, *CACHED)
    bases = rows(program, plain, folder, "--ops", "20", "--only", only)
    plain.end()
    latencies = ",".join(f"{kind}={ms}ms" for kind, ms in LATENCY_MS.items())
    slow = Testfs(program, *CACHED, "--latency", latencies)
    found = rows(program, slow, folder, "--ops", "20", "--only", only)
    slow.end()
    wrong = {}
    for name in names:
        expected = sum(LATENCY_MS[kind] for kind in REQUESTS[name])
        # The base of a busy machine is not steady: half a millisecond is below every difference of two kinds.
        wrong[name] = own(name, mean_ms(found[name]), expected, mean_ms(bases[name]) + 0.5)
    return wrong


def asked_latencies(program, folder, name, kind, requests, timeouts, ms):
    """What is wrong with the mean of a row that the kernel's caches would answer, without them."""
    plain = Testfs(program, *timeouts)
    base = mean_ms(rows(program, plain, folder, "--ops", "20", "--only", name)[name]) + 0.5
    plain.end()
    slow = Testfs(program, *timeouts, "--latency", f"{kind}={ms}ms")
    phase = rows(program, slow, folder, "--ops", "20", "--only", name)[name]
    slow.end()
    late = [other for other in KINDS if other not in (*PREPARING, kind)]
    others = Testfs(program, *timeouts, "--latency", ",".join(f"{other}=5ms" for other in late))
    beside = rows(program, others, folder, "--ops", "20", "--only", name)[name]
    others.end()
    if mean_ms(beside) > base + 1:
        return f"{name}: {mean_ms(beside):.3f} ms, though only others' requests are late"
    return own(name, mean_ms(phase), ms * requests, base)


def calls_of_workers(trace):
    """The calls on items by the threads that made them, in the order in which these began."""
    found = {}
    lines = trace.read_text().splitlines()
    main = lines[0].split()[0]
    for line in lines:
        match = re.match(r"(\d+) +(\w+)\((.*)", line)
        # The tree's own directory is made and removed around the rows.
        if match and match[1] != main and re.search(r"(dir|file)\.0\.\d", match[3]):
            found.setdefault(match[1], []).append(match[2])
    return list(found.values())


def system_calls(program, folder):
    heading("strace: a row's worker makes the row's own system calls and no others")
    trace = folder / "strace"
    for name, calls in SYSTEM_CALLS.items():
        (folder / "target").mkdir()
        # Kept, so that the last thread with calls on items is the row's.
        done = run(["strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=%file,%desc", program, "ops", "--dir",
                    folder / "target", "--only", name, "--ops", "3", "--quiet", "--no-round-trip", "--keep"], quiet=True)
        shutil.rmtree(folder / "target")
        worker = calls_of_workers(trace)[-1]
        once = calls.split()
        expected = once * 3
        if name == "mvdir" or name == "rename":
            # Untimed, back to its own name.
            expected = expected + once
        check(worker == expected, f"{name}: {worker[:40]}, not {expected}")
        # What the table names is what is timed.
        row = [line for line in done.stdout.splitlines() if line.split()[:1] == [name] and " and " not in line]
        check(len(row) == 1, f"{name}: {len(row)} rows: {done.stdout}")
        timed = [word for word in "".join(row).split()[1:] if word.isalnum() and not word.isdigit()]
        check(bool(timed) and set(timed) - {"warm", "cold", "forced"} <= set(once), f"{name}: {timed} of {once}")
    print(f"   {len(SYSTEM_CALLS)} rows")


def many_ranks(program, folder):
    heading("12 ranks on the built-in file system")
    out = folder / "ranks.json"
    done = run([*mpirun("mpirun", 12), program, "ops", "--ops", "20", "--threads", "2", "--out", out, "--quiet"])
    document = result(out)
    check(document["complete"] and document["world"]["ranks"] == 12, "12 ranks, to the end")
    found = phases(document)
    names = list(SYSTEM_CALLS)
    check(sorted(found) == sorted(names), f"rows {sorted(found)}, not {sorted(names)}")
    for name, phase in found.items():
        check(phase["items"] == 12 * 2 * 20, f"{name}: {phase['items']} operations")
        check(phase["errors"] == {}, f"{name}: {phase['errors']}")
    check("newchunk: n/a, " in done.stdout, "the row that no system call reaches says why")
    told = found["getattr"]["residency"]["verdict"]
    check(told == "forced", f"getattr is {told}")


def bad_input(program):
    heading("bad input: one sentence")
    for arguments, words in [
        (["--only", "mkdr"], "(nearest: mkdir)"),
        (["--only", "newchunk"], "no system call reaches it"),
        (["--ops", "3", "--time", "1"], "--ops and --time exclude each other"),
        (["--ops", "0"], "--ops must be at least 1"),
        (["--time", "0"], "--time must be longer than 0"),
    ]:
        done = run([program, "ops", *arguments], expect=2, quiet=True)
        check(words in done.stderr, f"{arguments}: {done.stderr}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ["RBENCH_DIR"] = ""
    with tempfile.TemporaryDirectory(prefix="check-ops-") as name:
        folder = pathlib.Path(name)
        bad_input(program)
        system_calls(program, folder)
        right = set()
        attempt(5, lambda: own_latencies(program, folder, right))
        many_ranks(program, folder)
    finish()


main()
