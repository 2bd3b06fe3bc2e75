"""Checks MPI ranks on this machine: quiet waiting, bad input, clocks. smoke.py checks counts and signals.

usage: ranks.py PROGRAM [--mpirun MPIRUN] [--ranks N]
"""

import argparse
import os
import pathlib
import re
import tempfile

from common import Testfs, check, finish, heading, mpirun, phases, result, run

# Maximum share of a core per waiting rank. Some hundred polls per second take a fifth of that. Busy-waiting ranks use
# two CPUs completely, or mostly if other programs run.
QUIET = 0.06


def bad_input(program, launcher, ranks, env):
    heading("bad input: one sentence from rank 0, the right exit code")
    cases = [
        (["meta", "--brunch", "3"], 2, "--brunch"),
        (["meta", "--shift", str(ranks)], 2, f"--shift {ranks}"),
        (["io", "--bs", "4M", "--size", "1M"], 2, "--size 1MiB"),
        (["meta", "--dir", "/nowhere/at/all"], 2, "/nowhere/at/all does not exist"),
        (["meta", "--dir", "/"], 2, "/ is the root directory"),
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


def unlike(launcher, words, *wraps):
    """Returns the launcher's words for one rank per wrapper, all with the same command."""
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
        # With the wrong clock a rank waits for an hour, or counts one.
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
    check(phases(document)["file-stat"]["cache"] is None, "whether what the other container made is in memory is unknown")
    check(phases(document)["file-stat"]["start_error_s"] == 0, "one clock starts all")


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
        bad_input(program, args.mpirun, args.ranks, env)
        quiet_waiting(program, args.mpirun, args.ranks, folder, env)
        clocks(program, args.mpirun, folder, env)
        if args.mpirun == "mpirun":
            starts_without_mpi(program, folder, env)
    finish()


main()
