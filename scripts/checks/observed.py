"""Checks figures within a phase: a killed run leaves its intervals, also over MPI, and a file system that stalls is
named.

usage: observed.py PROGRAM [--mpirun MPIRUN]
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from common import Testfs, check, finish, heading, in_attempts, in_session, regular, result, run, wait_until

TIME_S = 30
KILLED_S = 19.6


def killed(program, before, folder, name):
    """Kills all ranks of a run of 30 s in its 20th second, and checks the journal."""
    heading(f"killed in the 20th second: {name}")
    out = folder / f"{name}.json"
    journal = pathlib.Path(f"{out}.journal")
    journal.unlink(missing_ok=True)
    command = [*before, program, "io", "--dir", folder, "--rw", "randread", "--size", "1m", "--bs", "4k", "--quiet"]
    command += ["--engine", "psync", "--think", "1ms", "--time", TIME_S, "--out", out, "--no-round-trip"]
    process = subprocess.Popen(
        [str(word) for word in command], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    # Complete lines: the last one may be incomplete.
    intervals = lambda: [line for line in journal.read_text().split("\n")[:-1] if line.startswith('{"interval"')]
    # The first line is written shortly after the second second has started.
    begun = wait_until(lambda: journal.exists() and intervals(), 60)
    check(begun, f"{name}: the first interval is in the journal")
    started = time.monotonic() - 1.3
    time.sleep(max(0, started + KILLED_S - time.monotonic()))
    numbers = lambda: sorted({json.loads(line)["interval"]["number"] for line in intervals()})
    there = numbers()
    for rank in in_session(process.pid):
        try:
            os.kill(rank, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    left = numbers()
    check(left == list(range(len(left))) and left[:len(there)] == there, f"{name}: intervals {there}, then {left}", always=True)
    check(len(left) >= 19, f"{name}: intervals {left}")
    text = run([program, "show", journal]).stdout
    check("Random read *" in text and "unfinished" not in text, f"{name}: the report has the phase:\n{text}")
    document = json.loads(run([program, "show", "--format", "json", journal]).stdout)
    (phase,) = regular(document)
    rows = phase["timeline"]
    check(not phase["complete"] and not document["complete"], f"{name}: incomplete")
    check(phase["timeline_step_s"] == 1.0 and len(rows) >= 19, f"{name}: {len(rows)} s are there")
    check(all(row["items"] > 0 for row in rows[:19]), f"{name}: every second has items")
    check(phase["items"] == sum(row["items"] for row in rows), f"{name}: the seconds add up")
    check(phase["latency"]["service"]["count"] == phase["items"], f"{name}: so do the latencies")
    check(any(w["code"] == "unfinished-phase" for w in document["warnings"]), f"{name}: a warning says so")
    print(f"   {len(rows)} s, {phase['items']} items, p99 {phase['latency']['service']['p99_ns']} ns", flush=True)


def stalled(program, folder):
    """Stops the file system for 3 s in the middle of a phase."""
    heading("a file system that stands still for 3 s")
    files = Testfs(program)
    out = folder / "stalled.json"
    out.unlink(missing_ok=True)
    command = [program, "io", "--dir", files.mountpoint, "--rw", "randwrite", "--size", "1m", "--bs", "4k", "--time", "8"]
    command += ["--out", out, "--threads", "2", "--no-round-trip"]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    journal = pathlib.Path(f"{out}.journal")
    wait_until(lambda: journal.exists() and '{"interval"' in journal.read_text(), 60)
    # Each signal arrives between two clock readings.
    before = time.monotonic()
    files.process.send_signal(signal.SIGSTOP)
    after = time.monotonic()
    time.sleep(3)
    least_s = time.monotonic() - after
    files.process.send_signal(signal.SIGCONT)
    most_s = time.monotonic() - before
    text, _ = process.communicate(timeout=120)
    check(process.returncode == 0, f"exit code {process.returncode}")
    document = result(out)
    phase = next(phase for phase in document["phases"] if phase["name"] == "randwrite")
    (host,) = phase["hosts"]
    gap = host["longest_gap"]
    check(least_s - 0.05 < gap["length_s"] < most_s + 0.5, f"the gap is {gap}, and it stood {least_s} to {most_s} s")
    check(1 <= gap["from_s"] < 4, f"it began at {gap['from_s']} s")
    check(phase["longest_gap"]["length_s"] >= gap["length_s"], f"a rank's gap: {phase['longest_gap']}")
    check(0.2 < phase["empty_share"] < 0.6, f"share of empty slices: {phase['empty_share']}")
    messages = [w["message"] for w in document["warnings"] if w["code"] == "stalled"]
    check(len(messages) == 1, f"it is told: {document['warnings']}")
    told = " ".join(text.split())
    for words in (gap["host"], "Random write", "finished anything for more than a second", " s to "):
        check(words in told and all(words in message for message in messages), f"'{words}' is in the report:\n{text}")
    print(f"   {messages}, it stood {least_s:.3f} s", flush=True)
    files.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun")
    given = parser.parse_args()
    program = given.program.resolve()
    with tempfile.TemporaryDirectory(prefix="rbench-observed-") as folder:
        folder = pathlib.Path(folder)
        # Detection times, and the end of killed processes, depend on the machine's load.
        in_attempts(3, stalled, program, folder)
        in_attempts(3, killed, program, [], folder, "one rank")
        if given.mpirun:
            in_attempts(3, killed, program, [given.mpirun, "-np", "4"], folder, "four ranks")
    finish()


if __name__ == "__main__":
    main()
