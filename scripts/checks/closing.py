"""Where the time of I/O jobs goes besides their operations: closes, and syncs at the end, against a file system of which these
requests take a known time.

usage: closing.py PROGRAM
"""

import pathlib
import sys
import tempfile

from common import Testfs, check, check_phase, finish, heading, longer_than, result, run

# What each of them takes at least, and what no other request takes.
SLOW_MS = 300
SLOW_NS = SLOW_MS * 10**6


def measured(program, folder, name, latency, words):
    """The rows of a run, and the requests that reached the file system."""
    files = Testfs(program, *(["--latency", latency] if latency else []))
    before = files.stats()
    out = folder / f"{name}.json"
    done = run([program, *[str(word).replace("MOUNT", str(files.mountpoint)) for word in words], "--out", out])
    after = files.stats()
    count = lambda stats, kind: stats.get(kind, {"count": 0})["count"]
    requests = {kind: count(after, kind) - count(before, kind) for kind in ("flush", "fsync")}
    files.end()
    document = result(out)
    for phase in document["phases"]:
        check_phase(phase, f"{name} {phase['name']}")
    # With those of closing and flushing.
    return {phase["name"]: phase for phase in document["phases"]}, requests, done


def slow(row, label, items):
    """A row of so many operations, each of which took the known time."""
    check(row is not None, f"{label}: there is no row")
    if row is not None:
        check(row["items"] == items and row["errors"] == {}, f"{label}: {row['items']} items, {row['errors']}")
        late = longer_than(row["latency"]["service"], SLOW_NS)
        check(late == items, f"{label}: {late} of {items} took {SLOW_MS} ms")
        print(f"   {row['label']}: {items} operations, {row['latency']['service']['mean_ns'] / 1e6:.1f} ms each", flush=True)


def quick(row, label, of):
    """A row that has nothing of the slow ones, of which there are so many. On a busy machine an operation may take as long."""
    late = longer_than(row["latency"]["service"], SLOW_NS)
    check(late < of, f"{label}: {late} operations took {SLOW_MS} ms")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    io = ["io", "--dir", "MOUNT", "--rw", "write,read", "--size", "1M", "--threads", 3, "--no-round-trip"]
    fio = ["fio", "--name=j", "--directory=MOUNT", "--rw=write", "--size=4M", "--nrfiles=4", "--numjobs=2",
           "--rbench-no-round-trip"]
    with tempfile.TemporaryDirectory(prefix="check-closing-") as name:
        folder = pathlib.Path(name)
        heading(f"closes of {SLOW_MS} ms")
        rows, requests, done = measured(program, folder, "io", f"flush={SLOW_MS}ms", io)
        for phase in ("write", "read"):
            slow(rows.get(f"{phase}-closing"), f"io {phase}", 3)
            quick(rows[phase], f"io {phase}", 3)
        check(requests["flush"] >= 6, f"the file system was asked so often: {requests}")
        check("Sequential write: closing" in done.stdout, f"the report has the row:\n{done.stdout}")
        rows, requests, _ = measured(program, folder, "fio", f"flush={SLOW_MS}ms", fio)
        slow(rows.get("j-closing"), "fio", 8)
        quick(rows["j-write"], "fio", 8)
        check(requests["flush"] >= 8, f"the file system was asked so often: {requests}")

        heading("closes that are in the time of the job have the row that they had")
        rows, _, _ = measured(program, folder, "timed", f"flush={SLOW_MS}ms", [*io, "--fsync", "close"])
        slow(rows.get("write-close"), "io --fsync close", 3)
        check("write-closing" not in rows, f"and no other: {list(rows)}")

        heading(f"fio: syncs of {SLOW_MS} ms at the end")
        rows, requests, _ = measured(program, folder, "flush", f"fsync={SLOW_MS}ms", [*fio, "--end_fsync=1"])
        slow(rows.get("j-flush"), "fio --end_fsync=1", requests["fsync"])
        quick(rows["j-write"], "fio --end_fsync=1", requests["fsync"])
        rows, requests, _ = measured(program, folder, "onclose", f"fsync={SLOW_MS}ms", [*fio, "--fsync_on_close=1"])
        slow(rows.get("j-flush"), "fio --fsync_on_close=1", requests["fsync"])

        heading("what takes no time has no row")
        for name, words in (("io", io), ("fio", [*fio, "--end_fsync=1"])):
            rows, _, _ = measured(program, folder, f"none-{name}", None, words)
            for row in ("write-closing", "read-closing", "j-closing", "j-flush"):
                # On a busy machine it may, and then it has one.
                took = rows[row]["latency"]["service"]["mean_ns"] * rows[row]["items"] if row in rows else 0
                check(row not in rows or took > 1e8, f"{name}: {row} has a row for {took / 1e6:.1f} ms")
    finish()


main()
