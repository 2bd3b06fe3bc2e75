"""Runs stages of scripts/test repeatedly, to find tests that fail because of the machine, not because of a defect.

usage: repeat.py [--times N] [--load] [--logs FOLDER] STAGE…   (`default`: scripts/test as it is)
       --times: how often each stage runs (5)
       --load: beside them two busy loops, and a writer on the disk of the folder with the logs
       --logs: where the output of each run is kept (target/repeat)

Prints one line for each run: the stage, the run's number, with or without load, the result, seconds.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

TEST = pathlib.Path(__file__).resolve().parents[1] / "test"
BUSY_LOOPS = 2
# Written, synced and removed repeatedly.
WRITE_MIB = 256
SPIN = "while True: pass"
WRITE = """
import os, sys
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(int(sys.argv[2])):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
"""


@contextlib.contextmanager
def load(folder):
    """Generates load by other processes, which are ended in any case."""
    scratch = folder / f"load.{os.getpid()}"
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(BUSY_LOOPS)]
    others.append(subprocess.Popen([sys.executable, "-c", WRITE, scratch, str(WRITE_MIB)]))
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()
        scratch.unlink(missing_ok=True)


def one(stage, number, loaded, folder):
    """Runs a stage once, prints its line, and returns whether it passed."""
    log = folder / f"{stage}-{'load-' if loaded else ''}{number}.log"
    begun = time.monotonic()
    with log.open("w") as output, load(folder) if loaded else contextlib.nullcontext():
        test = subprocess.Popen([TEST, *([stage] if stage != "default" else [])], stdout=output, stderr=subprocess.STDOUT)
        try:
            code = test.wait()
        finally:
            # Interrupted, it takes down what it has started, which a kill would leave behind.
            test.terminate()
            test.wait()
    result = "passed" if code == 0 else f"FAILED ({log})"
    beside = "beside load" if loaded else "-"
    print(f"{stage:12} {number:3}  {beside:11}  {result:8}  {time.monotonic() - begun:6.0f} s", flush=True)
    return code == 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("stages", nargs="+")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--logs", type=pathlib.Path, default=TEST.parents[1] / "target/repeat")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    # The load ends with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    runs = [(stage, number) for stage in options.stages for number in range(1, options.times + 1)]
    failed = [run for run in runs if not one(*run, options.load, options.logs)]
    print(f"{len(runs) - len(failed)} passed, {len(failed)} failed", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
