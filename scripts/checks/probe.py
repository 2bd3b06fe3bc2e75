"""rbench probe: each "no" is an error that the kernel returned (strace), abilities that a mount is known to have or lack,
nothing is left behind, and a file system that does not answer.

usage: probe.py PROGRAM          tmpfs, the built-in file system, a folder that is mounted read-only
       probe.py PROGRAM --bed    on three hosts with MooseFS (the bed is up: scripts/testbed up)
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from common import Testfs, check, finish, heading, run, valid, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"


def probe(program, place, *more, expect=0):
    done = run([program, "probe", place, "--format", "json", "--quiet", *more], expect=expect, quiet=True)
    left = [name for name in os.listdir(place) if name.startswith("rbench.")]
    check(left == [], f"{place}: {left} is left")
    return valid(json.loads(done.stdout), "the probe")


def verdicts(host):
    return {ability["name"]: ability["verdict"] for ability in host["abilities"]}


def traced(program, place, folder):
    """The same with strace beside it: the calls that failed, as (call, error)."""
    trace = folder / "trace"
    done = run(["strace", "-f", "-o", trace, "-Z", program, "probe", place, "--format", "json", "--quiet"], quiet=True)
    failed = set(re.findall(r"(\w+)\(.*?= -1 (E\w+)", trace.read_text(errors="replace")))
    # Names of one call for different processors, and of what the C library makes of others.
    alike = {"open": "openat", "unlink": "unlinkat", "rename": "renameat2", "symlink": "symlinkat", "link": "linkat",
             "mknod": "mknodat", "newfstatat": "stat", "mkdirat": "mkdir"}
    return json.loads(done.stdout)["hosts"][0], {(alike.get(call, call), errno) for call, errno in failed}


def confirmed(program, place, folder):
    host, failed = traced(program, place, folder)
    known = 0
    for ability in host["abilities"]:
        if ability["verdict"] == "no" and ability["errno"]:
            pair = (ability["call"], ability["errno"])
            check(pair in failed, f"{place}: {ability['name']}: {pair} is not in the trace: {sorted(failed)}")
            known += 1
    check(all(ability["verdict"] != "unknown" for ability in host["abilities"]), f"{place}: {verdicts(host)}")
    lacks = [f"{a['name']} ({a['call']}: {a['errno'] or a['detail']})" for a in host["abilities"] if a["verdict"] == "no"]
    print(f"   {host['surroundings']['mount']['fs_type']}: {len(host['abilities'])} abilities, lacks {', '.join(lacks) or 'none'}; "
          f"{known} errors in the trace")
    return host


def local(program, folder):
    heading("what strace says: tmpfs, the built-in file system")
    memory = pathlib.Path(tempfile.mkdtemp(prefix="check-probe-", dir="/dev/shm"))
    try:
        found = verdicts(confirmed(program, memory, folder))
        check(found["zero-range"] == "no", "tmpfs has no FALLOC_FL_ZERO_RANGE")
        check(found["rename-exchange"] == found["flock"] == found["mmap-shared"] == "yes", f"tmpfs: {found}")
    finally:
        memory.rmdir()
    testfs = Testfs(program)
    own = confirmed(program, testfs.mountpoint, folder)
    check(own["surroundings"]["mount"]["fs_type"].startswith("fuse"), "the built-in file system is FUSE")
    check(own["round_trip_ns"] > 0, "a round trip")

    testfs.end()


def silent(program):
    heading("a file system that does not answer")
    testfs = Testfs(program, "--fault", "fallocate:hang@nth=1")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        words = [program, "probe", testfs.mountpoint, "--format", "json", "--quiet"]
        process = subprocess.Popen([str(word) for word in words], stdout=out, stderr=err)
        # The kernel lets a process end only when the file system has answered.
        check(wait_until(lambda: os.fstat(out.fileno()).st_size > 0), "the report is there although a call hangs")
        testfs.process.send_signal(signal.SIGUSR2)
        check(process.wait(timeout=60) == 1, f"exit code {process.returncode}")
        out.seek(0)
        err.seek(0)
        host, told = json.load(out)["hosts"][0], err.read()
    check(host["silent_at"] == "fallocate", f"silent at {host['silent_at']}")
    names = [ability["name"] for ability in host["abilities"]]
    check(names[-1] == "fsync", f"what came before is there: {names}")
    check("is left behind" in told, f"what is left is told: {told}")
    run([program, "clean", testfs.mountpoint], quiet=True)

    with tempfile.TemporaryFile("w+") as err:
        begun = time.monotonic()
        testfs.process.send_signal(signal.SIGSTOP)
        try:
            words = [program, "probe", testfs.mountpoint / "x", "--quiet"]
            process = subprocess.Popen([str(word) for word in words], stderr=err)
            check(wait_until(lambda: os.fstat(err.fileno()).st_size > 0), "a frozen file system is told")
            took = time.monotonic() - begun
        finally:
            testfs.process.send_signal(signal.SIGCONT)
        check(process.wait(timeout=60) == 1, f"exit code {process.returncode}")
        err.seek(0)
        told = err.read()
    check("did not answer within 20 s" in told, told)
    check(19 < took < 60, f"told after {took:.1f} s")
    print(f"   hangs in fallocate: named, exit code 1; frozen: told after {took:.1f} s")
    testfs.end()


def refusals(program, folder):
    heading("refusals")
    plain = folder / "plain"
    plain.write_text("mine")
    for place, word in ((folder / "missing", "does not exist"), (plain, "not a directory"), ("/proc", "")):
        done = run([program, "probe", place, "--quiet"], expect=1, quiet=True)
        check(done.stderr.count("\n") == 1 and word in done.stderr, f"{place}: {done.stderr}")
    check(plain.read_text() == "mine", "a file is as it was")


def bed(program):
    heading("three hosts with MooseFS")
    words = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE {program} probe $RBENCH_BED_MOUNT --quiet"
    found = json.loads(run([BED, "run", "sh", "-c", f"{words} --format json"], quiet=True).stdout)
    check(len(found["hosts"]) == 3 and found["shared"], f"hosts {[host['host'] for host in found['hosts']]}")
    pairs = {(sight["maker"], sight["looker"]) for sight in found["sights"]}
    check(len(pairs) == 6, f"pairs {pairs}")
    for sight in found["sights"]:
        check(sight["seen_after_ns"] is not None and sight["whole"], f"{sight}")
    print(run([BED, "run", "sh", "-c", words], quiet=True).stdout)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if "--bed" in sys.argv[2:]:
        bed(program)
    else:
        with tempfile.TemporaryDirectory(prefix="check-probe-") as name:
            folder = pathlib.Path(name)
            local(program, folder)
            silent(program)
            refusals(program, folder)
    finish()


if __name__ == "__main__":
    main()
