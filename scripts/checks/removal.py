"""Checks that all workers of all ranks remove the remains of a run, as fast as a removal phase, and remove nothing
outside. Also compares the progress of the first two seconds with the final report.

usage: removal.py PROGRAM [--mpirun MPIRUN]
"""

import argparse
import os
import pathlib
import re
import subprocess
import tempfile
import time

from common import Testfs, attempt, check, finish, heading, mpirun, result, run

RANKS = 4
FILES = 20_000
# Maximum factor of a removal's time over that of the phase that removes the same tree.
SLOWER = 1.5


def meta(program, before, mountpoint, *options):
    command = [*before, program, "meta", "--dir", mountpoint, "--files-only", "--items-per-rank", FILES // RANKS]
    return [*command, "--no-round-trip", *options]


def last_line(stderr, label):
    """Returns the rate in the last line of a phase or a removal."""
    lines = [line for line in stderr.splitlines() if line.startswith(f"{label}: ")]
    rates = [re.search(r", ([\d,.]+)/s", line) for line in lines]
    rates = [float(rate.group(1).replace(",", "")) for rate in rates if rate]
    return rates[-1] if rates else 0.0


def removal(program, before, folder):
    """Removes 20,000 files in at least 1 ms each: by a phase, after a run, and by clean."""
    heading("removal behind a run and by clean, against the phase")
    for layout in ("unique", "shared"):
        files = Testfs(program, "--latency", "unlink=1ms", "--threads", 16)
        out = folder / f"{layout}.json"
        # Other processes slow down each of them, so the minimum times are compared.
        least = {}

        def once():
            out.unlink(missing_ok=True)
            phases = ["--layout", layout, "--phases", "file-create,file-remove", "--out", out, "--quiet"]
            run(meta(program, before, files.mountpoint, *phases), quiet=True)
            (phase,) = [p for p in result(out)["phases"] if p["name"] == "file-remove"]
            check(phase["items"] == FILES, f"{phase['items']} files were removed")
            made = ["--layout", layout, "--phases", "file-create", "--progress", "plain"]
            behind = run(meta(program, before, files.mountpoint, *made), quiet=True)
            check(os.listdir(files.mountpoint) == [], f"{layout}: something is left: {os.listdir(files.mountpoint)}")
            behind_s = FILES / max(last_line(behind.stderr, "removal"), 1)
            run(meta(program, before, files.mountpoint, *made, "--keep"), quiet=True)
            (left,) = files.mountpoint.iterdir()
            begun = time.monotonic()
            cleaned = run([*before, program, "clean", "--kept", files.mountpoint], quiet=True)
            clean_s = time.monotonic() - begun
            entries = re.search(r"removed .*: ([\d,]+) entries", cleaned.stdout)
            check(entries and int(entries.group(1).replace(",", "")) > FILES, f"clean says what it removed: {cleaned.stdout}")
            check(not left.exists(), f"{left} is gone")
            for name, seconds in (("phase", phase["elapsed_s"]), ("behind a run", behind_s), ("clean", clean_s)):
                least[name] = min(least.get(name, seconds), seconds)
            took, behind_s, clean_s = least.values()
            print(f"   {layout}: phase {took:.2f} s, behind a run {behind_s:.2f} s, clean {clean_s:.2f} s", flush=True)
            # The time of clean includes the start of the ranks.
            slow = behind_s > SLOWER * took or clean_s > SLOWER * took + 2
            return slow and f"{layout}: {behind_s} s and {clean_s} s against {took} s"

        attempt(5, once)
        files.end()


def hostile(program, before, folder):
    """Removes a tree with links that lead out, and with a mount in it."""
    heading("links and a mount within what is removed")
    outside = folder / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("precious", "deep/precious"):
        (outside / name).write_text("data")
    place = folder / "place"
    place.mkdir()
    made = ["--phases", "file-create", "--quiet", "--keep", "--items-per-rank", 50]
    run([*before, program, "meta", "--dir", place, "--files-only", "--no-round-trip", *made], quiet=True)
    (tree,) = place.iterdir()
    kept = run([*before, program, "clean", place], quiet=True)
    check("it was kept on purpose" in kept.stderr and "nothing to clean" in kept.stdout, f"{kept.stdout}{kept.stderr}")
    check(tree.exists(), "what was to be kept is")
    for number, way in enumerate([tree, *(path for path in tree.rglob("*") if path.is_dir())]):
        (way / f"link.{number}").symlink_to(outside)
    (place / "rbench.link").symlink_to(outside)
    within = tree / "0" / "mounted"
    within.mkdir()
    inner = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", within], check=False, capture_output=True).returncode == 0
    check(inner, "a tmpfs can be mounted (root)")
    try:
        (within / "precious").write_text("data")
        stays = run([*before, program, "clean", "--kept", place], expect=None, quiet=True)
        check(stays.returncode == 1, f"exit code {stays.returncode}: {stays.stderr}")
        check("another file system is mounted there" in stays.stderr, f"it says why: {stays.stderr}")
        check((within / "precious").read_text() == "data", "what is mounted is untouched")
    finally:
        if inner:
            subprocess.run(["umount", within], check=True)
    run([*before, program, "clean", "--kept", place], quiet=True)
    check([path.name for path in place.iterdir()] == ["rbench.link"], f"{list(place.iterdir())}")
    for name in ("precious", "deep/precious"):
        check((outside / name).read_text() == "data", f"{name} outside is untouched")


def progress(program, before, folder):
    """Requests have a constant latency, so the first line's figures of all ranks must equal those of the final report."""
    heading("progress of the first two seconds against the report")
    files = Testfs(program, "--latency", "mknod=10ms,create=10ms,read=10ms,write=10ms", "--threads", 16, "--direct-io")
    made = ["--items-per-rank", 300, "--phases", "file-create"]
    moved = ["--rw", "randread", "--size", "1m", "--bs", "64k", "--time", 4, "--engine", "psync"]
    for label, bytes_too, options in (
        ("File creation", False, ["meta", "--files-only", *made]),
        ("Random read", True, ["io", *moved]),
    ):
        out = folder / f"{label}.json"

        def once():
            out.unlink(missing_ok=True)
            command = [*before, program, *options, "--dir", files.mountpoint, "--out", out]
            done = run([*command, "--progress", "plain", "--no-round-trip"], quiet=True)
            (phase,) = [p for p in result(out)["phases"] if p["label"] == label]
            lines = [line for line in done.stderr.splitlines() if line.startswith(f"{label}: ")]
            # A phase may need a second to start, without a rate until then.
            lines = [line for line in lines if re.search(r", [\d,.]+/s.*\b[12] s elapsed", line)]
            if not lines:
                return f"no line in the first two seconds: {done.stderr}"
            print(f"   {lines[0]}", flush=True)
            told = float(re.search(r", ([\d,.]+)/s", lines[0]).group(1).replace(",", ""))
            rate = phase["items"] / phase["elapsed_s"]
            if " left" not in lines[0] or bytes_too and "iB/s" not in lines[0]:
                return f"{label}: time left, bandwidth: {lines[0]}"
            wrong = abs(told - rate) > 0.2 * rate
            return wrong and f"{label}: {told}/s in the first seconds, {rate}/s in the report"

        attempt(3, once)
    files.end()


def failures(program, before, folder):
    """The first failed operation is reported during the run, and failures are counted next to completed operations."""
    heading("the first failed operation, at once")
    faults = ["--fault", "mknod:EIO@p=0.2", "--fault", "create:EIO@p=0.2", "--latency", "mknod=5ms,create=5ms"]
    files = Testfs(program, *faults, "--threads", 16)
    command = [*before, program, "meta", "--files-only", "--items-per-rank", 1500, "--phases", "file-create"]
    done = run([*command, "--dir", files.mountpoint, "--progress", "plain", "--no-round-trip"], expect=1, quiet=True)
    lines = done.stderr.splitlines()
    first = [number for number, line in enumerate(lines) if "the first failed operation: rank " in line]
    counted = [number for number, line in enumerate(lines) if re.search(r"^File creation: .* failed, ", line)]
    check(len(first) == 1, f"it is told once: {done.stderr}")
    check(len(first) == 1 and "create" in lines[first[0]] and "EIO" in lines[first[0]], f"and what it is: {done.stderr}")
    check(bool(counted) and first < counted, f"then the failed ones are counted: {done.stderr}")
    check(os.listdir(files.mountpoint) == [], "nothing is left")
    files.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun", default="mpirun")
    given = parser.parse_args()
    program = given.program.resolve()
    before = mpirun(given.mpirun, RANKS)
    with tempfile.TemporaryDirectory(prefix="rbench-removal-") as folder:
        folder = pathlib.Path(folder)
        progress(program, before, folder)
        failures(program, before, folder)
        hostile(program, before, folder)
        removal(program, before, folder)
    finish()


if __name__ == "__main__":
    main()
