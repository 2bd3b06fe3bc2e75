"""Checks mounts that die in the middle of a run: killed, aborted, on one of two hosts; frozen mounts; and similar
cases.

usage: dead.py PROGRAM [--mpirun MPIRUN]     on this machine, on the built-in file system
       dead.py PROGRAM --bed                 on three hosts with MooseFS: the client of client3 is frozen, then killed and
                                             mounted again (the bed is up: scripts/testbed up)
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from common import PATIENCE_S, Testfs, check, finish, heading, phases, result, run, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
# Errors of operations on a mount without a server.
LOST = {"ENOTCONN", "ECONNABORTED"}
# After an unmount, paths lead to the empty directory below.
ABSENT = "ENOENT"
# The phases are longer than the check takes: only the mount ends them.
TIME = "60s"


class Job:
    """A run in the background, with its messages and their times."""

    def __init__(self, words, out):
        self.journal = pathlib.Path(f"{out}.journal")
        self.out, self.said = out, out.with_suffix(".err")
        print("$ " + " ".join(str(word) for word in words)[:300], flush=True)
        with self.said.open("w") as said, out.with_suffix(".txt").open("w") as shown:
            self.process = subprocess.Popen([str(word) for word in words], stdout=shown, stderr=said,
                                            env={**os.environ, **ROOT}, start_new_session=True)

    def report(self):
        return self.out.with_suffix(".txt").read_text()

    def intervals(self):
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return sum(line.startswith('{"interval"') for line in lines)

    def measures(self, least=5):
        """Waits until some intervals of the first phase are over."""
        wait_until(lambda: self.intervals() >= least or self.process.poll() is not None)
        check(self.process.poll() is None, f"it ended before it was disturbed: {self.said.read_text()}")
        self.disturbed = time.monotonic()

    def says(self, pattern, patience_s=PATIENCE_S):
        """Returns the seconds from the disturbance until standard error contains the pattern."""
        found = wait_until(lambda: re.search(pattern, self.said.read_text()) or self.process.poll() is not None, patience_s)
        text = re.search(pattern, self.said.read_text())
        check(found and text, f"no '{pattern}' in: {self.said.read_text()}")
        print(f"   said after {time.monotonic() - self.disturbed:.1f} s: {text and text[0]}", flush=True)

    def ends(self, expect=1):
        try:
            code = self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            code = f"none after {PATIENCE_S} s"
        print(f"   ended after {time.monotonic() - self.disturbed:.1f} s with {code}", flush=True)
        codes = expect if isinstance(expect, tuple) else (expect,)
        check(code in codes, f"exit code {code}, not {expect}: {self.said.read_text()}")
        return result(self.out)


def abort(files):
    """Aborts a connection whose server hangs, like an administrator."""
    connection = os.minor(os.stat(files.mountpoint).st_dev)
    # Like /sys/fs/fuse/connections, which not every machine has mounted.
    with tempfile.TemporaryDirectory(prefix="check-fusectl-") as control:
        subprocess.run(["mount", "-t", "fusectl", "fusectl", control], check=True)
        try:
            (pathlib.Path(control) / str(connection) / "abort").write_text("1")
        finally:
            subprocess.run(["umount", control], check=True)


def kill(files):
    files.process.kill()


def unmount(files):
    """Unmounts like an administrator who does not know of the run."""
    subprocess.run(["umount", "-l", files.mountpoint], check=True)


def one_finding(document, label, mount, host=None):
    """Compares the single dead mount of a run with its rows."""
    dead = document.get("dead_mounts", [])
    check(len(dead) == 1, f"{label}: one finding: {dead}")
    if len(dead) != 1:
        return None
    (dead,) = dead
    check(dead["mount"] == str(mount), f"{label}: {dead['mount']} is not {mount}")
    check(host in (None, dead["host"]), f"{label}: on {dead['host']}, not {host}")
    check(dead["answer"] in (*LOST, "unmounted"), f"{label}: it answered {dead['answer']}")
    lost = {*LOST, *([ABSENT] if dead["answer"] == "unmounted" else [])}
    check(dead["error"] in lost, f"{label}: first seen by {dead['error']}")
    rows = {(row["iteration"], row["name"]): row for row in document["phases"]}
    failed = 0
    for row in dead["rows"]:
        phase = rows[(row["iteration"], row["name"])]
        failed += sum(row["errors"].values())
        there = {kind: phase["errors"].get(kind, 0) for kind in row["errors"]}
        check(all(there[kind] >= count for kind, count in row["errors"].items()), f"{label}: {row} is among {phase['errors']}")
    check(dead["failed"] == failed > 0, f"{label}: {dead['failed']} failed operations, and the rows have {failed}")
    codes = [warning["code"] for warning in document["warnings"]]
    check(codes.count("dead-mount") == 1, f"{label}: one warning: {codes}")
    check("errors" not in codes, f"{label}: and no other for what failed there: {document['warnings']}")
    return dead


def disturbed(program, folder, name, words, harm):
    heading(f"{name}: {harm.__name__}")
    # Phases take longer than the work between them.
    files = Testfs(program, "--latency", "create=500us,mknod=500us,write=500us")
    out = folder / f"{name}-{harm.__name__}.json"
    try:
        job = Job([program, *[str(word).replace("MOUNT", str(files.mountpoint)) for word in words], "--out", out], out)
        # mdtest's first interval belongs to the tree.
        job.measures({"fio": 1, "mdtest": 2, "ior": 1}.get(name, 5))
        harm(files)
        job.says(rf"the mount {files.mountpoint} on \S+ no longer answers \((ENOTCONN|ECONNABORTED|unmounted)\), [\d.]+ s into "
                 r"[^:]*: \S+ \S+: (ENOTCONN|ECONNABORTED|ENOENT); the run ends \(--on-dead-mount stop\)")
        document = job.ends()
        dead = one_finding(document, name, files.mountpoint)
        check(not document["complete"], f"{name}: it is not complete")
        check(sum(phase["items"] for phase in document["phases"]) > 0, f"{name}: what was done is reported")
        if dead:
            print(f"   {dead['failed']} operations in {[row['label'] for row in dead['rows']]}, {dead['after_s']:.2f} s into "
                  f"{dead['phase']}", flush=True)
        said = job.said.read_text()
        check(said.count("no longer answers (") == 1, f"{name}: said once: {said}")
        return document
    finally:
        files.bury()


def alone(program, folder):
    fast = ["--interval", "100ms", "--no-round-trip"]
    meta = ["meta", "--dir", "MOUNT", "--phases", "file-create,file-stat", "--time", TIME, "--threads", 2, *fast]
    disturbed(program, folder, "meta", meta, kill)
    io = ["io", "--dir", "MOUNT", "--rw", "randwrite,randread", "--size", "4M", "--time", TIME, "--threads", 2, *fast]
    document = disturbed(program, folder, "io", io, abort)
    check("randread" not in phases(document), "io: the next phase is not begun")
    fio = ["fio", "--name=first", "--directory=MOUNT", "--rw=randwrite", "--size=4M", "--time_based", f"--runtime={TIME}",
           "--numjobs=2", "--stonewall", "--name=second", "--directory=MOUNT", "--rw=read", "--size=1M", "--stonewall",
           "--rbench-no-round-trip"]
    document = disturbed(program, folder, "fio", fio, kill)
    check(not any(name.startswith("second") for name in phases(document)), "fio: the next group is not begun")
    mdtest = ["mdtest", "-d", "MOUNT/out", "-n", 20000, "-i", 9, "-F", "-C", "-r", "--no-round-trip"]
    disturbed(program, folder, "mdtest", mdtest, abort)
    # Its operations by absolute path then fail because the path is missing.
    disturbed(program, folder, "mdtest", mdtest, unmount)
    ior = ["ior", "-o", "MOUNT/file", "-w", "-b", "64m", "-t", "4k", "-i", 9, "--no-round-trip"]
    disturbed(program, folder, "ior", ior, kill)


def goes_on(program, folder):
    heading("--on-dead-mount continue: as many phases as were asked for")
    files = Testfs(program)
    out = folder / "continue.json"
    try:
        job = Job([program, "io", "--dir", files.mountpoint, "--rw", "randwrite,write", "--size", "4M", "--time", "5s",
                   "--interval", "100ms", "--on-dead-mount", "continue", "--max-errors", 10**12, "--out", out], out)
        job.measures()
        kill(files)
        job.says(r"no longer answers .*; the run continues \(--on-dead-mount continue\)")
        document = job.ends()
        took = {phase["name"]: phase["elapsed_s"] for phase in document["phases"]}
        dead = one_finding(document, "continue", files.mountpoint)
        check(took["randwrite"] > 4, f"the phase goes on to its time: {took}")
        # No file of the second phase can be opened, and that ends the run.
        check(dead and dead["failed"] > 1, f"all that failed is counted: {dead}")
    finally:
        files.bury()


def played(launcher, program, words, mounts, common):
    """Returns the launcher's words for two hosts, each with its mount at the same path."""
    command = [launcher]
    for number, files in enumerate(mounts):
        script = f'hostname host{number} && mount --bind {files.mountpoint} {common} && exec "$@"'
        command += [*([":"] if number else []), "-np", 2, "unshare", "-u", "-m", "sh", "-c", script, "sh", program, *words]
    return command


def one_of_two(program, launcher, folder, victim):
    heading(f"two hosts on one file system: that of host{victim} is killed")
    backing, common, out = folder / f"backing{victim}", folder / "common", folder / f"two{victim}.json"
    backing.mkdir()
    common.mkdir(exist_ok=True)
    mounts = [Testfs(program, "--passthrough", backing) for _ in range(2)]
    try:
        words = ["io", "--dir", common, "--rw", "randwrite,randread", "--size", "4M", "--time", "12s", "--interval", "100ms",
                 "--no-round-trip", "--out", out]
        job = Job(played(launcher, program, words, mounts, common), out)
        job.measures(20)
        kill(mounts[victim])
        job.says(rf"the mount \S+ on host{victim} no longer answers .*; the run ends when the other hosts finish the phase")
        document = job.ends()
        dead = one_finding(document, "two hosts", common, f"host{victim}")
        row = phases(document)["randwrite"]
        hosts = {host["host"]: host for host in row["hosts"]}
        well, ill = hosts[f"host{1 - victim}"], hosts[f"host{victim}"]
        check(well["errors"] == 0 and well["elapsed_s"] > 11, f"the other host did the phase: {well['elapsed_s']} s")
        check(ill["items"] > 0 and ill["errors"] > 0 and ill["elapsed_s"] < 11, f"it stopped: {ill['elapsed_s']} s")
        errors = [host["errors"] for phase in document["phases"] for host in phase["hosts"] if host["host"] == f"host{victim}"]
        check(dead and dead["failed"] == sum(errors), f"{dead and dead['failed']} failed, and its rows have {errors}")
        check("randread" not in phases(document), "the next phase is not begun")
        codes = {warning["code"] for warning in document["warnings"]}
        check(not codes & {"uneven-hosts", "straggler", "first-failed"}, f"what follows from it is not told again: {codes}")
        left = [path for path in backing.iterdir()]
        check(bool(left) == (victim == 0), f"removed unless rank 0 cannot: {left}")
        check(("left-behind" in codes) == (victim == 0), f"what is left is told: {codes}")
        print(f"   host{victim}: {ill['items']} operations done, {ill['errors']} failed; host{1 - victim}: {well['items']} done in "
              f"{well['elapsed_s']:.1f} s", flush=True)
    finally:
        for files in mounts:
            files.bury()


def frozen(program, folder):
    heading("a server that stands still for some seconds: a stall, and nobody is dead")
    fast = ["--interval", "100ms", "--no-round-trip"]
    for name, words in {
        "meta": ["meta", "--dir", "MOUNT", "--phases", "file-create", "--time", "6s", *fast],
        "io": ["io", "--dir", "MOUNT", "--rw", "randwrite", "--direct", "--size", "4M", "--time", "6s", *fast],
        "fio": ["fio", "--name=j", "--directory=MOUNT", "--rw=randwrite", "--direct=1", "--size=4M", "--time_based",
                "--runtime=6s", "--rbench-no-round-trip"],
        "mdtest": ["mdtest", "-d", "MOUNT/out", "-n", 12000, "-F", "-C", "-r", "--no-round-trip"],
    }.items():
        files = Testfs(program, "--latency", "create=500us,mknod=500us")
        out = folder / f"frozen-{name}.json"
        job = Job([program, *[str(word).replace("MOUNT", str(files.mountpoint)) for word in words], "--out", out], out)
        job.measures({"fio": 1, "mdtest": 2}.get(name, 5))
        files.process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        files.process.send_signal(signal.SIGCONT)
        document = job.ends(0)
        check(document.get("dead_mounts", []) == [], f"{name}: nobody is dead: {document.get('dead_mounts')}")
        stalls = [w["message"] for w in document["warnings"] if w["code"] == "stalled"]
        check(len(stalls) == 1, f"{name}: a line for the stall: {document['warnings']}")
        text = job.said.read_text() if name in ("fio", "mdtest") else job.report()
        check("finished anything for more than a second" in " ".join(text.split()), f"{name}: it is told: {text}")
        print(f"   {name}: {stalls and stalls[0]}", flush=True)
        files.end()


def alive(program, folder):
    heading("errors of a file system that is there: nobody is dead, and the run goes on")
    files = Testfs(program, "--fault", "create:EIO@after=50", "--fault", "mknod:EIO@after=50")
    out = folder / "alive.json"
    job = Job([program, "meta", "--dir", files.mountpoint, "--phases", "file-create", "--time", "4s", "--no-round-trip",
               "--out", out], out)
    job.disturbed = time.monotonic()
    job.says(r"every operation on \S+ fails, for example create \S+: .*\(EIO\); but its mount answers")
    document = job.ends()
    check(document.get("dead_mounts", []) == [] and document["complete"], f"alive: {document.get('dead_mounts')}")
    codes = [warning["code"] for warning in document["warnings"]]
    check("errors" in codes and "dead-mount" not in codes, f"alive: {codes}")
    files.end()
    files = Testfs(program, "--fault", "unlink:ESTALE@after=100")
    out = folder / "stale.json"
    job = Job([program, "meta", "--dir", files.mountpoint, "--phases", "file-create,file-remove", "--items", 100,
               "--no-round-trip", "--out", out], out)
    job.disturbed = time.monotonic()
    document = job.ends()
    errors = phases(document)["file-remove"]["errors"]
    check(errors.get("ESTALE", 0) > 0, f"stale: {errors}")
    check(document.get("dead_mounts", []) == [] and document["complete"], "stale files are no dead mount")
    files.end()


def of_bed(name):
    return pathlib.Path(run([BED, "run", "sh", "-c", f"echo ${name}"], quiet=True).stdout.strip())


def mounting(mount):
    """Returns the client that was started last for this mount: dead ones have another number."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            # Once it serves, a client shows its mount in place of its arguments.
            if b"mfsmount" in words.split(b" ")[0] and os.fsencode(mount) in words:
                found.append((int((process / "stat").read_text().rpartition(")")[2].split()[19]), int(process.name)))
        except OSError:
            continue
    check(found != [], f"there is a client of {mount}")
    return max(found)[1] if found else 0


def on_bed(program, folder):
    mount, state = of_bed("RBENCH_BED_MOUNT"), of_bed("RBENCH_TESTBED")
    client = int((state / "client3" / "mount.pid").read_text())
    # The mount table has the address, since a client hides its arguments.
    source = run([BED, "run", "findmnt", "-n", "-o", "SOURCE", mount], quiet=True).stdout
    master = re.search(r"(\d+\.\d+\.\d+\.\d+)", source)[1]
    commands = {
        "meta": f"meta --dir {mount} --phases file-create,file-stat --time {{time}} --interval 100ms",
        "io": f"io --dir {mount} --rw write,read --size 8M --direct --time {{time}} --interval 100ms",
        "fio": f"fio --name=j --directory={mount} --rw=randwrite --size=8M --direct=1 --unlink=1 --time_based --runtime={{time}}",
    }

    def listing():
        return set(run([BED, "run", "ls", "-A", mount], quiet=True).stdout.split())

    def start(name, what, time_s):
        out = folder / f"{what}-{name}.json"
        words = commands[name].format(time=f"{time_s}s")
        line = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE {program} {words} --out {out}"
        job = Job([BED, "run", "sh", "-c", line], out)
        job.measures(1 if name == "fio" else 5)
        return job

    for name in commands:
        heading(f"{name}: the client of client3 stands still for 12 s")
        job = start(name, "frozen", 20)
        os.kill(client, signal.SIGSTOP)
        job.says(r"worker \d+ of rank \d+ on client3: \S+ .*has not returned for \d+ s", 30)
        time.sleep(max(0.0, 12 - (time.monotonic() - job.disturbed)))
        os.kill(client, signal.SIGCONT)
        # After a long silence MooseFS drops a client; the client then repeats its requests, and a create finds its own
        # file.
        document = job.ends((0, 1))
        for row in document["phases"]:
            well = set(row["errors"]) <= ({"EEXIST"} if row["name"] == "file-create" else set())
            there = {host["host"] for host in row["hosts"] if host["errors"]}
            check(well and there <= {"client3"}, f"{name} {row['name']}: {row['errors']} on {there}")
        told = [w["message"] for w in document["warnings"] if w["code"] == "stalled"]
        check(len(told) == 1 and "client3" in told[0], f"{name}: a line for the stall: {document['warnings']}")
        check(document.get("dead_mounts", []) == [], f"{name}: nobody is dead")
        print(f"   {told and told[0]}", flush=True)
    for name in commands:
        heading(f"{name}: the client of client3 is killed")
        before = listing()
        job = start(name, "killed", 20)
        os.kill(client, signal.SIGKILL)
        job.says(rf"the mount {mount} on client3 no longer answers .*; the run ends when the other hosts finish the phase")
        document = job.ends()
        dead = one_finding(document, name, mount, "client3")
        for row in document["phases"]:
            for host in row["hosts"]:
                well = host["errors"] == 0 or host["host"] == "client3"
                check(well, f"{name} {row['name']}: {host['host']} has {host['errors']} errors")
        print(f"   {dead and dead['failed']} operations failed on client3; "
              f"{[warning['message'] for warning in document['warnings'] if warning['code'] == 'dead-mount']}", flush=True)
        left = listing() - before
        # Files of jobs belong to their ranks: those of client3 stay.
        check(left == set() or name == "fio", f"{name}: the other hosts have removed everything: {left}")
        # The next steps need a client again; it ends with the bed.
        run([BED, "run", "--on", "client3", "umount", "-l", mount], quiet=True)
        line = f"exec mfsmount -f -c {state}/etc/mfsmount.cfg -H {master} -o mfsnice=0,mfserroronnospace {mount}"
        subprocess.Popen([BED, "run", "--on", "client3", "sh", "-c", line], start_new_session=True)
        there = wait_until(lambda: "fuse" in run([BED, "run", "--on", "client3", "stat", "-f", "-c", "%T", mount],
                                                 quiet=True, expect=None).stdout)
        check(there, "client3 has its mount again")
        client = mounting(mount)
        (state / "client3" / "mount.pid").write_text(f"{client}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--bed", action="store_true")
    options = parser.parse_args()
    program = options.program.resolve()
    with tempfile.TemporaryDirectory(prefix="check-dead-") as name:
        folder = pathlib.Path(name)
        if options.bed:
            on_bed(program, folder)
        else:
            alone(program, folder)
            goes_on(program, folder)
            one_of_two(program, options.mpirun, folder, victim=1)
            one_of_two(program, options.mpirun, folder, victim=0)
            frozen(program, folder)
            alive(program, folder)
    finish()


main()
