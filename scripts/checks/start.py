"""Ranks that do not come together at the start: it is said who is missing, and everybody ends.

usage: start.py PROGRAM          on this machine: a rank that never reaches MPI, one that is stuck after it, another program
       start.py PROGRAM --bed    on three hosts: a network that MPI takes and that carries nothing (the bed is up:
                                 scripts/testbed up)
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from common import PATIENCE_S, check, finish, heading, in_session, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
# What stands between MPI's start and the first message: the last rank stays there.
STUCK = """
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int result = PMPI_Init_thread(argc, argv, required, provided), rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) sleep(600);
    return result;
}
"""


def launched(words, env=None, patience_s=PATIENCE_S):
    """Exit code, seconds and what stood on standard error; nothing of it is left."""
    begun = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], env={**os.environ, **(env or {})}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        text = process.communicate(timeout=patience_s)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        check(False, f"not at its end after {patience_s} s: {process.communicate()[0]}")
        return None, patience_s, ""
    seconds = time.monotonic() - begun
    ours = wait_until(lambda: not in_session(process.pid), 20)
    check(ours, f"processes are left: {in_session(process.pid)}")
    return process.returncode, seconds, text


def expect(what, outcome, least_s, *sentences):
    code, seconds, text = outcome
    check(code not in (0, None), f"{what}: exit code {code}")
    check(least_s <= seconds < least_s + 60, f"{what}: after {seconds:.1f} s")
    for sentence in sentences:
        check(re.search(sentence, text), f"{what}: no '{sentence}' in: {text}")
    told = [line for line in text.splitlines() if line.startswith("rbench:")]
    print(f"   {what}: exit code {code} after {seconds:.1f} s\n      " + "\n      ".join(told), flush=True)


def local(program, folder):
    heading("a rank that is never started: MPI itself waits")
    script = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec sleep 60; fi; exec "$0" "$@"'
    words = ["mpirun", "-np", 2, "sh", "-c", script, program, "meta", "--items", 10]
    expect("never started", launched([*words, "--start-timeout", "3s"]), 3,
           r"rbench: the ranks have not come together within 3 s \(--start-timeout\): MPI_Init on host \S+ still waits")

    heading("a rank that does not get beyond the start of MPI")
    (folder / "stuck.c").write_text(STUCK)
    library = folder / "stuck.so"
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, folder / "stuck.c"], check=True)
    missing = r"rank 0 has not heard of 1 of 4 ranks: 3; it has heard of \S+ \(ranks 0-2\)"

    def stuck(timeout_s, command, *more):
        """Rank 3 is, and has more time than the others: it is rank 0's to say who is missing, whoever started first."""
        words = ["-x", f"LD_PRELOAD={library}", program, command]
        return launched(["mpirun", "-np", 3, *words, f"--start-timeout={timeout_s}s", *more,
                         ":", "-np", 1, *words, "--start-timeout=90s", *more])

    # MPI itself may take some seconds on a busy machine.
    for command, *more in (["meta", "--items", 10], ["mdtest", "-d", folder, "-n", 10],
                           ["fio", "--name=a", "--size=1m", "--ioengine=null"], ["sweep", "--over", "n=1,2", "--", "meta"],
                           ["probe", folder]):
        expect(command, stuck(10, command, *more), 10, missing, "btl_tcp_if_include")
    expect("told on the way", stuck(23, "meta"), 23,
           rf"rbench: 20 s after the start {missing}; everybody ends after 23 s", rf"within 23 s .*{missing}")

    heading("another program on one rank")
    other = folder / "other" / "rbench"
    other.parent.mkdir()
    image = program.read_bytes()
    check(b" (commit " in image, "the program says its commit")
    other.write_bytes(image.replace(b" (commit ", b" (COMMIT "))
    other.chmod(0o755)
    code, seconds, text = launched(["mpirun", "-np", 2, program, "meta", ":", "-np", 1, other, "meta"])
    check(code not in (0, None) and seconds < 60, f"another program: exit code {code} after {seconds:.1f} s")
    found = re.search(r"rbench: rank 2 on host \S+ runs rbench \S+ \(COMMIT .*\), and rank 0 runs rbench \S+ \(commit", text)
    check(found, f"another program: {text}")
    print(f"   {found and found[0]} …", flush=True)


def on_bed(program):
    heading("a network that MPI takes and that carries nothing")
    hosts = ("client1", "client2", "client3")

    def on(host, *words):
        return subprocess.run([BED, "run", "--on", host, *words], capture_output=True, text=True, check=False)

    for number, host in enumerate(hosts, 1):
        # The other end belongs to nobody.
        made = [on(host, "ip", "link", "add", "rbench-nowhere", "type", "veth", "peer", "name", "rbench-no-end"),
                on(host, "ip", "link", "set", "rbench-no-end", "up"),
                on(host, "ip", "addr", "add", f"10.254.77.{number}/24", "dev", "rbench-nowhere"),
                on(host, "ip", "link", "set", "rbench-nowhere", "up")]
        check(all(done.returncode == 0 for done in made), f"{host}: {[done.stderr for done in made]}")
    try:
        launch = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE --mca btl_tcp_if_include 10.254.77.0/24 {program} meta"
        outcome = launched([BED, "run", "sh", "-c", f"{launch} --items 10 --start-timeout 25s"])
        expect("nowhere", outcome, 20, r"rank 0 has not heard of 8 of 12 ranks: 4-11; it has heard of client1 \(ranks 0-3\)",
               r"rank 4 on host client2 has no message from ranks? 0", "btl_tcp_if_include")
    finally:
        for host in hosts:
            on(host, "ip", "link", "del", "rbench-nowhere")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if "--bed" in sys.argv[2:]:
        on_bed(program)
    else:
        with tempfile.TemporaryDirectory(prefix="check-start-") as folder:
            local(program, pathlib.Path(folder))
    finish()


main()
