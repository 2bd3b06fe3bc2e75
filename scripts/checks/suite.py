"""Checks rbench quick and rbench suite: the rows of quick, every built-in suite at a tiny scale, interrupted in the
middle and resumed, and mistakes in suites.

usage: suite.py PROGRAM          on this host, on the built-in file system
       suite.py PROGRAM bed      on three hosts with MooseFS (the bed is up: scripts/testbed up)
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

from common import PATIENCE_S, check, finish, heading, mpirun, ranks_of, regular, result, run, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
SCALE = "0.0001"
SUITES = ["smoke", "juicefs-metadata-engines", "juicefs-single-node", "cubefs"]
TIMED = ["Write big file", "Read big file", "Write small file", "Read small file", "Stat file"]
COUNTED = ["FUSE operation", "Update meta", "Put object", "Get object", "Delete object", "Write into cache",
           "Read from cache"]
QUICK = ["--big-file-size", "4M", "--small-file-count", "20", "-p", "2"]


class Place:
    """The launch of the ranks, and the directory under test."""

    def __init__(self, program, bed):
        self.bed = bed
        self.ranks, self.hosts = (12, 3) if bed else (4, 1)
        self.program = program
        self.target = None
        if bed:
            self.target = run([BED, "run", "sh", "-c", "echo $RBENCH_BED_MOUNT"], quiet=True).stdout.strip()

    def command(self, *arguments):
        if not self.bed:
            return [str(word) for word in [*mpirun("mpirun", self.ranks), self.program, *arguments]]
        words = ["mpirun", "-np", self.ranks, "--hostfile", "$RBENCH_BED_HOSTFILE", self.program, *arguments]
        return [str(BED), "run", "sh", "-c", "exec " + " ".join(str(word) for word in words)]

    def dir(self):
        return ["--dir", self.target] if self.bed else []


def rows_of(text):
    """Returns the rows of the framed table: name, value, cost."""
    lines = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


def quick(place, folder):
    heading("quick: the rows of juicefs bench, and what they say")
    out = folder / "quick.json"
    path = [place.target] if place.bed else []
    done = run(place.command("quick", *path, *QUICK, "--out", out, "--quiet"))
    check("\x1b" not in done.stdout, "no colours where nobody watches")
    rows = rows_of(done.stdout)
    check(list(rows) == ["ITEM", *TIMED, *COUNTED], f"rows {list(rows)}")
    document = result(out)
    check(document["complete"] and document["ranks"] == place.ranks, "both cells, all ranks")
    found = {phase["name"]: phase for cell in document["cells"] for phase in cell["result"]["phases"]}
    workers = place.ranks * 2
    files, big = 20 * workers, workers * 4
    expected = {
        "Write big file": (big / found["write"]["elapsed_s"], found["write"]["elapsed_s"]),
        "Read big file": (big / found["read"]["elapsed_s"], found["read"]["elapsed_s"]),
        "Write small file": (files / found["file-create"]["elapsed_s"], found["file-create"]["elapsed_s"] * 1000 / 20),
        "Read small file": (files / found["file-read"]["elapsed_s"], found["file-read"]["elapsed_s"] * 1000 / 20),
        "Stat file": (files / found["file-stat"]["elapsed_s"], found["file-stat"]["elapsed_s"] * 1000 / 20),
    }
    for name, (value, cost) in expected.items():
        shown = [float(cell.split()[0]) for cell in rows[name]]
        check(abs(shown[0] - value) <= 0.06 + value * 1e-3, f"{name}: {rows[name]}, not {value}")
        check(abs(shown[1] - cost) <= 0.006, f"{name}: {rows[name]}, not {cost}")
    check(found["file-create"]["items"] == files, f"{files} small files")
    told = [rows[name][0] != "n/a" for name in COUNTED]
    # The built-in file system has the first counter, MooseFS has none.
    check(told == [not place.bed] + [False] * 6, f"counters {[rows[name] for name in COUNTED]}")
    if not place.bed:
        # The counter must include at least every create, read and write.
        count = int(rows["FUSE operation"][0].split()[0])
        check(count >= 5 * files, f"FUSE operations: {count}")
    shown = run([place.program, "show", out], quiet=True)
    check(rows_of(shown.stdout) == rows, "show prints the same table")


def cells(document):
    """Returns the runs of a series, without figures and without the path of the built-in file system."""
    def words(cell):
        run_words = cell["result"]["run"]["command"][1:]
        return [word.replace(cell.get("dir") or "/none", "DIR") for word in run_words]

    def items(cell):
        timed = any("time" in word and word not in ("--time_based=1",) for word in words(cell))
        return [(phase["name"], phase["iteration"], None if timed else phase["items"]) for phase in regular(cell["result"])]

    return [(cell["index"], cell["name"], words(cell), items(cell), cell["error"]) for cell in document["cells"]]


def first_in_line():
    """Gives this process real-time priority: otherwise whole cells could end while it waits for a processor. Its child
    processes have normal priority."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        print("   real-time priority is refused: the interruption may come late", flush=True)


def as_others():
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def interrupted(place, out, arguments):
    """Starts a suite and ends it when half of its cells exist. Returns the number of its cells, and the cells it had by
    then."""
    journal = pathlib.Path(f"{out}.journal")
    plan = run(place.command(*arguments, "--dry-run"), quiet=True).stdout
    planned = int(re.search(r"^# (\d+) cells", plan, re.MULTILINE)[1])
    process = subprocess.Popen(place.command(*arguments, "--out", out, "--quiet"), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    ended = lambda: process.poll() is not None
    # Searches while they start, as their cells are shorter than a search of all processes.
    wait_until(lambda: len(ranks_of(out)) >= place.ranks or ended(), PATIENCE_S)
    ranks = ranks_of(out)

    def send(number):
        for pid in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def noted():
        """Returns the lines of the journal, which a finished run removes."""
        try:
            return journal.read_bytes().splitlines()
        except FileNotFoundError:
            return []

    lines = seen = 0

    def added():
        """Returns the number of lines of the journal. Reads only what was added since the last time."""
        nonlocal lines, seen
        with contextlib.suppress(FileNotFoundError), open(journal, "rb") as file:
            file.seek(seen)
            new = file.read()
            lines, seen = lines + new.count(b"\n"), seen + len(new)
        return lines

    first_in_line()
    try:
        wait_until(lambda: added() > planned // 2 or ended(), 10 * PATIENCE_S, every_s=0.001)
        # Stops all ranks until each has the signal that an interrupted launcher forwards: otherwise whole cells could
        # run between the first and the last signal.
        send(signal.SIGSTOP)
        send(signal.SIGTERM)
        send(signal.SIGCONT)
    finally:
        as_others()
    process.wait(timeout=PATIENCE_S)
    before = [json.loads(line) for line in noted()[1:]] or result(out)["cells"]
    kept = [line.get("cell", line) for line in before]
    return planned, {cell["index"]: cell["result"]["run"]["id"] for cell in kept if cell["error"] is None}


def suites(place, folder, names):
    for name in names:
        heading(f"suite {name}: whole, and interrupted in the middle and resumed")
        arguments = ["suite", name, "--scale", SCALE, *place.dir()]
        whole = folder / f"{name}.json"
        done = run(place.command(*arguments, "--out", whole, "--quiet"))
        document = result(whole)
        check(document["complete"], f"{name} is complete")
        check(document["scale"] == float(SCALE) and f"Scale    {SCALE} of the full size" in done.stdout, "the scale is said")
        for left in document.get("left_out", []):
            check("launched" in left["why"] or "only" in left["why"], f"left out: {left}")
        second = folder / f"{name}-resumed.json"
        planned, kept = interrupted(place, second, arguments)
        for _ in range(5):
            if len(kept) < planned:
                break
            print("   it had ended before it was interrupted: once more", flush=True)
            second.unlink()
            planned, kept = interrupted(place, second, arguments)
        check(planned == len(document["cells"]), f"{planned} cells by --dry-run, {len(document['cells'])} run")
        check(0 < len(kept) < planned, f"{len(kept)} of {planned} cells before it was resumed")
        run(place.command(*arguments, "--out", second, "--quiet", "--resume"))
        resumed = result(second)
        check(cells(resumed) == cells(document), f"{name}: the same set of results")
        check(resumed["complete"], "complete after --resume")
        again = {cell["index"]: cell["result"]["run"]["id"] for cell in resumed["cells"]}
        check(all(again[index] == name for index, name in kept.items()), "what was complete is not run again")
        print(f"   {planned} cells, {len(kept)} before the interruption, {len(document.get('left_out', []))} left out")


def nothing_left(place):
    if place.bed:
        listing = run([BED, "run", "ls", "-A", place.target], quiet=True).stdout.split()
        check(listing == [], f"left in the mount: {listing}")


def mistakes(program, folder):
    heading("mistakes: one sentence, with the line")
    path = folder / "mine.toml"
    head = 'version = 1\ntitle = "mine"\n[[step]]\nname = "a"\n'
    for text, words in [
        ('rn = "io"\n', "line 5: unknown key 'rn'"),
        ('run = "io --dr /tmp"\n', "line 5: a: unexpected argument '--dr'"),
        ('run = "io"\nover = ["bs"]\n', "line 6: 'bs' is not a key with values (expected KEY=V1,V2"),
        ('run = "io --size {large}"\n', "line 5: step a: 'large' is neither"),
        ('run = "io --bs 0"\n', "line 5: a: --bs"),
        ("run = io\n", "line 5:"),
    ]:
        path.write_text(head + text)
        done = run([program, "suite", path, "--out", folder / "none.json"], expect=2, quiet=True)
        check(words in done.stderr and len(done.stderr.splitlines()) == 1, f"{text}: {done.stderr}")
        check(not list(folder.glob("none.json*")), "nothing is made")
    for arguments, words in [
        (["cubfs"], "(nearest: cubefs)"),
        (["none.toml"], "none.toml cannot be read"),
        (["smoke", "--scale", "2"], "not a number above 0 and at most 1"),
        ([], "--list"),
    ]:
        done = run([program, "suite", *arguments], expect=2, quiet=True)
        check(words in done.stderr, f"{arguments}: {done.stderr}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    bed = "bed" in sys.argv[2:]
    names = [name for name in sys.argv[2:] if name != "bed"] or SUITES
    os.environ.pop("RBENCH_DIR", None)
    place = Place(program, bed)
    with tempfile.TemporaryDirectory(prefix="check-suite-") as name:
        folder = pathlib.Path(name)
        mistakes(program, folder)
        quick(place, folder)
        suites(place, folder, names)
        nothing_left(place)
    finish()


main()
