#!/usr/bin/env python3
"""Compares the output of `rbench mdtest` with the result file of the same run.

Usage: parse_mdtest.py OUTPUT RESULT.json

OUTPUT is the program's output, RESULT.json the file of --out. Two kinds of parsers that share no
code with rbench read OUTPUT: the regular expressions that scripts around mdtest use, and the
parser of the PyPI package `iops-benchmark`. Their numbers are compared with the phases of
RESULT.json. Exit code 0: all agree. 1: mismatches, one per line. 2: wrong usage, or the package
is missing.
"""

import importlib.metadata
import importlib.util
import json
import re
import statistics
import sys
import tempfile

# mdtest's rows, and the corresponding phases of rbench.
ROWS = {
    "Directory creation": "dir-create",
    "Directory stat": "dir-stat",
    "Directory rename": "dir-rename",
    "Directory removal": "dir-remove",
    "File creation": "file-create",
    "File stat": "file-stat",
    "File read": "file-read",
    "File removal": "file-remove",
    "Tree creation": "tree-create",
    "Tree removal": "tree-remove",
}
STAMP = r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d"
NUMBER = r"\s+([\d.]+)"
ROW = re.compile(r"^\s+(\w+ \w+)" + NUMBER * 4 + r"\s*$")
ROW_WITH_RANKS = re.compile(r"^\s+(\w+ \w+)" + NUMBER * 7 + r"\s*$")
PHASE = re.compile(r"^V-1:(?: main)?\s+(\w+ \w+)\s*:\s+([\d.]+) sec,\s+([\d.]+) ops/sec$")
# Half of the last printed digit, plus the error of a double.
PRINTED = 0.0005 + 1e-9


class Check:
    """Collects mismatches."""

    def __init__(self):
        self.compared = 0
        self.wrong = 0

    def same(self, what, found, expected):
        self.compared += 1
        if found != expected:
            self.wrong += 1
            print(f"{what}: the output has {found}, the result {expected}", file=sys.stderr)

    def near(self, what, found, expected):
        self.compared += 1
        if found is None or abs(found - expected) > PRINTED + 1e-12 * abs(expected):
            self.wrong += 1
            print(f"{what}: the output has {found}, the result {expected}", file=sys.stderr)


def tried(phase):
    return phase["items"] + sum(phase["errors"].values()) > 0


def measured(result):
    """Yields (row, iteration, seconds, operations per second), in order of execution."""
    phases = [phase for phase in result["phases"] if tried(phase)]
    writes = {p["iteration"]: p for p in phases if p["name"] == "file-write"}
    for phase in phases:
        for row, name in ROWS.items():
            if phase["name"] != name:
                continue
            items, seconds = phase["items"], phase["elapsed_s"]
            write = writes.get(phase["iteration"]) if name == "file-create" else None
            if write:
                items = min(items, write["items"])
                seconds += write["elapsed_s"]
            yield row, phase["iteration"], seconds, items / seconds if seconds else 0.0


def four(values):
    """Returns Max, Min, Mean, Std Dev."""
    if not values:
        return [0.0] * 4
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return [max(values), min(values), statistics.fmean(values), deviation]


def check_head(check, text, result):
    ranks, hosts = result["world"]["ranks"], result["world"]["hosts"]
    launched = re.search(
        r"^mdtest-\S+ was launched with (\d+) total task\(s\) on (\d+) node\(s\)$", text, re.M
    )
    found = launched and [int(n) for n in launched.groups()]
    check.same("tasks and nodes", found, [ranks, len(hosts)])
    check.same("command line", bool(re.search(r"^Command line used: \S", text, re.M)), True)
    nodemap = re.search(r"^Nodemap: ([01]+)$", text, re.M)
    first = next(set(host["ranks"]) for host in hosts if 0 in host["ranks"])
    expected = "".join("1" if rank in first else "0" for rank in range(ranks))
    check.same("nodemap", nodemap and nodemap.group(1), expected)
    check.same("path", bool(re.search(r"^Path\s*: \S", text, re.M)), True)
    space = re.search(
        r"^FS\s*: ([\d.]+) ([GT])iB   Used FS: ([\d.]+)%   "
        r"Inodes: ([\d.]+) Mi   Used Inodes: ([\d.]+)%$",
        text,
        re.M,
    )
    check.same("file system", bool(space), result["target"].get("space") is not None)
    tasks = re.search(r"^(\d+) tasks, (\d+) (files/directories|files|directories)$", text, re.M)
    check.same("tasks", tasks and int(tasks.group(1)), ranks)
    for phase in result["phases"]:
        made = phase["name"] in ("dir-create", "file-create") and phase["complete"]
        if made and not phase["errors"] and not phase["stonewall"]:
            check.same(phase["name"], tasks and int(tasks.group(2)), phase["items"])
    for word in ["started"] + (["finished"] if result["run"]["finished"] else []):
        found = re.search(rf"^-- {word} at ({STAMP}) --$", text, re.M)
        check.same(word, bool(found), True)


def check_phases(check, text, measurements):
    """Compares the lines of -v, if there are any."""
    lines = [match for match in map(PHASE.match, text.splitlines()) if match]
    if not any(line.startswith("V-1:") for line in text.splitlines()):
        return
    check.same("lines of phases", [m.group(1) for m in lines], [m[0] for m in measurements])
    for match, (row, iteration, seconds, rate) in zip(lines, measurements):
        what = f"{row} of iteration {iteration + 1}"
        check.near(f"{what}, seconds", float(match.group(2)), seconds)
        check.near(f"{what}, rate", float(match.group(3)), rate)


def table(text, title):
    """Maps rows to numbers in the table with this title; None without such a table."""
    head = re.search(rf"^SUMMARY {re.escape(title)}: \(of (\d+) iterations\)$", text, re.M)
    if not head:
        return None
    lines = text[head.end() + 1 :].splitlines()
    columns = ["Max", "Min", "Mean", "Std", "Dev"]
    if lines[0].split()[-5:] != columns or not lines[1].strip().startswith("---------"):
        return None
    rows = {}
    for line in lines[2:]:
        match = ROW.match(line) or ROW_WITH_RANKS.match(line)
        if not match:
            break
        rows[match.group(1)] = [float(number) for number in match.groups()[1:]]
    return int(head.group(1)), rows


def check_tables(check, text, result, measurements):
    """Compares each table, and returns the number of tables."""
    iterations = max((p["iteration"] + 1 for p in result["phases"]), default=0)
    tables = 0
    for title, convert in [
        ("rate (in ops/sec)", lambda rates: rates),
        ("time (in ms/op)", lambda rates: [1000 / rate for rate in rates if rate > 0]),
    ]:
        found = table(text, title)
        if found is None:
            continue
        tables += 1
        check.same(f"{title}, iterations", found[0], iterations)
        shown = found[1]
        expected = [row for row in ROWS if row in shown]
        check.same(f"{title}, order of rows", list(shown), expected)
        for row, _, _, _ in measurements:
            check.same(f"{title}, {row} is there", row in shown, True)
        for row, numbers in shown.items():
            rates = [rate for name, _, _, rate in measurements if name == row]
            columns = ["Max", "Min", "Mean", "Std Dev"]
            for column, number, value in zip(columns, numbers[-4:], four(convert(rates))):
                check.near(f"{title}, {row}, {column}", number, value)
    return tables


def iops_parser():
    """Loads the module mdtest_parser of the package iops-benchmark."""
    files = importlib.metadata.files("iops-benchmark") or []
    path = next(file for file in files if file.name == "mdtest_parser.py").locate()
    spec = importlib.util.spec_from_file_location("mdtest_parser", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_iops(check, parser, text, measurements):
    """Compares with the package's parser. It knows the title from before mdtest 4.1, without its
    unit; the table and its end are the same."""
    old = text.replace("SUMMARY rate (in ops/sec):", "SUMMARY rate:")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(old)
        file.flush()
        metrics = parser.parse(file.name)
    for row in ROWS:
        key = row.lower().replace(" ", "_") + "_rate"
        if key not in metrics:
            continue
        mean = four([rate for name, _, _, rate in measurements if name == row])[2]
        # The parser returns None for 0.
        check.near(f"iops-benchmark, {key}", metrics[key] or 0.0, mean)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        parser = iops_parser()
    except importlib.metadata.PackageNotFoundError:
        print("the package iops-benchmark is not installed", file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        text = file.read()
    with open(arguments[1], encoding="utf-8") as file:
        result = json.load(file)
    check = Check()
    measurements = list(measured(result))
    check_head(check, text, result)
    check_phases(check, text, measurements)
    tables = check_tables(check, text, result, measurements)
    check.same("a table", tables > 0, True)
    if "SUMMARY rate" in text:
        check_iops(check, parser, text, measurements)
    print(f"{arguments[0]}: {tables} tables, {check.compared} facts compared, {check.wrong} wrong")
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
