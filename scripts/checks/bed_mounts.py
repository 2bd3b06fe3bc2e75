"""Checks on three hosts with MooseFS (the bed is up: scripts/testbed up): `rbench probe`, a run that needs operations
that MooseFS lacks, and ranks on a network that transports nothing. crates/rbench/tests/program/mounts has the tests
on one host.

usage: bed_mounts.py PROGRAM
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

from common import PATIENCE_S, check, finish, heading, in_session, run, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"


def probe(program):
    heading("what hosts see of each other")
    words = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE {program} probe $RBENCH_BED_MOUNT --quiet"
    found = json.loads(run([BED, "run", "sh", "-c", f"{words} --format json"], quiet=True).stdout)
    check(len(found["hosts"]) == 3 and found["shared"], f"hosts {[host['host'] for host in found['hosts']]}")
    pairs = {(sight["maker"], sight["looker"]) for sight in found["sights"]}
    check(len(pairs) == 6, f"pairs {pairs}")
    for sight in found["sights"]:
        check(sight["seen_after_ns"] is not None and sight["whole"], f"{sight}")
    print(run([BED, "run", "sh", "-c", words], quiet=True).stdout)


def needs(program):
    heading("what a run needs: MooseFS punches no holes")
    words = f"{program} fio --name=job --size=1m --bs=4k --directory=$RBENCH_BED_MOUNT --rw=trimwrite"
    launch = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE {words}"
    done = run([BED, "run", "sh", "-c", launch], expect=2, quiet=True)
    wanted = "punching holes (job job): fuse (mfs#10.77.0.1:9421) refuses it (fallocate: EOPNOTSUPP) on client1, client2, client3"
    check(f"rbench: {wanted}\n" in done.stderr, f"{done.stderr}")
    left = run([BED, "run", "sh", "-c", "ls -A $RBENCH_BED_MOUNT"], quiet=True).stdout
    check(".needs-" not in left and "job" not in left, f"left: {left}")
    print(f"   {wanted}", flush=True)


def launched(words):
    """Returns exit code, seconds and standard error, after checking that no process is left."""
    begun = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        text = process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        check(False, f"not at its end after {PATIENCE_S} s: {process.communicate()[0]}")
        return None, PATIENCE_S, ""
    seconds = time.monotonic() - begun
    check(wait_until(lambda: not in_session(process.pid), 20), f"processes are left: {in_session(process.pid)}")
    return process.returncode, seconds, text


def start(program):
    heading("a network that MPI takes and that carries nothing")
    hosts = ("client1", "client2", "client3")

    def on(host, *words):
        return subprocess.run([BED, "run", "--on", host, *words], capture_output=True, text=True, check=False)

    for number, host in enumerate(hosts, 1):
        # The other end is not connected.
        made = [on(host, "ip", "link", "add", "rbench-nowhere", "type", "veth", "peer", "name", "rbench-no-end"),
                on(host, "ip", "link", "set", "rbench-no-end", "up"),
                on(host, "ip", "addr", "add", f"10.254.77.{number}/24", "dev", "rbench-nowhere"),
                on(host, "ip", "link", "set", "rbench-nowhere", "up")]
        check(all(done.returncode == 0 for done in made), f"{host}: {[done.stderr for done in made]}")
    try:
        launch = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE --mca btl_tcp_if_include 10.254.77.0/24 {program} meta"
        code, seconds, text = launched([BED, "run", "sh", "-c", f"{launch} --items 10 --start-timeout 25s"])
        check(code not in (0, None), f"exit code {code}")
        check(20 <= seconds < 80, f"after {seconds:.1f} s")
        for sentence in (r"rank 0 has not heard from 8 of 12 ranks: 4-11; it has heard from client1 \(ranks 0-3\)",
                         r"rank 4 on host client2 has received no message from ranks? 0", "btl_tcp_if_include"):
            check(re.search(sentence, text), f"no '{sentence}' in: {text}")
    finally:
        for host in hosts:
            on(host, "ip", "link", "del", "rbench-nowhere")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    probe(program)
    needs(program)
    start(program)
    finish()


if __name__ == "__main__":
    main()
