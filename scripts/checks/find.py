"""Compares rbench find with find(1) on a random tree with symbolic links and odd names, on several ranks and threads.

usage: find.py PROGRAM
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from common import check, finish, heading, mpirun, phases, result, run

TESTS = [
    [],
    ["-name", "*01*"],
    ["-name", "[!f]*"],
    ["-name", ".*"],
    ["-size", "3901c"],
    ["-size", "+1k"],
    ["-size", "-2"],
    ["-newer", "STAMP"],
    ["-newer", "STAMP", "-size", "3901c", "-name", "*01*"],
]


def make(folder, draw, depth=0):
    """Creates a random tree; some files have the size and age that the search matches."""
    for number in range(draw.randrange(3, 40)):
        path = folder / f"file.mdtest.{draw.randrange(10)}.{number:03}"
        path.write_bytes(b"x" * draw.choice([0, 1, 512, 513, 1024, 1025, 3900, 3901, 3901, 3902]))
        if draw.random() < 0.3:
            os.utime(path, (0, time.time() + draw.choice([-1000, 1000])))
    (folder / "link to a file").symlink_to("nowhere01")
    (folder / ".hidden01").write_text("x")
    if depth < 4:
        for number in range(draw.randrange(0, 5)):
            below = folder / f"dir01.{number}\u00fc"
            below.mkdir()
            make(below, draw, depth + 1)
            (folder / f"link01.{number}").symlink_to(below)


def lines(folder, stamp, tests):
    """Returns the number of entries that find(1) finds."""
    words = [str(stamp) if word == "STAMP" else word for word in tests]
    found = subprocess.run(["find", folder, "-xdev", *words, "-printf", "."], capture_output=True, text=True, check=True)
    return len(found.stdout)


def agrees(program, folder, stamp, out):
    everything = lines(folder, stamp, [])
    files = lines(folder, stamp, ["!", "-type", "d"])
    for ranks, threads in [(1, 1), (1, 3), (4, 1), (3, 2)]:
        for tests in TESTS:
            words = [str(stamp) if word == "STAMP" else word for word in tests]
            launcher = mpirun("mpirun", ranks) if ranks > 1 else []
            run([*launcher, program, "find", folder, *words, "--threads", threads, "--out", out, "--quiet", "--no-round-trip"],
                quiet=True)
            rows = phases(result(out))
            out.unlink()
            found = rows["find-readdir"]["found"]
            label = f"{ranks} ranks, {threads} threads, {tests}"
            expected = lines(folder, stamp, tests)
            check(found["matches"] == expected, f"{label}: {found['matches']} matches, {expected} by find")
            check(found["files"] == files, f"{label}: {found['files']} files, {files} by find")
            check(found["files"] + found["directories"] == everything, f"{label}: {everything} entries, not {found}")
            elapsed = rows["find-readdir"]["elapsed_s"]
            rate = files / elapsed
            check(abs(found["files_per_s"] - rate) <= 1e-6 * rate, f"{label}: {found['files_per_s']} a second, not {rate}")
            check(not any(row["errors"] for row in rows.values()), f"{label}: no errors")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    seed = random.randrange(1 << 32)
    heading(f"as many matches as find(1) on random trees (seed {seed})")
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        stamp, out = place / "stamp", place / "out.json"
        stamp.write_text("now")
        tree = place / "tree01"
        tree.mkdir()
        make(tree, draw)
        agrees(program, tree, stamp, out)
        heading("one wide directory is looked at by all ranks")
        wide = place / "wide"
        wide.mkdir()
        for number in range(5000):
            (wide / f"file.{number}").touch()
        run([*mpirun("mpirun", 4), program, "find", wide, "-newer", stamp, "--out", out, "--quiet"], quiet=True)
        stats = phases(result(out))["find-stat"]
        out.unlink()
        each = [rank["items"] for rank in stats["ranks"]]
        check(sum(each) == 5001 and min(each) > 1000, f"stats of each rank: {each}")
        heading("what cannot be searched is refused, and what cannot be read is an error")
        done = run([program, "find", place / "none"], expect=2, quiet=True)
        check("none cannot be inspected" in done.stderr, done.stderr)
        done = run([program, "find", tree, "--newer", place / "none"], expect=2, quiet=True)
        check("--newer" in done.stderr and "none" in done.stderr, done.stderr)
        done = run([program, "find", tree, "-size", "3x"], expect=2, quiet=True)
        check("is not a size as in find" in done.stderr, done.stderr)
        done = run([program, "find", tree, "--keep"], expect=2, quiet=True)
        check("--keep" in done.stderr, done.stderr)
    finish()


if __name__ == "__main__":
    main()
