"""Shared parts of the checks of whole runs: running rbench, reading its result files, and checking their consistency."""

import atexit
import base64
import functools
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import zlib

# Ends like after an interrupt, so that all processes started by a check end with it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

FAILURES = []
# Failures that no further attempt cancels.
LASTING = []
# Printed before failed conditions.
LABEL = "FAILED"
SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schema"
# Anything that takes longer hangs, however busy the machine is.
PATIENCE_S = 120


def check(condition, message, always=False):
    """Records a failure and continues, so that one run shows all of them. With `always`, a repetition does not cancel
    it."""
    if not condition:
        (LASTING if always else FAILURES).append(message)
        print(f"{'FAILED' if always else LABEL}: {message}", flush=True)


def attempt(times, once):
    """Repeats a check that a busy machine may break now and then, and a defect always. `once` returns what is wrong, or
    nothing. Fails only if something is wrong every time. Load lasts for some seconds."""
    for number in range(1, times + 1):
        wrong = once()
        if not wrong:
            return
        print(f"   attempt {number} of {times}: {wrong}", flush=True)
        if number < times:
            time.sleep(3 * number)
    check(False, f"{wrong} ({times} times)")


def in_attempts(times, part, *arguments):
    """Repeats a part with checks of its own. Fails only if some of them fail every time."""

    def once():
        global LABEL
        before, LABEL = len(FAILURES), "   not now"
        try:
            part(*arguments)
        finally:
            LABEL = "FAILED"
            wrong = FAILURES[before:]
            del FAILURES[before:]
        return "; ".join(wrong)

    attempt(times, once)


def wait_until(holds, patience_s=PATIENCE_S, every_s=0.02):
    """Waits for `holds`, and returns whether it became true."""
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def finish():
    """Ends the program: 0 if every check passed."""
    if FAILURES or LASTING:
        print(f"{len(FAILURES + LASTING)} checks failed", flush=True)
        sys.exit(1)


def heading(text):
    print(f"-- {text}", flush=True)


def run(command, expect=0, env=None, timeout=1200, quiet=False):
    """Runs a command to its end and checks its exit code."""
    shown = " ".join(str(word) for word in command)
    if not quiet:
        print(f"$ {shown}", flush=True)
    done = subprocess.run(
        [str(word) for word in command], env=env, timeout=timeout, capture_output=True, text=True, check=False
    )
    if expect is not None:
        check(done.returncode == expect, f"exit code {done.returncode}, not {expect}: {shown}\n{done.stderr}")
    return done


def result(path):
    """Reads the result file of a run or a series, and checks it against its schema."""
    if not pathlib.Path(path).exists():
        print(f"FAILED: there is no result {path}", flush=True)
        sys.exit(1)
    return valid(json.loads(pathlib.Path(path).read_text()), path)


def valid(document, label):
    """Checks a JSON document of rbench against its schema."""
    for error in itertools.islice(schema_of(document["schema"]).iter_errors(document), 20):
        check(False, f"{label} is not what its schema says: {error.json_path}: {error.message[:300]}")
    return document


@functools.cache
def schema_of(name):
    """Returns the published schema with this name, without allowing additional fields."""
    # Imported here, because checks without result files run where it is not installed.
    import jsonschema

    schema = json.loads((SCHEMAS / f"{name.replace('/', '-')}.json").read_text())
    close(schema)
    return jsonschema.Draft202012Validator(schema)


def close(schema):
    if isinstance(schema, dict):
        if "type" in schema and isinstance(schema.get("properties"), dict):
            schema.setdefault("additionalProperties", False)
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            close(part)


def regular(document):
    """Returns the rows that every run has. Rows for closing and flushing exist only if that took more than 1% of the
    time, as it may on a busy machine."""
    return [phase for phase in document["phases"] if not phase["name"].endswith(("-closing", "-flush"))]


def phases(document):
    return {phase["name"]: phase for phase in regular(document)}


def check_result(document, items, ranks, hosts=1):
    """Checks a clean result: complete, without errors, and consistent. `items` gives the expected number of items by
    phase, in order."""
    check(document["complete"], "the run is complete")
    check(document["world"]["ranks"] == ranks, f"{document['world']['ranks']} ranks, not {ranks}")
    found = [host["name"] for host in document["world"]["hosts"]]
    check(len(found) == hosts, f"{found} are not {hosts} hosts")
    got = {phase["name"]: phase["items"] for phase in regular(document)}
    check(list(got.items()) == list(items.items()), f"items {got}, not {items}")
    for phase in document["phases"]:
        name, n = phase["name"], phase["items"]
        check(phase["errors"] == {}, f"{name}: errors {phase['errors']}")
        check(phase["latency"]["service"]["count"] == n, f"{name}: the histogram holds {n}")
        check(sum(rank["items"] for rank in phase["ranks"]) == n, f"{name}: the ranks add up to {n}")
        check(len(phase["ranks"]) == ranks, f"{name}: {ranks} ranks")
        check(sum(host["items"] for host in phase["hosts"]) == n, f"{name}: the hosts add up to {n}")
        counted = sum(host["latency"]["count"] for host in phase["hosts"])
        check(counted == n, f"{name}: the hosts' histograms add up to {n}")
        check(sum(row["items"] for row in phase["timeline"]) == n, f"{name}: the timeline adds up to {n}")
        if phase["elapsed_s"] > 0:
            rate = n / phase["elapsed_s"]
            check(abs(phase["rate"] - rate) <= rate * 1e-9, f"{name}: the rate is items over time")


def check_phase(phase, label, untimed=0):
    """Checks that a phase with errors is consistent, and that failures are in no rate and no distribution. `untimed` of
    its errors were not operations of a worker."""
    n, failed = phase["items"], sum(phase["errors"].values())
    check(phase["latency"]["service"]["count"] == n, f"{label}: the histogram holds {n}")
    check(longer_than(phase["latency"]["service"], 0) == n, f"{label}: its encoding holds {n}")
    for place in ("ranks", "hosts"):
        check(sum(row["items"] for row in phase[place]) == n, f"{label}: the {place} add up to {n} items")
        check(sum(row["errors"] for row in phase[place]) == failed, f"{label}: the {place} add up to {failed} errors")
    check(sum(row["items"] for row in phase["timeline"]) == n, f"{label}: the timeline adds up to {n} items")
    timed = sum(row["errors"] for row in phase["timeline"])
    check(timed == failed - untimed, f"{label}: the timeline has {timed} errors, not {failed - untimed}")
    told = {example["error"]: example["count"] for example in phase["error_examples"]}
    check(told == phase["errors"], f"{label}: an example of each error: {told}")
    if phase["elapsed_s"] > 0:
        for field, amount in (("rate", n), ("bandwidth", phase["bytes"])):
            rate = amount / phase["elapsed_s"]
            given = phase[field] or 0
            check(abs(given - rate) <= rate * 1e-9, f"{label}: the {field} is {given}, not {rate}")


def longer_than(distribution, least_ns):
    """Counts the values of a distribution of at least `least_ns`, from its encoding (HdrHistogram V2, compressed, 3
    digits from 1 ns)."""
    inner = zlib.decompress(base64.b64decode(distribution["hdr"])[8:])
    length = int.from_bytes(inner[4:8], "big")
    body, at, index, found = inner[40:40 + length], 0, 0, 0
    while at < len(body):
        value = shift = 0
        for byte in range(9):
            part = body[at]
            at += 1
            value |= (part if byte == 8 else part & 0x7F) << shift
            shift += 7
            if byte == 8 or part < 0x80:
                break
        count = (value >> 1) ^ -(value & 1)
        if count < 0:
            index -= count
            continue
        # 2048 values with width 1, then halves of that number with doubled width.
        bucket = max(index // 1024 - 1, 0)
        lowest = (index - bucket * 1024) << bucket
        found += count if lowest + (1 << bucket) > least_ns else 0
        index += 1
    return found


def in_session(session):
    """Returns the running processes of a session. Does not inspect other sessions: even `ps` hangs on a process that
    waits for a file system with its memory locked."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # It has ended meanwhile.
            continue
        if int(of) == session and state != "Z":
            found.append(int(folder.name))
    return sorted(found)


def ranks_of(out):
    """Returns the processes on this machine that run rbench with the result file `out`: its ranks, on all simulated
    hosts."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            # Or rbench-openmpi, which the program without MPI becomes.
            if (process / "comm").read_text().startswith("rbench") and str(out).encode() in words:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def meta_items(ranks, nodes=4, each=100):
    """Returns the items of a complete metadata run with a private tree for each rank."""
    tree, items = ranks * nodes, ranks * nodes * each
    kinds = {
        "dir": ["create", "stat", "rename", "list", "remove"],
        "file": ["create", "stat", "read", "rename", "remove"],
    }
    expected = {"tree-create": tree}
    for kind, steps in kinds.items():
        for step in steps:
            expected[f"{kind}-{step}"] = tree if step == "list" else items
    expected["tree-remove"] = tree
    return expected


def descendant(pid, program):
    """Returns the first process of this program among `pid` and its descendants."""
    waiting = [pid]
    while waiting:
        one = waiting.pop(0)
        try:
            command = pathlib.Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")[0].decode()
            children = pathlib.Path(f"/proc/{one}/task/{one}/children").read_text().split()
        except OSError:
            # It has ended meanwhile.
            continue
        if pathlib.Path(command).name == program:
            return one
        waiting += [int(child) for child in children]
    raise SystemExit(f"{program} was not found")


class Testfs:
    """The built-in file system, in the foreground of its own process."""

    def __init__(self, program, *options, faults=False):
        self.mountpoint = pathlib.Path(tempfile.mkdtemp(prefix="rbench-check-"))
        self.stats_file = pathlib.Path(f"{self.mountpoint}.stats")
        memory = [] if "--passthrough" in options else ["--memory", "2g"]
        command = [program, "testfs", self.mountpoint, "--stats", self.stats_file, *memory, *options]
        self.fault_file = pathlib.Path(f"{self.mountpoint}.faults")
        if faults:
            command += ["--fault-log", self.fault_file]
        self.process = subprocess.Popen([str(word) for word in command])
        # An aborted check leaves no mount.
        atexit.register(self.process.terminate)
        wait_until(lambda: os.path.ismount(self.mountpoint) or self.process.poll() is not None)
        if self.process.poll() is not None or not os.path.ismount(self.mountpoint):
            raise SystemExit(f"{self.mountpoint} was not mounted")

    def fault_log(self):
        """Returns the faults that have fired, with `faults`."""
        lines = self.fault_file.read_text().splitlines() if self.fault_file.exists() else []
        return [json.loads(line) for line in lines]

    def stats(self):
        """Returns its current counters."""
        self.stats_file.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        if not wait_until(self.stats_file.exists):
            raise SystemExit("SIGUSR1 wrote no statistics")
        return json.loads(self.stats_file.read_text())["requests"]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(timeout=PATIENCE_S) == 0, "rbench testfs ends well on SIGTERM")
        check(not os.path.ismount(self.mountpoint), "rbench testfs unmounts itself")
        self.clear()

    def bury(self):
        """Ends one whose server is dead, disconnected, or blocked by a hanging call."""
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-l", self.mountpoint], check=False, capture_output=True)
        wait_until(lambda: not os.path.ismount(self.mountpoint))
        self.clear()

    def clear(self):
        atexit.unregister(self.process.terminate)
        self.mountpoint.rmdir()
        self.stats_file.unlink(missing_ok=True)
        self.fault_file.unlink(missing_ok=True)


def mpirun(launcher, ranks):
    """Returns the launcher's words for this number of ranks on this machine."""
    return [launcher, "-np", str(ranks)]
