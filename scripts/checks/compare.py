"""Checks comparisons with known results: equal runs, runs with 10 % more latency, series with one slower cell, every
published figure.

usage: compare.py PROGRAM
"""

import concurrent.futures
import csv
import io
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from common import Testfs, attempt, check, finish, heading, result, run, valid

REPETITIONS = 20
# Minimum number of correct results.
RIGHT_MIN = 19
# A busy machine wakes threads some milliseconds late, a very busy one some tens. A few long operations keep the
# injected latency far above that.
BASE_MS, SLOWER_MS = 200, 220
ROWS = ["write", "read"]
TABLES = pathlib.Path(__file__).resolve().parents[2] / "crates/rbench-report/src/compare/published"
UNITS = {"us/op": 1e3, "us": 1e3, "ms/op": 1e6, "MiB/s": 2**20, "MB/s": 2**20, "ops/s": 1, "files/s": 1, "1/s": 1}


def punctual():
    """Returns whether processes may run with real-time priority; these hardly use the processor."""
    allowed = subprocess.run(["chrt", "--rr", "1", "true"], capture_output=True, check=False).returncode == 0
    if not allowed:
        print("   without real-time priority: a very busy machine may spoil this", flush=True)
    return allowed


def five(program, target, out, first):
    """Runs five iterations of two phases on four workers."""
    run([*first, program, "io", "--dir", target.mountpoint, "--rw", ",".join(ROWS), "--bs", "4k", "--size", "16k", "--direct",
         "--threads", "4", "--iterations", "5", "--fsync", "never", "--no-round-trip", "--out", out, "--quiet"],
        quiet=True)
    return out


def compared(program, *words, expect=0):
    done = run([program, "compare", *words, "--format", "json"], expect=expect, quiet=True)
    return valid(json.loads(done.stdout), f"comparison {words}") if done.stdout else None


def verdicts(comparison):
    return {row["name"]: row["verdict"] for row in comparison["rows"]}


def repetitions(program, folder):
    heading(f"{REPETITIONS} times: the same thing twice, and {SLOWER_MS} ms against {BASE_MS} ms")
    targets = {
        name: Testfs(program, "--direct-io", "--latency", f"read={ms}ms,write={ms}ms")
        for name, ms in [("base", BASE_MS), ("same", BASE_MS), ("slower", SLOWER_MS)]
    }
    first = ["chrt", "--rr", "1"] if punctual() else []
    for target in targets.values() if first else []:
        for task in pathlib.Path(f"/proc/{target.process.pid}/task").iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(1))

    def once(number):
        with concurrent.futures.ThreadPoolExecutor(len(targets)) as three:
            files = three.map(lambda name: five(program, targets[name], folder / f"{name}.{number}.json", first),
                              targets)
            return list(files)

    with concurrent.futures.ThreadPoolExecutor(2) as two:
        runs = list(two.map(once, range(REPETITIONS)))
    for target in targets.values():
        target.end()
    same, slower, right = 0, 0, []
    for number, (base, again, late) in enumerate(runs):
        twice, later = compared(program, base, again), compared(program, base, late)
        check([row["name"] for row in twice["rows"]] == ROWS, f"repetition {number} compares {ROWS}")
        same += set(verdicts(twice).values()) == {"no difference shown"}
        slower += set(verdicts(later).values()) == {"slower"}
        if set(verdicts(twice).values()) == {"no difference shown"} and set(verdicts(later).values()) == {"slower"}:
            right.append(runs[number])
        for label, comparison in [("same", twice), ("slower", later)]:
            spans = [row["figures"][0]["interval"] for row in comparison["rows"]]
            words = ", ".join(f"{100 * (i['low'] - 1):+.1f} to {100 * (i['high'] - 1):+.1f}" for i in spans)
            print(f"   {number:2} {label:6} {words} %: {', '.join(verdicts(comparison).values())}", flush=True)
    print(f"   no difference shown in {same} of {REPETITIONS}, slower in {slower} of {REPETITIONS}", flush=True)
    check(same >= RIGHT_MIN, f"the same thing twice differs in {REPETITIONS - same} of {REPETITIONS}")
    check(slower >= RIGHT_MIN, f"{SLOWER_MS} ms against {BASE_MS} ms is slower in only {slower} of {REPETITIONS}")
    return (right or runs)[0]


def exit_codes(program, runs):
    heading("exit codes follow from the conditions")
    base, again, late = runs
    for words, code in [
        ([base, late], 0),
        ([base, late, "--fail-if", "rate<-5%"], 1),
        ([base, late, "--fail-if", "read.p50>+5%"], 1),
        ([base, late, "--fail-if", "rate<-30%", "--fail-if", "p50>+40%"], 0),
        ([base, late, "--fail-if", "rate>+1%"], 0),
        ([late, base, "--fail-if", "rate>+1%"], 1),
        ([base, again, "--fail-if", "rate<-8%"], 0),
        ([base, late, "--fail-if", "file-create.rate<-5%"], 2),
        ([base, late, "--fail-if", "response-p99>+5%"], 2),
        ([base, late, "--fail-if", "rate>-5%"], 2),
        ([base], 2),
        ([base, "/nowhere/at/all.json"], 2),
        ([base, "--published", "juicefs-1.1/redos"], 2),
    ]:
        run([program, "compare", *words], expect=code, quiet=True)
    # More samples on both sides do not change the verdict.
    runs = compared(program, "--base", base, again, "--new", late)
    check(set(verdicts(runs).values()) == {"slower"}, f"two runs of a base: {verdicts(runs)}")
    wide = run([program, "compare", base, late], quiet=True).stdout
    check(all(len(line) <= 120 for line in wide.splitlines()), "the text is at most 120 columns wide")
    table = run([program, "compare", base, late, "--format", "csv"], quiet=True).stdout
    lines = list(csv.DictReader(io.StringIO(table)))
    check({line["operation"] for line in lines} == set(ROWS), "the CSV has every row")
    check(run([program, "compare", base, late, "--format", "md"], quiet=True).stdout.startswith("**"), "Markdown")


def uneven(program, folder):
    heading("what is not comparable is refused, and everything that differs is named")
    target = Testfs(program)
    one, other = folder / "one.json", folder / "other.json"
    usual = [program, "meta", "--dir", target.mountpoint, "--files-only", "--depth", "0", "--no-round-trip", "--quiet"]
    run([*usual, "--items", "10", "--out", one], quiet=True)
    run([*usual, "--items", "20", "--threads", "2", "--write", "1k", "--out", other], quiet=True)
    target.end()
    refusal = run([program, "compare", one, other], expect=2, quiet=True).stderr
    for what in ["items", "threads of each rank", "write"]:
        check(what in refusal, f"the refusal names {what}: {refusal}")
    check(len(refusal.splitlines()) == 1, f"the refusal is one line: {refusal}")
    found = compared(program, one, other, "--even-if-different")["differences"]
    check({"items", "threads of each rank", "write"} <= {difference["what"] for difference in found}, f"shown: {found}")


def sweep(program, out, latencies):
    """Runs a reading and a writing cell, each with five iterations on four workers."""
    target = Testfs(program, "--direct-io", "--latency", ",".join(f"{kind}={ms}ms" for kind, ms in latencies.items()))
    out.unlink(missing_ok=True)
    run([program, "sweep", "--over", "rw=write,read", "--quiet", "--out", out, "--", "io", "--dir", target.mountpoint, "--bs", "4k",
         "--size", "16k", "--direct", "--threads", "4", "--iterations", "5", "--fsync", "never", "--no-round-trip"], quiet=True)
    target.end()
    return out


def cells(comparison):
    """Returns the verdicts of each cell."""
    found = {}
    for row in comparison["rows"]:
        found.setdefault(row["cell"], []).append(row["verdict"])
    return found


def sweeps(program, folder):
    heading("sweeps: the same thing twice, and one cell of two that takes half as long again")
    base, again, slower = (folder / f"sweep-{name}.json" for name in ("base", "again", "slower"))
    usual = {"read": 60, "write": 60}

    def wrong():
        """Checks that a busy machine may break."""
        sweep(program, base, usual)
        sweep(program, again, usual)
        sweep(program, slower, {**usual, "read": 90})
        twice, later = cells(compared(program, base, again)), cells(compared(program, base, slower))
        print(f"   the same: {twice}; one cell slower: {later}", flush=True)
        if any(set(verdicts) != {"no difference shown"} for verdicts in twice.values()):
            return f"the same thing twice: {twice}"
        if "slower" not in later["rw=read"] or {"slower", "faster"} & set(later["rw=write"]):
            return f"one cell slower: {later}"
        return None

    attempt(3, wrong)
    for words, code in [
        ([base, slower], 0),
        ([base, slower, "--fail-if", "rate<-10%"], 1),
        ([base, slower, "--fail-if", "rw=read: rate<-10%"], 1),
        ([base, slower, "--fail-if", "rw=read: read.p50>+10%"], 1),
        ([base, slower, "--fail-if", "rw=write: rate<-25%"], 0),
        ([base, slower, "--fail-if", "rw=trim: rate<-10%"], 2),
        ([base, slower, "--fail-if", "held<-10%"], 2),
    ]:
        run([program, "compare", *words], expect=code, quiet=True)
    text = run([program, "compare", base, slower], quiet=True).stdout
    check("\nsweep-slower is slower in 1 of 2 operations: rw=read: Sequential read (" in text, f"the summary names the cell: {text}")
    # One cell less, and stopped early.
    part = json.loads(slower.read_text())
    part["cells"].pop()
    part["complete"] = False
    shorter = folder / "sweep-part.json"
    shorter.write_text(json.dumps(part))
    text = run([program, "compare", base, shorter], quiet=True).stdout
    check("stopped early: 1 of 2 cells" in text and "- rw=read: only BASE has it" in text, f"what is missing is named: {text}")
    run([program, "compare", base, shorter, "--fail-if", "rate<-10%"], expect=2, quiet=True)
    target = Testfs(program)
    single = five(program, target, folder / "single.json", [])
    target.end()
    for words, sentence in [
        ([base, single], "is a series and"),
        ([single, base], "is a series and"),
        ([base, "--published", "cubefs/1x1"], "--published takes results of single runs"),
        ([base, base], "hold the same run"),
    ]:
        told = run([program, "compare", *words], expect=2, quiet=True).stderr
        check(sentence in told and len(told.splitlines()) == 1, f"{words}: {told}")


def knees(program, folder):
    heading("knees: half of the servers is a lower limit, in one sentence and by --fail-if")
    latency_ms, wide, narrow = 8, 8, 4

    def search(name, servers):
        target = Testfs(program, "--servers", servers, "--latency", f"read={latency_ms}ms", "--direct-io")
        out = folder / f"knee-{name}.json"
        out.unlink(missing_ok=True)
        run([program, "knee", "--slo", "mean=60ms", "--time", "1", "--precision", "10%", "--quiet", "--out", out, "--", "io", "--dir",
             target.mountpoint, "--rw", "randread", "--bs", "4k", "--size", "1m", "--threads", "32", "--no-round-trip"], quiet=True)
        target.end()
        return out

    def wrong():
        base, half = search("wide", wide), search("narrow", narrow)
        whole = compared(program, base, half)["series"]["wholes"][0]
        print(f"   {whole}", flush=True)
        if whole["verdict"] != "slower" or not 0.3 < whole["ratio"] < 0.75:
            return f"half of the servers: {whole}"
        run([program, "compare", base, half, "--fail-if", "held<-10%"], expect=1, quiet=True)
        run([program, "compare", half, base, "--fail-if", "held<-10%"], expect=0, quiet=True)
        text = run([program, "compare", base, half], quiet=True).stdout
        check("\nHeld rate: slower.\n" in text, f"the summary begins with it: {text}")
        return None

    attempt(3, wrong)


def published_values():
    """Yields set/column, workload, operation and value in base units, from the tables."""
    editions = {"juicefs-metadata-engines-en": "juicefs-1.1", "juicefs-metadata-engines-zh": "juicefs-1.1-zh"}
    for line in csv.DictReader((TABLES / "juicefs-metadata-engines.csv").open()):
        column = f"{editions[line['source']]}/{line['system']}"
        yield column, line["workload"], line["operation"], float(line["value"]) * UNITS[line["unit"]]
    for line in csv.DictReader((TABLES / "cubefs-evaluation.csv").open()):
        size = line["file_size"].replace("iB", "").lower()
        place = f"cubefs-small-files/{size}" if size else f"cubefs/{line['clients']}x{line['processes_per_client']}"
        yield place, line["workload"], line["operation"], float(line["value"]) * UNITS[line["unit"]]


def small_runs(program, folder):
    """Makes a small run of each published kind."""
    target = Testfs(program)
    sizes = [f"{2**power}k" for power in range(8)]
    meta = ["meta", "--depth", "0", "--items", "5"]
    lines = {
        "ops": ["ops", "--ops", "5"],
        "empty": meta,
        "small": [*meta, "--files-only", "--write", "100k", "--read", "0"],
        "big": ["io", "--bs", "1M", "--size", "2M"],
        "files": ["io", "--files", "4", "--file-size", "128k"],
        "write4m": ["io", "--rw", "write", "--bs", "4M", "--size", "8M"],
        "sequential": ["io", "--bs", "128k", "--size", "1M", "--direct"],
        "random": ["io", "--rw", "randread,randwrite", "--bs", "4k", "--size", "64k", "--direct"],
        **{f"size{size}": [*meta, "--files-only", "--write", size] for size in sizes},
    }
    for name, words in lines.items():
        run([program, *words, "--dir", target.mountpoint, "--iterations", "3", "--no-round-trip", "--quiet", "--out",
             folder / f"{name}.json"], quiet=True)
    target.end()
    return [folder / f"{name}.json" for name in lines]


def every_published_figure(program, folder):
    heading("every published column against runs of each kind")
    expected = {}
    for column, workload, operation, value in published_values():
        expected.setdefault(column, {})[workload, operation] = value
    listed = run([program, "compare", "--published", "list"], quiet=True).stdout
    for column in expected:
        name, _, of = column.partition("/")
        check(f"{name}: " in listed and of in listed, f"--published list names {column}")
    runs = small_runs(program, folder)
    used, never = 0, {}
    for column, figures in expected.items():
        reasons = {key: set() for key in figures}
        found = set()
        for file in runs:
            comparison = compared(program, file, "--published", column)
            missing = {(row["workload"], row["operation"]): row["reason"] for row in comparison["not_compared"]}
            values = [figure["base"] for row in comparison["rows"] for figure in row["figures"]]
            check(len(values) + len(missing) == len(figures), f"{column} with {file.name}: every figure once")
            rest = sorted(value for key, value in figures.items() if key not in missing)
            close = all(abs(a - b) <= 1e-9 * b for a, b in zip(sorted(values), rest))
            check(close, f"{column} with {file.name}: the published values")
            found |= figures.keys() - missing.keys()
            for key, reason in missing.items():
                reasons[key].add(reason)
            ratios(comparison, file, column)
        used += len(found)
        for key in figures.keys() - found:
            never.setdefault(key, reasons[key])
    print(f"   {used} of {sum(len(figures) for figures in expected.values())} figures of {len(expected)} columns compared")
    for (workload, operation), reason in sorted(never.items()):
        print(f"   never: {workload}: {operation}: {'; '.join(sorted(reason))}")
    right = {"newchunk", "write", "read_1", "read_10", "Tree creation", "Tree removal", "FUSE operation", "Update meta"}
    check({operation for _, operation in never} == right, f"never compared are {sorted(right)}")


def ratios(comparison, file, column):
    """Ratios are the run's own figures divided by the published ones."""
    document = result(file)
    for row in comparison["rows"]:
        own = [phase for phase in document["phases"] if phase["name"] == row["name"]]
        for figure in row["figures"]:
            means = figure["figure"] == "mean"
            logs = [math.log(phase["latency"]["service"]["mean_ns"] if means else phase[figure["figure"]]) for phase in own]
            pairs = itertools.combinations_with_replacement(logs, 2)
            expect = math.exp(statistics.median((a + b) / 2 for a, b in pairs))
            close = abs(figure["ratio"] * figure["base"] / expect - 1) < 1e-6
            check(close, f"{column}: {row['name']}: {figure['figure']} is {figure['new']}, not {expect}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("RBENCH_DIR", None)
    with tempfile.TemporaryDirectory(prefix="check-compare-") as name:
        folder = pathlib.Path(name)
        runs = repetitions(program, folder)
        exit_codes(program, runs)
        uneven(program, folder)
        sweeps(program, folder)
        knees(program, folder)
        every_published_figure(program, folder)
    finish()


main()
