"""Checks the cost of the file system's client: CPU time per operation against the server's own getrusage, for clients
found by the mount, by number and by name. Also clients that end during a phase, and names and numbers without a
process.

usage: client.py PROGRAM [--mpirun MPIRUN]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from common import Testfs, check, finish, heading, mpirun, phases, regular, result, run, wait_until

# Minimum CPU time of the phase: a hundred times the ticks in which the kernel separates user and system time.
LEAST_CPU_S = 2.0
WITHIN = 0.05


def used(files):
    """Returns the CPU seconds that the server has used, by its own getrusage."""
    files.stats()
    process = json.loads(files.stats_file.read_text())["process"]
    return process["user_s"] + process["system_s"]


def peak_of(files):
    """Returns the server's peak memory in bytes. Its getrusage also counts the process before it became the server:
    this Python."""
    lines = pathlib.Path(f"/proc/{files.process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def measured(program, before, files, folder, name, options, ranks=1):
    """Runs a long phase of direct reads, and compares the result with the server's own figures."""
    heading(f"CPU time of an operation: {name}")
    out = folder / f"{name}.json"
    command = [*before, program, "io", "--dir", files.mountpoint, "--rw", "randread", "--size", "64k", "--bs", "4k"]
    command += ["--no-round-trip", "--progress", "off", "--out", out, "--overwrite", *options]
    # On a busy machine the server gets less processor time.
    for time_s in (12, 24, 48):
        begun = used(files)
        text = run([*command, "--time", time_s]).stdout
        own, peak = used(files) - begun, peak_of(files)
        if own >= LEAST_CPU_S:
            break
    (phase,) = regular(result(out))
    cost = phase["client"]
    (host,) = cost["hosts"]
    check(phase["items"] > 1000 and phase["errors"] == {}, f"{name}: {phase['items']} operations, {phase['errors']}")
    check(cost["operations"] == phase["items"], f"{name}: {cost['operations']} operations")
    check(own >= LEAST_CPU_S, f"{name}: only {own} s of CPU time: this shows nothing")
    check(abs(cost["cpu_s"] - own) <= WITHIN * own, f"{name}: {cost['cpu_s']} s, and the server says {own} s")
    each = 1e6 * own / phase["items"]
    told = cost["cpu_us_per_operation"]
    check(abs(told - each) <= WITHIN * each, f"{name}: {told} us an operation, and by the server {each} us")
    check(host["cpu_s"] == cost["cpu_s"] and "unknown" not in host, f"{name}: {host}")
    parts = host["user_s"] + host["system_s"]
    check(abs(parts - host["cpu_s"]) <= 0.01 * own + 0.03, f"{name}: user and system are {parts} s of {host['cpu_s']}")
    check(host["processes"] == 1, f"{name}: {host['processes']} processes")
    told_peak = host["peak_resident_bytes"]
    check(0.9 * peak <= told_peak <= peak, f"{name}: at most {told_peak} bytes, and the kernel says {peak}")
    check(0 < host["resident_bytes"] <= told_peak, f"{name}: {host['resident_bytes']} bytes are resident")
    check(sum(rank["items"] for rank in phase["ranks"]) == phase["items"] and len(phase["ranks"]) == ranks, name)
    check("\nCLIENT " in text and "Random read" in text, f"{name}: the report has it:\n{text}")
    print(f"   {told:.3f} us an operation over {phase['items']} operations, by the server {each:.3f} us", flush=True)


def ended(program, folder):
    """A process with the name ends in the middle of a phase: the result has a note and no number."""
    heading("a client that ends while a phase runs")
    name = f"rbwatch{os.getpid() % 100000}"
    sleep = folder / name
    shutil.copy(shutil.which("sleep"), sleep)
    watched = [subprocess.Popen([sleep, "300"]) for _ in range(2)]
    out = folder / "ended.json"
    command = [program, "meta", "--dir", folder, "--phases", "file-stat", "--items", "20", "--depth", "0", "--time", "8"]
    command += ["--watch", name, "--no-round-trip", "--iterations", "2", "--out", out]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    journal = pathlib.Path(f"{out}.journal")
    stats = lambda: journal.exists() and [line for line in journal.read_text().splitlines() if '"number":1' in line]
    check(wait_until(lambda: stats() or process.poll() is not None), "the phase runs")
    watched[0].kill()
    watched[0].wait()
    text, _ = process.communicate(timeout=120)
    check(process.returncode == 0, f"exit code {process.returncode}")
    rows = [phase for phase in result(out)["phases"] if phase["name"] == "file-stat"]
    (before,), (after,) = (row["client"]["hosts"] for row in rows)
    check(before.get("unknown") == "replaced" and "cpu_s" not in before, f"it ended meanwhile: {before}")
    check(rows[0]["client"]["cpu_s"] is None and rows[0]["client"]["cpu_us_per_operation"] is None, "no number")
    check("ended or replaced during the phase" in text, f"the report says so:\n{text}")
    check("unknown" not in after and after["processes"] == 1, f"the next phase has the one that is left: {after}")
    watched[1].kill()
    watched[1].wait()


def summed(program, folder):
    """Processes with the same name are summed up; /proc has their own figures."""
    heading("several processes of a name")
    name = f"rbspin{os.getpid() % 100000}"
    shell = folder / name
    shutil.copy(os.path.realpath(shutil.which("bash")), shell)
    watched = [subprocess.Popen([shell, "-c", "while :; do :; done"]) for _ in range(2)]
    out = folder / "summed.json"
    command = [program, "meta", "--dir", folder, "--phases", "file-stat", "--items", "20", "--depth", "0", "--time", "4"]
    run([*command, "--watch", name, "--no-round-trip", "--out", out])
    row = phases(result(out))["file-stat"]
    (host,) = row["client"]["hosts"]
    check(host["processes"] == 2, f"{host['processes']} processes")
    ticks = os.sysconf("SC_CLK_TCK")
    fields = lambda process: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    most = sum((int(fields(process)[11]) + int(fields(process)[12])) / ticks for process in watched)
    check(0.2 < host["cpu_s"] <= most + 0.02, f"{host['cpu_s']} s, and since their start they have used {most} s")
    for process in watched:
        process.kill()
        process.wait()


def refused(program, folder):
    """Missing processes are refused, and nothing is changed."""
    heading("what is not there")
    empty = folder / "empty"
    empty.mkdir()
    for value, words in (
        ("no-such-client", "no process with the name 'no-such-client' on "),
        ("4194304", "no process 4194304 on "),
        ("/usr/bin/mfsmount", "a name without '/'"),
    ):
        out = empty / "r.json"
        told = run([program, "meta", "--dir", empty, "--watch", value, "--out", out], expect=2).stderr
        check(words in told and "--watch" in told, f"{value}: {told}")
        check(list(empty.iterdir()) == [], f"{value}: {list(empty.iterdir())}")
    out = folder / "plain.json"
    text = run([program, "meta", "--dir", folder, "--items", "10", "--depth", "0", "--out", out, "--no-round-trip"]).stdout
    check(all("client" not in phase for phase in result(out)["phases"]), "no client of a plain directory")
    check("\nCLIENT " not in text, f"nothing is told of it:\n{text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun")
    given = parser.parse_args()
    program = given.program.resolve()
    with tempfile.TemporaryDirectory(prefix="rbench-client-") as folder:
        folder = pathlib.Path(folder)
        # A unique name. The ranks have it too, but are not clients.
        named = folder / f"rbcheck{os.getpid() % 100000}"
        named.symlink_to(program)
        files = Testfs(named, "--direct-io", "--threads", "4")
        measured(program, [], files, folder, "found by the mount", [])
        measured(program, [], files, folder, "by number", ["--watch", files.process.pid, "--threads", "2"])
        if given.mpirun:
            before = mpirun(given.mpirun, 4)
            measured(named, before, files, folder, "by name, four ranks", ["--watch", named.name], ranks=4)
        files.end()
        ended(program, folder)
        summed(program, folder)
        refused(program, folder)
    finish()


if __name__ == "__main__":
    main()
