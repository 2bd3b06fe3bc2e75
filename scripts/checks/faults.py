"""Combines every kind of fault of the built-in file system with every workload. Compares the injected faults with the
reported ones, one by one.

usage: faults.py PROGRAM

A model of the workload, which shares no code with rbench, derives the expected report from the fault log: the
operation that a fault hits, the name of the error, and the operations that fail later because of it.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from common import (
    PATIENCE_S, Testfs, check, check_phase, finish, heading, in_session, longer_than, regular, result, run, wait_until,
)

# Items of meta and mdtest, and bytes per item; blocks per worker of io and fio, and bytes per block.
ITEMS, EACH = 300, 8 << 10
BLOCKS, BLOCK = 128, 64 << 10
# Far above the effect of a busy machine on a call, apart from rare cases.
SLOW_NS = 700_000_000
SLOW_BY_CHANCE = 2
SLOW_KINDS = ("stall", "hang")
# The kernel looks up a name again before it reports it as stale.
NAME_KINDS = ("lookup", "create", "open", "getattr", "mkdir", "rmdir", "rename", "unlink")


@dataclass
class Expected:
    """The expected report: the operations tried, and the number of failures by phase and error. Failures in `follows`
    result from earlier ones, those in `untimed` were not operations. Calls in `again` were interrupted or
    transferred partly, and did not fail."""

    tried: dict
    direct: dict = field(default_factory=lambda: defaultdict(Counter))
    follows: dict = field(default_factory=lambda: defaultdict(Counter))
    untimed: Counter = field(default_factory=Counter)
    slow: Counter = field(default_factory=Counter)
    again: dict = field(default_factory=lambda: defaultdict(Counter))
    complete: bool = True

    def errors(self, phase):
        return dict(self.direct[phase] + self.follows[phase])


def is_error(action):
    return re.fullmatch("E[A-Z]+", action) is not None


def heard(records, kinds):
    """Returns the error that the caller receives from these records of one operation, if any; the first kind takes
    precedence."""
    for kind in kinds:
        errors = [r["action"] for r in records if r["kind"] == kind and is_error(r["action"])]
        if errors and not (errors[0] == "ESTALE" and kind in NAME_KINDS and len(errors) < 2):
            return errors[0]
    return None


class Items:
    """meta and mdtest: one worker creates, finds, reads, renames and removes files (and directories), one of each name."""

    def __init__(self, name, words, verify=False, renames=False, dirs=False):
        self.name, self.words, self.verify, self.renames, self.dirs = name, words, verify, renames, dirs
        self.kinds = ["dir", "file"] if dirs else ["file"]

    def command(self, mount, extra):
        return [*(str(word).replace("@", str(mount)) for word in self.words), *extra]

    def tried(self):
        tried = {"tree-create": 1}
        for kind in self.kinds:
            for step in ["create", "stat", "read" if kind == "file" else None, "rename" if self.renames else None]:
                if step:
                    tried[f"{kind}-{step}"] = ITEMS
            if kind == "dir":
                tried["dir-list"] = 1
            tried[f"{kind}-remove"] = ITEMS
        return {**tried, "tree-remove": 1}

    def expected(self, log):
        expected = Expected(self.tried())
        of = defaultdict(list)
        for record in log:
            found = re.search(r"(file|dir)\.(?:mdtest\.)?0\.(\d+)(?:\.r)?$", record["path"])
            of[found.groups() if found else "tree"].append(record)
        if heard(of["tree"], ["opendir", "readdir"]):
            expected.direct["dir-list"][heard(of["tree"], ["opendir", "readdir"])] += 1
        victims = {r["damage"][0]["other"]["path"] for r in log if r["kind"] == "write" and r["action"] == "misdirect"}
        left = sum(
            self.life(kind, of[kind, str(number)], any(v.endswith(f".0.{number}") for v in victims), expected)
            for kind in self.kinds
            for number in range(ITEMS)
        )
        if left:
            expected.follows["tree-remove"]["ENOTEMPTY"] += 1
        return expected

    def life(self, kind, log, overwritten, expected):
        """Models one item from creation to removal. Returns whether it is left behind."""
        wrong = {r["action"] for r in log if not is_error(r["action"])}

        def step(phase, error, follows=None):
            """Records the end of a step. Returns whether it succeeded."""
            if follows or error:
                (expected.follows if follows else expected.direct)[f"{kind}-{phase}"][follows or error] += 1
            return not follows and not error

        made = step("create", heard(log, ["mkdir" if kind == "dir" else "create"]))
        missing = None if made else "ENOENT"
        short = any(r["kind"] == "write" and r["action"] == "short" for r in log)
        whole = True
        if made and kind == "file":
            late = heard(log, ["write", "fsync", "flush"]) or ("SHORT" if short else None)
            step("create", late)
            whole = not short and not heard(log, ["write"])
        step("stat", heard(log, ["getattr"]), missing)
        if kind == "file":
            error = heard(log, ["open", "read"])
            if error or missing:
                step("read", error, missing)
            elif not whole:
                step("read", None, "SHORT")
            elif any(r["kind"] == "read" and r["action"] == "short" for r in log):
                step("read", "SHORT")
            elif self.verify and (overwritten or wrong & {"flip", "zero", "stale", "misdirect", "lost"}):
                step("read", "MISMATCH")
            if wrong & {"hang"} or any(word.startswith("stall") for word in wrong):
                expected.slow["file-read"] += 1
        # The rename gives it the name under which it is removed.
        renamed = not self.renames or step("rename", heard(log, ["rename"]), missing)
        gone = step("remove", heard(log, ["rmdir" if kind == "dir" else "unlink"]), None if renamed and made else "ENOENT")
        return made and not gone


class Blocks:
    """io and fio: one file of blocks per worker, with each block written once and read once."""

    def __init__(self, name, verify, fio):
        self.name, self.verify, self.fio = name, verify, fio
        self.write, self.read, self.fsync = ("j-write", "j-read", None) if fio else ("write", "read", "write-fsync")

    def command(self, mount, extra, phases, workers):
        if self.fio:
            rw = phases[-1] if not self.verify else "write"
            verify = ["--verify=crc32c", "--do_verify=" + ("1" if "read" in phases else "0")] if self.verify else []
            return ["fio", "--name=j", f"--directory={mount}", f"--rw={rw}", f"--bs={BLOCK}", f"--size={BLOCK * BLOCKS}",
                    f"--numjobs={workers}", "--output-format=json", "--overfill", "--untried", "--verify_state_save=0", *verify, *extra]
        verify = ["--verify"] if self.verify else []
        return ["io", "--dir", mount, "--rw", ",".join(phases), "--bs", BLOCK, "--size", BLOCK * BLOCKS, "--threads",
                workers, "--overfill", "--untried", *verify, *extra]

    def expected(self, log, phases, workers):
        """Each worker has BLOCKS blocks; `phases` are those of the command line."""
        # The layout of files is not a phase; it comes first if fio only reads.
        names = {"write": self.write, "read": self.read}
        if self.fio:
            # Reads come first in fio's reports.
            wanted = [self.read] * ("read" in phases) + [self.write] * (self.verify or "read" not in phases)
        else:
            wanted = [names[phase] for phase in phases]
        expected = Expected({name: BLOCKS * workers for name in wanted})
        if self.fsync and "write" in phases:
            expected.tried[self.fsync] = workers
        bad, unwritten, unread = set(), set(), set()
        harmed = Counter()
        for r in log:
            file, action = r["path"].rsplit("/", 1)[-1], r["action"]
            place = (file, r.get("offset", 0) // BLOCK)
            phase = {**names, "fsync": self.fsync or "j-sync", "flush": self.write}.get(r["kind"])
            if is_error(action):
                if action == "EINTR":
                    expected.again[phase]["interrupted"] += 1
                else:
                    expected.direct[phase][action] += 1
                    (unread if r["kind"] == "read" else unwritten).add(place)
                    expected.untimed[phase] += r["kind"] == "flush"
            elif action.startswith(SLOW_KINDS):
                expected.slow[phase] += 1
            elif action == "die":
                continue
            elif action == "short":
                # Longer writes belong to the layout, whose calls are not counted.
                if r["length"] > BLOCK:
                    continue
                expected.again[phase]["continued"] += 1
            elif r["kind"] == "read":
                harmed[place] += 1
            else:
                bad.add(place)
                # A later write repairs the place where it landed.
                for other in (d["other"] for d in r["damage"] if "other" in d):
                    over = range(other["offset"] // BLOCK, (other["offset"] + r["length"] - 1) // BLOCK + 1)
                    name = other["path"].rsplit("/", 1)[-1]
                    bad |= {(name, block) for block in over if name == file and block < place[1]}
        if self.verify and "read" in phases:
            found = sum(number for place, number in harmed.items() if place not in bad | unread)
            expected.direct[self.read]["MISMATCH"] += found + len(bad - unread)
            # Blocks that were never written cannot be damaged.
            if self.fio and unwritten:
                expected.tried[self.read] -= len(unwritten)
        return expected


def workloads():
    # Cache times of 0 let every call reach the file system; only the calls of the phases may occur. Quotas are exceeded
    # in the middle.
    meta = ["meta", "--dir", "@", "--depth", 0, "--items", ITEMS, "--write", EACH, "--no-round-trip", "--overfill"]
    mdtest = ["mdtest", "-d", "@", "-F", "-n", ITEMS, "-w", EACH, "-e", EACH, "--no-round-trip", "--overfill"]
    return [
        Items("meta", meta, renames=True, dirs=True),
        Blocks("io", False, False),
        Blocks("io --verify", True, False),
        Items("mdtest", mdtest),
        Items("mdtest -X", [*mdtest, "-X"], verify=True),
        Blocks("fio", False, True),
        Blocks("fio --verify=crc32c", True, True),
    ]


@dataclass
class Run:
    """One run: options of the file system, words of the command line, and inputs of the model."""

    faults: list
    extra: list = field(default_factory=list)
    phases: list = field(default_factory=lambda: ["write", "read"])
    workers: int = 1
    # The expected message if the files cannot be prepared.
    refused: str = None
    # A command line to run first.
    before: list = field(default_factory=list)
    # Changes the expectation if a job or the run ends early.
    adjust: object = None


def apart(workload):
    """Returns the phases of writing and reading runs: a fio job without verification does only one of them."""
    return [["write"], ["read"]] if workload.fio and not workload.verify else [["write", "read"]]


def on(*faults, quota=None):
    return [word for fault in faults for word in ("--fault", fault)] + (["--quota", quota] if quota else [])


GO_ON = ["--continue_on_error=all"]


def stops_at(phase, items, **errors):
    """Adjusts for a job that ends at its first error."""
    def adjust(expected, _):
        expected.tried[phase] = items + sum(errors.values())
        expected.direct[phase] = Counter(errors)
    return adjust


def errors_by_chance(errno):
    def plan(workload):
        if isinstance(workload, Items):
            dirs = ["mkdir:{}@p=0.04", "rmdir:{}@nth=90"] if workload.dirs else []
            renames = ["rename:{}@p=0.05"] if workload.renames else []
            kinds = ["create:{}@p=0.05", "write:{}@p=0.03", "getattr:{}@p=0.02", "read:{}@p=0.05", *renames, *dirs]
            return [Run(on(*(kind.format(errno) for kind in kinds)))]
        extra = GO_ON if workload.fio else []
        # rbench io would lay out the files again before reading what it could not write.
        writes = ["write", "read"] if workload.fio and workload.verify else ["write"]
        return [Run(on(f"read:{errno}@p=0.05"), extra, workers=2),
                Run(on(f"write:{errno}@p=0.05"), extra, writes, workers=2)]
    return plan


def eio_after(workload):
    if isinstance(workload, Items):
        return [Run(on(f"read:EIO@after={ITEMS // 2}"))]
    if workload.fio:
        return [Run(on("read:EIO@after=100"), adjust=stops_at(workload.read, 100, EIO=1)),
                Run(on("read:EIO@after=100"), GO_ON)]
    return [Run(on("read:EIO@after=100"))]


def eio_nth(workload):
    if isinstance(workload, Items):
        # The first two listings read the run's own directory.
        dirs = ["mkdir:EIO@nth=50", "rmdir:EIO@nth=60", "opendir:EIO@nth=3"] if workload.dirs else []
        renames = ["rename:EIO@nth=444"] if workload.renames else []
        flags = ["--fsync"] if workload.dirs else ["-y"]
        kinds = ["create:EIO@nth=20", "write:EIO@nth=40", "fsync:EIO@nth=60", "flush:EIO@nth=80", "getattr:EIO@nth=100",
                 "open:EIO@nth=120", "read:EIO@nth=150", "unlink:EIO@nth=140", *renames, *dirs]
        return [Run(on(*kinds), flags)]
    if workload.fio:
        def syncs(expected, _):
            # No sync follows the last write.
            expected.tried["j-sync"] = (BLOCKS - 1) // 16

        # Without continue_on_error a job ends at its first error.
        return [Run(on("read:EIO@nth=50"), adjust=stops_at(workload.read, 49, EIO=1)),
                # The first close belongs to creating the file, the second one to the job.
                Run(on("flush:EIO@nth=1"), phases=["write"], refused=r"close \S+/j\.0\.0: I/O error \(EIO\)"),
                Run(on("flush:EIO@nth=1"), refused=r"close \S+/j\.0\.0: I/O error \(EIO\)"),
                Run(on("flush:EIO@nth=2"), phases=["write"]),
                Run(on("fsync:EIO@nth=2"), ["--fsync=16", *GO_ON], phases=["write"], adjust=syncs)]
    # The first sync is for the marker of the run's directory.
    return [Run(on("read:EIO@nth=50", "fsync:EIO@nth=2", "flush:EIO@nth=2"))]


def quota(workload):
    if isinstance(workload, Items):
        return [Run(on(quota="1m"))]
    if workload.fio:
        def ends(expected, log):
            room = BLOCKS // 2
            expected.tried[workload.write], expected.direct[workload.write] = room + 1, Counter(ENOSPC=1)
            if workload.verify:
                expected.tried[workload.read], expected.direct[workload.read] = 0, Counter()
        phases = ["write", "read"] if workload.verify else ["write"]
        return [Run(on(quota="4m"), ["--fallocate=none"], phases, adjust=ends),
                # Space cannot be reserved either: a message reports that, and the writes continue.
                Run(on(quota="4m"), [], phases, adjust=ends)]
    if workload.verify:
        def ends_early(expected, log):
            # Before the second phase the files cannot be laid out completely.
            expected.tried = {name: n for name, n in expected.tried.items() if name != workload.read} | {"layout": 1}
            expected.direct[workload.read] = Counter()
            expected.direct["layout"] = Counter(ENOSPC=1)
            expected.direct[workload.write]["ENOSPC"] -= sum(r["length"] > BLOCK for r in log)
            expected.complete = False
        return [Run(on(quota="4m"), adjust=ends_early)]
    return [Run(on(quota="4m"), phases=["write"])]


def estale(workload):
    if isinstance(workload, Items):
        return [Run(on("create:ESTALE@nth=50", "create:ESTALE@nth=100", "create:ESTALE@nth=101", "getattr:ESTALE@nth=70",
                       "unlink:ESTALE@nth=50", "read:ESTALE@p=0.05"))]
    if not workload.fio:
        return errors_by_chance("ESTALE")(workload)

    def write_fails(expected, _):
        stops_at(workload.write, 49, ESTALE=1)(expected, _)
        if workload.verify:
            expected.tried[workload.read], expected.direct[workload.read] = 0, Counter()

    # Like in fio, continue_on_error covers only EIO.
    return [Run(on("read:ESTALE@nth=50"), GO_ON, adjust=stops_at(workload.read, 49, ESTALE=1)),
            Run(on("write:ESTALE@nth=50"), GO_ON, ["write", "read"] if workload.verify else ["write"], adjust=write_fails)]


def eintr(workload):
    if isinstance(workload, Items):
        return [Run(on("create:EINTR@nth=50", "unlink:EINTR@nth=70", "read:EINTR@p=0.05"))]
    # Laying out files for a reading job is not a counted operation.
    return [Run(on(*(f"{kind}:EINTR@p=0.05" for kind in phases)), phases=phases, workers=2) for phases in apart(workload)]


def stall(workload):
    return [Run(on("read:stall=700ms@nth=30", "read:stall=700ms@nth=60"))]


def hang(workload):
    return [Run(on("read:hang@nth=50"))]


def die(workload):
    def rest(expected, _):
        reads = "file-read" if isinstance(workload, Items) else workload.read
        behind = list(expected.tried)[list(expected.tried).index(reads) + 1:]
        expected.direct[reads]["ECONNABORTED"] += 1
        if isinstance(workload, Items):
            expected.follows[reads]["ENOTCONN"] += expected.tried[reads] - 50
            for phase in behind:
                expected.follows[phase] = Counter(ENOTCONN=expected.tried[phase])
        elif workload.fio:
            expected.tried[reads] = 50
            # The close is untimed; the close of a written file counts with the writes.
            closed = workload.write if workload.verify else reads
            expected.follows[closed]["ENOTCONN"] += 1
            expected.untimed[closed] += 1
        else:
            # The close is untimed.
            expected.follows[reads]["ENOTCONN"] += BLOCKS - 50 + 1
            expected.untimed[reads] += 1
    # dead.py checks the case in which this ends the run.
    return [Run(on("read:die@nth=50"), ["--on-dead-mount=continue"], adjust=rest)]


def harm(kind, action):
    def plan(workload):
        # With one worker the order of writes is known.
        if isinstance(workload, Items):
            return [Run(on(f"{kind}:{action}@p=0.06"))]
        phases = next(phases for phases in apart(workload) if kind in phases)
        return [Run(on(f"{kind}:{action}@p=0.06"), phases=phases)]
    return plan


def stale(workload):
    def twice(expected, _):
        if not isinstance(workload, Items) and not workload.fio:
            expected.tried = {"write-1": BLOCKS, "write-1-fsync": 1, "write-2": BLOCKS, "write-2-fsync": 1, "read": BLOCKS}
        elif workload.name.endswith("crc32c"):
            expected.tried = {name: 2 * BLOCKS for name in expected.tried}
    if isinstance(workload, Blocks):
        phases = ["write", "read"] if workload.fio else ["write", "write", "read"]
        extra = ["--loops=2", "--fallocate=none"] if workload.fio and workload.verify else []
        return [Run(on("read:stale@p=0.06"), extra, phases, adjust=twice)]
    if not workload.verify:
        return [Run(on("read:stale@p=0.06"))]

    def made_before(expected, _):
        expected.follows["tree-create"]["EEXIST"] = 1

    # The same files with other data, from an earlier run.
    return [Run(on("read:stale@p=0.06"), ["-G", 18], before=[*workload.words[:-1], "-C", "-G", 17], adjust=made_before)]


ROWS = {
    "EIO, by chance": errors_by_chance("EIO"),
    "EIO after a number": eio_after,
    "EIO, single": eio_nth,
    "ENOSPC, quota": quota,
    "ESTALE": estale,
    "EINTR": eintr,
    "short read": harm("read", "short"),
    "short write": harm("write", "short"),
    "stall": stall,
    "hang, released": hang,
    "the daemon dies": die,
    "read: flip": harm("read", "flip"),
    "read: zero": harm("read", "zero"),
    "read: stale": stale,
    "read: misdirect": harm("read", "misdirect"),
    "write: flip": harm("write", "flip"),
    "write: zero": harm("write", "zero"),
    "write: misdirect": harm("write", "misdirect"),
    "write: lost": harm("write", "lost"),
}


class Notes:
    """Footnotes that explain cells with different injected and reported numbers."""

    def __init__(self):
        self.texts = []

    def mark(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return "abcdefghijklmnop"[self.texts.index(text)]


def reason(row, workload, injected, reported):
    """Returns why the two numbers of a cell may differ, according to the documentation."""
    verifies = workload.verify
    blocks = isinstance(workload, Blocks)
    if row == "read: stale" and injected == 0:
        return "nothing is overwritten, so nothing is stale: the fault does not fire"
    if injected == reported:
        return None
    if row == "the daemon dies":
        ends = "a fio job ends at its first error; closing the file fails as well (ENOTCONN)"
        return ends if blocks and workload.fio else "every later call fails as well (ENOTCONN)"
    if row == "ESTALE" and not blocks:
        return "of names the kernel asks once more before anybody hears of ESTALE"
    if row.startswith("short"):
        return "half of a half: a short read of a file that is short already"
    if row == "write: misdirect" and verifies:
        return "a block that lands elsewhere is missing in its own place and damages the other (unless that is written later)"
    if row.startswith(("read:", "write:")) and not verifies:
        return "data is not looked at without verification"
    if row == "ENOSPC, quota" and workload.name == "io --verify":
        return "laying the files out for the second phase is refused too: the run ends early and says so"
    if row == "write: lost":
        return None
    return "?"


def listing(folder):
    """Returns the names in a directory. An injected error may hit this listing, too: then it is repeated."""
    for _ in range(20):
        with contextlib.suppress(OSError):
            return os.listdir(folder)
    return os.listdir(folder)


class Bench:
    """The runs' directories, and their results."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.env = {**os.environ, "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir()

    def one(self, row, workload, plan):
        """Executes a run. Returns (injected, reported, exit code)."""
        label = f"{row}, {workload.name}"
        out = self.folder / "out.json"
        target = Testfs(self.program, "--direct-io", "--attr-timeout", 0, "--entry-timeout", 0, "--seed", 5, *plan.faults,
                        faults=True)
        if isinstance(workload, Items):
            command = workload.command(target.mountpoint, plan.extra)
        else:
            command = workload.command(target.mountpoint, plan.extra, plan.phases, plan.workers)
        if plan.before:
            before = [str(word).replace("@", str(target.mountpoint)) for word in plan.before]
            run([self.program, *before], env=self.env, quiet=True)
        code, told, printed = self.execute([self.program, *command, "--out", out, "--quiet"], target, row == "hang, released")
        log = target.fault_log()
        if plan.refused:
            self.refused(label, plan, target, out, (code, told))
            return len(log), 1, code, 0
        if isinstance(workload, Items):
            expected = workload.expected(log)
        else:
            expected = workload.expected(log, plan.phases, plan.workers)
        if plan.adjust:
            plan.adjust(expected, log)
        check(out.exists(), f"{label}: there is a result: {told}")
        document = result(out)
        out.unlink()
        self.left(label, target, workload, document, row)
        target.end()
        self.said(label, document)
        self.compare(label, document, expected, EACH if isinstance(workload, Items) else BLOCK)
        if isinstance(workload, Blocks) and workload.fio:
            self.compare_fio(label, json.loads(printed), document, GO_ON[0] in plan.extra)
        failed = sum(sum(phase["errors"].values()) for phase in document["phases"])
        follows = sum(sum(errors.values()) for errors in expected.follows.values()) if row != "the daemon dies" else 0
        # Without an injected delay the machine may have been busy.
        held = [phase for phase in regular(document) if expected.slow[phase["name"]]]
        found = sum(longer_than(phase["latency"]["service"], SLOW_NS) for phase in held)
        slow = sum(expected.slow.values())
        check(slow <= found <= slow + SLOW_BY_CHANCE, f"{label}: {found} slow operations, not {dict(expected.slow)}")
        check(code == (1 if failed or not expected.complete else 0), f"{label}: exit code {code} with {failed} errors: {told}")
        again = sum(phase["interrupted"] + phase["continued"] for phase in document["phases"])
        refused = len(re.findall(r"fallocate \S+: No space left on device \(ENOSPC\)", told))
        return len(log), failed - follows + slow + again + refused, code, follows

    def refused(self, label, plan, target, out, ended):
        """Checks that nothing started: no result, and one sentence with the reason."""
        code, told = ended
        check(code == 1 and not out.exists(), f"{label}: exit code {code}, result: {out.exists()}")
        check(re.search(plan.refused, told), f"{label}: said is {told!r}")
        target.end()

    def execute(self, command, target, release):
        words = [str(word) for word in command]
        process = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        if release:
            wait_until(lambda: target.fault_log() or process.poll() is not None)
            time.sleep(1.1 * SLOW_NS / 1e9)
            target.process.send_signal(signal.SIGUSR2)
        printed, err = process.communicate(timeout=3 * PATIENCE_S)
        check(in_session(process.pid) == [], f"processes are left: {' '.join(words)}")
        return process.returncode, err, printed

    def compare_fio(self, label, printed, document, goes_on):
        """Checks that fio's own report has the same items and errors."""
        for way in ("read", "write"):
            items = sum(phase["items"] for phase in document["phases"] if phase["name"] == f"j-{way}")
            told = sum(job[way]["total_ios"] for job in printed["jobs"])
            check(told == items, f"{label}: fio's report has {told} {way}s, not {items}")
            short = sum(phase["continued"] for phase in document["phases"] if phase["name"] == f"j-{way}")
            told = sum(job[way]["short_ios"] for job in printed["jobs"])
            check(told == short, f"{label}: fio's report has {told} short {way}s, not {short}")
        failed = sum(sum(phase["errors"].values()) for phase in document["phases"])
        known = any(job["error"] or job.get("total_err") for job in printed["jobs"])
        check(known == (failed > 0), f"{label}: fio's report knows of errors: {known}, and there are {failed}")
        if goes_on:
            total = sum(job["total_err"] for job in printed["jobs"])
            check(total == failed or any(job["error"] for job in printed["jobs"]), f"{label}: total_err is {total}, not {failed}")

    def compare(self, label, document, expected, size):
        phases = {phase["name"]: phase for phase in regular(document)}
        check(list(phases) == list(expected.tried) or set(phases) == set(expected.tried),
              f"{label}: phases {list(phases)}, not {list(expected.tried)}")
        check(document["complete"] == expected.complete, f"{label}: complete is {document['complete']}")
        for name, phase in phases.items():
            wanted = {error: n for error, n in expected.errors(name).items() if n}
            check(phase["errors"] == wanted, f"{label}: {name}: errors {phase['errors']}, not {wanted}")
            items = expected.tried.get(name, 0) - sum(wanted.values()) + expected.untimed[name]
            check(phase["items"] == items, f"{label}: {name}: {phase['items']} items, not {items}")
            check_phase(phase, f"{label}: {name}", untimed=expected.untimed[name])
            again = {kind: phase[kind] for kind in ("interrupted", "continued") if phase[kind]}
            check(again == dict(expected.again[name]), f"{label}: {name}: {again}, not {dict(expected.again[name])}")
            if phase["op"] in ("create", "read", "read-file", "write"):
                check(phase["bytes"] == items * size * (name != "dir-create"), f"{label}: {name}: {phase['bytes']} bytes")

    def said(self, label, document):
        """Checks the warnings about repeated calls: one for each kind, with their number."""
        for kind, code in (("interrupted", "interrupted-calls"), ("continued", "short-transfers")):
            number = sum(phase[kind] for phase in document["phases"])
            told = [warning["message"] for warning in document["warnings"] if warning["code"] == code]
            counts = sum(int(count) for message in told for count in re.findall(r"\((\d+)\)", message))
            check(counts == number, f"{label}: {number} {kind}, and the warnings are {told}")

    def left(self, label, target, workload, document, row):
        """Checks that only requested files are left: fio's files, and entries that could not be removed and were
        reported."""
        check(list((self.folder / "tmp").iterdir()) == [], f"{label}: temporary files are left")
        if row == "the daemon dies":
            return
        there = listing(target.mountpoint)
        fio = isinstance(workload, Blocks) and workload.fio
        unexpected = [name for name in there if not (fio and name.startswith("j."))]
        said = any(warning["code"] == "left-behind" for warning in document["warnings"])
        check(unexpected == [] or said, f"{label}: {unexpected} is left and nobody says so")
        check(not said or unexpected != [], f"{label}: nothing is left, and that something is was said")

    def cell(self, row, workload, notes):
        done = [self.one(row, workload, plan) for plan in ROWS[row](workload)]
        injected, reported = sum(d[0] for d in done), sum(d[1] for d in done)
        follows = sum(d[3] for d in done)
        codes = ", ".join(str(code) for code in dict.fromkeys(d[2] for d in done))
        text = f"{injected} / {reported} / {codes}" + (f" (+{follows})" if follows else "")
        why = reason(row, workload, injected, reported)
        check(why != "?", f"{row}, {workload.name}: {injected} injected and {reported} reported, for no known reason")
        return f"{text} {notes.mark(why)}" if why else text


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    begun = time.monotonic()
    heading("injected / reported / exit code (+ what failed because of an earlier failure)")
    notes = Notes()
    with tempfile.TemporaryDirectory(prefix="check-faults-", dir="/dev/shm") as name:
        tempfile.tempdir = name
        bench = Bench(program, pathlib.Path(name))
        columns = workloads()
        print("| fault | " + " | ".join(workload.name for workload in columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for row in ROWS:
            cells = [bench.cell(row, workload, notes) for workload in columns]
            print(f"| {row} | " + " | ".join(cells) + " |", flush=True)
        mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if name in line]
        check(mounts == [], f"mounts are left: {mounts}")
    print()
    for text in notes.texts:
        print(f"{notes.mark(text)}: {text}")
    print(f"\n{time.monotonic() - begun:.0f} s")
    finish()


if __name__ == "__main__":
    main()
