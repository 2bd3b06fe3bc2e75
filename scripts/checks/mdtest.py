"""Checks the mdtest command line over MPI ranks: published commands, damage, signals, stonewall, sweeps, parsers.

usage: mdtest.py PROGRAM [--bed] [--parser PYTHON]
       --bed: 12 ranks on the three hosts of the test bed (which is up), else 12 ranks on this machine
       --parser: a Python that has the package iops-benchmark, for the parsers of others
"""

import argparse
import atexit
import ctypes
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile

from common import PATIENCE_S, Testfs, check, descendant, finish, heading, phases, result, run, wait_until

RANKS = 12
BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
PARSE = pathlib.Path(__file__).resolve().parents[2] / "crates/rbench-report/tests/parse_mdtest.py"
ROW = re.compile(r"^ {3}([A-Z]\w+ \w+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", re.MULTILINE)
# Like in the published commands.
PATIENT = ["--mca", "odls_base_sigkill_timeout", "15"]
FLAGS = ["--use-hwthread-cpus", "--allow-run-as-root", "--map-by", "slot"]


class Place:
    """The place of the runs: 12 ranks, and a directory to test."""

    def __init__(self, program, bed):
        self.program, self.bed = program, bed
        # In memory, to exclude the speed of this machine's disk.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="check-mdtest-", dir=None if bed else "/dev/shm"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        if bed:
            shown = run([BED, "run", "sh", "-c", "echo $RBENCH_BED_MOUNT"], quiet=True)
            self.target = pathlib.Path(shown.stdout.strip())
        else:
            self.target = self.folder / "target"
            self.target.mkdir()

    def mpirun(self, *arguments, ranks=RANKS, flags=()):
        words = ["mpirun", *FLAGS, *flags, "-np", ranks]
        if self.bed:
            words += ["--hostfile", "$RBENCH_BED_HOSTFILE"]
        words += [self.program, "mdtest", *arguments]
        line = " ".join(str(word) for word in words)
        return [str(BED), "run", "sh", "-c", line] if self.bed else [str(word) for word in words]

    def run(self, *arguments, expect=0, ranks=RANKS):
        print("$ mpirun … rbench mdtest " + " ".join(str(a) for a in arguments), flush=True)
        return run(self.mpirun(*arguments, ranks=ranks), expect=expect, quiet=True)

    def listing(self, path=None, most=None):
        """Returns the entries of the target; at most `most` names, for a tree that may grow faster than it is read."""
        words = ["find", str(path or self.target), "-mindepth", "1"]
        if most is not None:
            words = ["sh", "-c", 'find "$1" -mindepth 1 | head -n "$2"', "sh", words[1], str(most)]
        done = run([BED, "run", *words] if self.bed else words, quiet=True)
        return sorted(done.stdout.splitlines())

    def nothing_left(self):
        check(self.listing() == [], f"nothing is left: {self.listing()[:3]}")


def rows(output):
    return {name: [float(v) for v in values] for name, *values in ROW.findall(output)}


def whole(place, output, document, items, tasks=RANKS):
    """Checks a clean run: its phases have these items, and mdtest's table agrees with the result."""
    got = {}
    for phase in document["phases"]:
        got.setdefault(phase["name"], []).append(phase["items"])
        check(phase["errors"] == {}, f"{phase['name']}: errors {phase['errors']}")
    check(got == items, f"items {got}, not {items}")
    check(document["complete"], "the run is complete")
    hosts = 3 if place.bed else 1
    launched = re.search(r"^mdtest-\S+ was launched with (\d+) total task\(s\) on (\d+) node\(s\)$", output, re.M)
    check(launched and launched.groups() == (str(tasks), str(hosts)), "the launch line")
    labels = {phase["name"]: phase["label"] for phase in document["phases"]}
    for name, label in labels.items():
        rates = [phase["rate"] for phase in document["phases"] if phase["name"] == name]
        row = rows(output).get(label, [0] * 4)
        wanted = [max(rates), min(rates), sum(rates) / len(rates)]
        close = all(abs(a - b) <= 0.001 for a, b in zip(row, wanted))
        check(close, f"{label}: {row[:3]}, not {wanted}")


def parsed(place, python, output, out):
    if not python:
        return
    text = place.folder / "output.txt"
    text.write_text(output)
    done = run([python, PARSE, text, out], quiet=True)
    print(f"   other parsers: {done.stdout.strip().splitlines()[-1] if done.stdout else 'nothing'}")


def published(place, python):
    heading("the published commands, unchanged")
    # All except one, which has 1.4 million operations: on the bed, with some thousand per second, a tenth of them.
    many = 500 if place.bed else 5000
    each = many // 3 * 3
    files = ["file-create", "file-stat", "file-read", "file-remove"]
    dirs = ["dir-create", "dir-stat", "dir-rename", "dir-remove"]

    def items(per_tree, names_dirs, per_kind, iterations=1):
        wanted = {"tree-create": [per_tree] * iterations}
        for name in names_dirs:
            wanted[name] = [per_kind] * iterations
        wanted["tree-remove"] = [per_tree] * iterations
        return wanted

    cases = [
        (["-b", 3, "-z", 1, "-I", 100, "-u"], items(48, dirs + files, 4800), None),
        (["-F", "-w", 102400, "-I", 1000, "-z", 0, "-u"], items(12, files, 12000), 1_228_800_000),
        (["-n", many, "-u", "-z", 2, "-i", 3], items(36, dirs + files, 12 * each, 3), None),
    ]
    for size in (1024, 131072):
        line = ["-n", 1000, "-w", size, "-e", size, "-y", "-u", "-i", 3, "-N", 1, "-F", "-R"]
        cases.append((line, items(12, files, 12000, 3), 12000 * size))
    for number, (line, wanted, written) in enumerate(cases):
        out = place.folder / f"published-{number}.json"
        done = place.run(*line, "-d", place.target, "--out", out, "--quiet")
        document = result(out)
        whole(place, done.stdout, document, wanted)
        if written:
            got = {phase["bytes"] for phase in document["phases"] if phase["name"] == "file-create"}
            check(got == {written}, f"{got} bytes were written, not {written}")
        parsed(place, python, done.stdout, out)
        for name, values in rows(done.stdout).items():
            print(f"   {name:20} {values[2]:12.1f}")
        place.nothing_left()


def failures(place):
    heading("nothing there: errors, rate 0, exit code 1")
    done = place.run("-T", "-F", "-n", 10, "-d", place.target, expect=1)
    check(rows(done.stdout)["File stat"] == [0.0] * 4, "the rate of failed operations is 0")
    check("ENOENT" in done.stdout + done.stderr, "the error is named")

    heading("damaged files: each one reported, exit code 1")
    for packet in "toir":
        data = ["-F", "-n", 20, "-u", "-w", 5000, "-d", place.target, "--dataPacketType", packet]
        place.run("-C", *data, "-G", 17)
        place.run("-E", "-X", "-e", 5000, *data, "-G", 17)
        done = place.run("-E", "-X", "-e", 5000, *data, "-G", 18, expect=1)
        named = set(re.findall(r"file\.mdtest\.\d+\.\d+(?=: not what was written)", done.stderr))
        check(len(named) == 240, f"packet {packet}: {len(named)} damaged files are named, not 240")
        check("240 x MISMATCH" in done.stdout, f"packet {packet}: 240 are counted: {done.stdout[-300:]}")
        place.run("-r", *data)
        place.nothing_left()


def interrupted(place):
    heading("SIGINT in the middle of creation: partial table, the tree gone, exit code 130")
    # When interrupted itself, mpirun has its own exit code. It waits for 15 s, signals its ranks, and kills them 15 s
    # later. All entries created until then must be removed in that time, at any speed of the machine. So files are
    # created slowly; the bed's file system has no such limit.
    slow = None if place.bed else Testfs(place.program, "--latency", "create=100ms")
    target = slow.mountpoint if slow else place.target
    # More than can be created in the time; free space does not matter.
    line = ["-F", "-n", 3_000_000, "-u", "--overfill", "-d", target]
    ways = [("a rank", 130, []), ("mpirun", None, PATIENT)]
    for whom, code, flags in ways[:1 if place.bed else 2]:
        process = subprocess.Popen(place.mpirun(*line, flags=flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        wait_until(lambda: len(place.listing(target, most=200)) > 100 or process.poll() is not None)
        before = len(place.listing(target, most=200))
        os.kill(descendant(process.pid, "mpirun" if whom == "mpirun" else "rbench"), signal.SIGINT)
        out, err = process.communicate(timeout=3 * PATIENCE_S)
        created = rows(out).get("File creation", [0])[0]
        wanted = process.returncode == code if code else process.returncode != 0
        check(wanted, f"SIGINT at {whom}: exit code {process.returncode}: {err[-400:]}")
        check(before > 100, f"{before} entries were there")
        check(created > 0, f"the table tells of the creation: {out[-900:]}{err[-900:]}")
        check(place.listing(target) == [], f"nothing is left: {place.listing(target)[:3]}")
        print(f"   at {whom}: exit code {process.returncode}; at least {before} entries were there, {created:.0f} creations/s")
    if slow:
        slow.end()


def stonewall(place):
    heading("stonewall, wear-out and status file")
    status = place.folder / "status"
    common = ["-F", "-u", "-x", status, "-d", place.target]
    out = [place.folder / f"stonewall-{step}.json" for step in "CTr"]
    place.run("-C", "-W", 2, *common, "--out", out[0])
    each = int(status.read_text().split()[0])
    there = sum("file.mdtest" in name for name in place.listing())
    place.run("-T", *common, "--out", out[1])
    place.run("-r", *common, "--out", out[2])
    counts = [phases(result(path))[name]["items"] for path, name in
              zip(out, ["file-create", "file-stat", "file-remove"])]
    check(counts == [RANKS * each] * 3 and there == RANKS * each, f"{counts} and {there} on disk, {each} of each")
    print(f"   {each} files of each rank: {counts} created, found, removed")
    place.nothing_left()


def others(place):
    heading("sweep over task counts, shared files, collective creation, no barriers, shifts")
    out = place.folder / "sweep.json"
    done = place.run("-f", 1, "-l", 5, "-s", 2, "-n", 10, "-F", "-d", place.target, "--out", out)
    tasks = re.findall(r"^(\d+) tasks, (\d+) files$", done.stdout, re.M)
    check(tasks == [("1", "10"), ("3", "30"), ("5", "50")], f"sweep: {tasks}")
    check([result(out.with_name(f"sweep.{n}.json"))["world"]["ranks"] for n in (1, 3, 5)] == [1, 3, 5],
          "each has a result file")
    lines = [
        ["-c", "-n", 20, "-w", 100, "-e", 100],
        ["-c", "-n", 20, "-u"],
        ["-B", "-u", "-n", 20],
        ["-u", "-N", 4, "-z", 2, "-b", 2, "-I", 5, "-w", 10, "-e", 10, "-X", "-G", 3],
        ["-N", 1, "-n", 30, "-I", 10, "-L", "-z", 1],
        ["-k", "-n", 20, "-F", "-Y"],
        ["-a", "DUMMY", "-n", 1000],
    ]
    if not place.bed:
        # MooseFS refuses concurrent creation of one name.
        lines.append(["-S", "-F", "-n", 20])
    for line in lines:
        place.run(*line, "-d", place.target)
        place.nothing_left()


def mdtest_bytes(packet, seed, rank, item, length):
    """Returns the data that mdtest 4.1 writes into a file; generated by the C library, like in mdtest."""
    def drawn(state):
        state = ctypes.c_uint(state % 2**32)
        while True:
            yield ctypes.CDLL(None).rand_r(ctypes.byref(state))

    number = length // 8
    if packet in "to":
        words = [rank << 32 | (seed + i) % 2**64 for i in range(number)]
    elif packet == "i":
        draws = drawn(seed + rank)
        words = [next(draws) << 32 | next(draws)] * number
    else:
        x = next(drawn(seed + rank + item))
        words = [x := x * 0x9E37FFFFFFFC0001 % 2**64 >> 3 for _ in range(number)]
    if packet in "oi":
        for k, i in enumerate(range(0, number, 512), 1):
            words[i] = item * k % 2**32 | rank << 32
    return struct.pack(f"<{number}Q", *words) + bytes(p % 256 for p in range(number * 8, length))


def content(place):
    heading("the bytes of files: mdtest's, written and read")
    ranks, items, files = 3, 3, 0
    seeds = (5, -7, 2_000_000_000)
    for kind, packet in enumerate("toir"):
        for step, length in enumerate((3, 8, 3901, 9000)):
            seed = seeds[(kind + step) % len(seeds)]
            data = ["--dataPacketType", packet, f"-G{seed}", "-F", "-u", "-n", items, "-d", place.target]
            run(place.mpirun("-C", "-w", length, *data, ranks=ranks), quiet=True)
            paths = {}
            for rank in range(ranks):
                for item in range(items):
                    path = place.target / f"test-dir.0-0/mdtest_tree.{rank}.0/file.mdtest.{rank}.{item}"
                    paths[path] = mdtest_bytes(packet, seed, rank, item, length)
            wrong = [path for path, expected in paths.items() if path.read_bytes() != expected]
            check(not wrong, f"type {packet}, -G {seed}, {length} bytes: {wrong[:2]}")
            files += len(paths)
            # The script creates the files that mdtest would have left; at the end one byte is damaged.
            for path, expected in paths.items():
                path.write_bytes(expected)
            reading = place.mpirun("-E", "-X", "-e", length, *data, ranks=ranks)
            run(reading, quiet=True)
            if length == 3901:
                victim, expected = list(paths.items())[4]
                victim.write_bytes(expected[:-1] + bytes([expected[-1] ^ 1]))
                done = run(reading, expect=1, quiet=True)
                check(victim.name in done.stdout + done.stderr, f"{victim.name} is named: {done.stderr}")
            run(place.mpirun("-r", *data, ranks=ranks), quiet=True)
        # In leaves, and in a second tree, the numbers are those of the names.
        for shape in (["-b", 2, "-z", 2, "-L", "-I", 2], ["-n", 6, "-I", 3]):
            data = ["--dataPacketType", packet, "-G9", "-F", *shape, "-d", place.target]
            run(place.mpirun("-C", "-w", 5000, *data, ranks=ranks), quiet=True)
            for path in place.target.rglob("file.mdtest.*"):
                _, _, rank, item = path.name.split(".")
                expected = mdtest_bytes(packet, 9, int(rank), int(item), 5000)
                check(path.read_bytes() == expected, f"type {packet}, {shape}: {path}")
                files += 1
            run(place.mpirun("-r", *data, ranks=ranks), quiet=True)
    print(f"   {files} files, four types: each byte as laid down")
    place.nothing_left()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--bed", action="store_true")
    parser.add_argument("--parser")
    options = parser.parse_args()
    os.environ.pop("RBENCH_DIR", None)
    place = Place(options.program, options.bed)
    published(place, options.parser)
    failures(place)
    interrupted(place)
    stonewall(place)
    others(place)
    if not place.bed:
        content(place)
    finish()


if __name__ == "__main__":
    main()
