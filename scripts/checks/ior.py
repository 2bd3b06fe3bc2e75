"""Checks IOR's command line: offsets and calls seen by strace on 4 ranks, compared with IOR's own layout; refusals; the
stonewall; verification of data; and reported times with an injected latency.

usage: ior.py PROGRAM
"""

import pathlib
import re
import sys
import tempfile

from common import Testfs, check, finish, heading, in_attempts, mpirun, phases, result, run

RANKS = 4
BLOCK, TRANSFER, SEGMENTS = 12288, 4096, 3
SIZES = ["-b", BLOCK, "-t", TRANSFER, "-s", SEGMENTS]


def ior(program, *options, ranks=RANKS, expect=0):
    return run([*mpirun("mpirun", ranks), program, "ior", *options], expect=expect, quiet=True)


def own_offsets():
    """Returns the offsets in a file of one process: segment after segment."""
    return [segment * BLOCK + k * TRANSFER for segment in range(SEGMENTS) for k in range(BLOCK // TRANSFER)]


def shared_offsets(rank):
    """Returns the offsets in a shared file: each segment has a block of each rank."""
    first = [(segment * RANKS + rank) * BLOCK for segment in range(SEGMENTS)]
    return [start + k * TRANSFER for start in first for k in range(BLOCK // TRANSFER)]


def traced(program, folder, *options):
    """Returns the calls of all processes on files named f*: by process, (call, file, offset, length) in order."""
    traces = folder / "traces"
    traces.mkdir()
    calls = "openat,pread64,pwrite64,read,write,fsync,fdatasync,close,ftruncate,fallocate,unlink"
    strace = ["strace", "-f", "-ff", "-qq", "-y", "-s", "0", "-o", traces / "t", "-e", f"trace={calls}"]
    run([*mpirun("mpirun", RANKS), *strace, program, "ior", "-o", folder / "f", *SIZES, *options, "--no-round-trip"],
        quiet=True)
    found = []
    for trace in sorted(traces.iterdir()):
        own = []
        for line in trace.read_text().splitlines():
            match = re.match(r"(\w+)\(.*?" + re.escape(str(folder)) + r"/(f[^>\", ]*)", line)
            if match is None or "= -1" in line:
                continue
            moved = re.search(r", (\d+), (\d+)\) += (\d+)$", line)
            if match[1] in ("pread64", "pwrite64"):
                own.append((match[1], match[2], int(moved[2]), int(moved[1])))
            elif match[1] == "openat":
                own.append(("create" if "O_CREAT" in line else "open", match[2], None, None))
            else:
                own.append((match[1], match[2], None, None))
        if own:
            found.append(own)
        trace.unlink()
    traces.rmdir()
    return found


def moves(calls, call):
    return [(file, offset) for name, file, offset, _ in calls if name == call]


def workers(found, call):
    """Returns the transfers of each worker with this call, in any order of workers."""
    return sorted(moves(own, call) for own in found if moves(own, call))


def layouts(program, folder):
    heading("offsets, lengths and calls on 4 ranks are IOR's")
    own = [[(f"f.{rank:08}", offset) for offset in own_offsets()] for rank in range(RANKS)]
    shared = [[("f", offset) for offset in shared_offsets(rank)] for rank in range(RANKS)]
    for name, options, expected in [("file per process", ["-F"], own), ("shared", [], shared)]:
        found = traced(program, folder, *options, "-e", "-C")
        check(workers(found, "pwrite64") == sorted(expected), f"{name}: writes {workers(found, 'pwrite64')}")
        check(workers(found, "pread64") == sorted(expected), f"{name}: reads {workers(found, 'pread64')}")
        lengths = {length for own in found for call, _, _, length in own if call in ("pread64", "pwrite64")}
        check(lengths == {TRANSFER}, f"{name}: lengths {lengths}")
        for own_calls in found:
            names = [call for call, _, _, _ in own_calls if call not in ("pread64", "pwrite64")]
            if moves(own_calls, "pwrite64"):
                check(names == ["create", "fsync", "close"], f"{name}: a writer calls {names}")
            elif moves(own_calls, "pread64"):
                check(names == ["open", "close"], f"{name}: a reader calls {names}")
        makers = sum(call == "create" for own_calls in found for call, _, _, _ in own_calls)
        # One rank creates a shared file before all open it.
        check(makers == RANKS + (name == "shared"), f"{name}: {makers} opens that may make a file")
        check(not list(folder.iterdir()), f"{name}: what was made is removed: {list(folder.iterdir())}")
    found = traced(program, folder, "-z", "-w")
    drawn = workers(found, "pwrite64")
    check(sorted(map(sorted, drawn)) == sorted(map(sorted, shared)), "random: each transfer once")
    check(drawn != sorted(shared), "random: not in sequence")
    found = traced(program, folder, "-w", "-Y", "-F", "-k")
    for path in folder.glob("f*"):
        path.unlink()
    for own_calls in found:
        names = [call for call, _, _, _ in own_calls]
        check(names == ["create", *["pwrite64", "fsync"] * len(own_offsets()), "close"], f"-Y: {names}")


def refusals(program, folder):
    heading("what is there is not overwritten, and what is not there not read")
    (folder / "f.00000002").write_text("mine")
    done = ior(program, "-o", folder / "f", "-F", *SIZES, "-w", expect=2)
    check("f.00000002 already exists" in done.stderr, done.stderr)
    check((folder / "f.00000002").read_text() == "mine", "it is as it was")
    check(len(list(folder.iterdir())) == 1, "nothing was made")
    (folder / "g").symlink_to(folder / "nowhere")
    done = ior(program, "-o", folder / "g", *SIZES, expect=2)
    check("g already exists" in done.stderr, done.stderr)
    done = ior(program, "-o", folder / "none", *SIZES, "-r", expect=2)
    check("none does not exist, but the run reads it" in done.stderr, done.stderr)
    ior(program, "-o", folder / "f", "-F", *SIZES, "-w", "-E", "-k")
    check((folder / "f.00000002").stat().st_size == SEGMENTS * BLOCK, "-E writes over it")
    ior(program, "-o", folder / "f", "-F", *SIZES, "-r")
    check(len(list(folder.glob("f.*"))) == RANKS, "what the run has not made stays")
    ior(program, "-o", folder / "h", "-F", *SIZES, "-w", "-i", 2, "-m", "-k")
    names = sorted(path.name for path in folder.glob("h*"))
    expected = sorted(f"h.{rank:08}.{repetition}" for rank in range(RANKS) for repetition in range(2))
    check(names == expected, f"-m: {names}")
    for path in folder.iterdir():
        path.unlink()


def stonewalls(program, folder):
    heading("-D with wear-out leaves all ranks with as many transfers, for a later run as well")
    status = folder / "status"
    for options in ["-F", "-g"], []:
        common = ["-o", folder / "f", "-b", "4g", "-t", "8k", "-k", "-G", "5", *options]
        status_option = f"stoneWallingStatusFile={status}"
        out = folder / "out.json"
        ior(program, *common, "-w", "-D", "1", "-O", f"stoneWallingWearOut=1,{status_option}", "--out", out, "--quiet")
        write = phases(result(out))["write"]
        out.unlink()
        most = int(status.read_text().split()[0])
        wall = write["stonewall"]
        check(wall is not None and wall["most"] == most, f"the status says {most}, the result {wall}")
        each = [rank["items"] for rank in write["ranks"]]
        check(each == [most] * RANKS, f"each rank has written {most}: {each}")
        check(wall["items"] < most * RANKS, "some topped up")
        files = list(folder.glob("f*"))
        written = sum(path.stat().st_size for path in files)
        shared = (RANKS - 1) * (4 << 30) + most * 8192
        check(written == (most * RANKS * 8192 if options else shared), f"{written} bytes in {len(files)} files")
        ior(program, *common, "-r", "-R", "-O", status_option, "--out", out, "--quiet")
        read = phases(result(out))["read"]
        out.unlink()
        check(read["items"] == most * RANKS and read["errors"] == {}, f"{read['items']} transfers read and right")
        for path in [*files, status]:
            path.unlink()
    out = folder / "out.json"
    ior(program, "-o", folder / "f", "-F", "-b", "4g", "-t", "8k", "-D", "1", "-O", "stoneWallingWearOut=1", "-w", "-W", "-r", "--out",
        out, "--quiet")
    found = phases(result(out))
    out.unlink()
    counts = {name: found[name]["items"] for name in ("write", "check-write", "read")}
    check(counts["write"] == counts["check-write"], f"in one run what was written is checked: {counts}")
    # -D also ends reads.
    less = counts["read"] < counts["write"]
    well = counts["read"] <= counts["write"] and (not less or found["read"]["elapsed_s"] >= 1)
    check(well, f"in one run what was written is read, for a second at most: {counts}, {found['read']['elapsed_s']} s")
    check(not list(folder.iterdir()), "and removed")


def data(program, folder):
    heading("a damaged byte is found, and sound data is not blamed")
    for packet in ["u", "t", "o", "i"]:
        common = ["-o", folder / "f", *SIZES, "-k", "-G", "9", "-l", packet]
        ior(program, *common, "-w", "-W")
        ior(program, *common, "-r", "-R", "-z")
        place = folder / "f"
        content = bytearray(place.read_bytes())
        at = shared_offsets(2)[4] + 777
        content[at] ^= 4
        place.write_bytes(content)
        out = folder / "out.json"
        done = ior(program, *common, "-R", "--out", out, expect=1)
        read = phases(result(out))["read"]
        check(sum(read["errors"].values()) == 1, f"{packet}: one transfer is wrong: {read['errors']}")
        check([rank["errors"] for rank in read["ranks"]] == [0, 0, 1, 0], f"{packet}: that of rank 2")
        check("f: " in done.stdout and "offset" in done.stdout, f"{packet}: it is named: {done.stdout}")
        out.unlink()
        place.unlink()
    heading("data of the type unique is checked in other transfers than it was written in")
    common = ["-o", folder / "f", "-F", "-b", BLOCK, "-s", SEGMENTS, "-k", "-G", "9"]
    ior(program, *common, "-t", TRANSFER, "-w")
    ior(program, *common, "-t", 512, "-R", "-z")
    ior(program, *common, "-t", BLOCK, "-R", "-s", "-1")
    for path in folder.iterdir():
        path.unlink()


def times(program):
    heading("opens, transfers, fsyncs and closes take what was injected, and the bandwidth is over all of it")
    delays = {"create": 50, "write": 20, "fsync": 70, "flush": 40}
    slow = Testfs(program, "--direct-io", "--latency", ",".join(f"{kind}={ms}ms" for kind, ms in delays.items()))
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "out.json"
        done = ior(program, "-o", slow.mountpoint / "f", "-F", *SIZES, "-w", "-e", "--out", out, "--quiet", ranks=1)
        document = result(out)
    slow.end()
    found = phases(document)
    transfers = len(own_offsets())
    access = found["write"]["access"]
    for name, least in [
        ("open_s", delays["create"]),
        ("transfer_s", transfers * delays["write"] + delays["fsync"]),
        ("close_s", delays["flush"]),
        ("total_s", delays["create"] + transfers * delays["write"] + delays["fsync"] + delays["flush"]),
    ]:
        check(least / 1e3 <= access[name] < 3 * least / 1e3 + 1, f"{name}: {access[name]} s, {least} ms injected")
    bandwidth = SEGMENTS * BLOCK / access["total_s"]
    check(abs(access["bandwidth"] - bandwidth) < 1e-6 * bandwidth, f"{access['bandwidth']} B/s, not {bandwidth}")
    row = [line.split() for line in done.stdout.splitlines() if line.startswith("write ")][0]
    check(abs(float(row[9]) - access["total_s"]) < 0.01, f"the table's total: {row}")
    mib = SEGMENTS * BLOCK / access["total_s"] / 2**20
    check(abs(float(row[1]) - mib) <= 0.005 + mib * 0.01, f"the table's bandwidth: {row}, {mib} MiB/s")
    print("   " + " ".join(row))


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for part in layouts, refusals, stonewalls, data:
            part(program, folder)
    # Injected latency is a minimum; a busy machine adds to it.
    in_attempts(3, times, program)
    finish()


if __name__ == "__main__":
    main()
