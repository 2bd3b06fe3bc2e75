"""rbench check: sound file systems keep every promise; each promise that the built-in file system breaks on purpose is found
by the check that names it and by no unrelated one; random operations that go wrong are shrunk; what hangs is named; forms,
expectations, interrupts.

usage: promises.py PROGRAM [--mpirun LAUNCHER] [FAULT…]
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor

from common import Testfs, attempt, check, descendant, finish, heading, mpirun, run, valid, wait_until

# Attributes and names are asked for each time, and permissions are checked.
UNCACHED = ("--attr-timeout", "0", "--entry-timeout", "0", "--allow-other")
# All groups but the random ones, which take some seconds.
ONLY = "names,rename,links,owners,times,open,size,space,content,listing,xattr,locks,full"

# For each promise that can be broken: the check that names it, and what else may find it because it is about the same thing.
FOUND = {
    "name-cut": "names.length.whole names.length.255 names.length.256",
    "name-too-long-taken": "names.length.256",
    "name-255-refused": "names.length.255 names.length.whole",
    "case-ignored": "names.case",
    "bytes-lost": "names.bytes.any names.bytes.composed",
    "unlink-keeps-name": "names.unlink.removes",
    "rmdir-keeps-name": "names.rmdir.removes times.directory.rmdir",
    "rmdir-takes-full": "names.rmdir.not-empty",
    "mkdir-ignores-mode": "owners.mode.mkdir",
    "create-ignores-mode": "owners.mode.create",
    "fifo-ignores-mode": "owners.mode.mkfifo",
    "fifo-is-file": "names.mkfifo.makes owners.mode.mkfifo times.directory.mkfifo",
    "symlink-cut": "links.symbolic.long-target",
    "symlink-size-zero": "links.symbolic.size",
    "symlink-relative": "links.symbolic.target",
    "rename-loses-target": "rename.over-existing.keeps-one rename.over-existing.always-there rename.over-symlink",
    "rename-keeps-source": "rename.plain rename.other-directory rename.noreplace.renames listing.renamed-entry",
    "exchange-moves": "rename.exchange.files rename.exchange.kinds",
    "rename-touches": "times.rename.keeps-mtime",
    "rename-full-error": "rename.directory.over-full",
    "rename-empties": "rename.directory.content rename.directory.over-empty rename.open-directory",
    "rename-drops-attributes": "xattr.rename",
    "link-count-stays": "links.hard.count links.hard.many",
    "link-copies": "links.hard.one-file rename.same-file links.hard times.link.ctime times.unlink.ctime",
    "link-touches": "times.link.keeps-mtime",
    "link-ctime-stays": "times.link.ctime",
    "unlink-ctime-stays": "times.unlink.ctime",
    "unlinked-count-one": "links.unnamed.count",
    "unlinked-empty": "links.unnamed.content links.unnamed",
    "unlinked-gone": "links.unnamed.stat rename.over-existing.open rename.over-existing.always-there links.unnamed",
    "chmod-drops-bare-write": "owners.chmod.file",
    "chmod-drops-sticky": "owners.chmod.special owners.sticky",
    "chmod-drops-set-id": "owners.chmod.special owners.set-group-id.file owners.set-group-id.directory",
    "chmod-touches": "times.chmod.keeps-mtime",
    "chmod-ctime-stays": "times.chmod.ctime",
    "chmod-open-lost": "owners.chmod.open links.unnamed.mode",
    "chown-16-bits": "owners.chown.large-ids",
    "chown-keeps-set-id": "owners.chown.drops-set-id",
    "chown-ctime-stays": "times.chown.ctime",
    "write-keeps-set-id": "owners.write.drops-set-id",
    "owner-is-root": "owners.owner.user",
    "set-group-ignored": "owners.set-group-id.file owners.set-group-id.directory",
    "set-group-bit-lost": "owners.set-group-id.directory",
    "device-number-lost": "owners.device",
    "write-mtime-stays": "times.write.mtime",
    "write-ctime-stays": "times.write.ctime",
    "truncate-mtime-stays": "times.truncate.mtime times.truncate.open",
    "truncate-ctime-stays": "times.truncate.ctime",
    "open-truncate-mtime-stays": "times.open-truncate.mtime",
    "fallocate-ctime-stays": "times.fallocate.ctime",
    "create-mtime-stays": "times.directory.create",
    "create-ctime-stays": "times.directory.ctime",
    "mkdir-mtime-stays": "times.directory.mkdir",
    "symlink-mtime-stays": "times.directory.symlink",
    "mknod-mtime-stays": "times.directory.mkfifo",
    "link-mtime-stays": "times.directory.link",
    "unlink-mtime-stays": "times.directory.unlink",
    "rmdir-mtime-stays": "times.directory.rmdir",
    "rename-from-mtime-stays": "times.directory.rename-from",
    "rename-into-mtime-stays": "times.directory.rename-into",
    "read-touches": "times.read.keeps-mtime",
    "close-touches": "times.set.survives-close",
    "times-ctime-stays": "times.set.ctime",
    "times-omit-sets": "times.set.omit",
    "times-now-is-epoch": "times.set.now",
    "times-32-bits": "times.set.after-2038",
    "times-before-1970": "times.set.before-1970",
    "times-round-up": "times.set.fraction",
    "times-symlink-ignored": "times.set.symlink",
    "size-lags": "size.write.extends size.hole.zeros size.hole.behind-data size.large.offset",
    "size-32-bits": "size.large.terabyte size.large.offset",
    "offset-32-bits": "size.large.offset",
    "truncate-keeps-data": "size.truncate.cut-is-gone content.mmap.cut",
    "truncate-grows-dirty": "size.truncate.longer size.truncate.cut-is-gone content.mmap.cut",
    "truncate-open-ignored": "size.truncate.open links.unnamed.writes times.truncate.open size.large.terabyte size.large.cut content.mmap.cut",
    "hole-dirty": "size.hole.behind-data size.hole.zeros size.large.offset",
    "seek-data-none": "size.seek.data size.seek.data-behind-hole",
    "seek-hole-everywhere": "size.seek.hole size.seek.behind-end",
    "punch-ignored": "space.punch.zeros space.punch",
    "punch-cuts": "space.punch.size space.punch",
    "punch-rounds": "space.punch.bytes space.punch.size",
    "reserve-leaves-size": "space.reserve.size",
    "reserve-clears": "space.reserve.keeps-data space.keep-size",
    "keep-size-extends": "space.keep-size",
    "write-flips": "content.sizes content.whole-read",
    "write-flips-rarely": "model.file",
    "write-late": "model.shared-file",
    "write-short": "content.whole-write",
    "overwrite-lost": "content.overwrite",
    "append-overwrites": "open.append.at-end open.append.two open.append.many",
    "copy-nothing": "content.copy.whole content.copy.part content.copy.fresh",
    "fsync-refused": "open.sync content.mmap.synced",
    "fsync-directory-error": "open.sync.directory",
    "list-twice": "listing.each-once listing",
    "list-misses": "listing.each-once listing",
    "list-wrong-types": "listing.types",
    "list-wrong-inodes": "listing.inodes",
    "list-repeats": "listing.cookie listing",
    "list-positions": "listing.while-removing listing",
    "list-no-dots": "listing.dots",
    "list-late": "listing.new-entry listing",
    "xattr-lost": "xattr.set xattr",
    "xattr-create-replaces": "xattr.create.exists",
    "xattr-replace-creates": "xattr.replace.missing",
    "xattr-unlisted": "xattr.several xattr.empty xattr.remove",
    "xattr-remove-ignored": "xattr.remove",
    "xattr-cut": "xattr.value-1000 xattr.bytes xattr.value-64k",
    "xattr-empty-lost": "xattr.empty",
    "xattr-missing-empty": "xattr.missing xattr.remove",
    "xattr-directory-refused": "xattr.directory",
    "xattr-ctime-stays": "xattr.ctime",
    "xattr-touches": "xattr.keeps-mtime",
    "flock-given-twice": "locks.flock.once locks.flock",
    "lock-given-twice": "locks.posix.once locks.posix locks.ofd",
    "full-lies": "full.error full",
    "full-wrong-error": "full.error full",
    "free-stays": "full.free-told",
}
# What the file systems of Linux say that they do not have.
LACKS = {
    "tmpfs": {"space.collapse", "space.insert", "space.zero.zeros"},
    # Targets and attributes fit into a block, here of 1 KiB.
    "ext4": {"links.symbolic.long-target", "xattr.value-1000", "xattr.value-64k"},
    # Targets of at most 1023 bytes.
    "xfs": {"links.symbolic.long-target"},
    # An attribute fits into a node of 16 KiB.
    "btrfs": {"space.collapse", "space.insert", "xattr.value-64k"},
    "built-in": {"open.tmpfile.exclusive", "open.tmpfile.hidden", "open.tmpfile.named", "space.collapse", "space.insert",
                 "space.zero.zeros"},
}


def tried(program, place, *more, expect=0, before=()):
    done = run([*before, program, "check", "--dir", place, "--format", "json", "--quiet", *more], expect=expect, quiet=True)
    return valid(json.loads(done.stdout), "the check"), done


def with_verdict(result, *verdicts):
    return {promise["name"] for promise in result["hosts"][0]["promises"] if promise["verdict"] in verdicts}


def sound(program, place, kind):
    """Everything is kept that the file system does not say it lacks."""
    result, _ = tried(program, place)
    promises = result["hosts"][0]["promises"]
    lacks = with_verdict(result, "unsupported")
    for promise in promises:
        if promise["verdict"] in ("broken", "undecided"):
            check(False, f"{kind}: {promise}")
    check(lacks <= LACKS[kind], f"{kind} lacks {sorted(lacks - LACKS[kind])}")
    check(os.listdir(place) in ([], ["lost+found"]), f"{place}: {os.listdir(place)} is left")
    count = {verdict: len(with_verdict(result, verdict)) for verdict in ("holds", "unsupported", "left-out")}
    took = sum(promise["took_ns"] for promise in promises) / 1e9
    print(f"   {kind}: {count}, {took:.1f} s; lacks {', '.join(sorted(lacks)) or 'nothing'}", flush=True)


@contextlib.contextmanager
def loop_device(kind, mib):
    # In memory: a disk that others use may take longer for one promise than it is given.
    with tempfile.TemporaryDirectory(prefix="check-promises-", dir="/dev/shm") as name:
        image, place = pathlib.Path(name) / "image", pathlib.Path(name) / "mounted"
        with open(image, "wb") as file:
            file.truncate(mib << 20)
        run([f"mkfs.{kind}", "-q", image], quiet=True)
        place.mkdir()
        run(["mount", "-o", "loop", image, place], quiet=True)
        try:
            yield place
        finally:
            run(["umount", place], quiet=True)


def sound_ones(program):
    heading("file systems that keep their promises")
    memory = tempfile.mkdtemp(prefix="check-promises-", dir="/dev/shm")
    sound(program, memory, "tmpfs")
    os.rmdir(memory)
    for kind, mib in (("ext4", 200), ("xfs", 400), ("btrfs", 400)):
        with loop_device(kind, mib) as place:
            sound(program, place, kind)
    # Where each open forgets the pages, the kernel may keep old ones beside a write: see `write-late`.
    keep = ("--allow-other", "--keep-cache")
    for options in ((*UNCACHED, "--keep-cache"), keep, ("--allow-other", "--direct-io"), (*keep, "--quota", "64m")):
        testfs = Testfs(program, *options)
        sound(program, testfs.mountpoint, "built-in")
        testfs.end()


def broken_ones(program, wanted):
    heading("promises that are broken on purpose")
    told = run([program, "testfs", "/tmp", "--broken", "?"], expect=2, quiet=True).stderr
    names = re.search(r"there are (.*)", told).group(1).strip().split(", ")
    check(set(names) == set(FOUND), f"the table has other promises: {set(names) ^ set(FOUND)}")
    check(len(names) >= 60, f"{len(names)} promises")
    with ThreadPoolExecutor(2) as pool:
        for name, bad in pool.map(lambda name: broken(program, name), wanted or names):
            named, *related = FOUND[name].split()
            if named.startswith("model."):
                # It is too rare for anything but random operations: see below.
                check(bad == set(), f"{name}: found by {sorted(bad)}")
                continue
            check(named in bad, f"{name}: {named} does not find it, but {sorted(bad)}")
            others = [found for found in bad if found != named and not any(alike(found, other) for other in related)]
            check(not others, f"{name}: found by {others} too")
    print(f"   {len(wanted or names)} broken promises, each found by the check that names it")


def alike(name, pattern):
    return name == pattern or name.startswith(f"{pattern}.")


def broken(program, name):
    small = ("--quota", "64m") if FOUND[name].startswith("full.") else ()
    testfs = Testfs(program, *UNCACHED, *small, "--broken", name)
    result, _ = tried(program, testfs.mountpoint, "--only", ONLY, expect=None)
    testfs.end()
    return name, with_verdict(result, "broken", "undecided")


def kept_attributes(program):
    heading("broken listings where the kernel keeps attributes")
    for name in ("list-twice", "bytes-lost"):
        testfs = Testfs(program, "--allow-other", "--broken", name)
        named = FOUND[name].split()[0]
        result, _ = tried(program, testfs.mountpoint, "--only", named, expect=1)
        testfs.end()
        check(with_verdict(result, "broken") == {named}, f"{name}: {result['hosts'][0]['promises']}")


def full_large(program):
    heading("a large file system that is nearly full is not filled")
    with loop_device("ext4", 600) as place:
        with open(place / "users", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 450 << 20)
        check(os.statvfs(place).f_bavail * os.statvfs(place).f_frsize < 256 << 20, "less than 256 MiB are free")
        result, _ = tried(program, place, "--only", "full", expect=1)
        check(len(with_verdict(result, "left-out")) == 5, f"{result['hosts'][0]['promises']}")
        check(not result["passed"] and result["complete"], "where nothing was tried nothing holds")
        text = run([program, "check", "--dir", place, "--only", "full", "--quiet"], expect=1, quiet=True).stdout
        check("No promise was found to hold" in text and "larger than 512 MiB" in text, text)


def shut_out(program):
    heading("a mount that lets no other users in")
    testfs = Testfs(program)
    words = [program, "check", "--dir", testfs.mountpoint, "--only", "owners", "--quiet"]
    said = " ".join(run(words, expect=1, quiet=True).stdout.split())
    result, _ = tried(program, testfs.mountpoint, "--only", "owners", expect=1)
    number = sum((p.get("seen") or "").endswith("does not come as far as this directory") for p in result["hosts"][0]["promises"])
    check(number > 0, "what other users would try is undecided")
    check(f"NOTE: {number} are undecided because other users do not come into the directory: mount FUSE with allow_other" in said, said)
    testfs.end()


def limited_files(program):
    heading("a limit of file sizes")
    testfs = Testfs(program, *UNCACHED)
    words = [program, "check", "--dir", testfs.mountpoint, "--only", "size,content,model,full", "--format", "json", "--quiet"]
    done = run(["prlimit", "--fsize=65536", *words], expect=1, quiet=True)
    result = valid(json.loads(done.stdout), "the check")
    check(result["complete"], "it goes on")
    undecided = with_verdict(result, "undecided")
    check(undecided, "what the limit cuts off is undecided")
    testfs.end()


def slow(program):
    heading("slow file systems")
    testfs = Testfs(program, *UNCACHED, "--latency", "all=20ms")
    result, done = tried(program, testfs.mountpoint, "--only", "listing.each-once", "--time-limit", "1s", expect=1)
    seen = [p["seen"] for p in result["hosts"][0]["promises"]]
    check(seen == ["no end within 1 s"], f"{seen}")
    check("left behind" not in done.stderr and os.listdir(testfs.mountpoint) == [], f"slow is not hanging: {done.stderr}")
    testfs.end()
    testfs = Testfs(program, *UNCACHED, "--latency", "all=10ms", "--broken", "punch-rounds")

    def once():
        # To shrink it all the way takes longer.
        words = ("--only", "model.file", "--time-limit", "10s", "--seed", "3")
        result, _ = tried(program, testfs.mountpoint, *words, expect=1)
        found = result["hosts"][0]["promises"][0]
        return None if found["verdict"] == "broken" else f"what was found is not told: {found}"

    # A busy machine removes what was made too late.
    attempt(3, once)
    testfs.end()


def model(program):
    heading("random operations that go wrong, shrunk")
    for name, promise in (("write-flips-rarely", "model.file"), ("punch-rounds", "model.file"), ("rename-empties", "model.tree"),
                          ("punch-rounds", "model.files"), ("rename-empties", "model.trees"),
                          ("rename-keeps-source", "model.shared-names")):
        testfs = Testfs(program, *UNCACHED, "--broken", name)

        def once():
            result, _ = tried(program, testfs.mountpoint, "--only", promise, "--seed", "3", expect=1)
            seen = result["hosts"][0]["promises"][0]["seen"]
            found = re.search(r"after (\d+) operations, again with these (\d+): (.*)", seen)
            if not found or int(found[2]) > 10:
                return f"{name}: {seen}"
            print(f"   {name}: after {found[1]} operations, shrunk to {found[2]}: {found[3]}")
            return None

        # To find what is smaller it has some seconds, in which a busy machine tries less.
        attempt(3, once)
        testfs.end()
    # A late write is harmless where opening a file keeps the pages.
    for broken, cache, bad in (("write-flips-rarely", (), True), ("write-late", (), True), ("write-late", ("--keep-cache",), False)):
        testfs = Testfs(program, *UNCACHED, *cache, "--broken", broken)

        def shared(seed):
            result, _ = tried(program, testfs.mountpoint, "--only", "model.shared-file", "--seed", seed, expect=None)
            return with_verdict(result, "broken"), result["hosts"][0]["promises"]

        if bad:
            # It comes of how four workers meet, and what is wrong may be written over before it is read again.
            seeds = iter("345678")

            def once():
                found, promises = shared(next(seeds))
                return None if found == {"model.shared-file"} else f"{broken} is not found: {promises}"

            attempt(6, once)
        else:
            found, promises = shared("3")
            check(found == set(), f"{broken} {cache}: {promises}")
        testfs.end()


def forms(program, folder):
    heading("forms, exit codes, expectations")
    testfs = Testfs(program, *UNCACHED, "--broken", "rename-touches", "--broken", "chmod-touches")
    place = testfs.mountpoint
    words = [program, "check", "--dir", place, "--only", "times.rename,times.chmod,space.insert", "--quiet"]
    tap = run([*words, "--format", "tap"], expect=1, quiet=True).stdout.splitlines()
    check(tap[:2] == ["TAP version 14", "1..4"], f"{tap}")
    starts = [re.match(r"(not ok|ok) (\d+) - (\S+)(?: # (SKIP|TODO))?", line) for line in tap if not line.startswith("#")][2:]
    shown = [(line[1], line[3], line[4]) for line in starts]
    check(shown == [("ok", "times.chmod.ctime", None), ("not ok", "times.chmod.keeps-mtime", None),
                    ("not ok", "times.rename.keeps-mtime", None), ("ok", "space.insert", "SKIP")], f"{shown}")
    junit = xml.etree.ElementTree.fromstring(run([*words, "--format", "junit"], expect=1, quiet=True).stdout)
    suite = junit.find("testsuite")
    check((suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1"), f"{suite.attrib}")
    text = run(words, expect=1, quiet=True).stdout
    check("2 promises are not known to be kept" in text and "times.rename.keeps-mtime" in text, text)

    expect = folder / "expect.toml"
    one = '[[deviation]]\npromise = "times.rename"\nwhy = "known"\nsource = "us"\n'
    expect.write_text(f'title = "ours"\n{one}')
    result, _ = tried(program, place, "--only", "times.rename,times.chmod", "--expect", expect, expect=1)
    allowed = {p["name"]: p["allowed"] for p in result["hosts"][0]["promises"] if p["verdict"] == "broken"}
    check(allowed == {"times.rename.keeps-mtime": "known (us)", "times.chmod.keeps-mtime": None}, f"{allowed}")
    expect.write_text(f'title = "ours"\n{one}{one.replace("rename", "chmod.*")}')
    result, _ = tried(program, place, "--only", "times.rename,times.chmod", "--expect", expect)
    check(result["passed"], "known deviations pass")
    for wrong, word in (("title = 'x'\nx = 1", "line 2"), (f"title = 'x'\n{one}".replace("times.rename", "nothing"), "line 3")):
        expect.write_text(wrong)
        told = run([*words, "--expect", expect], expect=2, quiet=True).stderr
        check(str(expect) in told and word in told and told.count("\n") == 1, told)
    for more, word in ((("--only", "nothing"), "--only"), (("--expect", folder / "none"), "--expect"), (("--time-limit", "0"), "--time-limit")):
        told = run([program, "check", "--dir", place, *more, "--quiet"], expect=2, quiet=True).stderr
        check(word in told and told.count("\n") == 1, told)
    check(os.listdir(place) == [], f"{os.listdir(place)} is left")
    testfs.end()
    listed = run([program, "check", "--list"], quiet=True).stdout.splitlines()
    check(listed[-1] == f"{sum(line.startswith('  ') for line in listed)} promises", listed[-1])
    run([program, "check"], expect=2, quiet=True, env={k: v for k, v in os.environ.items() if k != "RBENCH_DIR"})


def user(program, folder):
    heading("an ordinary user")
    own = folder / "own"
    own.mkdir()
    for path in (folder, own):
        os.chown(path, 65534, 65534)
    copy = folder / "rbench"
    shutil.copy(program, copy)
    done = subprocess.run([copy, "check", "--dir", own, "--format", "json", "--quiet"], user=65534, group=65534, extra_groups=[],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    result = valid(json.loads(done.stdout), "the check")
    reasons = {p["seen"] for p in result["hosts"][0]["promises"] if p["verdict"] == "left-out" and not p["name"].startswith("full")}
    check(reasons == {"only root can find it out"} and not result["hosts"][0]["root"], f"{reasons}")
    print(f"   {len(with_verdict(result, 'left-out'))} left out")


def hangs(program):
    heading("a call that does not return")
    testfs = Testfs(program, *UNCACHED, "--fault", "fallocate:hang@nth=1")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        words = [program, "check", "--dir", testfs.mountpoint, "--only", "space", "--time-limit", "3s", "--format", "json", "--quiet"]
        process = subprocess.Popen([str(word) for word in words], stdout=out, stderr=err)
        check(wait_until(lambda: os.fstat(out.fileno()).st_size > 0), "the report is there although a call hangs")
        testfs.process.send_signal(signal.SIGUSR2)
        check(process.wait(timeout=60) == 1, f"exit code {process.returncode}")
        out.seek(0)
        err.seek(0)
        result, told = json.load(out), err.read()
    undecided = [p for p in result["hosts"][0]["promises"] if p["verdict"] == "undecided"]
    check([(p["name"], p["seen"]) for p in undecided] == [("space.reserve.size", "no end within 3 s")], f"{undecided}")
    check(len(with_verdict(result, "holds")) > 10, "the rest goes on")
    check("is left behind" in told, f"what is left is told: {told}")
    run([program, "clean", testfs.mountpoint], quiet=True)
    testfs.end()


def interrupted(program, launcher):
    heading("an interrupt")
    testfs = Testfs(program, *UNCACHED, "--latency", "all=2ms")
    words = [program, "check", "--dir", testfs.mountpoint, "--format", "json", "--quiet"]
    for before in ([], *([mpirun(launcher, 4)] if launcher else [])):
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen([str(word) for word in [*before, *words]], stdout=out, stderr=subprocess.DEVNULL)
            wait_until(lambda: any("host-" in str(p) for p in testfs.mountpoint.glob("rbench.*/host-*/*")))
            # Open MPI, interrupted, leaves its ranks a second, in which a busy machine removes nothing: one of them hears it.
            os.kill(descendant(process.pid, "rbench"), signal.SIGINT)
            code = process.wait(timeout=60)
            out.seek(0)
            text = out.read()
        check(code == 130, f"exit code {code}")
        check(wait_until(lambda: os.listdir(testfs.mountpoint) == [], 30), f"{os.listdir(testfs.mountpoint)} is left")
        if not before:
            result = valid(json.loads(text), "the check")
            check(not result["complete"] and not result["passed"], "what is not whole does not pass")
    testfs.end()


def ranks(program, launcher):
    heading("four ranks on one host")
    testfs = Testfs(program, *UNCACHED)
    result, _ = tried(program, testfs.mountpoint, "--only", "rename,locks", before=mpirun(launcher, 4))
    check(len(result["hosts"]) == 1 and result["passed"], f"{len(result['hosts'])} hosts")
    testfs.end()


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    more = sys.argv[2:]
    launcher = None
    if more[:1] == ["--mpirun"]:
        launcher, more = more[1], more[2:]
    if not more:
        sound_ones(program)
    broken_ones(program, more)
    if not more:
        model(program)
        kept_attributes(program)
        full_large(program)
        shut_out(program)
        limited_files(program)
        slow(program)
        with tempfile.TemporaryDirectory(prefix="check-promises-") as name:
            forms(program, pathlib.Path(name))
            user(program, pathlib.Path(name))
        hangs(program)
        interrupted(program, launcher)
        if launcher:
            ranks(program, launcher)
    finish()


if __name__ == "__main__":
    main()
