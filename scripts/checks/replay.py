"""rCompares rbench replay and rbench record with strace. A second trace of a replay must have the same calls as the
first trace; a replayed recording must give the same tree. Damaged or malicious traces must end with a sentence,
without any change.

strace itself prints the paths of descriptors (-y), so this check does not track descriptors; rbench reads only the
numbers.

usage: replay.py PROGRAM
"""

import base64
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import Testfs, attempt, check, finish, heading, mpirun, result, run, wait_until

STRACE = ["strace", "-f", "-y", "-ttt", "-T", "-s", "0"]
LINE = re.compile(r"^(\d+)\s+(\d+\.\d+)\s+(.*)$")
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\w+|\?)(.*)$")
# A common name for equivalent calls, with the position of their object: a descriptor, or a descriptor and a name.
NAMES = {
    "openat": ("open", "at"), "open": ("open", "name"), "creat": ("open", "name"),
    "read": ("read", "fd"), "pread64": ("read", "fd"), "write": ("write", "fd"), "pwrite64": ("write", "fd"),
    "lseek": ("lseek", "fd"), "fsync": ("fsync", "fd"), "fdatasync": ("fdatasync", "fd"),
    "ftruncate": ("truncate", "fd"), "getdents64": ("getdents", "fd"),
    "fstat": ("stat", "fd"), "newfstatat": ("stat", "at"), "stat": ("stat", "name"), "lstat": ("stat", "name"),
    "statx": ("stat", "at"), "access": ("access", "name"), "faccessat": ("access", "at"), "faccessat2": ("access", "at"),
    "mkdir": ("mkdir", "name"), "mkdirat": ("mkdir", "at"), "rmdir": ("rmdir", "name"), "unlink": ("unlink", "name"),
    "unlinkat": ("unlink", "at"), "rename": ("rename", "names"), "renameat": ("rename", "ats"), "renameat2": ("rename", "ats"),
    "link": ("link", "names"), "linkat": ("link", "ats"), "symlink": ("symlink", "second"), "symlinkat": ("symlink", "third"),
    "readlink": ("readlink", "name"), "readlinkat": ("readlink", "at"), "chmod": ("chmod", "name"), "fchmod": ("chmod", "fd"),
    "fchmodat": ("chmod", "at"), "utimensat": ("utimes", "at"), "futimens": ("utimes", "fd"),
}  # fmt: skip


def arguments(text):
    """Splits at commas outside quotes and brackets."""
    parts, depth, quoted, start = [], 0, False, 0
    place = 0
    while place < len(text):
        letter = text[place]
        if quoted and letter == "\\":
            place += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted and re.match(r"[0-9D]<[^<].*>", text[max(place - 1, 0):]):
            # Skips the path of a descriptor.
            place = text.index(">", place)
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        elif not quoted and letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
        place += 1
    parts.append(text[start:].strip())
    return parts


def string(text):
    return text[1:-1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "surrogateescape")


def behind(descriptor, cwd):
    """Returns the path that strace printed after a descriptor."""
    found = re.match(r"^(?:AT_FDCWD|\d+)<(.*?)>?(?:\(deleted\))?$", descriptor)
    if found:
        path = re.sub(r"(?: ?\(deleted\)|>)+$", "", found[1])
        return string(f'"{path}"')
    return cwd


def calls(trace):
    """Returns the calls of each process in order of their starts: (process, time, kind, paths, result)."""
    begun, cwds, all_calls = {}, {}, []
    for line in pathlib.Path(trace).read_text(errors="surrogateescape").splitlines():
        pid, at, rest = LINE.match(line).groups()
        if rest.endswith("<unfinished ...>"):
            begun[pid] = (at, rest.removesuffix("<unfinished ...>"))
            continue
        if rest.startswith("<... "):
            if pid not in begun:
                continue
            at, first = begun.pop(pid)
            rest = first + rest.split(" resumed>", 1)[1]
        found = CALL.match(rest)
        if not found:
            continue
        name, args, outcome, _ = found.groups()
        args = arguments(args)
        if name == "chdir" and outcome == "0":
            cwds[pid] = string(args[0])
        if name == "fchdir" and outcome == "0":
            cwds[pid] = behind(args[0], None)
        if name in NAMES:
            all_calls.append((float(at), pid, name, args, outcome, cwds.get(pid)))
    all_calls.sort(key=lambda call: call[0])
    return all_calls


def told(all_calls, cwd, below, only=None):
    """Returns (kind, paths below a directory) of calls on entries there."""
    told = []
    for _, pid, name, args, outcome, own in all_calls:
        if only and pid != only:
            continue
        at = os.path.join(cwd, own or "")
        kind, where = NAMES[name]
        try:
            if where == "fd":
                paths = [behind(args[0], None)]
            elif where == "at":
                paths = [behind(args[0], at)] if args[1] in ('""', "NULL") else [
                    os.path.join(behind(args[0], at), string(args[1]))]
            elif where == "ats":
                paths = [os.path.join(behind(args[n], at), string(args[n + 1])) for n in (0, 2)]
            elif where == "names":
                paths = [os.path.join(at, string(args[n])) for n in (0, 1)]
            else:
                place = {"name": 0, "second": 1, "third": 2}[where]
                base = behind(args[1], at) if where == "third" else at
                paths = [os.path.join(base, string(args[place]))]
        except (TypeError, UnicodeError):
            continue
        if any(path is None for path in paths):
            continue
        paths = [os.path.normpath(path) for path in paths]
        if all(path == below or path.startswith(below + "/") for path in paths):
            error = outcome.startswith("-1")
            told.append((kind, tuple(os.path.relpath(path, below) for path in paths), error))
    return told


def traced_replay(program, trace, target, *options):
    """Replays under strace. Returns the worker's calls, and the result."""
    second, out = target.parent / "second.strace", target.parent / "result.json"
    for old in (second, out):
        old.unlink(missing_ok=True)
    run([*STRACE[:-1], "32", "-o", second, program, "replay", trace, "--dir", target, "--out", out, "--quiet", "--no-round-trip", *options],
        expect=None)  # fmt: skip
    all_calls = calls(second)
    base = re.compile(re.escape(str(target)) + r"/rbench\.[^/]+/0$")
    # The first worker creates the entries that existed before the trace.
    workers = workers_of(second)
    check(len(workers) == 2, f"the replay of {trace} has these workers: {workers}")
    runs = {behind(arg, "") for _, pid, _, args, *_ in all_calls if workers and pid == workers[-1]
            for arg in args[:1] if base.match(behind(arg, "") or "")}  # fmt: skip
    check(len(runs) == 1, f"calls are relative to one directory: {runs}")
    where = f"{runs.pop()}/c0" if runs else "/"
    return told(all_calls, "/", where, workers[-1] if workers else ""), result(out), all_calls


def workers_of(trace):
    """Returns the threads named as workers, in order of their starts."""
    return re.findall(r'^(\d+) .*prctl\(PR_SET_NAME, "worker-0"', pathlib.Path(trace).read_text(errors="replace"), re.M)


def alike(first, second, what):
    # Closes are not compared: closing a descriptor that is not the last one of its file prints nothing.
    check(len(first) > 20, f"{what}: the trace has {len(first)} calls")
    check(len(first) == len(second), f"{what}: {len(first)} calls in the trace, {len(second)} in the replay")
    for number, (one, other) in enumerate(zip(first, second)):
        if one != other:
            check(False, f"{what}: call {number} was {one} and is {other}")
            return
    print(f"   {what}: {len(first)} calls alike, {dict(collections.Counter(kind for kind, *_ in first))}", flush=True)


def counts(document, what, ordered=True):
    """Checks the result's own totals and its lateness. `ordered`: one worker replays a whole copy, so no result may
    differ."""
    replay = document["replays"][0]
    left = sum(entry["operations"] for entry in replay["left_out"])
    check(replay["found"] == replay["wanted"] + left, f"{what}: operations in are those out and those left out: {replay}")
    rows = [phase for phase in document["phases"] if "replayed" in phase]
    wanted = sum(row["replayed"]["wanted"] for row in rows)
    check(wanted == replay["wanted"] * replay["copies"], f"{what}: rows want {wanted}, the replay {replay['wanted']}")
    done = sum(row["items"] + sum(row["errors"].values()) for row in rows)
    unopened = sum(row["replayed"]["unopened"] for row in rows)
    check(done == replay["done"] and done + unopened == wanted, f"{what}: {done} done, {unopened} not open, {wanted} wanted")
    differ = {row["name"]: row["replayed"]["differ"] for row in rows if any(row["replayed"]["differ"].values())}
    check(not (ordered and differ), f"{what}: results differ: {differ}")
    late = replay.get("late")
    if late:
        check(sum(late["counts"]) == done, f"{what}: each operation is late somehow: {late}")
        check(late["max_s"] < 60, f"{what}: the latest is {late['max_s']} s behind")
        print(f"   {what}: {100 * late['within_1ms']:.2f}% within 1 ms, the latest {1000 * late['max_s']:.1f} ms", flush=True)
    return replay


def repository(folder):
    """Creates a repository with some files in some directories."""
    draw = random.Random(5)
    for number in range(60):
        path = folder / f"d{number % 6}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(draw.randrange(0, 40_000)))
    (folder / "d0" / "link").symlink_to("f0")
    (folder / "d1" / "run").write_text("#!/bin/sh\n")
    (folder / "d1" / "run").chmod(0o755)
    git = ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)


def programs(program, folder, source):
    heading("strace of git clone and of tar x: the replay makes the same calls in the same order")
    archive = folder / "all.tar"
    subprocess.run(["tar", "-C", folder, "-cf", archive, source.name], check=True)
    for name, command in [("clone", ["git", "clone", "-q", source, "copy"]), ("tar", ["tar", "xf", archive])]:
        work, trace = folder / f"work-{name}", folder / f"{name}.strace"
        work.mkdir()
        subprocess.run([*STRACE, "-o", trace, *command], cwd=work, check=True)
        target = folder / "target"
        target.mkdir(exist_ok=True)
        options = ["--below", folder, "--cwd", work]
        replayed, document, _ = traced_replay(program, trace, target, *options)
        alike(told(calls(trace), str(work), str(folder)), replayed, name)
        replay = counts(document, name)
        check(replay["prepared"] > 0, f"{name}: what it read was there before")
        for row in document["phases"]:
            recorded = row["replayed"].get("recorded")
            check(recorded is None or recorded["count"] <= row["replayed"]["wanted"], f"{name}: {row['name']}: {recorded}")
        check(not list(target.iterdir()), f"{name}: something is left in {target}")
        # In memory: a shared disk delays operations, even at high priority.
        with tempfile.TemporaryDirectory(prefix="check-replay-", dir="/dev/shm") as quick:
            punctual(program, folder, [trace, "--dir", quick, *options], name)


def punctual(program, folder, words, name):
    """Replays at the recorded times with real-time priority, so that other processes cannot delay it."""
    first = ["chrt", "-f", "10"]
    if subprocess.run([*first, "true"], check=False).returncode != 0:
        print("   real-time priority is not to be had here: how late operations are depends on what else runs", flush=True)
        first = []

    def once():
        out = folder / "plain.json"
        out.unlink(missing_ok=True)
        run([*first, program, "replay", *words, "--quiet", "--out", out])
        late = counts(result(out), f"{name}, at the recorded times")["late"]
        return "" if not first or late["within_1ms"] >= 0.99 else f"{name}: within 1 ms: {late}"

    attempt(3, once)


def fio_logs(program, folder):
    heading("a log of I/O of fio: the transfers of the replay are its lines")
    log, file = folder / "fio.log", folder / "fio.data"
    run(["fio", "--name=j", f"--filename={file}", "--size=1m", "--bs=4k", "--rw=randrw", "--randseed=7", "--fsync=20",
         f"--write_iolog={log}", "--output=/dev/null"])  # fmt: skip
    lines = [line.split() for line in log.read_text().splitlines()[1:]]
    words = {"read": "pread64", "write": "pwrite64", "sync": "fsync", "datasync": "fdatasync"}
    wanted = [(words[line[2]], *line[3:]) if line[2] in ("read", "write") else (words[line[2]],) for line in lines
              if line[2] in words]  # fmt: skip
    target = folder / "target"
    _, document, all_calls = traced_replay(program, log, target, "--as-fast-as-possible")
    workers = workers_of(folder / "second.strace")
    made = [(name, args[3], args[2]) if name.startswith("p") else (name,) for _, pid, name, args, *_ in all_calls
            if pid == workers[-1] and name in words.values() and "c0/" in args[0]]  # fmt: skip
    check(made == wanted and len(made) > 200, f"{len(made)} calls, {len(wanted)} lines: {made[:3]} {wanted[:3]}")
    counts(document, "fio")
    text = "fio version 2 iolog\n/x add\n/x open\n/x read 0 4096\n/x write 8192 4096\n/x close\n"
    (folder / "two.log").write_text(text)
    run([program, "replay", folder / "two.log", "--dir", target, "--quiet"])


class Model:
    """A model of an inode-based file system that writes JuiceFS's access log, and records the system calls that it
    answers."""

    def __init__(self, seed, new):
        self.draw, self.new = random.Random(seed), new
        self.inodes, self.children, self.sizes = {1: None}, {1: {}}, {}
        self.next, self.handle, self.now = 2, 1, 36_000_000_000
        self.lines, self.calls = [], []

    def line(self, method, args, answer, status="OK", soon=False):
        self.now += 200 if soon else 20_000
        micros = self.now
        stamp = f"2024.03.01 {micros // 3_600_000_000:02}:{micros // 60_000_000 % 60:02}:{micros // 1_000_000 % 60:02}" \
                f".{micros % 1_000_000:06}"  # fmt: skip
        tail = f"({args}):{answer} - {status}" if self.new else f"({args}): {status}{answer}"
        self.lines.append(f"{stamp} [uid:0,gid:0,pid:77] {method} {tail} <0.000100>")

    def entry(self, ino):
        kind = "drwxr-xr-x:0040755" if ino in self.children else "-rw-r--r--:0100644"
        return f" ({ino},[{kind},1,0,0,1,1,1,{self.sizes.get(ino, 4096)}])"

    def path(self, ino):
        parts = []
        while self.inodes[ino]:
            ino, name = self.inodes[ino]
            parts.append(name)
        return "/".join(reversed(parts))

    def walk(self, ino):
        """Logs the kernel's lookups on the path of an inode."""
        for at in reversed([*self.above(ino)]):
            parent, name = self.inodes[at]
            self.line("lookup", f"{parent},{name}", self.entry(at), soon=at != ino or True)

    def above(self, ino):
        while self.inodes[ino]:
            yield ino
            ino = self.inodes[ino][0]

    def add(self, parent, name, size=None):
        ino, self.next = self.next, self.next + 1
        self.inodes[ino] = (parent, name)
        self.children[parent][name] = ino
        if size is None:
            self.children[ino] = {}
        else:
            self.sizes[ino] = size
        return ino

    def join(self, parent, name):
        return "/".join(part for part in (self.path(parent), name) if part)

    def step(self):
        parent = self.draw.choice(list(self.children))
        name = f"n{self.draw.choice(['', '', ','])}{self.next} \u00fc"
        what = self.draw.choice(["mkdir", "write", "read", "rename", "unlink", "stat"])
        self.now += 50_000
        files = [ino for ino in self.sizes if self.inodes.get(ino)]
        if what == "mkdir":
            self.walk(parent)
            ino = self.add(parent, name)
            self.line("mkdir", f"{parent},{name},drwxr-xr-x:0040755", self.entry(ino), soon=True)
            self.calls.append(("mkdir", (self.path(ino),), False))
        elif what == "write":
            self.walk(parent)
            self.line("lookup", f"{parent},{name}", "", "no such file or directory", soon=True)
            ino = self.add(parent, name, 0)
            self.handle += 1
            fh = f",{self.handle}" if self.new else ""
            self.line("create", f"{parent},{name},-rw-r--r--:0100644", f"{self.entry(ino)} [fh:{self.handle}]", soon=True)
            self.line("write", f"{ino},5000,0{fh}", "")
            self.sizes[ino] = 5000
            self.line("flush", f"{ino}{fh}", "")
            self.line("release", f"{ino}{fh}", "", soon=True)
            self.calls += [("open", (self.path(ino),), False), ("write", (self.path(ino),), False)]
        elif files and what in ("read", "stat"):
            ino = self.draw.choice(files)
            self.walk(ino)
            if what == "stat":
                self.calls.append(("stat", (self.path(ino),), False))
                return
            self.handle += 1
            fh = f",{self.handle}" if self.new else ""
            self.line("open", f"{ino},0x8000" if self.new else ino, f" [fh:{self.handle}]", soon=True)
            size = self.sizes[ino]
            self.line("read", f"{ino},{size + 10},0{fh}", f" ({size})")
            self.line("flush", f"{ino}{fh}", "")
            self.line("release", f"{ino}{fh}", "", soon=True)
            self.calls += [("open", (self.path(ino),), False), ("read", (self.path(ino),), False)]
        elif files and what in ("rename", "unlink"):
            ino = self.draw.choice(files)
            before, old = self.inodes[ino]
            self.walk(ino)
            path = self.path(ino)
            del self.children[before][old]
            if what == "unlink":
                self.line("unlink", f"{before},{old}", "", soon=True)
                self.inodes[ino] = None
                del self.sizes[ino]
                self.calls.append(("unlink", (path,), False))
                return
            name = name.replace(",", "")
            # A comma in a name is indistinguishable from one between arguments of a rename.
            if "," in old:
                self.children[before][old] = ino
                self.line("getattr", f"{ino}", self.entry(ino), soon=True)
                self.calls.append(("stat", (path,), False))
                return
            self.inodes[ino] = (parent, name)
            self.children[parent][name] = ino
            self.line("rename", f"{before},{old},{parent},{name},0", "", soon=True)
            self.calls.append(("rename", (path, self.path(ino)), False))


def access_logs(program, folder):
    heading("access logs of JuiceFS, old and new, by a model: the calls of the replay are those that it answered")
    target = folder / "target"
    for new in (False, True):
        model = Model(3, new)
        for number in range(4):
            parent = model.add(1, f"old{number}")
            model.add(parent, f"data{number}", 1000 * (number + 1))
        for _ in range(150):
            model.step()
        log = folder / "jfs.log"
        log.write_text("#\n" + "\n".join(model.lines) + "\n")
        replayed, document, _ = traced_replay(program, log, target, "--time-scale", "100")
        what = f"JuiceFS, {'new' if new else 'old'}"
        alike(model.calls, replayed, what)
        counts(document, what)
        check(document["replays"][0]["gaps"] == 0, f"{what}: there is no gap: {document['replays'][0]}")
    # With lost lines, each use of a file without its open is reported.
    lost = [line for line in model.lines if "] open (" not in line]
    log.write_text("\n".join(lost) + "\n")
    out = folder / "gaps.json"
    run([program, "replay", log, "--dir", target, "--as-fast-as-possible", "--quiet", "--out", out])
    opens = len(model.lines) - len(lost)
    check(result(out)["replays"][0]["gaps"] >= opens, f"{opens} opens are lost: {result(out)['replays'][0]['gaps']} gaps")


def tree(folder):
    """Returns the entries of a directory: type, permissions, and content or target."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        mode = 0 if path.is_symlink() else status.st_mode & 0o777
        found[str(path.relative_to(folder))] = (status.st_mode >> 12, mode, content)
    return found


def recordings(program, folder, source):
    heading("git clone recorded and replayed: the same tree, byte for byte")
    data, mount, target, trace = (folder / name for name in ("data", "mount", "kept", "clone.trace"))
    for path in (data, mount, target):
        path.mkdir()
    run([program, "record", data, mount, "--trace", trace, "--", "git", "clone", "-q", source, mount / "copy"])
    check(not os.path.ismount(mount), "the mount is gone")
    wanted = tree(data)
    check(len(wanted) > 60, f"{len(wanted)} files were cloned")
    for copies, options in [(1, ["--as-fast-as-possible"]), (1, []), (3, ["--as-fast-as-possible", "--threads", "3"])]:
        out = folder / "kept.json"
        out.unlink(missing_ok=True)
        run([program, "replay", trace, "--dir", target, "--keep", "--quiet", "--out", out, "--copies", copies, *options])
        document = result(out)
        counts(document, f"record, {copies} copies {' '.join(options)}")
        (kept,) = target.iterdir()
        for copy in range(copies):
            made = tree(kept / "0" / f"c{copy}")
            other = sorted(name for name in wanted.keys() | made.keys() if wanted.get(name) != made.get(name))
            check(not other, f"copy {copy} of {copies} is another tree: {other[:5]}")
        shutil.rmtree(kept)
    heading("over MPI ranks: processes and copies are dealt, and the counts are those of one rank")
    out = folder / "ranks.json"
    run([*mpirun("mpirun", 3), program, "replay", trace, folder / "tar.strace", "--dir", target, "--quiet", "--out", out, "--copies", 4,
         "--as-fast-as-possible", "--cwd", folder / "work-tar"], expect=None)  # fmt: skip
    replay = counts(result(out), "three ranks", ordered=False)
    check(replay["copies"] == 4 and len(replay["traces"]) == 2, f"{replay}")
    heading("record tells the program's exit code, keeps traces, hides nothing, and unmounts whatever happens")
    (mount / "own").write_text("somebody's")
    refused = run([program, "record", data, mount, "--trace", folder / "hidden.trace", "--", "touch", mount / "there"], expect=2)
    check("is not empty" in refused.stderr and not (folder / "hidden.trace").exists(), refused.stderr)
    check([path.name for path in mount.iterdir()] == ["own"], "nothing was run there")
    (mount / "own").unlink()
    done = run([program, "record", data, mount, "--trace", folder / "no.trace", "--", "sh", "-c", "exit 7"], expect=7)
    check("operations are in" in done.stderr, done.stderr)
    run([program, "record", data, mount, "--trace", trace, "--", "true"], expect=2)
    run([program, "record", data, mount, "--trace", folder / "new.trace", "--", "/no/such/program"], expect=2)
    check(not (folder / "new.trace").exists(), "a trace of nothing is left")
    with subprocess.Popen([program, "record", data, mount, "--trace", folder / "ended.trace", "--", "sleep", "100"]) as running:
        deadline = time.monotonic() + 60
        while not os.path.ismount(mount) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        running.send_signal(signal.SIGTERM)
        check(running.wait(60) == 128 + signal.SIGTERM, f"ended with {running.returncode}")
    check(not os.path.ismount(mount), "the mount is gone after SIGTERM")
    with subprocess.Popen([program, "record", data, mount, "--trace", folder / "killed.trace", "--", "sleep", "1000"]) as running:
        check(wait_until(lambda: os.path.ismount(mount)), "it is mounted")
        name = f"/proc/{running.pid}/task/{running.pid}/children"
        children = lambda: {pid: pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in pathlib.Path(name).read_text().split()}
        check(wait_until(lambda: "sleep" in children().values()), "the program runs")
        (sleeper,) = [pid for pid, command in children().items() if command == "sleep"]
        running.kill()
    check(wait_until(lambda: not os.path.exists(f"/proc/{sleeper}")), "the program outlives SIGKILL of rbench")
    check(wait_until(lambda: not os.path.ismount(mount) and os.access(mount, os.R_OK)), "no dead mount stays after SIGKILL")
    return trace


def given_up(program, folder):
    heading("a call that does not return, with much of the trace unread: the run ends and reports")
    testfs = Testfs(program, "--fault", "write:hang@nth=100", "--direct-io")
    log, out = folder / "long.iolog", folder / "given-up.json"
    # More lines than the read-ahead.
    lines = "".join(f"file write {4096 * number} 4096\n" for number in range(20_000))
    log.write_text(f"fio version 2 iolog\nfile add\nfile open\n{lines}file close\n")
    words = [program, "replay", log, "--dir", testfs.mountpoint, "--as-fast-as-possible", "--op-timeout", "1s", "--out", out, "--quiet"]
    with tempfile.TemporaryFile("w+") as err, subprocess.Popen([str(word) for word in words], stderr=err, stdout=subprocess.DEVNULL) as process:
        there = wait_until(out.exists, 60)
        # The kernel ends the process only when the call returns.
        testfs.process.send_signal(signal.SIGUSR2)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        err.seek(0)
        said = err.read()
    check(there and process.returncode == 1 and "and is abandoned" in said, f"exit code {process.returncode}: {said}")
    if there:
        (row,) = [phase for phase in result(out)["phases"] if phase["op"] == "write"]
        check(row["errors"] == {"ETIMEDOUT": 1} and row["given_up"]["lost"] == 99, f"{row['errors']}, {row['given_up']}")
    testfs.bury()


def hostile(program, folder, trace):
    heading("traces that are damaged or mean harm: a sentence with the line, and nothing outside of the run's directory")
    target, outside = folder / "target", folder / "outside"
    outside.mkdir()
    (outside / "keep").write_text("as it was")

    def refused(name, content, *words, options=()):
        path = folder / name
        path.write_bytes(content)
        done = run([program, "replay", path, "--dir", target, "--quiet", *options], expect=2)
        check(len(done.stderr.strip().splitlines()) == 1, f"{name}: one sentence: {done.stderr}")
        check(all(word in done.stderr for word in words), f"{name}: {words} in {done.stderr}")
        check(not list(target.iterdir()), f"{name}: nothing is made")

    strace = (folder / "tar.strace").read_bytes()
    lines = strace.splitlines(keepends=True)
    refused("cut.strace", b"".join(lines[:100]) + lines[100][:25], "line 101", options=["--strict"])
    refused("garbage.strace", b"".join(lines[:50]) + b"\xff\xfe\x00rubbish\n", "line 51", options=["--strict"])
    refused("cut.trace", trace.read_bytes()[:2000], "cut.trace", "line")
    refused("flipped.trace", trace.read_bytes()[:3000] + b"\0" * 50 + trace.read_bytes()[3050:], "flipped.trace", options=["--strict"])
    refused("empty", b"", "is unknown")
    refused("text", b"hello\nworld\n", "is unknown", "--trace-format")
    refused("iolog", b"fio version 2 iolog\n/x add\n/x read 0 4096\n", "line 3", "not open")
    refused("dxt", b"# DXT, file_id: 1, file_name: /a\n X_POSIX 0 write 0 0\n", "line 2", "8 columns")
    header = b'{"rbench-trace":1}\n'
    line = b'{"at":0,"process":1,"op":"unlink","path":"a\\u0000b"}\n'
    refused("nul", header + line, "line 2", "NUL byte")
    refused("version", b'{"rbench-trace":9}\n', "line 1", "version 9")
    refused("options", header + line.replace(b"\\u0000", b""), "cannot be combined", options=["--as-fast-as-possible", "--time-scale", "2"])
    refused("speed", header + line.replace(b"\\u0000", b""), "--time-scale", options=["--time-scale", "0"])
    refused("below", header + line.replace(b"\\u0000", b""), "--below", options=["--below", "x"])

    def op(at, what, **fields):
        return json.dumps({"at": at, "process": 1, "op": what, **fields}).encode() + b"\n"

    month = 31 * 24 * 3600 * 10**9
    refused("late", header + op(0, "mkdir", path="a", mode=0o777) + op(month, "rmdir", path="a"), "line 3", "30 days")
    # Directories that would become inaccessible, and file numbers that occur repeatedly.
    path = folder / "shut"
    again = [op(n, "open", path="shut/file", flags=os.O_RDWR | os.O_CREAT, mode=0o644, file=1) for n in range(2, 600)]
    shut = op(1000, "chmod", path="told", mode=0, kind="directory", returned=0)
    path.write_bytes(b"".join([header, op(0, "mkdir", path="shut", mode=0), op(1, "mkdir", path="told", mode=0o755), *again, shut]))
    run(["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", program, "replay", path, "--dir", target, "--quiet", "--keep"])
    (kept,) = target.iterdir()
    for name in ("shut", "told"):
        mode = (kept / "0" / "c0" / name).stat().st_mode
        check(mode & 0o700 == 0o700, f"{name} could not be removed: {mode:o}")
    shutil.rmtree(kept)

    secret = base64.b64encode(b"HARM").decode()
    escape, flags = f"../../../../../../../..{outside}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    content = [header]
    for number, name in enumerate([f"{escape}/keep", f"{outside}/keep", "a/../../../keep", "n" * 255, "n" * 256, "/", ".."]):
        content.append(op(number, "open", path=name, flags=flags, mode=0o6777, file=number))
        content.append(op(number, "write", file=number, offset=0, length=4, data=secret))
        content.append(op(number, "close", file=number))
        content.append(op(number, "unlink", path=name))
    # Links that lead out, created first and then used; also where they are moved to.
    for number, to in enumerate([str(outside), escape, "../../../..", "x/../../../../.."]):
        content.append(op(100, "symlink", path=f"deep/er/link{number}", target=to))
        content.append(op(100, "mkdir", path="deep", mode=0o777))
        content.append(op(101, "symlink", path=f"link{number}", target=to))
        content.append(op(102, "open", path=f"link{number}/keep", flags=flags, mode=0o644, file=200 + number))
        content.append(op(103, "write", file=200 + number, offset=0, length=4, data=secret))
        content.append(op(104, "unlink", path=f"link{number}/keep"))
        content.append(op(105, "rename", path=f"link{number}", to="moved", flags=0))
        content.append(op(106, "truncate", path="moved/keep", length=0))
        content.append(op(107, "rename", path="moved/keep", to="stolen", flags=0))
    content.append(op(200, "open", path="suid", flags=flags, mode=0o6777, file=300))
    content.append(op(201, "chmod", file=300, mode=0o6777))
    path = folder / "harm"
    path.write_bytes(b"".join(content))
    for options in (["--keep"], []):
        run([program, "replay", path, "--dir", target, "--quiet", "--as-fast-as-possible", *options], expect=None)
        check({entry.name for entry in outside.iterdir()} == {"keep"}, f"something was made in {outside}")
        check((outside / "keep").read_text() == "as it was", "a file outside was changed")
        for kept in target.iterdir():
            for entry in kept.rglob("*"):
                check(entry.lstat().st_mode & 0o6000 == 0, f"{entry} would run as somebody else")
            shutil.rmtree(kept)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="rbench-replay-") as name:
        folder = pathlib.Path(name).resolve()
        source = folder / "source"
        repository(source)
        programs(program, folder, source)
        fio_logs(program, folder)
        access_logs(program, folder)
        trace = recordings(program, folder, source)
        given_up(program, folder)
        hostile(program, folder, trace)
    finish()


main()
