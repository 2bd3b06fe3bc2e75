"""Checks commands that run several workloads from one launch, on a target with known properties.

usage: series.py PROGRAM [CHECK ...]
"""

import os
import pathlib
import sys
import tempfile

from common import Testfs, attempt, check, finish, heading, mpirun, result, run

WORKLOADS = {
    "metadata": ["meta", "--phases", "file-stat", "--threads", "32", "--no-round-trip"],
    "I/O": ["io", "--rw", "randread", "--bs", "4k", "--size", "1m", "--threads", "32", "--no-round-trip"],
}


class Knee:
    """`rbench knee` finds the capacity of a file system that serves SERVERS requests at a time, in LATENCY_MS each."""

    SERVERS = 8
    LATENCY_MS = 8
    RUNS = 3

    def __init__(self, program, folder):
        self.program, self.out = program, folder / "knee.json"
        self.capacity = self.SERVERS * 1000 / self.LATENCY_MS

    def __call__(self):
        for name, workload in WORKLOADS.items():
            heading(f"knee, {name}: {self.capacity:.0f} operations a second")
            for _ in range(self.RUNS):
                # A machine that stalls for a second makes any rate fail.
                attempt(2, lambda words=workload: self.wrong(words))
        self.bad_input()

    def wrong(self, workload):
        """Returns what is wrong with the result of a run."""
        latency = f"getattr={self.LATENCY_MS}ms,read={self.LATENCY_MS}ms"
        target = Testfs(self.program, "--servers", self.SERVERS, "--latency", latency, "--attr-timeout", "0",
                        "--entry-timeout", "100", "--direct-io")
        self.out.unlink(missing_ok=True)
        command, *options = workload
        run([self.program, "knee", "--slo", "p90=50ms", "--time", "2", "--quiet", "--out", self.out, "--", command,
             "--dir", target.mountpoint, *options], quiet=True)
        target.end()
        series = result(self.out)
        knee = series["knee"]
        print(f"   held {knee['held']}, failed {knee['failed']}, confirmed {knee['confirmed']}, "
              f"{len(knee['steps'])} steps", flush=True)
        self.consistent(series)
        if knee["trouble"] or not knee["confirmed"]:
            return f"{knee['trouble']}, confirmed: {knee['confirmed']}"
        if abs(knee["held"] / self.capacity - 1) > 0.1:
            return f"{knee['held']} is not within 10% of {self.capacity}"
        return None

    def consistent(self, series):
        """Checks that every step agrees with its cell."""
        cells = {cell["index"]: cell["result"] for cell in series["cells"]}
        check(series["complete"], "the series is complete")
        for step in series["knee"]["steps"]:
            phase = cells[step["cell"]]["phases"][0]
            row = step["rows"][0]
            check((row["items"], row["unissued"]) == (phase["items"], phase["unissued"]), f"{step} is not {phase}")
            if step["stage"] == "closed":
                continue
            response = phase["latency"]["response"]
            check(response["count"] == phase["items"], f"{response['count']} response times of {phase['items']}")
            p90 = next(figure["ns"] for figure in row["figures"] if figure["name"] == "p90")
            # One is the bucket's highest value, the other is interpolated.
            check(abs(p90 - response["p90_ns"]) <= 0.01 * p90, f"p90 {p90}, not {response['p90_ns']}")
            due = phase["items"] + phase["unissued"]
            expected = step["rate"] * step["window_s"]
            check(abs(due - expected) <= 0.01 * expected + 1, f"{due} operations were due, not {expected}")

    def bad_input(self):
        heading("knee: bad input")
        for arguments, words in [
            (["--slo", "p99=0", "--", "io"], "must be more than 0"),
            (["--slo", "p99=1ms", "--slo", "p99=2ms", "--", "io"], "--slo p99 is given twice"),
            (["--slo", "p99=1ms", "--from", "9", "--to", "3", "--", "io"], "--from 9 is more than --to 3"),
            (["--slo", "p99=1ms", "--precision", "90%", "--", "io"], "--precision 90%"),
            (["--slo", "p99=1ms", "--", "io", "--rate", "5"], "has --rate, which knee sets itself"),
            (["--slo", "p99=1ms", "--", "mdtest", "-n", "5"], "phases of meta"),
            (["--slo", "p99=1ms", "--", "io", "--nonsense"], "--nonsense"),
        ]:
            done = run([self.program, "knee", *arguments], expect=2, quiet=True)
            check(words in done.stderr, f"{arguments}: {done.stderr}")


class Nn:
    """`rbench nn` has exactly the workers of its ladder, and stops scaling at a file system's capacity."""

    SERVERS = 8
    LATENCY_MS = 8
    LADDER = [2, 3, 5, 8, 24]
    RANKS = 3
    FILES = 40
    PHASES = ["file-create", "file-read", "file-rename", "file-remove"]

    def __init__(self, program, folder):
        self.program, self.out = program, folder / "nn.json"

    def __call__(self):
        heading(f"nn, {self.RANKS} ranks: exactly the workers of the ladder {self.LADDER}")
        attempt(3, self.wrong)
        self.bad_input()

    def wrong(self):
        """Returns what is wrong with the rates."""
        latency = ",".join(f"{kind}={self.LATENCY_MS}ms" for kind in ("create", "open", "rename", "unlink"))
        target = Testfs(self.program, "--servers", self.SERVERS, "--latency", latency)
        self.out.unlink(missing_ok=True)
        done = run([*mpirun("mpirun", self.RANKS), self.program, "nn", "--dir", target.mountpoint, "--files", self.FILES,
                    "--ladder", ",".join(str(n) for n in self.LADDER), "--quiet", "--out", self.out])
        target.end()
        series = result(self.out)
        check(series["complete"], "the series is complete")
        found = [int(cell["values"][0]["value"]) for cell in series["cells"]]
        check(found == self.LADDER, f"{found}, not {self.LADDER}")
        wrong = []
        for workers, cell in zip(self.LADDER, series["cells"]):
            rows = {phase["name"]: phase for phase in cell["result"]["phases"]}
            for name in self.PHASES:
                row = rows[name]
                check(row["workers"]["count"] == workers, f"{name}: {row['workers']['count']} workers, not {workers}")
                check(row["items"] == workers * self.FILES, f"{name}: {row['items']} operations by {workers} workers")
                check(row["errors"] == {}, f"{name}: {row['errors']}")
                of_ranks = [rank["items"] // self.FILES for rank in row["ranks"]]
                check(max(of_ranks) - min(of_ranks) <= 1, f"{name}: {of_ranks} workers in the ranks")
                most = min(workers, self.SERVERS) * 1000 / self.LATENCY_MS
                if not 0.8 * most < row["rate"] <= 1.05 * most:
                    wrong.append(f"{name}, {workers} workers: {row['rate']:.0f}/s, and {most:.0f} is the capacity")
        for name in ("create_write", "open_read", "rename", "delete"):
            if f"{name} stops scaling at {self.SERVERS} workers" not in done.stdout:
                wrong.append(f"{name}: {done.stdout}")
        return "; ".join(wrong)

    def bad_input(self):
        heading("nn: bad input")
        for arguments, words in [
            (["--ladder", "10,0"], "--ladder 0 is not a number of workers"),
            (["--ladder", "10,99999999"], "--ladder 99999999 is not a number of workers"),
            (["--ladder", "20,10"], "--ladder 20,10"),
            (["--ladder", "10,x"], "'x'"),
            (["--files", "0"], "--files must be at least 1"),
        ]:
            done = run([self.program, "nn", *arguments], expect=2, quiet=True)
            check(words in done.stderr, f"{arguments}: {done.stderr}")
            check(len(done.stderr.strip().splitlines()) <= 3, f"{arguments}: {done.stderr}")


CHECKS = {"knee": Knee, "nn": Nn}


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("RBENCH_DIR", None)
    with tempfile.TemporaryDirectory(prefix="check-series-") as name:
        for chosen in sys.argv[2:] or CHECKS:
            CHECKS[chosen](program, pathlib.Path(name))()
    finish()


main()
