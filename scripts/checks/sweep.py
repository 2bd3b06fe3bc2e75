"""Checks rbench sweep: cells on selected hosts, ranks and threads, stopped and resumed, impossible values.

usage: sweep.py PROGRAM [--bed]     (--bed: on 12 ranks of three hosts with MooseFS; the bed is up)
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from common import PATIENCE_S, check, finish, heading, mpirun, ranks_of, regular, result, run, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
# Maximum share of a processor for a rank that takes no part, like in ranks.py; a busy-waiting one uses half or more.
IDLE = 0.06


class Place:
    """The place of the ranks: this machine, or the bed."""

    def __init__(self, program, bed):
        self.program, self.bed = program, bed
        self.ranks, self.hosts = (12, 3) if bed else (4, 1)
        if bed:
            self.dir = run([BED, "run", "sh", "-c", "echo $RBENCH_BED_MOUNT"], quiet=True).stdout.strip()
        else:
            self.dir = tempfile.mkdtemp(prefix="check-sweep-")

    def command(self, *words):
        if not self.bed:
            return [str(word) for word in (*mpirun("mpirun", self.ranks), self.program, *words)]
        line = " ".join(str(word) for word in
                        ("mpirun", "-np", self.ranks, "--hostfile", "$RBENCH_BED_HOSTFILE", self.program, *words))
        return [str(BED), "run", "sh", "-c", line]

    def end(self):
        check(os.listdir(self.dir) == [], f"nothing is left: {os.listdir(self.dir)}")
        if not self.bed:
            os.rmdir(self.dir)


def shape(cell):
    """Returns hosts, ranks, threads, block sizes and workers according to a cell's own result."""
    world = cell["result"]["world"]
    rows = [phase for phase in cell["result"]["phases"] if phase["name"] in ("randread", "write")]
    workers = {phase["workers"]["count"] for phase in rows}
    return len(world["hosts"]), world["ranks"], world["threads_per_rank"], {p["bytes"] / p["items"] for p in rows}, workers


def product(place, folder):
    heading("the product of hosts or ranks, threads and block sizes, from one launch")
    out = folder / "product.json"
    key = "hosts" if place.bed else "ranks"
    values = (1, 2, 3)
    done = run(place.command("sweep", "--over", f"{key}={','.join(map(str, values))}", "--over", "threads=1,4", "--over",
                             "bs=4k,128k", "--out", out, "--", "io", "--dir", place.dir, "--rw", "randread,write",
                             "--size", "256k", "--no-round-trip"))
    document = result(out)
    check(document["complete"] and len(document["cells"]) == 12, f"12 cells: {len(document['cells'])}")
    each = place.ranks // place.hosts
    wanted = [(n, threads, bs) for n in values for threads in (1, 4) for bs in ("4k", "128k")]
    for (n, threads, bs), cell in zip(wanted, document["cells"]):
        hosts, ranks = (n, n * each) if place.bed else (1, n)
        size = {"4k": 4096, "128k": 131072}[bs]
        found = shape(cell)
        print(f"   {cell['name']:28} {found[0]} hosts, {found[1]} ranks, {found[2]} threads, {found[4]} workers")
        check(found[:3] == (hosts, ranks, threads), f"{cell['name']}: {found}")
        check(found[3] == {size}, f"{cell['name']}: blocks of {found[3]} bytes")
        check(found[4] == {ranks * threads}, f"{cell['name']}: {found[4]} workers, not {ranks * threads}")
        check(cell["result"]["complete"] and not cell["error"], f"{cell['name']}: {cell['error']}")
    print(done.stdout)
    check("Random read: p99" in done.stdout and "Sequential write: bandwidth" in done.stdout, "the tables have a pivot of each figure")
    check("cell 12 of 12" in done.stderr and " left)" in done.stderr, "progress counts cells and time")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(place, folder):
    heading("ranks that take no part are quiet")
    out = folder / "idle.json"
    key, busy = ("hosts=1", place.ranks // place.hosts) if place.bed else ("ranks=1", 1)
    command = place.command("sweep", "--over", key, "--out", out, "--", "io", "--dir", place.dir, "--rw", "randread",
                            "--size", "1M", "--time", "12", "--no-round-trip")
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = pathlib.Path(f"{out}.cell-1.journal")
    check(wait_until(journal.exists), "the cell has a journal of its own while it runs")
    time.sleep(2)
    ranks = ranks_of(out)
    before, begun = {pid: processor_seconds(pid) for pid in ranks}, time.monotonic()
    time.sleep(4)
    took = time.monotonic() - begun
    shares = sorted((processor_seconds(pid) - before[pid]) / took for pid in ranks)
    check(job.wait(timeout=PATIENCE_S) == 0, f"exit code {job.returncode}")
    print("   share of a processor by rank: " + " ".join(f"{share:.1%}" for share in shares))
    check(len(shares) == place.ranks, f"{len(shares)} ranks")
    quiet = shares[:place.ranks - busy]
    check(max(quiet) < IDLE, f"a rank that takes no part uses {max(quiet):.1%}")
    check(not journal.exists(), "the cell's journal is gone")


def names(document):
    return [(cell["index"], cell["name"], [phase["name"] for phase in regular(cell["result"])])
            for cell in document["cells"]]


def resumed(place, folder):
    heading("stopped by a signal, killed, and resumed: the same set of results")
    whole, out = folder / "whole.json", folder / "part.json"

    def words(file, *more):
        return place.command("sweep", "--over", "bs=4k,16k,64k,128k", "--out", file, *more, "--", "io", "--dir", place.dir,
                             "--rw", "write,read", "--size", "1M", "--time", "1", "--no-round-trip")

    run(words(whole))
    for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGKILL, "SIGKILL")):
        job = subprocess.Popen(words(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        journal = pathlib.Path(f"{out}.journal")
        check(wait_until(lambda: journal.exists() and journal.read_text().count("\n") >= 2), "a cell is done")
        for pid in ranks_of(out):
            # The launcher ends the others after the first.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        job.wait(timeout=PATIENCE_S)
        check(job.returncode != 0, f"{name}: exit code {job.returncode}")
        left = out if out.exists() else journal
        shown = run([place.program, "show", left], quiet=True).stdout
        check("Stopped early: " in shown, f"{name}: what is there can be shown: {shown[-300:]}")
        if number == signal.SIGKILL:
            run([place.program, "clean", place.dir, *(["--force"] if place.bed else [])], quiet=True)
        done = run(words(out, "--resume"))
        check("complete before" in done.stderr, f"{name}: {done.stderr}")
        document = result(out)
        check(document["complete"] and names(document) == names(result(whole)), f"{name}: {names(document)}")
        check(not journal.exists() and not list(folder.glob("*.cell-*")), f"{name}: {list(folder.iterdir())}")
        out.unlink()


def refused(place, folder):
    heading("what cannot be is said before anything runs")
    cases = [
        (["--over", "foo=1,2", "--", "io"], "no option --foo"),
        (["--over", "bs=4q", "--", "io"], "'4q' is not a size"),
        (["--over", "hosts=9", "--", "io"], "hosts=9: "),
        (["--over", "ranks=0", "--", "io"], "--over ranks: '0'"),
        (["--over", "threads=1,0", "--", "io"], "threads=0: "),
        (["--over", "bs=4k", "--", "io", "--bs", "8k"], "already has --bs"),
        (["--over", "bs=4k,4k", "--", "io"], "the value 4k is given twice"),
        (["--over", "bs=4k", "--over", "bs=8k", "--", "io"], "--over bs is given twice"),
        (["--over", "bs=4k", "--", "io", "--out", "x"], "--out belongs to the series"),
    ]
    out = folder / "never.json"
    for words, sentence in cases:
        done = run(place.command("sweep", "--out", out, *words, "--dir", place.dir), expect=2, quiet=True)
        said = [line for line in done.stderr.splitlines() if line.startswith("rbench: ")]
        check(len(said) == 1 and sentence in said[0], f"{words}: {done.stderr}")
        check(not out.exists() and os.listdir(place.dir) == [], f"{words}: something was made")
    done = run(place.command("sweep", "--over", "bs=4k,8k", "--out", folder / "product.json", "--resume", "--", "io",
                             "--dir", place.dir), expect=2, quiet=True)
    check("holds a series with different values" in done.stderr, done.stderr)


def main():
    place = Place(pathlib.Path(sys.argv[1]).resolve(), "--bed" in sys.argv[2:])
    os.environ.pop("RBENCH_DIR", None)
    with tempfile.TemporaryDirectory(prefix="check-sweep-") as name:
        folder = pathlib.Path(name)
        product(place, folder)
        idle(place, folder)
        resumed(place, folder)
        refused(place, folder)
    place.end()
    finish()


if __name__ == "__main__":
    main()
