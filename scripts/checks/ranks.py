"""MPI ranks on this machine: counts, quiet waiting, bad input, signals.

usage: ranks.py PROGRAM [--mpirun MPIRUN] [--ranks N]
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from common import (
    PATIENCE_S, Testfs, check, check_result, finish, heading, meta_items, mpirun, phases, result, run, wait_until,
)

# Of a core, for each rank that waits: some hundred polls a second take a fifth of that, and as many ranks that spin
# take all that there is of two CPUs, or most of it beside other programs.
QUIET = 0.06


def leftovers(folder):
    """What a run may have left: temporary directories and mounts."""
    mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("rbench-")), mounts


def built_in(program, launcher, ranks, folder, env):
    heading(f"{ranks} ranks on the built-in file system")
    out = folder / "meta.json"
    run([*mpirun(launcher, ranks), program, "meta", "--out", out, "--quiet"], env=env)
    document = result(out)
    check_result(document, meta_items(ranks), ranks)
    check(document["target"]["embedded"], "the result says that it is a demonstration")
    check(not out.with_name("meta.json.journal").exists(), "the journal is gone after the end")
    out = folder / "io.json"
    sizes = ["--bs", "64k", "--size", "4M", "--rw", "write,randread"]
    run([*mpirun(launcher, ranks), program, "io", *sizes, "--verify", "--out", out, "--quiet"], env=env)
    check_result(result(out), {"write": 64 * ranks, "write-fsync": ranks, "randread": 64 * ranks}, ranks)
    check(leftovers(folder) == ([], []), f"nothing is left: {leftovers(folder)}")


def bad_input(program, launcher, ranks, env):
    heading("bad input: one sentence from rank 0, the right exit code")
    cases = [
        (["meta", "--brunch", "3"], 2, "--brunch"),
        (["meta", "--shift", str(ranks)], 2, f"--shift {ranks}"),
        (["io", "--bs", "4M", "--size", "1M"], 2, "--size 1MiB"),
        (["meta", "--dir", "/nowhere/at/all"], 1, "/nowhere/at/all does not exist"),
        (["meta", "--dir", "/"], 1, "/ is the root directory"),
        (["meta", "--dir", "/proc"], 1, "/proc"),
        (["io", "--size", "900t"], 1, "--dir"),
    ]
    for arguments, code, words in cases:
        done = run([*mpirun(launcher, ranks), program, *arguments], expect=None, env=env, quiet=True)
        said = [line for line in done.stderr.splitlines() if words in line]
        check(done.returncode == code, f"{arguments}: exit code {done.returncode}, not {code}")
        check(len(said) == 1, f"{arguments}: said {len(said)} times: {done.stderr}")
        check(done.stdout == "", f"{arguments}: standard output stays empty")


def quiet_waiting(program, launcher, ranks, folder, env):
    heading("one rank works for 10 s while the others wait")
    target = Testfs(program, "--latency", "mkdir=9ms")
    out = folder / "quiet.json"
    tree = ["--layout", "shared", "--branch", "10", "--depth", "3", "--items", "1", "--phases", "tree-create"]
    run([*mpirun(launcher, ranks), program, "meta", "--dir", target.mountpoint, *tree, "--out", out, "--quiet"],
        env=env)
    phase = phases(result(out))["tree-create"]
    waiting = sum(rank["cpu_s"] for rank in phase["ranks"] if rank["rank"] != 0)
    cores = waiting / phase["elapsed_s"]
    print(f"   {ranks - 1} ranks waited {phase['elapsed_s']:.1f} s and used {waiting:.2f} s of CPU: {cores:.3f} cores")
    check(phase["elapsed_s"] > 9, "rank 0 worked for about 10 s")
    allowed = max(QUIET * (ranks - 1), 0.25)
    check(cores < allowed, f"the waiting ranks use {cores:.3f} cores, {allowed:.2f} are allowed")
    target.end()


def signals(program, launcher, ranks, folder, env):
    heading("a signal at the launcher: a partial result, nothing left")
    target = Testfs(program, "--latency", "create=20ms")
    out = folder / "signal.json"
    # The launcher gives its ranks a second before it kills them. By itself the run ends in half an hour.
    command = [*mpirun(launcher, ranks), program, "meta", "--dir", target.mountpoint, "--files-only", "--items",
               "100000", "--overfill", "--out", out, "--quiet"]
    journal = out.with_name("signal.json.journal")
    process = subprocess.Popen([str(w) for w in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    # The first phase is done, and the second one goes on.
    measured = wait_until(lambda: b'{"phase"' in read(journal) and target.stats().get("create", {}).get("count", 0) > 100)
    check(measured, "something was measured")
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        check(False, "the run does not end")
        process.kill()
    check(process.returncode != 0, "the exit code is not 0")
    kept = out if out.exists() else journal
    shown = run([program, "show", kept])
    check("Tree creation" in shown.stdout, "what was measured can be shown")
    # What was killed may be seen for a moment still.
    still = lambda: [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(out).encode() in read(p)]
    check(wait_until(lambda: not still(), 20), f"no rank is left: {still()}")
    target.end()


def unlike(launcher, words, *wraps):
    """The launcher's words for a rank each of the same command, wrapped so."""
    command = [launcher]
    for wrap in wraps:
        command += [*([":"] if command[1:] else []), "-np", "1", *wrap, *words]
    return command


def clocks(program, launcher, folder, env):
    heading("one name, two clocks an hour apart; two names, one clock and one cache")
    unshare = ["unshare"] if os.geteuid() == 0 else ["unshare", "-r"]
    ahead = [*unshare, "-T", "--monotonic", "3600"]
    target = folder / "target"
    target.mkdir()
    words = [program, "meta", "--dir", target, "--items", "200", "--shift", "1", "--quiet", "--out"]
    for name, wraps in (("ahead", [[], ahead]), ("behind", [ahead, []])):
        out = folder / f"{name}.json"
        # On the wrong clock a rank waits for an hour, or counts one.
        run(["timeout", "300", *unlike(launcher, [*words, out], *wraps)], env=env)
        document = result(out)
        check(len(document["world"]["hosts"]) == 1, f"{name}: one kernel and one name are one host")
        for phase in document["phases"]:
            check(phase["elapsed_s"] < 600, f"{name}: {phase['name']} took {phase['elapsed_s']:.3f} s")
            check(0 < phase["start_error_s"] < 600, f"{name}: the start is true to {phase['start_error_s']:.9f} s")
    out = folder / "containers.json"
    renamed = [*unshare, "-u", "sh", "-c", 'hostname other && exec "$@"', "sh"]
    report = run(unlike(launcher, [*words, out], [], renamed), env=env)
    document = result(out)
    hosts = document["world"]["hosts"]
    check([h["ranks"] for h in hosts] == [[0], [1]], f"two names are two hosts: {hosts}")
    check([h["clock"]["number"] for h in hosts] == [0, 0], f"one clock: {hosts}")
    check([(h["clock_offset_ns"], h["clock_error_ns"]) for h in hosts] == [(0, 0)] * 2, f"0 by definition: {hosts}")
    check([h["caches"] for h in hosts] == [[0], [0]], f"one cache: {hosts}")
    check("same clock, cache shared with" in report.stdout, "the head says so")
    check(phases(document)["file-stat"]["cache"] == "warm", "what the other container made is warm")
    check(phases(document)["file-stat"]["start_error_s"] == 0, "one clock starts all")


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def starts_without_mpi(program, folder, env):
    heading("without a launcher no MPI library is initialised")
    trace = folder / "trace"
    run(["strace", "-f", "-qq", "-e", "trace=socket,connect", "-o", trace, program, "io", "--engine", "null",
         "--size", "1M", "--quiet"], env=env)
    sockets = [line for line in trace.read_text().splitlines() if re.search(r"AF_INET|orte|pmix", line)]
    check(sockets == [], f"network sockets: {sockets[:3]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--ranks", type=int, default=12)
    args = parser.parse_args()
    program = args.program.resolve()
    with tempfile.TemporaryDirectory(prefix="check-ranks-") as name:
        folder = pathlib.Path(name)
        env = {**os.environ, "TMPDIR": name}
        built_in(program, args.mpirun, args.ranks, folder, env)
        bad_input(program, args.mpirun, args.ranks, env)
        quiet_waiting(program, args.mpirun, args.ranks, folder, env)
        signals(program, args.mpirun, args.ranks, folder, env)
        clocks(program, args.mpirun, folder, env)
        if args.mpirun == "mpirun":
            starts_without_mpi(program, folder, env)
    finish()


main()
