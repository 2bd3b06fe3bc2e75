"""Compares every option of fio with fio's recorded behaviour, or checks that it is refused with a reason.

usage: fio_options.py PROGRAM [--only NAME…] [--write] [--living]
       fio_options.py --record [--only NAME…]
       --only: these options, with what differs
       --write: writes docs/reference/fio-options.md, which otherwise has to be what the checks found
       --living: runs fio as well, and compares it with the record
       --record: runs fio and writes the record; a row stays as it is while fio's answer is the same

fio-3.33.jsonl has a row for each line of fio_cases.py: the answer of fio (3.33, as in Debian). The program runs the
same lines, each in its own directory, and has to give the same answer. fio itself runs only with --living and
--record.

The kind of a line determines what has to be equal:
  same    exit code, files and their sizes, I/Os, bytes and syncs of each direction of each entry, keys of the JSON,
          names, lines and columns of logs
  sum     the same, but reads and writes of a mix are drawn: their sum
  some    the same, but the draw decides how much is done: that each direction does something
  timed   the same, but time decides how much is done: that there is some
  files   exit code and files only
  data    the same as `same`, and the files hold the same bytes
  disks   the same as `same` on a disk, with the same devices and keys of them
  inflated  the same as `same`, and each tool inflates the compressed logs of both to the same text
  ratio   the same as `timed` for two jobs of a flow, and their I/Os are in the ratio of its weights
  fails   both refuse it or fail, and the files are the same
A third entry is the reason for a deliberate difference; if there is no longer a difference, that is also a failure.

Nothing is repeated, since no result depends on time: for `timed` and `ratio`, everything except amounts is compared.
With --living, amounts and ratios are also compared, and these lines are repeated: on a busy machine even fio misses
its latency or rate. Each repetition is reported.
"""

import argparse
import atexit
import base64
import collections
import concurrent.futures
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import zlib

from common import check, finish, heading
from fio_cases import CASES, NEWER

ROOT_OF_SOURCES = pathlib.Path(__file__).resolve().parents[2]
DOC = ROOT_OF_SOURCES / "docs/reference/fio-options.md"
# Names that a newer fio has.
NEWEST = ROOT_OF_SOURCES / "crates/rbench-cli/src/fio/tests/fio-3.42-options.txt"
RECORD = pathlib.Path(__file__).with_name("fio-3.33.jsonl")
VERSION, FIO = "fio-3.33", ["fio"]
DIRECTIONS = ("read", "write", "trim")
# Time limits in s. fio itself sometimes hangs, for example with log_compression, and is then restarted.
PATIENCE_S = {"fio": 60, "rbench": 300}
# With --living, number of attempts for results that depend on time.
TRIES = 5
TIMED = ("timed", "ratio")
# Values below these keys depend on the machine's disks or on measurements.
VARIABLE = {"disk_util", "percentile", "bins", "steadystate"}
# A direction without I/O has no percentiles.
MEASURED = ("percentile", "bins")
# Disks are compared only in lines of the kind `disks`, since not every file system has them; options are compared with
# their values.
APART = (".disk_util", ".jobs[].job options.")
# The sources of fio's list of options.
HELPS = ("--cmdhelp=all", *(f"--enghelp={engine}" for engine in ("io_uring", "libaio", "pvsync2", "filestat")))
# Options that fio accepts but does not list.
UNLISTED = {"bs_is_seq_rand", "flow_watermark", "iomem_align", "percentage_sequential", "rwmixcycle", "softrandommap", "verifysort",
            "verifysort_nr", "verify_async_cpus"}


# ---- requirements of recorded answers --------------------------------------------------------------

def takes_direct_io():
    """Returns whether the file system of the directories supports O_DIRECT."""
    path = ROOT / "direct"
    path.touch()
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    finally:
        path.unlink()
    return True


def takes_io_uring():
    """Returns whether the kernel supports io_uring."""
    params = ctypes.create_string_buffer(120)
    ring = ctypes.CDLL(None, use_errno=True).syscall(425, 1, params)
    if ring < 0:
        return False
    os.close(ring)
    return True


def huge_pages():
    """Returns the number of reserved huge pages."""
    with contextlib.suppress(OSError):
        return int(pathlib.Path("/proc/sys/vm/nr_hugepages").read_text())
    return 0


# Pattern of a line → (requirement, whether it is met).
NEEDS = [
    ("--ioengine=io_uring", "io_uring", takes_io_uring),
    ("--direct=1", "O_DIRECT on the file system of /dev/shm", takes_direct_io),
    ("huge$", "a machine without huge pages", lambda: huge_pages() == 0),
    ("--cpus_allowed=0|--cpumask|_cpu=0|_cpus=0", "the processors 0 and 1", lambda: {0, 1} <= os.sched_getaffinity(0)),
    ("--numa", "NUMA", pathlib.Path("/sys/devices/system/node/node0").exists),
    ("--[ug]id=0", "root", lambda: os.geteuid() == 0),
]


def lacking(line):
    """Returns the unmet requirement of a line, if any."""
    return next((what for pattern, what, here in NEEDS if re.search(pattern, line) and not here()), None)


# ---- running a tool ------------------------------------------------------------------------------

def prepare(folder):
    """Creates the files that command lines may refer to."""
    (folder / "have").write_bytes(bytes(range(256)) * 256)
    (folder / "pattern").write_bytes(b"pattern of a file")
    (folder / "patterned").write_bytes(b"\x5a" * 65536)
    for name in ("d1", "d2", "tree", "tree/below"):
        (folder / name).mkdir()
    for name in ("tree/a", "tree/b", "tree/below/c"):
        (folder / name).write_bytes(b"x" * 16384)
    have = folder / "have"
    lines = [f"{have} add", f"{have} open"]
    lines += [f"{have} {what} {offset} 4096" for what, offset in (("read", 0), ("write", 8192), ("read", 4096))]
    lines += [f"{have} sync 0 0", f"{have} wait 20 0", f"{have} close"]
    (folder / "trace.log").write_text("fio version 2 iolog\n" + "\n".join(lines) + "\n")
    lines = [f"0 {have} add", f"0 {have} open", f"1 {have} read 0 4096", f"2 {have} write 4096 4096", f"3 {have} close"]
    (folder / "trace3.log").write_text("fio version 3 iolog\n" + "\n".join(lines) + "\n")


def words_of(line, folder):
    """Splits a line into words like a shell, except for quotes, which belong to fio."""
    return [word.replace("{dir}", str(folder)) for word in line.split()]


def started_by(pid):
    """Returns a process and all its descendants, even in other sessions."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            found += map(int, pathlib.Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


def ended(tool, line, folder, tries):
    """Runs the tool to its end. Restarts a hanging tool, for `tries` attempts in total."""
    prepare(folder)
    patience = PATIENCE_S["fio" if tool == FIO else "rbench"]
    words = [*tool, "--output=out.json", "--output-format=json", "--name=o", *words_of(line, folder)]
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    try:
        output = process.communicate(timeout=patience)
        return subprocess.CompletedProcess(words, process.returncode, *output)
    except subprocess.TimeoutExpired:
        for one in reversed(started_by(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.communicate()
        if tries == 1:
            raise
    print(f"   {' '.join(words)}: has not ended within {patience} s, once more", flush=True)
    shutil.rmtree(folder)
    folder.mkdir()
    return ended(tool, line, folder, tries - 1)


def run(tool, line, folder):
    """Runs the tool to its end. Returns it and its JSON, with the directory's path replaced."""
    done = ended(tool, line, folder, 3 if tool == FIO else 1)
    out = folder / "out.json"
    text = out.read_text() if out.exists() else ""
    out.unlink(missing_ok=True)
    start = re.search(r"^\{", text, re.M)
    # fio's messages may follow it.
    document = json.JSONDecoder().raw_decode(text[start.start():])[0] if start else {"jobs": []}
    return done, json.loads(json.dumps(document).replace(str(folder), "DIR"))


# ---- the answer: the parts of a run that are compared and recorded ---------------------------------

def answer(kind, line, ran, folder):
    """Returns a tool's behaviour for a line, as far as its kind compares it. Omits usual values: missing entries are 0,
    empty, or as created by `prepare`."""
    done, document = ran
    sizes, prepared = sizes_of(folder), prepared_sizes()
    # The length of a trace depends on the name of its directory.
    traces = {name for name in set(sizes) & set(prepared) if is_log(name)}
    changed = {name: sizes.get(name) for name in sorted(set(sizes | prepared) - traces) if sizes.get(name) != prepared.get(name)}
    logs = [name for name, size in changed.items() if is_log(name) and size is not None]
    found = {"exit": done.returncode, "files": {name: size for name, size in changed.items() if name not in logs}}
    if kind != "fails":
        found["logs"] = {name: shape(folder / name, kind) if kind != "files" else {} for name in logs}
    if kind not in ("fails", "files"):
        found["entries"] = [entry(job, kind) for job in document["jobs"]]
        found["keys"] = sorted({key for key in keys(document) if not key.startswith(APART)})
    if kind == "data":
        found["data"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in found["files"]}
    if kind == "inflated":
        found["stored"] = {name: stored((folder / name).read_bytes()) for name in logs if name.endswith(".fz")}
    if kind == "disks":
        found["devices"] = {disk["name"]: {key: type(value).__name__ for key, value in disk.items() if "sectors" not in key}
                            for disk in document.get("disk_util", [])}
    if kind == "ratio" and len(document["jobs"]) == 2:
        found["ratio"] = ratio(line, document)
    return {key: value for key, value in found.items() if value or key in ("exit", "keys")}


@functools.cache
def prepared_sizes():
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        prepare(pathlib.Path(folder))
        return sizes_of(pathlib.Path(folder))


def sizes_of(folder):
    return {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}


def is_log(name):
    return name.endswith((".log", ".txt", ".state", ".fz"))


def shape(path, kind):
    """Returns the columns of a log's lines, and the number of lines if it does not depend on time."""
    lines = path.read_text(errors="replace").splitlines() if path.name.endswith(".log") else []
    columns = sorted({len(line.split(",")) for line in lines})
    return {"columns": columns} | ({"lines": len(lines)} if kind in ("same", "disks", "inflated") else {})


def entry(job, kind):
    """Returns a job's name, its amounts and its options from the JSON."""
    did = {way: [job[way]["total_ios"], job[way]["io_bytes"]] for way in (*DIRECTIONS, "mixed") if way in job}
    if kind in ("some", *TIMED):
        did = {way: "some" for way, amounts in did.items() if amounts[0]}
    else:
        if kind == "sum":
            did = {"all": [sum(column) for column in zip(*did.values())]}
        did = {way: amounts for way, amounts in did.items() if any(amounts)}
        did |= {"sync": syncs} if (syncs := job.get("sync", {}).get("total_ios")) else {}
    found = {"name": job.get("jobname"), "group": job.get("groupid"), "error": job.get("error"), "did": did,
             "options": job.get("job options")}
    return {key: value for key, value in found.items() if value not in (0, None)}


def ratio(line, document):
    """Returns whether the I/Os of two jobs are in the ratio of the flow's weights."""
    weights = [int(weight) for weight in re.findall(r"--flow=(\d+)", line)]
    first, second = (job["read"]["total_ios"] for job in document["jobs"])
    found, meant = first / max(second, 1), weights[0] / weights[1]
    return "kept" if 0.8 * meant < found < 1.25 * meant else f"{first} and {second} I/Os: {found:.2f}"


def keys(value, path=""):
    """Yields the paths of all keys, except those below variable ones."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            if key not in VARIABLE:
                yield from keys(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        yield from keys(value[0], f"{path}[]")


def stored(compressed):
    """Returns the content of a log_store_compressed log: its bytes, and its lines without time and value."""
    lines = [line.split(", ", 2)[2] for line in inflated(compressed).splitlines()]
    return {"zlib": base64.b64encode(compressed).decode(), "lines": sorted(lines)}


def inflated(compressed):
    """Returns the text of such a log with an independent reader: records in consecutive zlib streams."""
    text = ""
    while compressed:
        stream = zlib.decompressobj()
        records, compressed = stream.decompress(compressed) + stream.flush(), stream.unused_data
        while records:
            ms, value, direction, priority, block = struct.unpack_from("<QQIH2xQ", records)
            columns, size = [ms, value, direction & 0x1FFFFFFF, block], 32
            if direction >> 31:
                columns, size = [*columns, *struct.unpack_from("<Q", records, 32)], 40
            columns.append(f"0x{priority:04x}" if direction >> 30 & 1 else int(priority >> 13 == 1))
            text += ", ".join(map(str, columns)) + "\n"
            records = records[size:]
    return text


def inflated_by(tool, compressed):
    with tempfile.NamedTemporaryFile(dir=ROOT, suffix=".fz") as file:
        file.write(compressed)
        file.flush()
        return subprocess.run([*tool, f"--inflate-log={file.name}"], capture_output=True, text=True, check=False).stdout


def devices_below(folder):
    """Returns the disk of a directory, and the disks below it, from sysfs."""
    number = folder.stat().st_dev
    disk = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not disk.exists():
        return []
    disk = disk.resolve()
    if not (disk / "queue").exists():
        disk = disk.parent
    return [disk.name, *sorted(path.name for path in disk.glob("slaves/*"))]


# ---- comparing -----------------------------------------------------------------------------------

def differences(kind, fio, other, clock, who="rbench"):
    """Returns differences between another answer and fio's, as sentences. Without a `clock`, only those that do not
    depend on time."""
    found = []

    def same(what, a, b):
        if a != b:
            found.append(f"{what}: fio {a}, {who} {b}")

    def both(key):
        return fio.get(key, {}), other.get(key, {})

    if kind == "fails":
        same("fails", fio["exit"] != 0, other["exit"] != 0)
    else:
        same("exit code", fio["exit"], other["exit"])
    if found:
        return found
    same("files", *both("files"))
    same("data", *both("data"))
    same("names of logs", *map(sorted, both("logs")))
    undecided = kind in TIMED and not clock
    for name, (theirs, ours) in in_both(*both("logs")):
        # A log without a line has no columns yet.
        if not undecided or ours["columns"]:
            same(f"{name}: columns, lines", theirs, ours)
    for name, (theirs, ours) in in_both(*both("stored")):
        same(f"{name}: lines without time and value", theirs["lines"], ours["lines"])
    same("number of entries", *map(len, both("entries")))
    for theirs, ours in zip(*both("entries")):
        for key in ("name", "group", "error", "options"):
            same(key, theirs.get(key), ours.get(key))
        if undecided:
            same("directions that only one has", [], sorted(set(ours["did"]) - set(theirs["did"])))
        else:
            same("I/Os and bytes", theirs["did"], ours["did"])
    if clock:
        same("ratio", *both("ratio"))
    missing = set(fio.get("keys", [])) - set(other.get("keys", []))
    missing = {key for key in missing if not (undecided and key.endswith(MEASURED))}
    if missing:
        found.append(f"keys that {who} lacks: {outermost(missing)}")
    return found


def in_both(a, b):
    return [(name, (a[name], b[name])) for name in sorted(set(a) & set(b))]


def changed(kind, recorded, now):
    """Returns differences between fio's current and its recorded answer."""
    found = differences(kind, recorded, now, True, "now")
    if more := set(now.get("keys", [])) - set(recorded.get("keys", [])):
        found.append(f"keys that were not recorded: {outermost(more)}")
    return found + device_differences(kind, recorded, now)


def device_differences(kind, recorded, other):
    """Returns mistakes in the devices of an answer, as sentences. Names depend on the machine, keys are recorded."""
    if kind != "disks":
        return []
    (theirs,) = recorded["devices"].values()
    meant, found = devices_below(DISK), other.get("devices", {})
    right = list(found) == meant and all(theirs.items() <= ours.items() for ours in found.values())
    # A device above others has more keys.
    right = right and (len(meant) > 1 or all(theirs == ours for ours in found.values()))
    return [] if right else [f"devices: {meant}, with {theirs}, not {found}"]


def inflation_differences(tools, stored_logs):
    """Returns the compressed logs that a tool does not inflate to their text."""
    found = []
    for logs in stored_logs:
        if not logs:
            found.append("there are no compressed logs")
        for name, log in logs.items():
            compressed = base64.b64decode(log["zlib"])
            texts = [inflated(compressed), *(inflated_by(tool, compressed) for tool in tools)]
            if len(set(texts)) > 1 or (not texts[0] and "slat" not in name):
                found.append(f"{name}: inflated to {texts}")
    return found


# ---- the record ----------------------------------------------------------------------------------

class Record:
    """fio-3.33.jsonl: its version, its options, the JSON keys of most lines, and a row for each line."""

    def __init__(self):
        rows = [json.loads(row) for row in RECORD.read_text().splitlines()] if RECORD.exists() else []
        self.options = {row["help"]: row["lists"] for row in rows if "help" in row}
        self.usual = [f"{row['keys_in']}.{name}" for row in rows if "keys_in" in row for name in row["usual"]]
        self.rows = {(row["option"], row["line"]): row for row in rows if "line" in row}

    def names(self):
        """Returns names and aliases of all options of jobs and engines."""
        return set().union(*self.options.values()) | UNLISTED

    @staticmethod
    def newest():
        """Names of options of fio 3.42."""
        words = " ".join(NEWEST.read_text().splitlines()[1:]).split()
        return {word for word in words if not word.endswith(":")}

    def answer(self, option, line):
        """Returns fio's answer to a line; None without one."""
        row = self.rows.get((option, line))
        if row is None or "keys" not in row:
            return row
        less = {key[1:] for key in row["keys"] if key[0] == "-"}
        kept = {key for key in self.usual if key not in less and not is_below(key, less)}
        return row | {"keys": sorted(kept | {key[1:] for key in row["keys"] if key[0] == "+"})}

    def write(self, answers):
        """Replaces all rows by these: (option, line) → row, with all keys."""
        sets = collections.Counter(tuple(row["keys"]) for row in answers.values() if "keys" in row)
        usual = list(max(sets, key=lambda one: (sets[one], one)))
        places = collections.defaultdict(list)
        for key in usual:
            place, _, name = key.rpartition(".")
            places[place].append(name)
        rows = [{"fio": VERSION, "record": "what fio did with the lines of fio_cases.py, made by fio_options.py --record"}]
        rows += [{"help": name, "lists": options} for name, options in self.options.items()]
        rows += [{"keys_in": place, "usual": names} for place, names in sorted(places.items())]
        rows += [row | {"keys": relative(usual, row["keys"])} if "keys" in row else row for _, row in sorted(answers.items())]
        RECORD.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def is_below(key, others):
    return any(key.startswith((f"{one}.", f"{one}[]")) for one in others)


def outermost(found):
    """Sorts the keys, and removes keys below others."""
    return [key for key in sorted(found) if not is_below(key, found)]


def relative(usual, found):
    """Expresses keys as differences from the usual ones; a key includes all keys below it."""
    return [f"-{key}" for key in outermost(set(usual) - set(found))] + [f"+{key}" for key in sorted(set(found) - set(usual))]


def options_of_fio():
    """Returns names and aliases, by the help that lists them."""
    shown = {name: subprocess.run([*FIO, name], capture_output=True, text=True, check=False).stdout for name in HELPS}
    return {name: sorted(set(re.findall(r"^ *([a-z][\w-]*) *:", text, re.M))) for name, text in shown.items()}


def require_fio():
    try:
        found = subprocess.run([*FIO, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        found = "not installed"
    if found != VERSION:
        raise SystemExit(f"fio {VERSION} is needed, not {found}: scripts/install-packages test")


# ---- handling a line -------------------------------------------------------------------------------

def asked(tool, kind, line):
    """Returns the answer of a tool, and its standard error."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="o", dir=DISK if kind == "disks" else ROOT))
    try:
        ran = run(tool, line, folder)
        return answer(kind, line, ran, folder), ran[0].stderr.strip()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# What rbench says of a machine that is too busy.
BUSY = re.compile(r"rbench: (No worker of a host finished anything for more than a second: |.* has not returned for [0-9]+ s$)")
# Errors that mean that a tool gave no answer.
NO_ANSWER = (subprocess.TimeoutExpired, json.JSONDecodeError, OSError, KeyError, IndexError, ValueError, zlib.error, struct.error)


def wrong_with_rbench(program, kind, line, fio, living):
    """Returns differences between the program's answer and fio's, as sentences."""
    ours = [program, "fio"]
    try:
        rbench, stderr = asked(ours, kind, line)
        found = differences(kind, fio, rbench, living)
        found += device_differences(kind, fio, rbench)
        if kind == "inflated":
            found += inflation_differences([ours, *([FIO] if living else [])], [fio["stored"], rbench.get("stored")])
    except NO_ANSWER as error:
        return [f"{type(error).__name__}: {error}"]
    said = "\n".join(line for line in stderr.splitlines() if not BUSY.match(line))
    if said and (found or kind not in ("files", "fails")):
        found.append(f"standard error: {said[-300:]}")
    return found


def wrong_with_record(kind, line, recorded):
    """Returns differences between fio's answer and the record, as sentences."""
    try:
        return [f"the record: {one}" for one in changed(kind, recorded, asked(FIO, kind, line)[0])]
    except NO_ANSWER as error:
        return [f"fio: {type(error).__name__}: {error}"]


def again(kind, what, once):
    """Returns the findings of `once`; if they depend on time, only those found every time."""
    found = once()
    for number in range(1, TRIES if kind in TIMED else 1):
        if not found:
            break
        print(f"   {what}: {'; '.join(found)}: attempt {number} of {TRIES}", flush=True)
        found = once()
    return found


def wrong_of(options, record, name, case):
    """Returns mistakes in a line of an option, as sentences."""
    kind, line, *differs = case
    fio = record.answer(name, line)
    if fio is None or fio["kind"] != kind:
        return [f"{name}: {line}: not in the record: fio_options.py --record"]
    living = options.living

    def compared():
        return wrong_with_rbench(options.program, kind, line, fio, living)

    found = again(kind, line, compared) if living and not differs else compared()
    if differs:
        found = [] if found else [f"they do not differ: {differs[0]}"]
    if living:
        found += again(kind, f"fio {line}", lambda: wrong_with_record(kind, line, fio))
    return [f"{name}: {line}: {one}" for one in found]


def recorded(record, name, case):
    """Returns the row of a line for which fio gave the same answer twice; the old row if it is unchanged."""
    kind, line, *_ = case
    old = record.answer(name, line)
    for _ in range(TRIES if kind in TIMED else 1):
        try:
            first, second = (asked(FIO, kind, line)[0] for _ in range(2))
        except NO_ANSWER as error:
            found = f"{type(error).__name__}: {error}"
            continue
        found = changed(kind, first, second)
        if not found:
            unchanged = old and old["kind"] == kind and not changed(kind, old, second)
            return old if unchanged else {"option": name, "line": line, "kind": kind} | second
    check(False, f"{name}: {line}: fio gives one answer, and then another: {found}")
    return old


def refusal(program, name):
    """Returns why the program refuses an option; None if it accepts it."""
    done = subprocess.run([program, "fio", f"--{name}=1", "--name=x", "--parse-only"], capture_output=True, text=True,
                          check=False)
    found = re.search(rf"'?--{re.escape(name)}'? is not supported: (.*)", done.stderr)
    return found[1].strip() if found else None


def shown(kind, line, differs=None):
    return f"`{line}` ({kind})" if differs is None else f"`{line}`: differs, {differs}"


def each(cases, work, alone):
    """Returns the results of `work` for each (option, case). Several run in parallel, except kinds in `alone`."""
    found = {}
    for kinds_alone, workers in ((True, 1), (False, 2 * os.cpu_count())):
        batch = [(name, case) for name, case in cases if (case[0] in alone) == kinds_alone]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for (name, case), one in zip(batch, pool.map(lambda one: work(*one), batch)):
                found[name, case[1]] = one
    return found


def write_record(only):
    """Records fio's answers to all lines, or to those of some options."""
    require_fio()
    record = Record()
    record.options = options_of_fio()
    cases = [(name, case) for name, cases in CASES.items() for case in cases]
    wanted = [(name, case) for name, case in cases if not only or name in only]
    for name, (_, line, *_) in wanted:
        if what := lacking(line):
            raise SystemExit(f"{name}: {line}: cannot be recorded here, it needs {what}")
    answers = {(name, case[1]): record.answer(name, case[1]) for name, case in cases}
    answers |= each(wanted, lambda name, case: recorded(record, name, case), TIMED)
    finish()
    before = RECORD.read_text() if RECORD.exists() else ""
    record.write({key: row for key, row in answers.items() if row is not None})
    print(f"   {RECORD.name}: {len(wanted)} lines, {'as before' if RECORD.read_text() == before else 'changed'}", flush=True)


def compare(options):
    """Compares the program with the record and, with --living, with fio."""
    record = Record()
    if options.living:
        require_fio()
        check(options_of_fio() == record.options, "fio lists other options than those recorded: fio_options.py --record")
    newer = (record.newest() | set(NEWER)) - record.names()
    names = sorted(options.only or record.names() | newer)
    heading(f"{len(names)} options: compared with {'fio' if options.living else 'what fio did'}, or refused with a reason")
    with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as pool:
        reasons = dict(zip(names, pool.map(lambda name: refusal(options.program, name), names)))
    compared = [name for name in names if not reasons[name] and name not in newer]
    cases = [(name, case) for name in compared for case in CASES.get(name, [])]
    left = {(name, case[1]): what for name, case in cases if (what := lacking(case[1]))}
    for (name, line), what in left.items():
        print(f"   left out, it needs {what}: {name}: {line}", flush=True)
    check(not left or "RBENCH_TEST_NO_SKIP" not in os.environ, f"{len(left)} lines are left out where nothing may be")
    wrong = each([(name, case) for name, case in cases if (name, case[1]) not in left],
                 lambda name, case: wrong_of(options, record, name, case), TIMED if options.living else ())
    rows, tested = [], 0
    for name in names:
        if reasons[name]:
            rows.append(f"| `{name}` | refused: {reasons[name]} |")
        elif name in newer:
            where = f": {NEWER[name]}" if name in NEWER else ""
            rows.append(f"| `{name}` | newer than fio 3.33{where} |")
        else:
            found = [one for case in CASES.get(name, []) for one in wrong.get((name, case[1]), [])]
            for one in found:
                check(False, one)
            check(CASES.get(name), f"{name}: accepted, and compared with nothing")
            tested += not found
            rows.append(f"| `{name}` | {'<br>'.join(shown(*case) for case in CASES.get(name, []))} |")
    refused = sum(map(bool, reasons.values()))
    print(f"   {tested} the same as fio, {refused} refused, {len(names) - tested - refused} others", flush=True)
    if not options.only:
        unknown = sorted(set(CASES) - set(names))
        check(not unknown, f"lines of options that fio does not have: {unknown}")
        stale = sorted(set(record.rows) - {(name, case[1]) for name, of in CASES.items() for case in of})
        check(not stale, f"recorded, and no line of fio_cases.py any more: {stale}: fio_options.py --record")
        check_page(rows, options.write)


def check_page(rows, write):
    head = ("# Every option of fio up to 3.42: how it is compared with fio, or why it is refused\n\n"
            "Written by `scripts/checks/fio_options.py`, which runs rbench with these lines after `--name=o` and says what each kind\n"
            "compares. What fio did with them is recorded in `scripts/checks/fio-3.33.jsonl`.\n\n| option | |\n|---|---|\n")
    text = head + "\n".join(rows) + "\n"
    if write:
        DOC.write_text(text)
    else:
        check(DOC.exists() and DOC.read_text() == text, f"{DOC.name} is not what was found: write it with --write")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("program", nargs="?", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--living", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if (options.program is None) != options.record:
        parser.error("PROGRAM or --record")
    global ROOT, DISK
    ROOT, DISK = [pathlib.Path(tempfile.mkdtemp(prefix="check-fio-options-", dir=place)) for place in ("/dev/shm", tempfile.gettempdir())]
    for folder in (ROOT, DISK):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if options.record:
        write_record(options.only)
    else:
        compare(options)
    finish()


if __name__ == "__main__":
    main()
