"""Checks runs with real MPI briefly: counts of meta, io, mdtest and fio on 4 and 12 ranks, a stopped run, a killed
rank.

usage: smoke.py PROGRAM [--mpirun MPIRUN] [--ranks N …] [--dir DIR [--hosts N]]

Without --dir, meta and io use the built-in file system. --dir gives a directory that all hosts share; launchers.py checks
other MPI libraries and hosts with it.

All other properties of ranks are tested with threads in one process (crates/rbench-exec/tests/it), or by ranks.py.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from common import (
    PATIENCE_S, Testfs, check, check_result, finish, heading, meta_items, mpirun, ranks_of, result, run, wait_until,
)


def leftovers(folder):
    """Returns the temporary directories and mounts that a run has left."""
    mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("rbench-")), mounts


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def native(program, launcher, ranks, folder, env, place, hosts):
    heading(f"meta and io, {ranks} ranks on {place or 'the built-in file system'}")
    where = ["--dir", place] if place else []
    out = folder / "meta.json"
    run([*mpirun(launcher, ranks), program, "meta", *where, "--out", out, "--quiet"], env=env)
    document = result(out)
    check_result(document, meta_items(ranks), ranks, hosts)
    check(document["world"]["communicator"] == "mpi", f"the ranks are those of MPI: {document['world']}")
    check(document["target"]["embedded"] == (place is None), "the result says whether it is a demonstration")
    check(not out.with_name("meta.json.journal").exists(), "the journal is removed at the end")
    out.unlink()
    out = folder / "io.json"
    sizes = ["--bs", "64k", "--size", "4M", "--rw", "write,randread"]
    run([*mpirun(launcher, ranks), program, "io", *where, *sizes, "--verify", "--out", out, "--quiet"], env=env)
    check_result(result(out), {"write": 64 * ranks, "write-fsync": ranks, "randread": 64 * ranks}, ranks, hosts)
    out.unlink()
    check(leftovers(folder) == ([], []), f"left over: {leftovers(folder)}")


def other_tools(program, launcher, ranks, folder, env, place):
    heading(f"mdtest and fio, {ranks} ranks")
    own = folder / "place"
    own.mkdir()
    done = run([*mpirun(launcher, ranks), program, "mdtest", "-n", "20", "-u", "-d", place or own], env=env)
    tasks = re.search(r"^(\d+) tasks, (\d+) files/directories$", done.stdout, re.MULTILINE)
    check(tasks and tasks.groups() == (str(ranks), str(20 * ranks)), f"mdtest: {tasks} of\n{done.stdout}")
    for row in ("Directory creation", "File creation", "File removal", "Tree removal"):
        rates = re.search(rf"^ +{row} +([\d.]+)", done.stdout, re.MULTILINE)
        check(rates and float(rates[1]) > 0, f"mdtest: {row} has no rate")
    job = ["--name=job", "--rw=write", "--bs=4k", "--size=64k", f"--directory={place or own}", "--output-format=json"]
    # This process does not see the files of other hosts.
    job += ["--unlink=1"] if place else []
    done = run([*mpirun(launcher, ranks), program, "fio", *job], env=env)
    counts = [entry["write"]["total_ios"] for entry in json.loads(done.stdout)["jobs"]]
    check(counts == [16] * ranks, f"fio: {counts} writes of the jobs")
    sizes = [path.stat().st_size for path in own.iterdir()]
    check(sizes == ([] if place else [65536] * ranks), f"fio: files of {sizes} bytes")


def interrupted(program, launcher, ranks, folder, env, stop, place):
    """Ends a run in its second phase: with `stop` by a signal to the launcher, otherwise by SIGKILL to the last rank."""
    heading(f"{ranks} ranks: " + ("SIGINT to the launcher" if stop else "SIGKILL to one rank"))
    target = None if place else Testfs(program, "--latency", "create=20ms")
    out = folder / ("stop.json" if stop else "kill.json")
    journal = out.with_name(out.name + ".journal")
    # Undisturbed, the run takes half an hour. With a rate, the journal has no line about the creation of directories.
    if place:
        slow, first = ["--dir", place, "--rate", "300", "--items", "10", "--iterations", "1000"], "File creation"
    else:
        slow, first = ["--dir", target.mountpoint, "--items", "100000", "--overfill"], "Tree creation"
    command = [*mpirun(launcher, ranks), program, "meta", *slow, "--files-only", "--out", out, "--quiet"]
    process = subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    measured = wait_until(lambda: b'{"phase"' in read(journal)
                          and (place or target.stats().get("create", {}).get("count", 0) > 100))
    check(measured, "the second phase has started")
    if stop:
        process.send_signal(signal.SIGINT)
    else:
        os.kill(ranks_of(out)[-1], signal.SIGKILL)
    try:
        process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        check(False, "the run does not end")
        process.kill()
    check(process.returncode != 0, "the exit code is not 0")
    shown = run([program, "show", out if out.exists() else journal])
    check(first in shown.stdout, "the phases measured before are in the result")
    check(wait_until(lambda: not ranks_of(out)), f"ranks left running: {ranks_of(out)}")
    if target:
        target.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 12])
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--hosts", type=int, default=1)
    args = parser.parse_args()
    program, first, last = args.program.resolve(), args.ranks[0], args.ranks[-1]
    with tempfile.TemporaryDirectory(prefix="check-smoke-") as name:
        folder = pathlib.Path(name)
        env = {**os.environ, "TMPDIR": name}
        for ranks in args.ranks:
            native(program, args.mpirun, ranks, folder, env, args.dir, args.hosts)
        other_tools(program, args.mpirun, first, folder, env, args.dir)
        interrupted(program, args.mpirun, first, folder, env, True, args.dir)
        interrupted(program, args.mpirun, last, folder, env, False, args.dir)
    finish()


main()
