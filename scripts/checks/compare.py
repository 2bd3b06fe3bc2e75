"""Comparisons held against what is known: the same thing twice, 10 % of latency more, every published figure.

usage: compare.py PROGRAM
"""

import concurrent.futures
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import Testfs, check, finish, heading, result, run

REPETITIONS = 20
# So many of them have to come out right.
RIGHT_MIN = 19
# A busy machine wakes threads milliseconds late, and a very busy one by tens of them: few operations that are long keep
# what is injected far above that.
BASE_MS, SLOWER_MS = 200, 220
ROWS = ["write", "read"]
TABLES = pathlib.Path(__file__).resolve().parents[2] / "crates/rbench-report/src/compare/published"
UNITS = {"us/op": 1e3, "us": 1e3, "ms/op": 1e6, "MiB/s": 2**20, "MB/s": 2**20, "ops/s": 1, "files/s": 1, "1/s": 1}


def punctual():
    """Whether processes may run before all others that want the processor: these hardly use it."""
    allowed = subprocess.run(["chrt", "--rr", "1", "true"], capture_output=True, check=False).returncode == 0
    if not allowed:
        print("   without real-time priority: a very busy machine may spoil this", flush=True)
    return allowed


def five(program, target, out, first):
    """Five iterations of two phases, on four workers."""
    run([*first, program, "io", "--dir", target.mountpoint, "--rw", ",".join(ROWS), "--bs", "4k", "--size", "16k", "--direct",
         "--threads", "4", "--iterations", "5", "--fsync", "never", "--no-round-trip", "--out", out, "--quiet"],
        quiet=True)
    return out


def compared(program, *words, expect=0):
    done = run([program, "compare", *words, "--format", "json"], expect=expect, quiet=True)
    return json.loads(done.stdout) if done.stdout else None


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
    same, slower = 0, 0
    for number, (base, again, late) in enumerate(runs):
        twice, later = compared(program, base, again), compared(program, base, late)
        check([row["name"] for row in twice["rows"]] == ROWS, f"repetition {number} compares {ROWS}")
        same += set(verdicts(twice).values()) == {"no difference shown"}
        slower += set(verdicts(later).values()) == {"slower"}
        for label, comparison in [("same", twice), ("slower", later)]:
            spans = [row["figures"][0]["interval"] for row in comparison["rows"]]
            words = ", ".join(f"{100 * (i['low'] - 1):+.1f} to {100 * (i['high'] - 1):+.1f}" for i in spans)
            print(f"   {number:2} {label:6} {words} %: {', '.join(verdicts(comparison).values())}", flush=True)
    print(f"   no difference shown in {same} of {REPETITIONS}, slower in {slower} of {REPETITIONS}", flush=True)
    check(same >= RIGHT_MIN, f"the same thing twice differs in {REPETITIONS - same} of {REPETITIONS}")
    check(slower >= RIGHT_MIN, f"{SLOWER_MS} ms against {BASE_MS} ms is slower in only {slower} of {REPETITIONS}")
    return runs[0]


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
    # More samples of both sides: still the same runs.
    runs = compared(program, "--base", again, base, late)
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


def published_values():
    """Set/column, workload, operation and value in base units, from the tables."""
    editions = {"juicefs-metadata-engines-en": "juicefs-1.1", "juicefs-metadata-engines-zh": "juicefs-1.1-zh"}
    for line in csv.DictReader((TABLES / "juicefs-metadata-engines.csv").open()):
        column = f"{editions[line['source']]}/{line['system']}"
        yield column, line["workload"], line["operation"], float(line["value"]) * UNITS[line["unit"]]
    for line in csv.DictReader((TABLES / "cubefs-evaluation.csv").open()):
        size = line["file_size"].replace("iB", "").lower()
        place = f"cubefs-small-files/{size}" if size else f"cubefs/{line['clients']}x{line['processes_per_client']}"
        yield place, line["workload"], line["operation"], float(line["value"]) * UNITS[line["unit"]]


def small_runs(program, folder):
    """A small run of each kind that was published."""
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
    """Ratios are the run's own figures over the published ones."""
    document = result(file)
    for row in comparison["rows"]:
        own = [phase for phase in document["phases"] if phase["name"] == row["name"]]
        for figure in row["figures"]:
            if figure["figure"] == "mean":
                count = sum(phase["latency"]["service"]["count"] for phase in own)
                total = sum(phase["latency"]["service"]["count"] * phase["latency"]["service"]["mean_ns"] for phase in own)
                expect = total / count
            else:
                product = 1.0
                for phase in own:
                    product *= phase[figure["figure"]]
                expect = product ** (1 / len(own))
            close = abs(figure["ratio"] * figure["base"] / expect - 1) < 1e-6
            check(close, f"{column}: {row['name']}: {figure['figure']} is {figure['new']}, not {expect}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ["RBENCH_DIR"] = ""
    with tempfile.TemporaryDirectory(prefix="check-compare-") as name:
        folder = pathlib.Path(name)
        runs = repetitions(program, folder)
        exit_codes(program, runs)
        uneven(program, folder)
        every_published_figure(program, folder)
    finish()


main()
