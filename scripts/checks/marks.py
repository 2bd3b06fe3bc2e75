"""Checks marks: a file system that stalls for 3 s from a mark, set by a command and by SIGUSR1; commands that fail,
hang or never run. No process that they start may outlive the run, however that ends.

usage: marks.py PROGRAM [--mpirun MPIRUN]
"""

import argparse
import contextlib
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from common import Testfs, attempt, check, finish, heading, in_session, mpirun, regular, result, run, wait_until

STALL_S = 3
TIME_S = 13
AT_S = 5
LATENCY_S = 0.25
INTERVAL_S = 0.5
# Tolerance: the length of an interval, and the delay of a busy machine.
LATE_S = 0.6


def start(command, **options):
    """Starts a run in a new session."""
    shown = " ".join(str(word) for word in command)
    print(f"$ {shown}", flush=True)
    return subprocess.Popen([str(word) for word in command], start_new_session=True, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def io_run(before, program, files, out, *options):
    return [*before, program, "io", "--dir", files.mountpoint, "--rw", "randwrite", "--size", "1m", "--bs", "4k", "--threads", "8",
            "--time", TIME_S, "--interval", f"{INTERVAL_S}s", "--fsync", "never", "--no-round-trip", "--progress", "off",
            "--overwrite", "--out", out, *options]


def cost_of(document, name):
    """Returns the mark, and its cost for the only row."""
    (mark,) = [mark for mark in document["marks"] if mark["name"] == name]
    (phase,) = regular(document)
    (cost,) = [cost for cost in phase["marks"] if cost["name"] == name]
    check(mark["rows"] == ["randwrite"] and mark["iteration"] == 0, f"{name}: {mark}")
    check(mark["t_s"] == cost["t_s"], f"{name}: {mark['t_s']} and {cost['t_s']}")
    return phase, mark, cost


def wrong_cost(phase, cost, stood_s):
    """Returns what is wrong with the cost of a stall of this length that started at the mark; nothing if all is right."""
    at, length = cost["t_s"], stood_s
    for name in ("longest_gap", "standstill"):
        gap = cost.get(name)
        if not gap or not length - 0.1 < gap["length_s"] < length + LATE_S:
            return f"{name} is {gap}, and it stood {length} s"
        if not at - LATENCY_S - 0.1 < gap["from_s"] < at + LATENCY_S + LATE_S:
            return f"{name} began at {gap['from_s']} s, and the mark is at {at} s"
    if cost["longest_gap"]["length_s"] < cost["standstill"]["length_s"]:
        return "a rank did more than none did"
    if cost["intervals_before"] < (at - LATE_S) / INTERVAL_S - 1 or cost["interval_s"] != INTERVAL_S:
        return f"{cost['intervals_before']} intervals before {at} s"
    if not LATENCY_S * 1e9 <= cost["p99_before_ns"] < 3 * LATENCY_S * 1e9:
        return f"p99 before is {cost['p99_before_ns']} ns"
    recovered = cost["recovered_s"]
    # Waiting operations end in one interval; the next one is normal.
    if recovered is None or not length - INTERVAL_S < recovered < length + 2 * INTERVAL_S + LATE_S:
        return f"p99 back after {recovered} s, and it stood {length} s"
    if not length / phase["elapsed_s"] < phase["empty_share"] < 1:
        return f"{phase['empty_share']} of the slices are empty"
    return None


def check_shown(program, folder, out, text, name):
    """Checks the line in the report, the row of the table, and the lines in the charts."""
    told = " ".join(text.split())
    line = re.search(rf"- {re.escape(name)} \(mark at \d\.\d\d s of Random write\): nothing finished for 3\.\d\d s \(\S+, rank \d, write\)"
                     r".*?, \d+% of slices empty, p99 back within 10% of \d+ ms after \d\.\d\d s\.", told)
    check(line, f"{name}: the line is in the report:\n{text}")
    rows = list(csv.DictReader(io.StringIO(run([program, "show", "--format", "csv-marks", out]).stdout)))
    check([row["mark"] for row in rows] == [name] and 2.5 < float(rows[0]["recovered_s"]) < 6, f"{name}: {rows}")
    page = folder / f"{out.stem}.html"
    run([program, "report", out, "--html", page, "--overwrite"])
    page = page.read_text().split("</style>")[1]
    escaped = name.replace("<", "&lt;").replace(">", "&gt;")
    check(page.count('class="post loud"') == 3, f"{name}: {page.count('post loud')} lines in the charts")
    charts = [chart for chart in page.split("<svg")[1:] if escaped in chart.split("</svg>")[0]]
    check(len(charts) == 3, f"{name}: {len(charts)} charts have the name")
    check(name == escaped or name not in page.split("<script")[0], f"{name}: it is escaped")


def failover(program, before, folder, ranks):
    """Tests a command that stops the file system for a while."""
    heading(f"a command at {AT_S} s, after which nothing happens for {STALL_S} s")
    name = "fail<over>"
    files = Testfs(program, "--direct-io", "--latency", f"write={LATENCY_S}s")
    stop = f"kill -STOP {files.process.pid}; sleep {STALL_S}; kill -CONT {files.process.pid}; echo back"
    out = folder / "failover.json"
    kept = []

    def once():
        done = run(io_run(before, program, files, out, "--event", f"{name}@{AT_S}s={stop}"))
        phase, mark, cost = cost_of(result(out), name)
        check("back" in done.stderr and "back\n" not in done.stdout, f"its output is on standard error: {done.stderr}")
        if not AT_S <= mark["t_s"] < AT_S + LATE_S:
            return f"the mark is at {mark['t_s']} s"
        command = mark["command"]
        check(command["command"] == stop and command["status"] == 0 and command["took_s"] >= STALL_S, f"the command: {command}")
        check(len(phase["ranks"]) == ranks, f"{len(phase['ranks'])} ranks")
        kept[:] = [done.stdout, cost]
        return wrong_cost(phase, cost, STALL_S)

    attempt(3, once)
    text, cost = kept
    print(f"   gap {cost['longest_gap']}, back after {cost['recovered_s']} s", flush=True)
    check_shown(program, folder, out, text, name)
    files.end()


def signalled(program, before, folder):
    """Tests SIGUSR1 to the launcher, which forwards it to all ranks: one mark for each signal."""
    heading("SIGUSR1")
    files = Testfs(program, "--direct-io", "--latency", f"write={LATENCY_S}s")
    out = folder / "signalled.json"
    journal = pathlib.Path(f"{out}.journal")

    def once():
        journal.unlink(missing_ok=True)
        process = start(io_run(before, program, files, out))
        intervals = lambda: journal.exists() and journal.read_text().count('{"interval"')
        check(wait_until(lambda: intervals() >= 9 or process.poll() is not None, 60), "the phase runs")
        files.process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        process.send_signal(signal.SIGUSR1)
        check(wait_until(lambda: '{"mark"' in journal.read_text(), 60), "the mark is in the journal at once")
        time.sleep(max(0, begun + STALL_S - time.monotonic()))
        files.process.send_signal(signal.SIGCONT)
        stood_s = time.monotonic() - begun
        time.sleep(0.5)
        process.send_signal(signal.SIGUSR1)
        text, errors = process.communicate(timeout=120)
        check(process.returncode == 0, f"exit code {process.returncode}: {errors}")
        document = result(out)
        check([mark["name"] for mark in document["marks"]] == ["SIGUSR1 1", "SIGUSR1 2"], f"one for each: {document['marks']}")
        phase, mark, cost = cost_of(document, "SIGUSR1 1")
        check("command" not in mark and text.count("- SIGUSR1 ") == 2, f"the report has them:\n{text}")
        return wrong_cost(phase, cost, stood_s)

    attempt(3, once)
    files.end()


def named_signal(program, folder):
    """Tests a name for the marks of SIGUSR1, a mark outside phases, and a second run in the same place."""
    heading("SIGUSR1 by another name, to one process")
    out = folder / "named.json"
    process = start([program, "meta", "--dir", folder, "--phases", "file-stat", "--items", "50", "--depth", "0", "--time", "8",
                     "--no-round-trip", "--out", out, "--event", "switch=SIGUSR1", "--quiet"])
    journal = pathlib.Path(f"{out}.journal")
    check(wait_until(lambda: journal.exists() and '{"interval"' in journal.read_text() or process.poll() is not None), "the phase runs")
    process.send_signal(signal.SIGUSR1)
    text, errors = process.communicate(timeout=120)
    check(process.returncode == 0, f"exit code {process.returncode}: {errors}")
    (mark,) = result(out)["marks"]
    check(mark["name"] == "switch 1" and mark["rows"] == ["file-stat"], f"{mark}")
    check("switch 1 (mark at " in text, f"the report has it:\n{text}")


def warned(document, code):
    return [warning["message"] for warning in document["warnings"] if warning["code"] == code]


def troubled(program, folder):
    """Tests commands that fail, hang, leave processes running, or never run."""
    heading("commands that fail, hang or never run")
    out = folder / "troubled.json"
    command = [program, "meta", "--dir", folder, "--phases", "file-stat", "--items", "50", "--depth", "0", "--time", "3"]
    process = start([*command, "--no-round-trip", "--out", out, "--quiet", "--event", "fails@1s=echo no such server >&2; exit 3",
                     "--event", "hangs@500ms=trap '' TERM; sleep 1000 & sleep 1000", "--event", "leaves@1s=sleep 1000 & true",
                     "--event", "late@1h=touch never"], cwd=folder)
    text, errors = process.communicate(timeout=120)
    # A killed process may still be visible for a moment.
    check(wait_until(lambda: not in_session(process.pid), 20), f"outlived the run: {names_in(process.pid)}")
    check(process.returncode == 0, f"exit code {process.returncode}: {errors}")
    document = result(out)
    marks = {mark["name"]: mark["command"] for mark in document["marks"]}
    check(list(marks) == ["hangs", "fails", "leaves"], f"in the order of their times: {list(marks)}")
    check(marks["fails"]["status"] == 3 and marks["fails"]["said"] == "no such server", f"{marks['fails']}")
    check(marks["hangs"]["cut_off"] and marks["hangs"]["signal"] == signal.SIGKILL, f"{marks['hangs']}")
    check(marks["leaves"]["status"] == 0 and "cut_off" not in marks["leaves"], f"{marks['leaves']}")
    failed = warned(document, "event-failed")
    check(len(failed) == 2, f"{failed}")
    check(any("fails failed with exit status 3: no such server" in message for message in failed), f"{failed}")
    check(any("hangs was still running at the end of the run and was ended" in message for message in failed), f"{failed}")
    check(len(warned(document, "event-not-run")) == 1 and not (folder / "never").exists(), f"{document['warnings']}")
    check("no such server" in errors, f"what it said is on standard error: {errors}")
    told = " ".join(text.split())
    for message in failed:
        check(message in told, f"'{message}' is in the report:\n{text}")


def killed(program, before, folder):
    """Checks that a command's processes end with a killed run and after Ctrl-C, and that the journal has the mark."""
    for number, name in ((signal.SIGKILL, "killed"), (signal.SIGINT, "interrupted")):
        heading(f"a run that is {name} while a command runs")
        out = folder / f"{name}.json"
        journal = pathlib.Path(f"{out}.journal")
        process = start([*before, program, "meta", "--dir", folder, "--phases", "file-stat", "--items", "50", "--depth", "0", "--time",
                         "60", "--no-round-trip", "--out", out, "--quiet", "--event", "hangs@1s=sleep 1000; sleep 1000"])
        check(wait_until(lambda: journal.exists() and '{"mark"' in journal.read_text()), f"{name}: the mark is in the journal")
        # The command appears shortly after its mark.
        check(wait_until(lambda: "sleep" in names_in(process.pid), 20), f"{name}: the command runs")
        if number == signal.SIGKILL:
            ranks = [pid for pid in in_session(process.pid) if name_of(pid) == program.name]
            for rank in ranks:
                # The launcher ends the others after the first.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank, number)
        else:
            process.send_signal(number)
        process.communicate(timeout=120)
        check(wait_until(lambda: not in_session(process.pid), 20), f"{name}: outlived the run: {names_in(process.pid)}")
        shown = out if out.exists() else journal
        text = run([program, "show", shown]).stdout
        check(re.search(r"- hangs \(mark at [1-3]\.", text), f"{name}: the report has the mark:\n{text}")
        document = json.loads(run([program, "show", "--format", "json", shown], quiet=True).stdout)
        (mark,) = document["marks"]
        check(mark["rows"] == ["file-stat"] and 1 <= mark["t_s"] < 4, f"{name}: {mark}")
        check(mark["command"]["took_s"] is None, f"{name}: nothing is known of its end: {mark}")


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def names_in(session):
    return [name_of(pid) for pid in in_session(session)]


def refused(program, folder):
    """Checks that mistakes are refused in one sentence, without any change."""
    heading("mistakes")
    empty = folder / "empty"
    empty.mkdir()
    for events, words in (
        (["failover"], "NAME[@TIME]=COMMAND"),
        (["=true"], "NAME[@TIME]=COMMAND"),
        (["a@5s="], "NAME[@TIME]=COMMAND"),
        (["a@soon=true"], "'a@soon'"),
        (["a@5s=SIGUSR1"], "takes no @TIME"),
        (["a=true", "a@3s=false"], "the name 'a' is given twice"),
        (["a=SIGUSR1", "b=SIGUSR1"], "SIGUSR1 is given two names"),
    ):
        options = [word for event in events for word in ("--event", event)]
        told = run([program, "meta", "--dir", empty, "--out", empty / "r.json", *options], expect=2, quiet=True).stderr
        check(words in told and "--event" in told and len(told.strip().splitlines()) <= 3, f"{events}: {told}")
        check(list(empty.iterdir()) == [], f"{events}: {list(empty.iterdir())}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun")
    given = parser.parse_args()
    program = given.program.resolve()
    ranks = 4 if given.mpirun else 1
    before = mpirun(given.mpirun, ranks) if given.mpirun else []
    with tempfile.TemporaryDirectory(prefix="rbench-marks-") as folder:
        folder = pathlib.Path(folder)
        refused(program, folder)
        failover(program, before, folder, ranks)
        signalled(program, before, folder)
        named_signal(program, folder)
        troubled(program, folder)
        killed(program, before, folder)
    finish()


if __name__ == "__main__":
    main()
