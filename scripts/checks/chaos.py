"""Kills runs of many MPI ranks at a random moment: the launcher, rank 0 or another rank, by SIGINT, SIGTERM or SIGKILL.
All measurements must be on disk, and nothing may be left.

usage: chaos.py PROGRAM [--runs N] [--seed S] [--brief] [--ranks N] [--mpirun MPIRUN]
"""

import argparse
import atexit
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter

from common import Testfs, check, finish, heading, in_session, meta_items, mpirun, regular, result, run

TARGETS = ("mpirun", "rank 0", "another rank")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
NATIVE = ("meta", "io")
GONE_WITHIN_S = 120
# In memory, and over FUSE.
META_ITEMS = {True: 2500, False: 200}

JOBS = """
[global]
size=4m
loops={loops}
bs=8k
[first]
rw=write
[second]
stonewall
rw=randwrite
numjobs=2
[third]
stonewall
rw=randread
[fourth]
stonewall
rw=write
fsync=16
"""


def words(workload, place, folder, part):
    """Returns the command line of a run of some seconds, or a `part` of it; without a directory for the built-in file
    system."""
    memory = place == "directory"
    there = [] if place == "built-in" else ["--dir", folder / "target"]
    match workload:
        case "meta":
            return ["meta", *there, "--items", META_ITEMS[memory] // part]
        case "io":
            sizes = ["--size", "16M" if memory else "4M", "--bs", "64k", "--iterations", 12 // part]
            return ["io", *there, *sizes, "--rw", "write,read,randwrite,randread", "--verify"]
        case "mdtest":
            items = (2000 if memory else 200) // part
            return ["mdtest", "-d", folder / "target", "-u", "-n", items, "-w", 1024, "-e", 1024, "-i", 3]
        case "fio":
            (folder / "jobs.fio").write_text(JOBS.format(loops=max(6 // part, 1)))
            return ["fio", f"--directory={folder / 'target'}", folder / "jobs.fio"]


def rows(phases):
    return [(phase["iteration"], phase["name"], phase["items"]) for phase in phases]


def lines(path):
    """Returns the complete phases in a journal."""
    try:
        whole = path.read_text().rpartition("\n")[0].splitlines()
    except OSError:
        return []
    return [line for line in whole if line.startswith('{"phase"')]


def find_rank(session, rank):
    """Returns the process of a rank; `None` if it does not exist."""
    wanted = [f"{name}={rank}".encode() for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK")]
    for pid in in_session(session):
        try:
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(entry in environment for entry in wanted):
            # The rank itself existed before any process that it started.
            return pid
    return None


def seen(pid):
    """Describes a process for messages."""
    try:
        name, waits = (pathlib.Path(f"/proc/{pid}/{file}").read_text().strip() for file in ("comm", "wchan"))
        return f"{pid} ({name}, in {waits})"
    except OSError:
        return f"{pid} (gone)"


class Chaos:
    """The directories, the undisturbed runs, and the results of the disturbed ones."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.random = random.Random(args.seed)
        self.part = 4 if args.brief else 1
        self.testfs = Testfs(args.program, "--attr-timeout", 0, "--entry-timeout", 0)
        self.known, self.counts, self.cells, self.number = {}, Counter(), Counter(), 0

    def begin(self, workload, place):
        """Starts a run in a new session. Returns its process, result file and directories."""
        self.number += 1
        folder = (self.testfs.mountpoint if place == "testfs" else self.folder) / f"run-{self.number}"
        local = self.folder / f"local-{self.number}"
        for path in (folder, folder / "target", local):
            path.mkdir(parents=True, exist_ok=True)
        # Files that Open MPI itself leaves after a killed run are removed with the directory.
        env = {**os.environ, "TMPDIR": str(local), "OMPI_MCA_btl_vader_backing_directory": str(local)}
        out = self.folder / f"out-{self.number}.json"
        launch, *ranks = mpirun(self.args.mpirun, self.args.ranks)
        command = [launch, "--oversubscribe", *ranks, self.args.program, *words(workload, place, folder, self.part)]
        command += ["--out", out, "--quiet"]
        log = open(f"{out}.log", "w+")
        process = subprocess.Popen([str(word) for word in command], env=env, stdout=log, stderr=log, start_new_session=True)
        # If this check is aborted, the run ends as well.
        atexit.register(self.ends, process, 0)
        return process, out, folder, local, log

    def undisturbed(self, workload, place):
        """Measures the duration of an undisturbed run, and its phases with their items."""
        if (workload, place) not in self.known:
            begun = time.monotonic()
            process, out, folder, local, log = self.begin(workload, place)
            check(process.wait(timeout=1200) == 0, f"{workload}, {place}: an undisturbed run ends with 0")
            took = time.monotonic() - begun
            phases = regular(result(out))
            if workload == "meta":
                wanted = meta_items(self.args.ranks, each=META_ITEMS[place == "directory"] // self.part)
                wanted = [(0, *pair) for pair in wanted.items()]
                check(rows(phases) == wanted, f"{workload}, {place}: the items are those of the plan")
            self.known[workload, place] = (took, rows(phases))
            print(f"   {workload}, {place}: {took:.1f} s, {len(phases)} rows", flush=True)
            self.discard(folder, local, out, log)
        return self.known[workload, place]

    def discard(self, folder, local, out, log):
        log.close()
        atexit.unregister(self.ends)
        for path in (folder, local):
            shutil.rmtree(path, ignore_errors=True)
        for path in (out, pathlib.Path(f"{out}.journal"), pathlib.Path(f"{out}.log")):
            path.unlink(missing_ok=True)

    def disturbed(self, target, number, workload, place):
        """Executes a run and kills it."""
        took, wanted = self.undisturbed(workload, place)
        at = self.random.uniform(0.2, took * 1.05)
        rank = 0 if target == "rank 0" else self.random.randrange(1, self.args.ranks)
        begun = time.monotonic()
        process, out, folder, local, log = self.begin(workload, place)
        label = f"run {self.number}, {workload}, {place}, {number.name} at {target} after {at:.2f} s"
        victim = self.wait(process, begun + at, None if target == "mpirun" else rank)
        before = len(lines(pathlib.Path(f"{out}.journal")))
        had_journal, had_result = pathlib.Path(f"{out}.journal").exists(), out.exists()
        over = process.poll() is not None or victim is None
        if not over:
            try:
                os.kill(victim, number)
            except ProcessLookupError:
                over = True
        killed = time.monotonic()
        left = self.ends(process, killed + GONE_WITHIN_S)
        took = time.monotonic() - killed
        check(left == [], f"{label}: left after {GONE_WITHIN_S} s: {left}")
        check(process.poll() is not None, f"{label}: mpirun has ended")
        code = process.poll()
        mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if str(local) in line]
        check(mounts == [], f"{label}: mounts are left: {mounts}")
        kept, partial = self.kept(label, out, wanted, before, had_journal or had_result)
        # A signal may come between the end of the last phase and the end of the program.
        whole = out.exists() and kept == len(wanted)
        check(code == 0 if over else code != 0 or whole, f"{label}: exit code {code} with {kept} of {len(wanted)} rows")
        tree = self.tree(label, workload, folder)
        log.seek(0)
        said = log.read()
        check("panicked" not in said, f"{label}: a panic: {said[-2000:]}")
        when = "over before" if over else f"gone in {took:4.1f} s"
        what = f"{self.number:4}  {workload:6}  {place:9}  {number.name:7}  {target:12}  at {at:5.2f} s"
        print(f"{what}  {when:14}  exit {code!s:>4}  {kept:2} of {len(wanted)} rows{' + a part' if partial else ''}  tree {tree}",
              flush=True)
        self.cells[target, number.name] += 1
        self.counts.update({"runs": 1, "over before the kill": over, "all phases done": kept == len(wanted),
                            "rows intact": kept, "parts": partial, f"tree {tree}": 1})
        self.counts["longest end, ms"] = max(self.counts["longest end, ms"], round(took * 1000))
        self.discard(folder, local, out, log)

    def wait(self, process, until, rank):
        """Waits until the time, or until the victim exists. Returns its number; None if it no longer exists."""
        while time.monotonic() < until:
            time.sleep(min(0.01, max(0, until - time.monotonic())))
        if rank is None:
            return process.pid
        while process.poll() is None:
            found = find_rank(process.pid, rank)
            if found:
                return found
        return None

    def ends(self, process, deadline):
        """Waits until no process of the run is left. Kills and reports the ones left at the deadline."""
        while time.monotonic() < deadline:
            if process.poll() is not None and not in_session(process.pid):
                return []
            time.sleep(0.05)
        remaining = in_session(process.pid)
        left = [seen(pid) for pid in remaining]
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        return left

    def kept(self, label, out, wanted, before, expected_there):
        """Returns the complete rows, and whether a partial row follows."""
        journal = pathlib.Path(f"{out}.journal")
        there = [path for path in (out, journal) if path.exists()]
        check(there or not expected_there, f"{label}: the result and its journal are gone")
        if not there:
            return 0, False
        text = run([self.args.program, "show", there[0]], quiet=True)
        check(text.stdout.strip() != "", f"{label}: show says nothing")
        shown = run([self.args.program, "show", "--format", "json", there[0]], quiet=True)
        if shown.returncode != 0:
            return 0, False
        document = json.loads(shown.stdout)
        shown = regular(document)
        whole = [phase for phase in shown if phase["complete"]]
        parts = shown[len(whole):]
        check(not any(part["complete"] for part in parts), f"{label}: nothing whole comes behind a part")
        check(rows(whole) == wanted[:len(whole)], f"{label}: rows {rows(whole)}, not the first of {wanted}")
        # The journal's lines also include closes.
        left = sum(phase["complete"] for phase in document["phases"])
        check(left >= before, f"{label}: {left} rows are left of {before} in the journal")
        following = wanted[len(whole):][:len(parts)]
        check([row[:2] for row in rows(parts)] == [row[:2] for row in following], f"{label}: parts {rows(parts)} of {following}")
        check(all(part[2] <= row[2] for part, row in zip(rows(parts), following)), f"{label}: parts {rows(parts)} of {following}")
        # A partial row derived from intervals has no ranks, and the result reports that.
        of_intervals = any(warning["code"] == "unfinished-phase" for warning in document["warnings"])
        for phase in document["phases"]:
            check(phase["errors"] == {}, f"{label}: {phase['name']}: errors {phase['errors']}")
            name, n = phase["name"], phase["items"]
            check(phase["latency"]["service"]["count"] == n, f"{label}: {name}: the histogram holds {n}")
            if of_intervals and not phase["complete"]:
                check(phase["ranks"] == [], f"{label}: {name}: ranks that no interval tells")
            else:
                check(sum(rank["items"] for rank in phase["ranks"]) == n, f"{label}: {name}: the ranks add up to {n}")
        return len(whole), bool(parts)

    def tree(self, label, workload, folder):
        """Checks what is left of the run's tree. Native commands leave nothing, or a directory that `clean` removes."""
        target = folder / "target"
        there = [path.name for path in target.iterdir()]
        if workload not in NATIVE:
            return "left" if there else "gone"
        if not there:
            return "gone"
        check(all(name.startswith("rbench.") for name in there), f"{label}: {there} in the target")
        done = run([self.args.program, "clean", target], quiet=True)
        left = [path.name for path in target.iterdir()]
        check(left == [], f"{label}: clean leaves {left}: {done.stdout}{done.stderr}")
        return "cleaned"

    def summary(self):
        heading("summary")
        print("   " + ", ".join(f"{name}: {int(number)}" for name, number in self.counts.items()))
        print(f"   {'':14}" + "".join(f"{number.name:>9}" for number in SIGNALS))
        for target in TARGETS:
            print(f"   {target:14}" + "".join(f"{self.cells[target, number.name]:9}" for number in SIGNALS))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brief", action="store_true", help="runs of about a second instead of some")
    parser.add_argument("--ranks", type=int, default=12)
    parser.add_argument("--mpirun", default="mpirun")
    args = parser.parse_args()
    # Twelve ranks on few CPUs: no rank may busy-wait.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory(prefix="check-chaos-", dir="/dev/shm", ignore_cleanup_errors=True) as name:
        tempfile.tempdir = name
        chaos = Chaos(args, pathlib.Path(name))
        heading(f"{args.runs} runs of {args.ranks} ranks, killed (seed {args.seed})")
        kills = [(target, number) for target in TARGETS for number in SIGNALS]
        kinds = [(workload, place) for workload in ("meta", "io", "mdtest", "fio") for place in ("directory", "testfs")]
        kinds += [(workload, "built-in") for workload in NATIVE]
        for turn in range(args.runs):
            # Nine kills and ten kinds of runs: every pair occurs.
            chaos.disturbed(*kills[turn % len(kills)], *kinds[turn % len(kinds)])
        chaos.testfs.end()
        chaos.summary()
    finish()


if __name__ == "__main__":
    main()
