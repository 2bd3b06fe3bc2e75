"""Checks the command lines of the README and the guide: runs those of the pages, and compares both lines of each row of the
README's tables of equivalent command lines, by their system calls.

usage: readme.py PROGRAM [--python PYTHON]

pages.py runs the pages; with --python, also the Python code of the guide (it needs pandas, matplotlib, hdrhistogram).
Each row runs as printed in the table, with smaller sizes (SMALLER), and completed if it consists only of options
(MORE). An unknown row fails, and so does a row whose lines behave differently. `rbench mdtest` replaces mdtest:
scripts/checks/mdtest.py compares it with mdtest's own sequences. fio is Debian's 3.33.
"""

import argparse
import collections
import pathlib
import re
import shlex
import shutil
import tempfile
import zlib

from common import check, finish, heading, mpirun, run
from pages import run_pages

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
CALLS = ("open,openat,fallocate,read,write,pread64,pwrite64,fsync,fdatasync,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,"
         "renameat2,stat,lstat,newfstatat,statx,getdents64,io_uring_setup,io_uring_enter,execve")
# Reductions of the published sizes, equal on both sides.
SMALLER = (("--size=4G", "--size=8M"), ("--size 4G", "--size 8M"), ("-size=10G", "-size=4M"), ("--size 10G", "--size 4M"),
           ("-runtime=120", "-runtime=1"), ("--time 120", "--time 1"), ("--nrfiles=1000", "--nrfiles=20"),
           ("--files 1000", "--files 20"), ("-I 1000", "-I 20"), ("--items 1000", "--items 20"))


def table(text, head):
    """Returns the rows of the table with this first line, as lists of cells."""
    lines = text.split(head, 1)[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def codes(cell):
    return re.findall(r"`([^`]*)`", cell)


class Trace:
    """The system calls of a command on the files below a directory."""

    def __init__(self, folder, command):
        log = folder.parent / "calls"
        run(["strace", "-f", "-qq", "-y", "-s", "0", "-o", log, "-e", f"trace={CALLS}", *command], quiet=True)
        self.calls = []
        pending = {}
        for line in log.read_text(errors="replace").splitlines():
            process, text = line.split(None, 1)
            resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
            if resumed:
                text = pending.pop(process, "") + resumed[1]
            elif text.endswith("<unfinished ...>"):
                pending[process] = text.removesuffix("<unfinished ...>")
                continue
            call = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)(.*)", text)
            if call:
                name, words, value, rest = call.groups()
                self.calls.append((name, words + rest, int(value)))
        self.folder = str(folder)

    def on_data(self, *names):
        """Returns calls with these names on data files. Excludes a run's directory, its marker, and the trials of
        required operations."""
        for name, words, value in self.calls:
            own = "/.rbench-" in words or ".needs-" in words
            own = own or name == "fsync" and re.search(r"/rbench\.[\w-]+>", words)
            if name in names and f"<{self.folder}/" in words and not own and value >= 0:
                yield name, words, value

    def sizes(self, name):
        return collections.Counter(value for _, _, value in self.on_data(name))

    def count(self, *names):
        return sum(1 for _ in self.on_data(*names))

    def uring(self):
        """Returns the entries of the rings, the total number of requests, and the maximum per call."""
        rings = [int(words.split(",")[0]) for name, words, value in self.calls if name == "io_uring_setup" and value >= 0]
        submits = [value for name, _, value in self.calls if name == "io_uring_enter"]
        return rings, sum(submits), max(submits, default=0)


def blocks(folder, size=4096):
    """Returns the blocks of the largest file below a directory."""
    data = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size).read_bytes()
    return [data[at:at + size] for at in range(0, len(data), size)]


# --- common properties of both lines ---------------------------------------------------------------------------

def same_transfers(left, right):
    """The same calls with equal sizes and counts, and the same syncs."""
    for name in ("pread64", "pwrite64"):
        check(left.sizes(name) == right.sizes(name), f"{name}: {left.sizes(name)} and {right.sizes(name)}")
    check(left.count("pread64", "pwrite64") > 0, "something is moved")
    check(left.count("fallocate") == right.count("fallocate") == 0, "nothing is reserved")
    same_syncs(left, right)


def same_syncs(left, right):
    both = [trace.count("fsync", "fdatasync") for trace in (left, right)]
    check(both[0] == both[1], f"{both} syncs")


def same_direct_reads(left, right):
    """Reads of the same size with direct I/O, by the same number of workers, without syncs."""
    for trace in (left, right):
        check(set(trace.sizes("pread64")) == {4096}, f"reads of {set(trace.sizes('pread64'))} bytes")
        opened = trace.on_data("open", "openat")
        direct = {words.split("<")[-1] for _, words, _ in opened if re.search(r"O_DIRECT\b", words)}
        check(len(direct) == 16, f"{len(direct)} files are open with O_DIRECT")


def same_small_files(left, right):
    """For each file one call that creates it, one write, and no sync."""
    same_transfers(left, right)
    check(right.count("fsync", "fdatasync") == 0, "nothing is synced")
    for trace in (left, right):
        made = sum("O_CREAT" in words for _, words, value in trace.on_data("open", "openat"))
        check(made == 20, f"{made} times a file is opened to be made")


def same_ring(left, right):
    (rings, requests, at_once), (our_rings, our_requests, our_at_once) = left.uring(), right.uring()
    # The program also tests once whether rings are supported.
    check(rings == [32] and 32 in our_rings, f"rings of {rings} and {our_rings}")
    check(requests == our_requests, f"{requests} and {our_requests} requests")
    check(at_once == our_at_once == 32, f"{at_once} and {our_at_once} requests with one call at most")


def same_arrivals(left, right):
    """2 s at 200 per second: a Poisson number with a standard deviation of 20. A traced run on a busy machine achieves
    fewer."""
    for trace in (left, right):
        reads = trace.count("pread64")
        check(50 <= reads <= 500, f"{reads} reads are due in 2 s at 200 a second")


def same_spread(left, right):
    """60 % of the operations move 4 KiB, the others 8 KiB; a few offsets get most of them."""
    for trace in (left, right):
        # Larger writes belong to the layout.
        sizes = collections.Counter({size: n for size, n in trace.sizes("pwrite64").items() if size <= 8192})
        share = sizes[4096] / max(sizes.total(), 1)
        check(set(sizes) == {4096, 8192} and 0.55 <= share <= 0.65, f"{100 * share:.1f} % of 4 KiB: {sizes}")
    heads = []
    for trace in (left, right):
        places = collections.Counter(words.rsplit(",", 1)[1].strip() for _, words, size in trace.on_data("pwrite64")
                                     if size <= 8192)
        heads.append(sum(n for _, n in places.most_common(10)) / max(places.total(), 1))
    check(min(heads) > 0.3 and max(heads) < 1.3 * min(heads), f"the ten hottest places have {heads} of the operations")


def same_data(folders, distinct, compressed):
    """A given number of different blocks among 1000, each compressible to a given share of its size."""
    for folder in folders:
        found = blocks(folder)
        different = set(found)
        small = sum(len(zlib.compress(block, 1)) for block in different) / 4096 / len(different)
        per_mille = 1000 * len(different) / len(found)
        low, high = distinct
        check(low <= per_mille <= high, f"{folder.name}: {per_mille:.0f} of 1000 blocks differ")
        low, high = compressed
        check(low <= small <= high, f"{folder.name}: a block compresses to {100 * small:.0f} %")


# --- the rows ---------------------------------------------------------------------------------------------------

WRITES = "--rw=write --bs=4k --size=1M --fallocate=none"
OUR_WRITES = "--rw write --bs 4k --size 1M --fsync never --threads 1"
# By the fio cell: options that complete both lines, and their common property (None: the data; see below).
FIO = {
    "--rw=write --refill_buffers": ("", "", same_transfers),
    "-rw=randread -bs=4k -direct=1": ("", "", same_direct_reads),
    "--rw=write --filesize=4k": ("", "--threads 1", same_small_files),
    "--ioengine=io_uring": ("--rw=randwrite --bs=4k --size=1M --fallocate=none",
                            "--rw randwrite --bs 4k --size 1M --fsync never --threads 1", same_ring),
    "--rate_iops=1000": ("--rw=randread --bs=4k --size=4M --time_based --runtime=2",
                         "--rw randread --bs 4k --size 4M --time 2 --threads 1", same_arrivals),
    "--random_distribution=zipf": ("--rw=randwrite --size=8M --fallocate=none --norandommap",
                                   "--rw randwrite --size 8M --fsync never --threads 1", same_spread),
    "--buffer_compress_percentage": (WRITES, OUR_WRITES, ((750, 850), (0.65, 0.78))),
    "--refill_buffers=0": (WRITES, OUR_WRITES, ((0, 4), (0.9, 1.1))),
    "--rw=write --verify": ("--bs=4k --size=1M --fallocate=none --verify_state_save=0", "--bs 4k --size 1M --fsync never --threads 1",
                            same_transfers),
}


def small(line):
    for long, short in SMALLER:
        line = line.replace(long, short)
    return line.replace("--rate_iops=1000", "--rate_iops=200").replace("--rate 1000", "--rate 200")


def fio_rows(program, rows):
    known = dict(FIO)
    for left, right in rows:
        (fio, *_), (ours, *_) = codes(left), codes(right)
        heading(f"{fio} | {ours}")
        key = next((key for key in known if fio.startswith(key)), None)
        check(key is not None, f"nothing is known of this row: {fio}")
        if key is None:
            continue
        more, our_more, common = known.pop(key)
        with tempfile.TemporaryDirectory() as top:
            folders = [pathlib.Path(top, side, "data") for side in ("fio", "rbench")]
            for folder in folders:
                folder.mkdir(parents=True)
            # Files that are laid out first exist before the trace.
            theirs = ["fio", "--name=x", f"--directory={folders[0]}", *shlex.split(small(fio)), *shlex.split(more)]
            words = shlex.split(small(ours).removeprefix("rbench io "))
            mine = [program, "io", "--dir", folders[1], "--keep", *words, *shlex.split(our_more)]
            traces = Trace(folders[0], theirs), Trace(folders[1], mine)
            if callable(common):
                common(*traces)
            else:
                same_data(folders, *common)
    check(not known, f"rows that are no longer in the README: {list(known)}")


def meta_calls(top, name, command):
    """Counts calls on items by kind, identified by the names of tree directories and items."""
    log = top / f"{name}.calls"
    run(["strace", "-f", "-qq", "-y", "-s", "4096", "-o", log, "-e", f"trace={CALLS}", *command], quiet=True)
    counts = collections.Counter()
    item = re.compile(r'"(?:[^"]*/)?(?:mdtest_tree|dir\.|file\.|tree\.)[^/"]*"')
    held = re.compile(r"^\d+<[^>]*/(?:file\.)[^/>]*>")
    pending = {}
    for line in log.read_text(errors="replace").splitlines():
        process, text = line.split(None, 1)
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        if resumed:
            text = pending.pop(process, "") + resumed[1]
        elif text.endswith("<unfinished ...>"):
            pending[process] = text.removesuffix("<unfinished ...>")
            continue
        call = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", text)
        if not call or int(call[3]) < 0:
            continue
        kind, words, value = call[1], call[2], int(call[3])
        if f"{top}/data/"[1:] not in words:
            continue
        if kind in ("read", "write", "pread64", "pwrite64", "fsync"):
            if held.match(words):
                counts[kind.removeprefix("p").removesuffix("64"), value] += 1
        elif item.search(words):
            counts[meta_kind(kind, words)] += 1
    return counts


def meta_kind(call, words):
    if call == "openat":
        if "O_DIRECTORY" in words:
            return "open directory"
        return "create" if "O_CREAT" in words else "open"
    if call == "unlinkat":
        return "rmdir" if "AT_REMOVEDIR" in words else "unlink"
    return {"newfstatat": "stat", "mkdirat": "mkdir"}.get(call, "rename" if call.startswith("rename") else call)


# By the first code of the mdtest cell: options that complete both lines.
MDTEST = {
    "-b 3": ("", ""),
    "-F -w": ("", ""),
    "-N 4": ("-u -z 0 -I 5", "--depth 0 --items 5"),
    "-R": ("-u -z 0 -I 5", "--depth 0 --items 5"),
    "-W 30": ("-F -u -z 0 -I 5", "--files-only --depth 0 --items 5"),
    "-y": ("-F -w 512 -e 512 -u -z 0 -I 5", "--files-only --write 512 --depth 0 --items 5"),
    "-L": ("-u -b 2 -z 1 -I 5", "--branch 2 --depth 1 --items 5"),
    "-u": ("-b 2 -z 1 -I 5", "--branch 2 --depth 1 --items 5"),
}


def mdtest_rows(program, rows):
    known = dict(MDTEST)
    pairs = []
    for left, right in rows:
        theirs, mine = codes(left), codes(right)
        check(len(theirs) == len(mine), f"as many on the left as on the right: {left} | {right}")
        pairs += [(one, other, right) for one, other in zip(theirs, mine)]
    for theirs, mine, cell in pairs:
        heading(f"mdtest {theirs} | {mine}")
        key = next((key for key in known if theirs.startswith(key)), None)
        check(key is not None, f"nothing is known of this row: {theirs}")
        if key is None:
            continue
        more, our_more = known.pop(key)
        # The last row shows that an option can be omitted.
        given = "" if key == "-u" else small(theirs).replace("-d D", "").replace("-I 100 ", "-I 10 ")
        ours = small(mine).removeprefix("rbench meta").replace("--dir D", "")
        if key == "-b 3":
            ours += " --items 10"
        with tempfile.TemporaryDirectory() as top:
            top = pathlib.Path(top)
            (top / "data").mkdir()
            ranks = mpirun("mpirun", 6) if key == "-N 4" else []
            words = [*ranks, program, "mdtest", *shlex.split(given), *shlex.split(more), "-d", top / "data"]
            left = meta_calls(top, "mdtest", words)
            words = [*ranks, program, "meta", "--dir", top / "data", *shlex.split(ours), *shlex.split(our_more)]
            if not ours.strip().startswith("--files-only") and key != "-b 3":
                words += ["--phases", phases("--files-only" in our_more)]
            right = meta_calls(top, "meta", words)
            besides = right - left
            if "renames files" in cell:
                check(besides.pop("rename", 0) == right["create"], f"every file is renamed: {right}")
            if "lists directories" in cell:
                check(besides.pop("open directory", 0) == 4, f"every directory is listed: {right}")
            check(left.total() > 0 and not left - right and not besides, f"unlike: {left - right} and {besides}")
            if key == "-y":
                check(left["fsync", 0] == 5, f"{left['fsync', 0]} syncs")
    check(not known, f"rows that are no longer in the README: {list(known)}")


def phases(files_only):
    """Returns mdtest's default phases: no listing, no renaming of files."""
    directories = [] if files_only else ["dir-create", "dir-stat", "dir-rename", "dir-remove"]
    files = ["file-create", "file-stat", "file-read", "file-remove"]
    return ",".join(["tree-create", *directories, *files, "tree-remove"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--python")
    given = parser.parse_args()
    program = str(pathlib.Path(shutil.which(given.program) or given.program).resolve())
    run_pages(program, given.python)
    text = README.read_text()
    fio_rows(program, table(text, "| fio | rbench |"))
    mdtest_rows(program, table(text, "| mdtest | rbench |"))
    finish()


if __name__ == "__main__":
    main()
