"""Replays I/O logs (write_iolog, read_iolog) of fio and of the program with both tools.

usage: traces.py PROGRAM

Both tools must replay a log of either tool equally: the same files and sizes, the same I/Os at the same offsets in
the same order, and the same number of syncs. Both also replay hand-written logs of versions 2 and 3 with every
option that changes operations or times.
"""

import argparse
import pathlib
import shutil
import tempfile
import time

from common import attempt, check, finish, heading
from fio import Tool

# Number of attempts for times on a busy machine.
TRIES = 5

RECORDED = (
    "--rw=write --size=64k",
    "--rw=read --size=64k --nrfiles=3",
    "--rw=randrw --size=256k --nrfiles=2 --fsync=8",
    "--rw=write --filesize=8k --nrfiles=4 --file_service_type=sequential",
    "--rw=write --filesize=8k --nrfiles=4 --openfiles=2",
    "--rw=randwrite --size=128k --bsrange=1k-16k --bs_unaligned=1 --norandommap",
    "--rw=randread --size=256k --ioengine=libaio --iodepth=8",
    "--rw=randrw --size=256k --ioengine=io_uring --iodepth=8 --rw=randwrite",
    "--rw=write --size=64k --fdatasync=4 --end_fsync=1",
    "--rw=write --size=64k --loops=2",
    "--rw=trimwrite --size=64k --ioengine=falloc",
)
# Logs with deterministic lines: both tools write the same lines, except for times.
SAME_LINES = (
    "--rw=write --size=64k",
    "--rw=read --size=64k --nrfiles=3",
    "--rw=write --size=64k --fsync=4",
    "--rw=write --filesize=8k --nrfiles=4 --file_service_type=sequential",
    "--rw=trim --size=64k --ioengine=falloc",
)
# Replays with a file "f" of 64 KiB, and the same log in version 2 ("t2") and version 3 ("t3").
LINES = ("f add", "f open", "f read 30000 4096", "f write 10000 100", "f sync 0 0", "f write 65536 4096", "f read 5000 4096",
         "f close", "f open", "f read 0 512", "f close")
REPLAYED = (
    "", "--replay_scale=3", "--replay_align=4k", "--replay_scale=3 --replay_align=1k", "--replay_redirect=g",
    "--replay_no_stall=1", "--replay_time_scale=200", "--read_iolog_chunked=1", "--ioengine=libaio", "--ioengine=io_uring",
    "--numjobs=2 --group_reporting=0", "--runtime=10", "--loops=2",
    "--time_based=1 --runtime=10", "--replay_redirect=g --replay_scale=2 --replay_align=512 --replay_no_stall=1",
)
# Features that fio 3.33 lacks: with several in flight it forgets the last ones, and it skips only in traces of
# blktrace. Each entry has the words of the lines that are left out.
ALONE = (("--ioengine=libaio --iodepth=4", ()), ("--ioengine=io_uring --iodepth=4", ()), ("--replay_skip=read", ("read",)),
         ("--replay_skip=write", ("write",)), ("--replay_skip=sync", ("sync",)), ("--replay_skip=read,sync,trim", ("read", "sync")))


def accesses(folder, worker=1):
    """Returns (direction, offset, length) of each I/O of a worker, in order of completion."""
    path = folder / f"x_bw.{worker}.log"
    rows = [[int(field) for field in row.split(", ")] for row in path.read_text().splitlines()] if path.exists() else []
    return [(row[2], row[4], row[3]) for row in rows]


def lines_of(path):
    """Returns a log's lines without times."""
    first, *rest = path.read_text().splitlines()
    check(first == "fio version 3 iolog", f"{path.name} begins with {first}")
    return [line.split(" ", 1)[1] for line in rest]


def sizes(folder):
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir())
            if path.is_file() and not path.name.endswith(".log")}


def amounts(document):
    return [[(job[way]["total_ios"], job[way]["io_bytes"]) for way in ("read", "write", "trim")]
            + [job["sync"]["total_ios"], job["error"]] for job in document["jobs"]]


class Bench:
    """Both tools, with a new directory for each run."""

    def __init__(self, program, root):
        self.fio, self.rbench = Tool("fio", ["fio"]), Tool("rbench", [program, "fio"])
        self.both, self.root, self.made = (self.fio, self.rbench), root, 0

    def folder(self):
        self.made += 1
        folder = self.root / f"{self.made:03}"
        folder.mkdir()
        return folder

    def replay(self, tool, prepared, log, line):
        """Returns the effects of a replay in a copy of `prepared`: amounts, accesses, sizes."""
        folder = self.folder()
        shutil.copytree(prepared, folder, dirs_exist_ok=True)
        engine = "" if "ioengine" in line else "--ioengine=psync"
        document = tool.json("--name=x", f"--read_iolog={log}", "--write_bw_log=x", "--log_offset=1", engine or "--thread",
                             *line.split(), cwd=folder)
        workers = len(document["jobs"])
        return amounts(document), [accesses(folder, n + 1) for n in range(workers)], sizes(folder)


def recorded(bench):
    heading(f"{len(RECORDED)} jobs recorded by each tool and replayed by both")
    for line in RECORDED:
        for recorder in bench.both:
            folder = bench.folder()
            recorder.json("--name=o", "--write_iolog=t.log", *line.split(), cwd=folder)
            words = [row.split() for row in lines_of(folder / "t.log")]
            wanted = [(("read", "write", "trim").index(word[1]), int(word[2]), int(word[3])) for word in words
                      if word[1] in ("read", "write", "trim")]
            syncs = sum(word[1] in ("sync", "datasync") for word in words)
            engine = "--ioengine=falloc" if "falloc" in line else ""
            for tool in bench.both:
                done, found, left = bench.replay(tool, folder, "t.log", f"--replay_no_stall=1 {engine}")
                said = f"{line}: recorded by {recorder.name}, replayed by {tool.name}"
                # fio 3.33 writes trims but does not replay them, and counts fdatasync among reads.
                expected = [one for one in wanted if one[0] < 2 or tool is bench.rbench]
                check(found == [expected], f"{said}: {found} are not {expected}")
                check(left == sizes(folder), f"{said}: files {left}")
                check(done[0][3] == syncs or ("datasync" in line and tool is bench.fio), f"{said}: {done[0][3]} syncs of {syncs}")
                check(done[0][4] == 0, f"{said}: error {done[0][4]}")


def same_lines(bench):
    heading(f"{len(SAME_LINES)} jobs of which both write the same lines")
    for line in SAME_LINES:
        folders = [bench.folder() for _ in bench.both]
        for tool, folder in zip(bench.both, folders):
            tool.json("--name=o", "--write_iolog=t.log", *line.split(), cwd=folder)
        theirs, ours = (lines_of(folder / "t.log") for folder in folders)
        check(theirs == ours, f"{line}: fio {theirs}, rbench {ours}")


def prepared(bench):
    folder = bench.folder()
    for name in ("f", "g"):
        (folder / name).write_bytes(bytes(range(256)) * 256)
    (folder / "t2").write_text("\n".join(["fio version 2 iolog", *LINES]) + "\n")
    timed = [f"{n * 1000} {line}" for n, line in enumerate(LINES)]
    (folder / "t3").write_text("\n".join(["fio version 3 iolog", *timed]) + "\n")
    return folder


def replayed(bench):
    heading(f"{2 * len(REPLAYED)} replays that both tools do alike")
    folder = prepared(bench)
    for log in ("t2", "t3"):
        for line in REPLAYED:
            theirs, ours = (bench.replay(tool, folder, log, line) for tool in bench.both)
            for what, a, b in zip(("amounts", "places", "sizes"), theirs, ours):
                check(a == b, f"{log} {line}: {what}: fio {a}, rbench {b}")


def alone(bench):
    heading(f"{2 * len(ALONE)} replays that fio does not do well")
    folder = prepared(bench)
    rows = [line.split() for line in LINES]
    for log in ("t2", "t3"):
        for line, skipped in ALONE:
            done, found, _ = bench.replay(bench.rbench, folder, log, line)
            wanted = [(("read", "write").index(row[1]), int(row[2]), int(row[3])) for row in rows
                      if row[1] in ("read", "write") and row[1] not in skipped]
            check(sorted(found[0]) == sorted(wanted), f"{log} {line}: {found} are not {wanted}")
            check(done[0][3:] == [int("sync" not in skipped), 0], f"{log} {line}: {done}")


def in_turns(bench):
    heading("three workers and two logs")
    folder = prepared(bench)
    for tool in bench.both:
        (folder / "u").write_text("fio version 2 iolog\nf add\nf open\nf read 4096 512\nf close\n")
        done, found, _ = bench.replay(tool, folder, "t2:u", "--numjobs=3")
        # fio numbers clones from the last one.
        check([len(one) for one in found] == [5, 5, 1], f"{tool.name}: {found}")
        check(found[0] == found[1] and found[2] == [(0, 4096, 512)], f"{tool.name}: {found} {done}")


def times(bench):
    heading("times are kept, scaled and left out")
    folder = prepared(bench)
    # Half a second in steps of 10 ms, as time stamps and as waits.
    stamps = ["1 f add", "1 f open", *[f"{n * 10000} f read {n * 512} 512" for n in range(1, 51)], "500001 f close"]
    (folder / "s3").write_text("\n".join(["fio version 3 iolog", *stamps]) + "\n")
    waits = ["f add", "f open", "f read 0 512", "f wait 400 0", "f read 512 512", "f wait 600 0", "f read 1024 512", "f close"]
    (folder / "s2").write_text("\n".join(["fio version 2 iolog", *waits]) + "\n")
    for log, line, least, most in (("s3", "", 0.45, 2), ("s3", "--replay_time_scale=50", 0.9, 3),
                                   ("s3", "--replay_time_scale=400", 0.1, 0.45), ("s3", "--replay_no_stall=1", 0, 0.3),
                                   ("s3", "--read_iolog_chunked=1", 0.45, 2), ("s2", "", 0.3, 3),
                                   ("s2", "--replay_no_stall=1", 0, 0.3)):
        for tool in bench.both:
            def once():
                copy = bench.folder()
                shutil.copytree(folder, copy, dirs_exist_ok=True)
                document = tool.json("--name=x", "--thread", f"--read_iolog={log}", *line.split(), cwd=copy)
                took = document["jobs"][0]["read"]["runtime"] / 1000
                return None if least <= took <= most else f"{tool.name}: {log} {line} took {took} s"
            attempt(TRIES, once)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="check-traces-", dir="/dev/shm") as root:
        bench = Bench(options.program, pathlib.Path(root))
        for part in (recorded, same_lines, replayed, alone, in_turns, times):
            part(bench)
    print(f"   {time.monotonic() - begun:.0f} s", flush=True)
    finish()


if __name__ == "__main__":
    main()
