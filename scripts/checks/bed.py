"""Checks the usual work on three hosts with MooseFS, with exact counts.

usage: bed.py PROGRAM     (the bed is up: scripts/testbed up)
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from common import PATIENCE_S, check, check_result, finish, heading, meta_items, phases, regular, result, run, wait_until

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
RANKS, HOSTS = 12, 3
# Number of attempts to start the job that is to be cut off, since mpirun may lose a host earlier.
CUT_TRIES = 5


def mount_path():
    done = run([BED, "run", "sh", "-c", "echo $RBENCH_BED_MOUNT"], quiet=True)
    return done.stdout.strip()


def on_bed(program, *arguments, out=None, expect=0):
    """Runs rbench on 12 ranks over the three hosts, and returns the result."""
    command = ["mpirun", "-np", RANKS, "--hostfile", "$RBENCH_BED_HOSTFILE", program, *arguments]
    if out:
        command += ["--out", out, "--quiet"]
    print("$ scripts/testbed run " + " ".join(str(word) for word in command), flush=True)
    line = " ".join(str(word) for word in command)
    done = run([BED, "run", "sh", "-c", line], expect=expect, quiet=True)
    return result(out) if out else done


def nothing_left(mount):
    listing = run([BED, "run", "ls", "-A", mount], quiet=True).stdout.split()
    check(listing == [], f"nothing is left in the mount: {listing}")


def who_answered(document, wanted):
    """Checks each row's share of own items and verdict, and that the client's counter agrees on every host."""
    for name, (own, verdict) in wanted.items():
        residency = phases(document)[name]["residency"]
        total, requests = residency["total"], residency["total"]["requests"]
        print(f"   {name:12} {residency['verdict']:8} own {total['own']['share']:.0%}, {requests['answering']} requests "
              f"for {requests['operations']} operations: {residency['reason']}")
        check(total["own"]["share"] == own, f"{name}: {total['own']}")
        check(verdict in (None, residency["verdict"]), f"{name}: {residency['verdict']}, not {verdict}")
        check(requests["source"] == "MooseFS .stats", f"{name}: {requests['source']}")
        check(len(residency["caches"]) == HOSTS, f"{name}: {HOSTS} hosts have a cache each")
        # A client that was not used before requests each item; other programs may also have made requests.
        if verdict == "cold":
            check(requests["answering"] >= requests["operations"], f"{name}: {requests}")


def verdicts(program, mount, folder):
    heading("who answered: other hosts' items")
    document = on_bed(program, "meta", "--dir", mount, "--write", "4k", "--shift", 4, out=folder / "cold.json")
    # A distance of 12 would be the own items, so the listing's distance is 4 again; dir-stat has read those names on
    # this host.
    who_answered(document, {"dir-stat": (0, "cold"), "dir-list": (1, None), "file-stat": (0, "cold"),
                            "file-read": (0, "cold")})
    on_bed(program, "mdtest", "-d", f"{mount}/m", "-b", 3, "-z", 1, "-I", 100, "-u", "-w", 4096, "-e", 4096, "-N", 1,
           "--out", folder / "stride.json")
    # -N counts hosts: at distances 4 and 8 no rank uses items that its own host created.
    document = result(folder / "stride.json")
    who_answered(document, {"dir-stat": (0, "cold"), "file-stat": (0, "cold"), "file-read": (0, "cold")})
    nothing_left(mount)


def everyday(program, mount, folder):
    heading("meta, 12 ranks on 3 hosts with 4 ranks each")
    document = on_bed(program, "meta", "--dir", mount, out=folder / "meta.json")
    check_result(document, meta_items(RANKS), RANKS, HOSTS)
    check([len(host["ranks"]) for host in document["world"]["hosts"]] == [4, 4, 4], "4 ranks on each host")
    hosts = document["world"]["hosts"]
    for host in hosts:
        # All namespaces share one clock: the offset is 0 by definition.
        offset, error = host["clock_offset_ns"], host["clock_error_ns"]
        check((offset, error) == (0, 0), f"{host['name']}: clock offset {offset} ns with error {error} ns")
    check([host["clock"]["number"] for host in hosts] == [0, 0, 0], f"one clock: {hosts}")
    check([host["caches"] for host in hosts] == [[0], [1], [2]], f"a cache for each mount: {hosts}")
    check(all(phase["start_error_s"] == 0 for phase in document["phases"]), "one clock starts all")
    check(document["target"]["shared"] is True, "all hosts see the same directory")
    check("mfs" in document["target"]["mount_source"], f"the file system is MooseFS: {document['target']}")
    for phase in document["phases"]:
        print(f"   {phase['name']:12} {phase['items']:6} items  {phase['rate']:10.0f}/s  start skew "
              f"{phase['start_skew_s'] * 1e3:.2f} ms")
    # The verdict depends on the items' age: the client caches attributes for a second.
    who_answered(document, {name: (1, None) for name in ("dir-stat", "dir-list", "file-stat", "file-read")})
    nothing_left(mount)
    shown = run([program, "show", folder / "meta.json"], quiet=True).stdout
    check(max(len(line) for line in shown.splitlines()) <= 120, "the report fits 120 columns")
    check(all(f"client{i}" in shown for i in (1, 2, 3)), "the report has rows for each host")


def variants(program, mount, folder):
    heading("the other forms of the job")
    document = on_bed(program, "meta", "--dir", mount, "--dirs-only", out=folder / "dirs.json")
    wanted = {k: v for k, v in meta_items(RANKS).items() if not k.startswith("file")}
    check_result(document, wanted, RANKS, HOSTS)

    document = on_bed(program, "meta", "--dir", mount, "--files-only", "--write", 102400, "--items", 1000, "--depth",
                      0, out=folder / "files.json")
    wanted = {k: v for k, v in meta_items(RANKS, nodes=1, each=1000).items() if not k.startswith("dir")}
    check_result(document, wanted, RANKS, HOSTS)
    check(phases(document)["file-create"]["bytes"] == 1_228_800_000, "1,228,800,000 bytes were written")

    document = on_bed(program, "io", "--dir", mount, "--bs", "4M", "--size", "64M", "--fsync", "end",
                      out=folder / "big.json")
    check_result(document, {"write": 192, "write-fsync": 12, "read": 192}, RANKS, HOSTS)

    document = on_bed(program, "io", "--dir", mount, "--bs", "4k", "--size", "4M", "--rw", "randread,randwrite",
                      out=folder / "random.json")
    check_result(document, {"randread": 12288, "randwrite": 12288, "randwrite-fsync": 12}, RANKS, HOSTS)

    document = on_bed(program, "io", "--dir", mount, "--files", 1000, "--file-size", "4k", "--shift", 4, "--verify",
                      out=folder / "small.json")
    check_result(document, {"write": 12000, "read": 12000}, RANKS, HOSTS)
    check(phases(document)["read"]["cache"] == "cold", "files of another host are read cold")

    document = on_bed(program, "io", "--dir", mount, "--layout", "shared", "--interleave", "--bs", "64k", "--size",
                      "2M", "--rw", "write,randread", "--verify", "--shift", 4, out=folder / "shared.json")
    check_result(document, {"write": 384, "write-fsync": 12, "randread": 384}, RANKS, HOSTS)

    document = on_bed(program, "meta", "--dir", mount, "--layout", "shared", "--shift", 4, "--items", 20,
                      "--random-order", out=folder / "shared-tree.json")
    wanted = {**meta_items(RANKS, each=20), "tree-create": 4, "dir-list": 4, "tree-remove": 4}
    check_result(document, wanted, RANKS, HOSTS)
    check(phases(document)["file-read"]["cache"] == "cold", "a shift over hosts makes reads cold")
    nothing_left(mount)


def built_in(program, folder):
    heading("without a directory: the built-in file system of each host")
    document = on_bed(program, "meta", "--items", 20, out=folder / "built-in.json")
    check_result(document, meta_items(RANKS, each=20), RANKS, HOSTS)
    check(document["target"]["embedded"] and document["target"]["shared"] is False, "it is private to each host")
    done = on_bed(program, "meta", "--shift", 4, expect=2)
    check("--shift needs a directory that all hosts share" in done.stderr, done.stderr)
    local = run([BED, "run", "sh", "-c", "echo $RBENCH_BED_LOCAL"], quiet=True).stdout.strip()
    heading("a directory that every host has for itself")
    done = on_bed(program, "meta", "--dir", local, "--items", 20, expect=1)
    check("client2 and client3 do not see client1's " in done.stderr, done.stderr)
    document = on_bed(program, "meta", "--dir", local, "--items", 20, "--private-dirs", out=folder / "local.json")
    check_result(document, meta_items(RANKS, each=20), RANKS, HOSTS)
    check("target-not-shared" in [w["code"] for w in document["warnings"]], "the report warns of it")
    done = on_bed(program, "meta", "--shift", 4, "--dir", local, "--private-dirs", expect=1)
    check("--shift needs a directory that all hosts share" in done.stderr, done.stderr)
    for host in ("client1", "client2", "client3"):
        listing = run([BED, "run", "--on", host, "ls", "-A", local], quiet=True).stdout.split()
        check(listing == [], f"nothing is left on {host}: {listing}")


def fio_jobs(program, mount, folder):
    heading("fio's command lines, 12 ranks on 3 hosts")
    def jobs(name, *arguments, numjobs=1):
        words = ["fio", f"--name={name}", f"--directory={mount}", f"--numjobs={numjobs}", "--unlink=1", *arguments,
                 "--output-format=json", f"--output={folder}/{name}.jobs.json", "--quiet", "--out", f"{folder}/{name}.own"]
        on_bed(program, *words)
        document = json.loads((folder / f"{name}.jobs.json").read_text())
        check(all(job["error"] == 0 for job in document["jobs"]), f"{name}: no job failed")
        return document["jobs"], result(folder / f"{name}.own")

    for numjobs in (1, 4, 16, 64):
        all_jobs, own = jobs(f"randread{numjobs}", "--rw=randread", "--bs=4k", "--direct=1", "--size=1M", "--fallocate=none",
                             "--time_based=1", "--runtime=2", "--group_reporting=1", numjobs=numjobs)
        read, phase = all_jobs[0]["read"], regular(own)[0]
        check(len(all_jobs) == 1 and read["total_ios"] == phase["items"] > 0, "one entry with the I/Os of all ranks")
        check(len(phase["ranks"]) == RANKS and len(phase["hosts"]) == HOSTS, "each rank and host has its row")
        # Requests in flight at the end are awaited.
        longest = 2000 + read["clat_ns"]["max"] / 1e6
        check(2000 <= read["runtime"] < longest + 10_000, f"it took {read['runtime']} ms, not 2000 to {longest:.0f}")
        print(f"   {RANKS * numjobs} workers: {read['iops']:.0f} IOPS, p99 "
              f"{read['clat_ns']['percentile']['99.000000'] / 1e6:.2f} ms, start skew {phase['start_skew_s'] * 1e3:.1f} ms")
    all_jobs, own = jobs("write", "--rw=write", "--bs=1M", "--size=8M", "--refill_buffers", "--end_fsync=1",
                         "--verify=crc32c", "--verify_state_save=0", numjobs=2)
    check(len(all_jobs) == 2 * RANKS, "without group_reporting each worker has its entry")
    check(sum(j["write"]["total_ios"] for j in all_jobs) == 2 * RANKS * 8, "every block was written once")
    check(sum(j["read"]["total_ios"] for j in all_jobs) == 2 * RANKS * 8, "and read back once")
    check(len({j["hostname"] for j in all_jobs}) == HOSTS, "each entry names its host")
    all_jobs, own = jobs("shared", "--rw=randread", "--bs=64k", "--size=16M", f"--filename=shared.bin",
                         "--group_reporting")
    check(all_jobs[0]["read"]["total_ios"] == RANKS * 256, "every worker read all of the shared file")
    for engine in ("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"):
        all_jobs, own = jobs(engine, f"--ioengine={engine}", "--filesize=4k", "--nrfiles=50", "--group_reporting=1", numjobs=2)
        phase, wanted = regular(own)[0], 2 * RANKS * 50
        check(all_jobs[0]["read"]["total_ios"] == phase["items"] == wanted, f"{engine}: {wanted} operations: {phase['items']}")
        check(phase["bytes"] == 0 and len(phase["ranks"]) == RANKS and len(phase["hosts"]) == HOSTS, f"{engine}: {phase['op']}")
        print(f"   {engine:10} {phase['rate']:8.0f}/s")
    nothing_left(mount)
    job_file(program, mount, folder)


SECTIONS = """[global]
unlink=1
[aio]
ioengine=libaio
iodepth=16
direct=1
rw=randread
bs=64k
size=1m
[plain]
rw=write
bs=64k
size=1m
end_fsync=1
[names]
ioengine=filecreate
filesize=4k
nrfiles=20
"""


def job_file(program, mount, folder):
    heading("a job file with sections of three engines, 12 ranks on 3 hosts")
    sections, shown, own = folder / "sections.fio", folder / "sections.json", folder / "sections.own"
    sections.write_text(SECTIONS)
    on_bed(program, "fio", f"--directory={mount}", sections, "--output-format=json", f"--output={shown}", "--quiet", "--out",
           own)
    entries = json.loads(shown.read_text())["jobs"]
    check(len(entries) == 3 * RANKS, f"one report with an entry for each worker: {len(entries)}")
    check(all(entry["error"] == 0 for entry in entries), "no job failed")
    check(len({entry["hostname"] for entry in entries}) == HOSTS, "each entry names its host")
    ios = {"aio": ("read", 16), "plain": ("write", 16), "names": ("read", 20)}
    for entry in entries:
        way, wanted = ios[entry["jobname"]]
        check(entry[way]["total_ios"] == wanted, f"{entry['jobname']}: {entry[way]['total_ios']} I/Os, not {wanted}")
    items = {"aio-read": 16, "plain-write": 16, "names-create": 20}
    check_result(result(own), {name: RANKS * each for name, each in items.items()}, RANKS, HOSTS)
    nothing_left(mount)


def not_mounted(program, mount):
    """Simulates a common failure: the mount has failed on client3."""
    heading("client3 without its mount: named, and nothing is made anywhere")
    # Hides only the path: the client continues, and a bind mount restores it.
    held = f"{mount}.held"
    def on_3(*words):
        return run([BED, "run", "--on", "client3", *words], quiet=True).stdout
    on_3("mkdir", "-p", held)
    on_3("mount", "--move", mount, held)
    try:
        kind = on_3("stat", "-f", "-c", "%T", mount)
        check("fuse" not in kind, f"client3 has something else there: {kind.strip()}")
        commands = [
            ("meta", "--dir", mount),
            ("io", "--dir", mount, "--size", "1M"),
            ("mdtest", "-d", mount, "-n", 4, "-u"),
            ("mdtest", "-d", f"{mount}/out", "-n", 4),
            ("fio", "--name=j", f"--directory={mount}", "--rw=write", "--size=1M"),
            ("fio", "--name=j", f"--filename={mount}/x", "--rw=randread", "--size=1M"),
        ]
        for words in commands:
            done = on_bed(program, *words, expect=1)
            said = done.stderr
            check("client3 has " in said and ", the others fuse" in said and "--private-dirs" in said, said)
            for host in ("client1", "client2", "client3"):
                listing = run([BED, "run", "--on", host, "ls", "-A", mount], quiet=True).stdout.split()
                check(listing == [], f"nothing is left on {host}: {listing}")
    finally:
        on_3("mount", "--move", held, mount)
        on_3("rmdir", held)


def finished(journal):
    """Counts finished phases in a journal, which also has intervals of the running one."""
    return sum(line.startswith('{"phase"') for line in journal.read_text().splitlines())


def ranks_left(out):
    """Returns the remaining ranks that write to `out`, with the kernel functions in which their threads wait. Ignores
    other runs on this machine."""
    left = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if (process / "comm").read_text().strip() == "rbench" and str(out).encode() in words:
                left[int(process.name)] = {(task / "wchan").read_text() for task in (process / "task").glob("*")}
        except OSError:
            continue
    return left


def cut_off(program, mount, folder):
    heading("a host is cut off in the middle of a phase")
    shown, said = folder / "cut.out", folder / "cut.err"
    # A launcher that notices a lost host after a minute, or never, would keep the job for that long.
    noticing = 'OMPI_MCA_plm_rsh_args="$OMPI_MCA_plm_rsh_args -o ServerAliveCountMax=6"'
    for number in range(CUT_TRIES):
        out = folder / f"cut{number}.json"
        journal = pathlib.Path(f"{out}.journal")
        line = (f"{noticing} mpirun -np {RANKS} --hostfile $RBENCH_BED_HOSTFILE {program} io --dir {mount} --bs 64k "
                f"--size 2M --rw write,read,randread --time 10 --out {out}")
        with said.open("w") as errors, shown.open("w") as report:
            job = subprocess.Popen([BED, "run", "sh", "-c", line], stdout=report, stderr=errors, text=True)
        measured = wait_until(lambda: job.poll() is not None or journal.exists() and finished(journal) >= 2)
        # On a busy machine this timeout sometimes expires although the host is up.
        if "not responding" not in said.read_text():
            break
        print("   mpirun took a host for gone before it was cut off", flush=True)
        job.wait(timeout=PATIENCE_S)
    check(measured and job.poll() is None, "the first phase was measured")
    time.sleep(2)
    run([BED, "cut", "client3"], quiet=True)
    begun = time.monotonic()
    wait_until(lambda: out.exists() or job.poll() is not None)
    took = time.monotonic() - begun
    check(out.exists(), f"there is no partial result {took:.1f} s after the cut")
    print(f"   the partial result was there {took:.1f} s after the cut")
    wait_until(lambda: job.poll() is not None, patience_s=15)
    took = time.monotonic() - begun
    if job.poll() is None:
        # A call that the file system's own daemon does not answer cannot be ended by anyone.
        left = ranks_left(out)
        held = all("request_wait_answer" in waits for waits in left.values())
        check(left and held, f"mpirun is still there {took:.1f} s after the cut, and the kernel holds no rank: {left}")
        print(f"   {len(left)} ranks are in calls that do not return, and mpirun waits for them")
    else:
        print(f"   mpirun ended {took:.1f} s after the cut")
    run([BED, "mend", "client3"], quiet=True)
    try:
        job.wait(timeout=3 * PATIENCE_S)
    except subprocess.TimeoutExpired:
        check(False, f"mpirun does not end when the host is back: {ranks_left(out)}")
        job.kill()
    check(job.returncode != 0, f"mpirun ended with {job.returncode}")
    report = shown.read_text()
    told = "not been heard from for 7 s" in report and "INCOMPLETE" in report
    check(told, f"the report says what happened: {report[-1500:]}\n{said.read_text()[-3000:]}")
    check(f"rbench clean {mount}" in said.read_text(), "what stays is named")
    document = result(out)
    done = [p["name"] for p in document["phases"] if p["complete"]]
    check(not document["complete"] and bool(done), f"finished phases are there: {done}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("RBENCH_DIR", None)
    mount = mount_path()
    with tempfile.TemporaryDirectory(prefix="check-bed-") as name:
        folder = pathlib.Path(name)
        everyday(program, mount, folder)
        verdicts(program, mount, folder)
        variants(program, mount, folder)
        built_in(program, folder)
        fio_jobs(program, mount, folder)
        not_mounted(program, mount)
        # Last, because the file system needs time to recover afterwards.
        cut_off(program, mount, folder)
    finish()


if __name__ == "__main__":
    main()
