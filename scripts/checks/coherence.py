"""Checks rbench check between clients. One directory of a local file system is coherent for any number of clients. With
two mounts of one store, the time until a change is seen follows from their timeouts. Unshared state (locks, the end
of a file) is found. Also expectations, refusals, hanging calls and interrupts.

usage: coherence.py PROGRAM --mpirun LAUNCHER
       coherence.py PROGRAM --bed    on three hosts with MooseFS (the bed is up: scripts/testbed up)
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from common import Testfs, attempt, check, descendant, finish, heading, mpirun, run, valid, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
BETWEEN = "coherence,locks-between,races"
# With two mounts of one directory without timeouts, the kernel keeps the pages of open files and determines the offset
# of O_APPEND. Each side has its own locks.
UNSHARED = {"coherence.fsync.open-file", "coherence.append.records"}


class TwoMounts:
    """Two mounts of one directory, each by its own process."""

    def __init__(self, program, timeout_s, *of_second):
        self.store = pathlib.Path(tempfile.mkdtemp(prefix="check-coherence-"))
        common = ("--passthrough", self.store, "--attr-timeout", timeout_s, "--entry-timeout", timeout_s)
        self.mounts = [Testfs(program, *common), Testfs(program, *common, *of_second)]
        self.dirs = ",".join(str(mount.mountpoint) for mount in self.mounts)

    def end(self):
        check(os.listdir(self.store) == [], f"{os.listdir(self.store)} is left")
        for mount in self.mounts:
            mount.end()
        self.store.rmdir()


@contextlib.contextmanager
def two_mounts(program, timeout_s, *of_second):
    mounts = TwoMounts(program, timeout_s, *of_second)
    yield mounts
    mounts.end()


def tried(launcher, ranks, program, dirs, *more, expect=0):
    words = [*mpirun(launcher, ranks), program, "check", "--dir", dirs, "--format", "json", "--quiet", *more]
    return decided(words, expect)


def decided(words, expect=0):
    """Repeats a check that a busy machine left undecided: calls did not overlap, or the clocks were too imprecise."""
    for _ in range(3):
        begun = time.monotonic()
        done = run(words, expect=None, quiet=True)
        result = valid(json.loads(done.stdout), "the check")
        result["took_s"] = time.monotonic() - begun
        left = with_verdict(result, "undecided")
        if not left:
            break
        print(f"   undecided: {sorted(left)}", flush=True)
    check(expect in (None, done.returncode), f"exit code {done.returncode}, not {expect}: {words}\n{done.stderr}")
    return result


def by_name(result):
    return {between["promise"]["name"]: between for between in result["between"]}


def with_verdict(result, *verdicts):
    return {name for name, between in by_name(result).items() if between["promise"]["verdict"] in verdicts}


def consistent(result, clients):
    """Checks that the verdict on all pairs follows from the verdict on each pair."""
    check(len(result["hosts"]) == clients, f"{len(result['hosts'])} clients, not {clients}")
    for name, between in by_name(result).items():
        pairs = between["pairs"]
        if between["promise"]["verdict"] not in ("holds", "broken"):
            continue
        check(between["tries"] > 0, f"{name}: nothing was tried")
        check((between["violations"] > 0) == (between["promise"]["verdict"] == "broken"), f"{name}: {between}")
        if not pairs or name.endswith(".once"):
            continue
        for what in ("tries", "violations"):
            check(sum(pair[what] for pair in pairs) == between[what], f"{name}: {what} of the pairs")
        found = {(pair["from"], pair["to"]) for pair in pairs}
        all_pairs = {(a, b) for a in range(clients) for b in range(clients) if a != b}
        check(found == all_pairs, f"{name}: pairs {sorted(found)}")
        for pair in pairs:
            times = pair["times"]
            if times:
                order = [times[key] for key in ("min_ns", "median_ns", "p99_ns", "max_ns")]
                check(order == sorted(order) and times["count"] <= pair["tries"], f"{name}: {times}")


def local(program, launcher):
    heading("one directory of a local file system")
    for ranks, more in ((2, ()), (3, ("--under-load",))):
        with tempfile.TemporaryDirectory(prefix="check-coherence-") as place:
            result = tried(launcher, ranks, program, ",".join([place] * ranks), "--only", BETWEEN, *more)
            check(os.listdir(place) == [], f"{os.listdir(place)} is left")
        check(result["passed"] and result["complete"], f"{ranks} clients: it passes")
        check(with_verdict(result, "holds") == set(by_name(result)) and len(by_name(result)) > 30, f"{by_name(result)}")
        consistent(result, ranks)
        check((result["load"] or {}).get("files", 0) > 0 if more else result["load"] is None, f"{result['load']}")
        for name, between in by_name(result).items():
            late = max((pair["late_ns"] for pair in between["pairs"]), default=0)
            check(late == 0, f"{name}: {late} ns late")
            wins = between["times"] and name.endswith(".once")
            check(not wins or between["times"]["max_ns"] > 0, f"{name}: the lock goes from one to another in no time")
        print(f"   {ranks} clients{' under load' if more else ''}: {len(by_name(result))} promises hold", flush=True)


def hosts(program, launcher, folder):
    heading("three hosts whose clocks are days apart")
    as_host = folder / "as-host"
    as_host.write_text(
        "#!/bin/sh\nh=$((OMPI_COMM_WORLD_RANK / 2))\n"
        "exec unshare --uts --time --monotonic $((h * 100000)) --boottime $((h * 100000)) --fork --kill-child"
        ' sh -c "hostname h$h; exec \\"\\$@\\"" sh "$@"\n'
    )
    as_host.chmod(0o755)
    place = folder / "of-hosts"
    place.mkdir()
    words = [*mpirun(launcher, 6), as_host, program, "check", "--dir", place, "--quiet", "--format", "json"]
    for more, names in (((), ["h0", "h1", "h2"]), (("--hosts", "2"), ["h0", "h1"])):
        result = decided([*words, "--only", "coherence.create,coherence.append,locks-between,races", *more])
        consistent(result, len(names))
        check(result["passed"] and len(by_name(result)) > 20, f"{names}: {by_name(result)}")
        check([host["host"] for host in result["hosts"]] == names, f"{[host['host'] for host in result['hosts']]}")
        check(0 < result["clock_error_ns"] < 1e9, f"clocks known to {result['clock_error_ns']} ns")
        check(os.listdir(place) == [], f"{os.listdir(place)} is left")
        print(f"   {', '.join(names)}: clocks known to {result['clock_error_ns']} ns", flush=True)
    # One rank per host, with its own directory under the same name.
    mounts = as_host.read_text().replace("RANK / 2", "RANK").replace("unshare --uts", "unshare --mount --uts")
    alone = folder / "alone"
    alone.write_text(mounts.replace("hostname h$h;", f"hostname h$h; mount -t tmpfs none {place};"))
    alone.chmod(0o755)
    apart = [*mpirun(launcher, 2), alone, *words[words.index(program):]]
    done = run([*apart, "--only", "rename.noreplace,coherence.create"], expect=1, quiet=True)
    found = by_name(valid(json.loads(done.stdout), "the check"))
    seen = {between["promise"]["verdict"]: between["promise"]["seen"] for between in found.values()}
    check(seen == {"undecided": "the hosts do not see the same directory"}, f"{found}")
    told = run([*words, "--hosts", "4"], expect=2, quiet=True).stderr
    check("--hosts 4: the launch has 3 hosts" in told, told)


def time_until_seen(program, launcher):
    heading("the time until seen follows from the time-outs of two mounts")
    names = ["coherence.unlink.stat", "coherence.append.size", "coherence.chmod.stat", "coherence.recreate.content"]
    with two_mounts(program, 0) as mounts:
        result = tried(launcher, 2, program, mounts.dirs, "--only", "coherence,races", expect=1)
    consistent(result, 2)
    # Records are lost only if both clients append at the same moment, which may never happen on a busy machine.
    rare = "coherence.append.records"

    def lost():
        result = tried(launcher, 2, program, mounts.dirs, "--only", rare, expect=None)
        return None if with_verdict(result, "broken") == {rare} else f"{rare}: {by_name(result)}"

    wrong = with_verdict(result, "broken", "undecided")
    if rare not in wrong:
        with two_mounts(program, 0) as mounts:
            attempt(5, lost)
        wrong |= {rare}
    told = {name: by_name(result)[name]["promise"]["seen"] for name in wrong ^ UNSHARED}
    check(wrong == UNSHARED, f"not {sorted(UNSHARED)}: {told}")
    for name in names:
        check(by_name(result)[name]["times"]["max_ns"] == 0, f"{name}: {by_name(result)[name]['times']}")
    for timeout_s in (1, 5):
        with two_mounts(program, timeout_s) as mounts:

            def once():
                result = tried(launcher, 2, program, mounts.dirs, "--only", ",".join(names), expect=1)
                consistent(result, 2)
                for name in names:
                    between = by_name(result)[name]
                    late = max(pair["late_ns"] for pair in between["pairs"]) / 1e9
                    worse = sum(pair["worse"] for pair in between["pairs"])
                    times, least = between["times"], 0.5 * timeout_s
                    seconds = {key: times[f"{key}_ns"] / 1e9 for key in ("min", "median", "p99", "max", "resolution")}
                    if worse or not least < late <= timeout_s + 0.05 or seconds["max"] - seconds["resolution"] > timeout_s + 0.05:
                        return f"{name}: time-outs of {timeout_s} s, late by {late}: {seconds}, {worse} worse"
                    told = ", ".join(f"{key} {value:.3f} s" for key, value in seconds.items())
                    print(f"   {timeout_s} s: {name}: {told}", flush=True)
                return None

            attempt(3, once)


def unshared_locks(program, launcher):
    heading("locks that two mounts do not share")
    with two_mounts(program, 0) as mounts:
        result = tried(launcher, 2, program, mounts.dirs, "--only", "locks-between,races", expect=1)
    consistent(result, 2)
    broken = {name for name in by_name(result) if name.startswith("locks-between")}
    check(with_verdict(result, "broken") == broken and len(broken) == 9, f"{with_verdict(result, 'broken')}")
    for name in broken:
        between = by_name(result)[name]
        worse = sum(pair["worse"] for pair in between["pairs"])
        check(worse == between["violations"], f"{name}: two holders are never only late: {between}")
        if not name.endswith(".once"):
            check(between["violations"] == between["tries"], f"{name}: each time: {between}")


def expectations(program, launcher, folder):
    heading("known deviations, and how late something may be")
    expect = folder / "expect.toml"
    with two_mounts(program, 1) as mounts:
        for within, passes in (("3s", True), ("200ms", False)):
            expect.write_text(
                "title = 'ours'\n[[deviation]]\npromise = 'coherence'\nwhy = 'time-outs'\nsource = 'us'\n"
                f"within = '{within}'\n"
            )
            more = ("--only", "coherence.unlink.stat,coherence.create.stat", "--expect", expect)
            result = tried(launcher, 2, program, mounts.dirs, *more, expect=0 if passes else 1)
            check(result["passed"] == passes, f"within {within}: {by_name(result)}")
        # Two simultaneous holders of a lock are not a delay.
        expect.write_text(expect.read_text().replace("200ms", "1h").replace("'coherence'", "'locks-between'"))
        result = tried(launcher, 2, program, mounts.dirs, "--only", "locks-between.flock.once", "--expect", expect, expect=1)
        check(not result["passed"], f"{by_name(result)}")


def refusals(program, launcher, folder):
    heading("what cannot be")
    one, other = folder / "one", folder / "other"
    one.mkdir()
    other.mkdir()
    for ranks, more, code, word in (
        (1, ("--dir", one, "--only", "coherence"), 2, "need several clients"),
        (2, ("--dir", one, "--only", "coherence"), 2, "need several clients"),
        (1, ("--dir", f"{one},{one}"), 2, "each of 2 mounts needs its own rank"),
        (1, ("--dir", one, "--under-load"), 2, "there is only one"),
        (2, ("--dir", one, "--hosts", "2"), 2, "the launch has 1 host"),
        (2, ("--dir", one, "--hosts", "0"), 2, "--hosts"),
        (2, ("--dir", f"{one},{other}", "--only", "coherence"), 1, "must be the same directory of one file system"),
    ):
        words = [*mpirun(launcher, ranks), program, "check", "--quiet", *more]
        done = run(words, expect=code, quiet=True)
        told = [line for line in done.stderr.splitlines() if line.startswith("rbench:")]
        check(len(told) == 1 and word in told[0], f"{more}: {done.stderr}")
        check(os.listdir(one) == [] and os.listdir(other) == [], f"{more}: something is left")
    # Checks that one client cannot perform are reported if requested.
    result = tried(launcher, 1, program, one, "--only", "coherence.create,rename.noreplace")
    check(with_verdict(result, "left-out") == set(by_name(result)) and len(by_name(result)) == 3, f"{by_name(result)}")
    check(result["passed"] and result["complete"], "one client passes without others")
    result = tried(launcher, 2, program, one, "--hosts", "1", "--only", "rename")
    check(result["passed"] and result["between"] == [], f"{result['between']}")


def whole(out):
    """Returns whether a launcher has forwarded a complete report."""
    text = os.pread(out.fileno(), 1 << 24, 0)
    with contextlib.suppress(ValueError):
        return bool(json.loads(text))
    return False


def hangs(program, launcher):
    heading("a call of one client that does not return")
    with two_mounts(program, 0, "--fault", "rename:hang@nth=1") as mounts:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            words = [*mpirun(launcher, 2), program, "check", "--dir", mounts.dirs, "--format", "json", "--quiet", "--time-limit", "10s",
                     "--only", "coherence.rename-over,coherence.truncate"]
            process = subprocess.Popen([str(word) for word in words], stdout=out, stderr=err)
            check(wait_until(lambda: whole(out)), "the report is there although a call hangs")
            mounts.mounts[1].process.send_signal(signal.SIGUSR2)
            check(process.wait(timeout=60) == 1, f"exit code {process.returncode}")
            out.seek(0)
            err.seek(0)
            result, told = json.load(out), err.read()
        found = by_name(result)
        seen = found["coherence.rename-over.content"]["promise"]
        check(seen["verdict"] == "undecided" and "did not finish within 10 s at rank 1 on" in seen["seen"], f"{seen}")
        check(found["coherence.truncate.size"]["promise"]["verdict"] == "holds", "the rest goes on")
        check("is left behind" in told, f"what is left is told: {told}")
        run([program, "clean", mounts.mounts[0].mountpoint], quiet=True)


def holders(place):
    """Processes that hold locks there; they name the file below a descriptor of their rank."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"hold-lock" in words and any(os.path.realpath(word).startswith(os.fsencode(place)) for word in words if b"/" in word):
                found.append(path.parent.name)
    return found


def holding(words, place, out):
    """Starts a check until one is seen to hold a lock: it holds each only for a moment, which a busy machine can miss."""
    for _ in range(20):
        out.seek(0)
        out.truncate()
        process = subprocess.Popen([str(word) for word in words], stdout=out, stderr=subprocess.DEVNULL)
        wait_until(lambda process=process: holders(place) or process.poll() is not None, 60)
        if process.poll() is None:
            return process
    raise SystemExit("no lock was seen to be held")


def broken_off(program, launcher):
    heading("interrupts and kills")
    for how in (signal.SIGINT, signal.SIGKILL):
        with tempfile.TemporaryDirectory(prefix="check-coherence-") as place:
            words = [*mpirun(launcher, 3), program, "check", "--dir", ",".join([place] * 3), "--quiet", "--format", "json",
                     "--only", "coherence.create,locks-between.flock.killed", "--under-load"]
            with tempfile.TemporaryFile("w+") as out:
                process = holding(words, place, out)
                # Open MPI, interrupted, leaves its ranks a second, in which a busy machine removes nothing: one of them hears it.
                os.kill(descendant(process.pid, "rbench") if how == signal.SIGINT else process.pid, how)
                process.wait(timeout=60)
                # An interrupted launcher may forward only a part.
                told = whole(out)
                out.seek(0)
                text = out.read()
            check(wait_until(lambda: not holders(place), 30), f"{how.name}: processes hold locks still")
            if how == signal.SIGINT:
                check(wait_until(lambda: os.listdir(place) == [], 30), f"{os.listdir(place)} is left")
                if told:
                    result = valid(json.loads(text), "the check")
                    # The interrupt came in the last promise.
                    check(not result["passed"] and not result["complete"], "what is not whole does not pass")
            else:
                # The ranks end with their launcher.
                check(wait_until(lambda: run([program, "clean", place], expect=None, quiet=True).returncode == 0
                                 and os.listdir(place) == [], 60), f"{os.listdir(place)} cannot be removed")


def bed(program):
    heading("three hosts with MooseFS")
    words = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE {program} check --dir $RBENCH_BED_MOUNT --quiet --expect moosefs"
    # The table states which promises MooseFS keeps; this checks only that all are tested.
    result = decided([BED, "run", "sh", "-c", f"{words} --format json"], expect=None)
    check(result["complete"], "all of it")
    consistent(result, 3)
    check(len(by_name(result)) > 30 and not with_verdict(result, "undecided", "left-out"), f"{by_name(result)}")
    check(with_verdict(result, "broken").isdisjoint(name for name in by_name(result) if name.startswith("races")), f"{by_name(result)}")
    print(f"   12 ranks on 3 hosts: {result['took_s']:.0f} s")
    told = run([BED, "run", "sh", "-c", f"{words} --only {BETWEEN} --under-load"], expect=None, quiet=True)
    print(told.stdout)


def main():
    program = pathlib.Path(sys.argv[1]).absolute()
    if "--bed" in sys.argv[2:]:
        bed(program)
        finish()
        return
    launcher = sys.argv[3] if len(sys.argv) > 3 else None
    if launcher is None:
        raise SystemExit("clients take ranks: --mpirun LAUNCHER")
    with tempfile.TemporaryDirectory(prefix="check-coherence-") as name:
        folder = pathlib.Path(name)
        local(program, launcher)
        hosts(program, launcher, folder)
        time_until_seen(program, launcher)
        unshared_locks(program, launcher)
        expectations(program, launcher, folder)
        refusals(program, launcher, folder)
        hangs(program, launcher)
        broken_off(program, launcher)
    finish()


main()
