"""Slurm on three hosts with MooseFS (the bed is up: scripts/testbed up): what srun starts is one run, or is refused; the batch
script; jobs that are cancelled, interrupted, at their time limit, and that lose a rank.

usage: slurm.py PROGRAM

The daemons of this check run in the bed, with files of their own, and end with it. On each host: munged and slurmd; slurmctld
on client1.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from common import (
    PATIENCE_S, check, check_result, finish, heading, meta_items, ranks_of, regular, result, run, wait_until,
)

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
BED, BATCH = SCRIPTS / "testbed", SCRIPTS / "rbench.sbatch"
HOSTS, RANKS, ITEMS = ("client1", "client2", "client3"), 12, 50
TASKS = (f"-N{len(HOSTS)}", f"-n{RANKS}")
# Phases of 1.6 s, for hours. Few files: what is there at a time limit has to be removed before the end.
ENDLESS = ("--files-only", "--items", 10, "--rate", 300, "--iterations", 1000)
MUNGE = "/run/munge/munge.socket.2"
# What the bed sets for Open MPI is not set on a cluster.
AS_ON_A_CLUSTER = """unset $(env | sed -n 's/^\\(\\(OMPI\\|PRTE\\)_[A-Za-z0-9_]*\\)=.*/\\1/p')
cd "$1" && shift && exec "$@"
"""
REFUSED = "started several processes that know nothing of each other: use srun --mpi=pmix"

# More processors than there are: ranks share them.
CONFIGURATION = """ClusterName=rbench
SlurmctldHost=client1
SlurmUser=root
SlurmdUser=root
StateSaveLocation={local}/state
SlurmdSpoolDir={local}/spool
TmpFS={local}/tmp
SlurmctldPidFile={local}/slurmctld.pid
SlurmdPidFile={local}/slurmd.pid
SlurmctldLogFile={logs}/slurmctld.log
SlurmdLogFile={logs}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES DefaultTime=10
"""
# Control groups are neither used nor needed: this plugin touches none before it is used, the other one when slurmd starts.
CONTROL_GROUPS = "CgroupPlugin=cgroup/v1\n"


def on(host, *words, **options):
    return run([BED, "run", "--on", host, *words], quiet=True, **options)


class Cluster:
    """Slurm's daemons, and commands on its first node."""

    def __init__(self, program, folder):
        done = on("client1", "sh", "-c", 'echo "$RBENCH_BED_MOUNT" "$RBENCH_BED_LOCAL"')
        mount, local = done.stdout.split()
        self.program, self.folder, self.mount = program, folder, mount
        # Of each host, at the same path.
        self.local = f"{local}/slurm"
        self.daemons = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        bin_folder, key, conf = (self.folder / name for name in ("bin", "munge.key", "slurm.conf"))
        bin_folder.mkdir()
        (bin_folder / "rbench").symlink_to(self.program)
        self.environment = {**os.environ, "SLURM_CONF": str(conf)}
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        # The hosts' own numbers: scripts/testbed.
        nodes = "\n".join(f"NodeName={host} NodeAddr=10.77.0.{host[-1]} CPUs={RANKS // len(HOSTS)}" for host in HOSTS)
        conf.with_name("cgroup.conf").write_text(CONTROL_GROUPS)
        conf.write_text(CONFIGURATION.format(local=self.local, logs=self.folder, nodes=nodes))
        for host in HOSTS:
            on(host, "mkdir", "-p", pathlib.Path(MUNGE).parent, *(f"{self.local}/{name}" for name in ("state", "spool", "tmp")))
            self.daemon(host, "munged", "--foreground", "--force", "--key-file", key, "--socket", MUNGE, "--pid-file",
                        f"{self.local}/munged.pid", "--seed-file", f"{self.local}/munged.seed")
        for host in HOSTS:
            self.wait(f"munged answers on {host}", lambda: on(host, "munge", "-n", expect=None).returncode == 0)
        self.daemon("client1", "slurmctld", "-D", "-f", conf)
        for host in HOSTS:
            self.daemon(host, "slurmd", "-D", "-N", host, "-f", conf)
        self.wait("all nodes are idle", lambda: self.states() == ["idle"] * len(HOSTS))

    def states(self):
        return self.run("sinfo", "-h", "-N", "-o", "%t", expect=None).stdout.split()

    def daemon(self, host, *words):
        """The words replace one another until only the daemon is left: its pid is that of the process started here."""
        with (self.folder / f"{words[0]}-{host}.out").open("w") as out:
            command = [str(word) for word in (BED, "run", "--on", host, *words)]
            # Not ended by Ctrl-C: the jobs end first.
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                 start_new_session=True))

    def wait(self, what, holds):
        wait_until(lambda: self.dead() or holds(), every_s=0.2)
        if self.dead() or not holds():
            logs = [f"{log.name}: {log.read_text()[-1500:]}" for log in sorted(self.folder.glob("*.[lo]*"))]
            raise SystemExit("\n".join([f"FAILED: waited until {what}; ended: {self.dead()}", *logs]))

    def dead(self):
        return [" ".join(daemon.args[3:5]) for daemon in self.daemons if daemon.poll() is not None]

    def __exit__(self, *_):
        if len(self.daemons) > len(HOSTS):
            self.run("scancel", "--full", "--user", "root", expect=None)
            wait_until(lambda: not self.queue(), 60, 0.2)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for host in HOSTS:
            on(host, "rm", "-rf", self.local, pathlib.Path(MUNGE).parent)

    def words(self, *words):
        outer = [BED, "run", "sh", "-c", AS_ON_A_CLUSTER, "sh", self.folder, "env", f"PATH={self.folder}/bin:/usr/bin:/bin"]
        return [str(word) for word in (*outer, *words)]

    def run(self, *words, expect=0, shown=False):
        if shown:
            print("$ " + " ".join(str(word) for word in words), flush=True)
        return run(self.words(*words), env=self.environment, expect=expect, timeout=3 * PATIENCE_S, quiet=True)

    def rbench(self, *words, expect=0):
        return self.run(*words[:-1], "rbench", "meta", "--dir", self.mount, *words[-1], expect=expect, shown=True)

    def queue(self):
        return self.run("squeue", "-h", "-o", "%i", expect=None).stdout.split()

    def submit(self, *words):
        """A job of the batch script; its number, and the files of its result and of what it printed."""
        done = self.run("sbatch", "--parsable", *words[:-1], BATCH, self.mount, *words[-1], shown=True)
        job = done.stdout.strip()
        return job, self.folder / f"rbench-{job}.json", self.folder / f"rbench-{job}.txt"

    def ended(self, job):
        """What Slurm says of a job that has ended."""
        check(wait_until(lambda: not self.queue(), 2 * PATIENCE_S, 0.2), f"job {job} does not end")
        return self.run("scontrol", "--oneliner", "show", "job", job).stdout

    def nothing_left(self, out=None):
        left = on("client1", "ls", "-A", self.mount).stdout.split()
        check(left == [], f"left in the directory: {left}")
        check(out is None or not ranks_of(out), f"ranks left running: {out and ranks_of(out)}")


def measures(out):
    """Waits until some phases are over."""
    journal = pathlib.Path(f"{out}.journal")
    measured = wait_until(lambda: journal.exists() and journal.read_text().count('{"phase"') >= 3)
    check(measured, f"{out}: no phases were measured")


def partial(out, text, job_signal):
    """The result and the report of a run that a signal has ended."""
    document = result(out)
    check(not document["complete"], "the result is not complete")
    check(len(document["world"]["hosts"]) == len(HOSTS) and document["world"]["ranks"] == RANKS, "it is one run")
    rows = [(row["name"], row["items"]) for row in regular(document) if row["complete"]]
    check(rows[:2] == [("file-create", 10 * 4 * RANKS), ("file-stat", 10 * 4 * RANKS)], f"complete phases are in it: {rows[:2]}")
    check("The run is INCOMPLETE" in text and f"- {job_signal} from process" in text, f"the report says so: {text[-2000:]}")
    check(not pathlib.Path(f"{out}.journal").exists(), "the journal is removed")
    print(f"   {len(rows)} complete phases; {re.search(f'{job_signal} from .*', text)[0]}")


def together(cluster):
    heading("srun --mpi=pmix: one run")
    out = cluster.folder / "meta.json"
    done = cluster.rbench("srun", "--mpi=pmix", *TASKS, ("--items", ITEMS, "--out", out))
    document = result(out)
    check_result(document, meta_items(RANKS, each=ITEMS), RANKS, len(HOSTS))
    ranks = [len(host["ranks"]) for host in document["world"]["hosts"]]
    check(ranks == [4, 4, 4] and document["world"]["communicator"] == "mpi", f"ranks of the hosts: {ranks}")
    lines = re.findall(r"^Ranks .*$", done.stdout, re.MULTILINE)
    check(lines == ["Ranks      12 ranks on 3 hosts, 1 thread each, communicator mpi"], f"one report: {lines}")
    print(f"   {' '.join(lines)}")
    cluster.nothing_left()


def apart(cluster):
    heading("srun without PMIx: refused before anything is created")
    single = "MPI library  none" in run([cluster.program, "version"], quiet=True).stdout
    # The program without MPI looks for the one for MPICH, which nobody has built here.
    pmi2 = (1, "rbench-mpich is neither beside") if single else (2, REFUSED)
    for mpi, (code, sentence) in {"none": (2, REFUSED), "pmi2": pmi2}.items():
        done = cluster.rbench("srun", f"--mpi={mpi}", *TASKS, ("--items", ITEMS), expect=code)
        said = [line for line in done.stderr.splitlines() if not line.startswith("srun: ")]
        check(len(said) == 1 and sentence in said[0], f"one sentence: {done.stderr[:3000]}")
        check(done.stdout == "", f"no report: {done.stdout[:1000]}")
        print(f"   {said[0]}")
        cluster.nothing_left()
    done = cluster.rbench("srun", "-n1", ("--items", ITEMS))
    check("Ranks      1 rank on client1" in done.stdout, f"one task alone is a run: {done.stdout[:1000]}")
    cluster.nothing_left()


def batch(cluster):
    heading("scripts/rbench.sbatch")
    job, out, text = cluster.submit("--wait", ("--items", ITEMS))
    said = cluster.ended(job)
    check("JobState=COMPLETED" in said and " ExitCode=0:0" in said, f"it succeeded: {said}")
    check_result(result(out), meta_items(RANKS, each=ITEMS), RANKS, len(HOSTS))
    report = text.read_text()
    check("Ranks      12 ranks on 3 hosts" in report and "The run is complete" in report, f"its report: {report[-2000:]}")
    cluster.nothing_left(out)


def cancelled(cluster):
    heading("scancel")
    job, out, text = cluster.submit(ENDLESS)
    measures(out)
    cluster.run("scancel", job, shown=True)
    said = cluster.ended(job)
    check("JobState=CANCELLED" in said and " ExitCode=143:0" in said, f"cancelled: {said}")
    partial(out, text.read_text(), "SIGTERM")
    cluster.nothing_left(out)


def limited(cluster):
    heading("the time limit")
    # The script asks for SIGTERM a minute before; Slurm looks twice a minute, and takes the one before.
    begun = time.monotonic()
    job, out, text = cluster.submit("--time=2", ENDLESS)
    said = cluster.ended(job)
    check("JobState=FAILED" in said and " ExitCode=143:0" in said, f"it ended by itself: {said}")
    print(f"   ended {time.monotonic() - begun:.0f} s after it was submitted")
    partial(out, text.read_text(), "SIGTERM")
    cluster.nothing_left(out)


def interrupted(cluster):
    heading("Ctrl-C, with --disable-status")
    out, text = cluster.folder / "interrupt.json", cluster.folder / "interrupt.txt"
    words = ["srun", "--disable-status", "--mpi=pmix", *TASKS, "rbench", "meta", "--dir", cluster.mount, *ENDLESS, "--out", out]
    print("$ " + " ".join(str(word) for word in words), flush=True)
    with text.open("w") as report:
        job = subprocess.Popen(cluster.words(*words), env=cluster.environment, stdout=report, stderr=report)
    measures(out)
    job.send_signal(signal.SIGINT)
    try:
        check(job.wait(timeout=PATIENCE_S) == 130, f"exit code {job.returncode}")
    except subprocess.TimeoutExpired:
        check(False, "srun does not end")
        job.kill()
    partial(out, text.read_text(), "SIGINT")
    cluster.nothing_left(out)


def killed(cluster):
    heading("a rank is killed: Slurm ends the others at once, and the journal has what was measured")
    job, out, _ = cluster.submit(ENDLESS)
    measures(out)
    os.kill(ranks_of(out)[-1], signal.SIGKILL)
    said = cluster.ended(job)
    check("JobState=COMPLETED" not in said, f"the job failed: {said}")
    check(wait_until(lambda: not ranks_of(out)), f"ranks left running: {ranks_of(out)}")
    shown = run([cluster.program, "show", f"{out}.journal"])
    check("File creation" in shown.stdout and "INCOMPLETE" in shown.stdout, f"the journal: {shown.stdout}")
    cluster.run("rbench", "clean", cluster.mount, shown=True)
    cluster.nothing_left(out)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("RBENCH_DIR", None)
    with tempfile.TemporaryDirectory(prefix="check-slurm-") as name:
        with Cluster(program, pathlib.Path(name)) as cluster:
            for part in (together, apart, batch, cancelled, limited, interrupted, killed):
                part(cluster)
    finish()


if __name__ == "__main__":
    main()
