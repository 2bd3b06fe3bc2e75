"""Checks rbench suite io500: phases and their order, lines, score and validity, recomputed from the result file alone;
find's results against find(1); interruption at critical points and resumption; mistakes in settings.

usage: io500.py PROGRAM
"""

import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from common import PATIENCE_S, Testfs, check, finish, heading, mpirun, regular, result, run, wait_until

GIB = 1 << 30
# Name, row of its cell, figure; phases with a score come first in each line's unit.
PHASES = [
    ("ior-easy-write", "write", "GiB/s"),
    ("mdtest-easy-write", "file-create", "kIOPS"),
    ("ior-hard-write", "write", "GiB/s"),
    ("mdtest-hard-write", "file-create", "kIOPS"),
    ("find", "find-readdir", "kIOPS"),
    ("ior-easy-read", "read", "GiB/s"),
    ("mdtest-easy-stat", "file-stat", "kIOPS"),
    ("ior-hard-read", "read", "GiB/s"),
    ("mdtest-hard-stat", "file-stat", "kIOPS"),
    ("mdtest-easy-delete", "file-remove", "kIOPS"),
    ("mdtest-hard-read", "file-read", "kIOPS"),
    ("mdtest-hard-delete", "file-remove", "kIOPS"),
    ("ior-rnd4K-easy-read", "read", "GiB/s"),
]
NAMES = [name for name, _, _ in PHASES]
WRITES = [name for name in NAMES if name.endswith("-write")]
UNSCORED = NAMES[-1]
LINE = re.compile(r"^\[(RESULT|      )\] (.{20}) (.{15}) (GiB/s|kIOPS) : time (\d+\.\d{3}) seconds( \[INVALID\])?$")
SCORE = re.compile(r"^\[SCORE \] Bandwidth (\d+\.\d{6}) GiB/s : IOPS (\d+\.\d{6}) kiops : TOTAL (\d+\.\d{6})( \[INVALID\])?$")
# The search looks for 01 in the names of mdtest-hard, whose numbers start at 0 on each rank: 101 is the first.
FIRST_MATCH = 102
# Each amount is reached long before the stonewall, so that it is the same in every run.
SMALL = f"""; small enough for a check
[debug]
stonewall-time = 60
[ior-easy]
blockSize = 4m
[ior-hard]
segmentCount = 30
[mdtest-easy]
n = 110
[mdtest-hard]
n = {FIRST_MATCH}
"""


def phase_of(document, name, row):
    """Returns a phase's row of its cell."""
    cell = next(cell for cell in document["cells"] if cell["name"] == name)
    return next(phase for phase in cell["result"]["phases"] if phase["name"] == row)


def value_of(document, name, row, unit):
    """Returns value and time of a phase, from its cell."""
    phase = phase_of(document, name, row)
    if name == "find":
        return phase["found"]["files"] / phase["elapsed_s"] / 1000, phase["elapsed_s"]
    if unit == "GiB/s":
        return phase["bytes"] / phase["access"]["total_s"] / GIB, phase["access"]["total_s"]
    return phase["items"] / phase["elapsed_s"] / 1000, phase["elapsed_s"]


def near(a, b, digits=1e-9):
    return abs(a - b) <= digits * max(abs(a), abs(b), 1)


def check_score(document, text):
    """Checks the score against the cells, and the lines against the score; recomputes every value."""
    lines = text.splitlines()
    check(lines[0].startswith("REHEARSAL") and "not a submission" in lines[0], f"the first line is {lines[0]}")
    found = [match for match in map(LINE.match, lines) if match]
    check([match[2].strip() for match in found] == NAMES, f"lines {[match[2] for match in found]}")
    io500 = document["io500"]
    check([phase["name"] for phase in io500["phases"]] == NAMES, "phases of the file")
    scored = {"GiB/s": [], "kIOPS": []}
    # In one second a slow machine may create too few files for a match.
    hard = phase_of(document, "mdtest-hard-write", "file-create")["items"] // document["ranks"]
    for (name, row, unit), match, phase in zip(PHASES, found, io500["phases"]):
        value, seconds = value_of(document, name, row, unit)
        check(near(phase["value"], value) and near(phase["time_s"], seconds), f"{name}: {phase}, not {value} in {seconds}")
        check(match[2] == f"{name:>20}" and match[3] == f"{value:15.6f}", f"{name}: the line has {match[0]}")
        check(match[4] == unit and match[5] == f"{seconds:.3f}", f"{name}: the line has {match[0]}")
        check((match[1] == "RESULT") == (name != UNSCORED), f"{name}: {match[0]}")
        invalid = seconds < 300 if name in WRITES else name == "find" and hard < FIRST_MATCH
        check(bool(match[6]) == invalid == bool(phase["invalid"]), f"{name}: {match[0]}, {phase['invalid']}")
        if name != UNSCORED:
            scored[unit].append(value)
    means = {unit: math.prod(values) ** (1 / len(values)) for unit, values in scored.items()}
    check([len(values) for values in scored.values()] == [4, 8], "four bandwidths, eight rates")
    total = math.sqrt(means["GiB/s"] * means["kIOPS"])
    wanted = [means["GiB/s"], means["kIOPS"], total]
    for got, value in zip([io500["bandwidth"], io500["metadata"], io500["total"]], wanted):
        check(near(got, value), f"the file has {got}, not {value}")
    score = next((match for match in map(SCORE.match, lines) if match), None)
    check(score is not None and [score[i] for i in (1, 2, 3)] == [f"{value:.6f}" for value in wanted], f"{score}, not {wanted}")
    check(score is not None and bool(score[4]) and not io500["valid"], "it is not valid")


def check_cells(document, ranks):
    check(document["complete"] and document["ranks"] == ranks, "all phases on all ranks")
    check([cell["name"] for cell in document["cells"]] == NAMES, f"{[cell['name'] for cell in document['cells']]}")
    rows = {(cell["name"], phase["name"]): phase for cell in document["cells"] for phase in cell["result"]["phases"]}
    check(all(not phase["errors"] for phase in rows.values()), "no operation failed")
    for write, others in [
        (("ior-easy-write", "write"), [("ior-easy-read", "read")]),
        (("ior-hard-write", "write"), [("ior-hard-read", "read")]),
        (("mdtest-easy-write", "file-create"), [("mdtest-easy-stat", "file-stat"), ("mdtest-easy-delete", "file-remove")]),
        (("mdtest-hard-write", "file-create"),
         [("mdtest-hard-stat", "file-stat"), ("mdtest-hard-read", "file-read"), ("mdtest-hard-delete", "file-remove")]),
    ]:
        for other in others:
            check(rows[write]["items"] == rows[other]["items"], f"{other}: {rows[other]['items']} of {rows[write]['items']}")
    found = rows[("find", "find-readdir")]["found"]
    easy, hard = (rows[(f"mdtest-{kind}-write", "file-create")]["items"] for kind in ("easy", "hard"))
    check(found["files"] == easy + hard + ranks + 1, f"{found}: {easy} and {hard} files, {ranks} and one of IOR")
    return rows


def suite(program, ranks, *arguments, expect=0):
    return run([*mpirun("mpirun", ranks), program, "suite", "io500", *arguments], expect=expect, quiet=True)


def whole(program, folder, target, ranks):
    heading(f"all phases on {ranks} ranks: order, lines, score, and the stonewall")
    ini = folder / "stonewall.ini"
    # Neither writes nor creations finish in a second; both stop when all ranks have done the same amount.
    ini.write_text("[debug]\nstonewall-time = 1\n[ior-easy]\nblockSize = 4g\n[ior-hard]\nsegmentCount = 100000\n")
    out = folder / f"whole-{ranks}.json"
    done = suite(program, ranks, "--ini", ini, "--dir", target, "--out", out)
    document = result(out)
    rows = check_cells(document, ranks)
    check_score(document, done.stdout)
    for write, row in [(name, row) for name, row, _ in PHASES if name in WRITES]:
        stonewall = rows[(write, row)]["stonewall"]
        check(stonewall is not None and stonewall["deadline_s"] == 1.0, f"{write}: {stonewall}")
        check(stonewall is not None and rows[(write, row)]["items"] == stonewall["most"] * ranks, f"{write}: all have as much")
    starts = [cell["result"]["run"]["started"] for cell in document["cells"]]
    check(starts == sorted(starts), "one after the other")
    before = done.stderr.splitlines()
    first = next(i for i, line in enumerate(before) if "cell 1 of 13" in line)
    check(any("it will be invalid because the stonewall is at 1 s" in line for line in before[:first]), "it is said before")
    check("- the stonewall is at 1 s" in done.stdout, "and again at the end")
    check(all(any(line == told for told in before) for line in done.stdout.splitlines() if LINE.match(line)), "lines meanwhile")
    shown = run([program, "show", out], quiet=True).stdout
    check(shown == done.stdout, "show prints the same")


def started(program, target, out, ini):
    command = [*mpirun("mpirun", 2), program, "suite", "io500", "--ini", ini, "--dir", target, "--out", out]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def left_of(out):
    """Returns the result of an interrupted run or, if the launcher was faster, its journal."""
    journal = pathlib.Path(f"{out}.journal")
    if not journal.exists():
        return result(out)
    first, *cells = [json.loads(line) for line in journal.read_bytes().splitlines()]
    return {**first["series"], "cells": [line["cell"] for line in cells]}


def comparable(document):
    """Returns phases, command lines and numbers of a run, without times."""
    def words(cell):
        return [word.replace(document["dir"], "DIR") for word in cell["result"]["run"]["command"][1:]]

    def items(cell):
        phases = regular(cell["result"])
        return [(phase["name"], phase["items"], phase["found"]["matches"] if phase.get("found") else None)
                for phase in phases if phase["op"] != "readdir" or phase.get("found") is None] + \
            [phase["found"]["files"] for phase in phases if phase.get("found")]

    return [(cell["index"], cell["name"], words(cell), items(cell), cell["error"]) for cell in document["cells"]]


def find_of(directory):
    """Returns the counts of find(1) for the files that find searched, in a run's remaining directory."""
    data, stamp = directory / "data", directory / "state" / "timestampfile"
    count = lambda *tests: len(run(["find", data, *tests], quiet=True).stdout.splitlines())
    return {"files": count("-not", "-type", "d"), "directories": count("-type", "d"),
            "matches": count("-newer", stamp, "-size", "3901c", "-name", "*01*")}


def resumed(program, folder, target, reference, cells):
    """Interrupts a run in phase number `cells` after its first change, or else a quarter of a second after the earlier
    phases. Then resumes it."""
    name = NAMES[cells]
    heading(f"interrupted in {name} and resumed")
    out, ini = folder / f"cut-{name}.json", folder / "small.ini"
    journal = pathlib.Path(f"{out}.journal")
    lines = lambda: len(journal.read_bytes().splitlines()) if journal.exists() else 0
    process = started(program, target, out, ini)
    wait_until(lambda: lines() > cells or process.poll() is not None)
    own = next(iter(pathlib.Path(target).glob("rbench.*")))
    leaf = own / "data" / name[:11] / "test-dir.0-0" / "mdtest_tree.0.0"
    files = lambda: len(os.listdir(leaf)) if leaf.is_dir() else 0
    if name.endswith("-read"):
        time.sleep(0.25)
    else:
        before = files()
        check(wait_until(lambda: files() != before), f"{name} works")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=PATIENCE_S)
    document = left_of(out)
    done = [cell["name"] for cell in document["cells"] if cell["error"] is None]
    # On a busy machine the signal may come too late for the phase.
    check(cells <= len(done) < len(NAMES) and done == NAMES[:len(done)], f"{done} came to their end")
    check(not document["complete"] and not document["io500"]["valid"], "it is not complete")
    directory = pathlib.Path(document["dir"])
    present = NAMES[len(done)]
    # A removal that has started leaves incomplete sets of files. Order and caches would be the same only after creating
    # them again. A write is repeated; a read changes nothing.
    removed = present.endswith("-delete") and not (directory / "state" / f"{present[:11]}.whole").exists()
    expected = 1 if removed else len(done)
    print(f"   in {present}: {expected} of {len(done)} phases are kept", flush=True)
    check(directory.is_dir(), "its files stay")
    if "find" in done and "mdtest-easy-delete" not in done and not removed:
        cell = document["cells"][NAMES.index("find")]
        found = next(phase["found"] for phase in cell["result"]["phases"] if phase.get("found"))
        wanted = find_of(directory)
        check({key: found[key] for key in wanted} == wanted, f"find(1) has {wanted}, not {found}")
        check(wanted["matches"] > 0, "something was found")
    done = suite(program, 2, "--ini", ini, "--dir", target, "--out", out, "--resume")
    again = result(out)
    ids = {cell["name"]: cell["result"]["run"]["id"] for cell in document["cells"] if cell["error"] is None}
    kept = [cell["name"] for cell in again["cells"] if cell["result"]["run"]["id"] == ids.get(cell["name"])]
    check(kept == NAMES[:expected], f"kept {kept}, not {NAMES[:expected]}")
    check_cells(again, 2)
    check_score(again, done.stdout)
    check(comparable(again) == reference, f"{name}: not the results of a run that was not interrupted")
    check(not directory.exists(), "nothing is left")


def interruptions(program, folder):
    (folder / "small.ini").write_text(SMALL)
    out = folder / "small.json"
    # Phases that write and delete are slow enough to be observed while running.
    slow = "create=5ms,read=2ms,unlink=20ms"
    with_latency = Testfs(program, "--direct-io", "--latency", slow)
    target = with_latency.mountpoint
    (pathlib.Path(target) / "precious").write_text("of the user")
    suite(program, 2, "--ini", folder / "small.ini", "--dir", target, "--out", out)
    document = result(out)
    check_cells(document, 2)
    reference = comparable(document)
    for phase in ["mdtest-easy-write", "ior-easy-read", "mdtest-easy-delete"]:
        resumed(program, folder, target, reference, NAMES.index(phase))
    check(os.listdir(target) == ["precious"], f"left in the mount: {os.listdir(target)}")
    with_latency.end()


def invalid(program, folder):
    heading("phases that are left out, and files that cannot be written")
    ini, out = folder / "part.ini", folder / "part.json"
    ini.write_text(SMALL + "[ior-hard]\nrun = FALSE\n[find]\nrun = FALSE\n")
    done = suite(program, 2, "--ini", ini, "--out", out)
    document = result(out)
    check([cell["name"] for cell in document["cells"]] == [n for n in NAMES if not n.startswith("ior-hard") and n != "find"],
          "the others are run")
    check("- ior-hard-write is not run" in done.stdout and "- find is not run" in done.stdout, "it is said")
    check(re.search(r"^\[RESULT\] +find +0\.000000 kIOPS : time 0\.000 seconds \[INVALID\]$", done.stdout, re.MULTILINE), "line")
    check("DEMONSTRATION" in done.stdout.splitlines()[2], "it is a demonstration")
    full = Testfs(program, "--quota", "40m")
    out = folder / "full.json"
    ini.write_text(SMALL.replace("4m", "80m"))
    done = suite(program, 2, "--ini", ini, "--dir", full.mountpoint, "--out", out, expect=1)
    phases = {phase["name"]: phase for phase in result(out)["io500"]["phases"]}
    check(any("failed" in why for why in phases["ior-easy-write"]["invalid"]), f"{phases['ior-easy-write']}")
    full.end()


def mistakes(program, folder):
    heading("mistakes: one sentence, with the line")
    ini, none = folder / "wrong.ini", folder / "none.json"
    for text, words in [
        ("[globl]\n", "line 1: unknown section [globl] (nearest: global)"),
        ("[global]\nverbosity = 1\n[ior-easy]\n\nblockSze = 4m\n", "line 5: unknown key 'blockSze' in [ior-easy] (nearest: blockSize)"),
        ("[debug]\nstonewall-time = soon\n", "line 2: [debug] stonewall-time: 'soon'"),
        ("[find]\nexternal-script = ./find.sh\n", "line 2: [find] external-script: './find.sh' is not supported: rbench has its own search"),
        ("[ior-hard]\nAPI = MPIIO\n", "line 2: [ior-hard] API: 'MPIIO' is not POSIX"),
        ("[ior-easy-write]\nrun = FALSE\n", "[ior-easy-read] needs the files of [ior-easy-write]"),
        ("n = 5\n", "line 1: 'n' is set outside of a section"),
        ("[ior-easy]\nblockSize = 3m\n", "-b"),
        ("[find]\nnproc = 7\n", "ranks=7"),
    ]:
        ini.write_text(text)
        done = run([program, "suite", "io500", "--ini", ini, "--dir", folder, "--out", none], expect=2, quiet=True)
        check(words in done.stderr and len(done.stderr.splitlines()) == 1, f"{text}: {done.stderr}")
        check(not list(folder.glob("none.json*")) and not list(folder.glob("rbench.*")), f"{text}: nothing is made")
    for arguments, words in [
        (["io500", "--dir", folder / "nowhere"], "nowhere does not exist"),
        (["io500", "--ini", folder / "nowhere.ini"], "cannot be read"),
        (["smoke", "--ini", ini], "--ini is only for the suite io500"),
        (["io500", "--stonewall", "0"], "at least 1"),
    ]:
        done = run([program, "suite", *arguments], expect=2, quiet=True)
        check(words in done.stderr, f"{arguments}: {done.stderr}")
    settings = run([program, "suite", "--show", "io500"], quiet=True).stdout
    ini.write_text(settings)
    plans = [run([program, "suite", "io500", "--dir", "/tmp", "--dry-run", *more], quiet=True).stdout
             for more in ([], ["--ini", ini])]
    same = [re.sub(r"rbench\.\d{8}-\d{6}-\w{4}", "DIR", plan) for plan in plans]
    check(same[0] == same[1] and "invalid" not in same[0], "all settings as they are by themselves")
    check(len(re.findall(r"^rbench ", same[0], re.MULTILINE)) == 13, "thirteen phases")
    check("io500 1" in run([program, "suite", "--list"], quiet=True).stdout, "it is listed")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("RBENCH_DIR", None)
    with tempfile.TemporaryDirectory(prefix="check-io500-") as name:
        folder = pathlib.Path(name)
        mistakes(program, folder)
        # More data than fits into a second.
        plain = Testfs(program, "--latency", "write=5ms")
        for ranks in (4, 1):
            whole(program, folder, plain.mountpoint, ranks)
        check(os.listdir(plain.mountpoint) == [], "nothing is left")
        plain.end()
        interruptions(program, folder)
        invalid(program, folder)
    finish()


main()
