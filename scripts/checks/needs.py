"""What a run needs and the file system lacks: refused before anything is made, with the option and what the file system
answered, for every command line.

usage: needs.py PROGRAM          ramfs (no O_DIRECT) and the built-in file system with errors of one kind
       needs.py PROGRAM --bed    on three hosts with MooseFS (the bed is up: scripts/testbed up), which punches no holes
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from common import Testfs, check, finish, heading, run

BED = pathlib.Path(__file__).resolve().parent.parent / "testbed"
FIO = ["fio", "--name=job", "--size=1m", "--bs=4k"]


def refused(program, place, words, *sentence, ranks=0):
    launcher = ["mpirun", "-np", ranks] if ranks else []
    before = sorted(os.listdir(place))
    done = run([*launcher, program, *words], expect=2, quiet=True)
    said = [line for line in done.stderr.splitlines() if line.startswith("rbench: ")]
    check(said == [f"rbench: {text}" for text in sentence], f"{words}: {done.stderr}, not {sentence}")
    check(sorted(os.listdir(place)) == before, f"{words}: {os.listdir(place)} is left, {before} was there")
    print(f"   {words[0]}: " + "\n      ".join(said), flush=True)


def goes(program, words):
    run([program, *words, "--quiet"], quiet=True)


def without_direct(program, folder):
    heading("no O_DIRECT: ramfs")
    place = folder / "ramfs"
    place.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
    try:
        says = "ramfs (none) refuses it (openat: EINVAL)"
        refused(program, place, ["io", "--dir", place, "--size", "1m", "--direct"], f"O_DIRECT (--direct): {says}")
        refused(program, place, [*FIO, f"--directory={place}", "--direct=1"], f"O_DIRECT (job job): {says}")
        refused(program, place, [*FIO, f"--directory={place}", "--direct=1"], f"O_DIRECT (job job): {says}", ranks=3)
        ior = ["ior", "-o", place / "a", "-b", "1m", "-t", "64k", "--posix.odirect"]
        refused(program, place, ior, f"O_DIRECT (job write): {says}")
        goes(program, ["io", "--dir", place, "--size", "1m"])
        # A file that is only read is left alone, and so is what is around it; it fails by itself.
        (place / "there").write_bytes(bytes(1 << 20))
        done = run([program, *FIO, f"--filename={place}/there", "--rw=read", "--direct=1"], expect=None, quiet=True)
        check(done.returncode == 1 and "EINVAL" in done.stderr + done.stdout, f"a file that is there: {done}")
    finally:
        subprocess.run(["umount", place], check=True)


def one_error(program, fault, words, *sentence):
    """On the built-in file system, where all requests of a kind fail; without that they do not."""
    for options, lacks in (fault, True), ((), False):
        served = Testfs(program, *options)
        place = str(served.mountpoint)
        told = [str(word).replace("PLACE", place) for word in words]
        if lacks:
            refused(program, place, told, *sentence)
        else:
            goes(program, told)
        served.end()


def errors(program):
    heading("one kind of request fails: the built-in file system")
    fs = "fuse.rbench-testfs (rbench-testfs)"
    io, meta = ["io", "--dir", "PLACE", "--size", "1m"], ["meta", "--dir", "PLACE", "--items", "5"]
    one_error(program, ["--fault", "write:EINVAL@nth=2"], [*io, "--rw", "randwrite"],
              f"writes at any offset (--rw randwrite): {fs} refuses it (pwrite64: EINVAL)")
    one_error(program, ["--fault", "write:EINVAL@nth=2"],
              ["mix", "--dir", "PLACE", "--files", "20", "--rounds", "2", "--list", "open, write 1k random, close"],
              f"writes at any offset (--list): {fs} refuses it (pwrite64: EINVAL)")
    one_error(program, ["--fault", "write:misdirect@nth=2"], [*FIO, "--directory=PLACE", "--rw=randwrite"],
              f"writes at any offset (job job): {fs} does not do it (pread64: other data than was written comes back)")
    one_error(program, ["--fault", "fallocate:EOPNOTSUPP@after=0"],
              [*FIO, "--directory=PLACE", "--rw=trimwrite", "--fallocate=none"],
              f"giving back a range of a file (job job): {fs} refuses it (fallocate: EOPNOTSUPP)")
    one_error(program, ["--fault", "link:EPERM@after=0"], [*meta, "--phases", "file-create,file-link,file-remove"],
              f"hard links (--phases file-link): {fs} refuses it (linkat: EPERM)")
    one_error(program, ["--fault", "symlink:EPERM@after=0", "--fault", "setxattr:EOPNOTSUPP@after=0"],
              [*meta, "--phases", "file-create,file-symlink,file-setxattr,file-remove"],
              f"symbolic links (--phases file-symlink): {fs} refuses it (symlinkat: EPERM)",
              f"extended attributes (--phases file-setxattr): {fs} refuses it (fsetxattr: EOPNOTSUPP)")


def on_bed(program):
    heading("three hosts with MooseFS: no holes")
    mount = pathlib.Path("/tmp/rbench-testbed/mnt")
    launch = f"exec mpirun -np 12 --hostfile $RBENCH_BED_HOSTFILE {program} {' '.join(FIO)} --directory={mount} --rw=trimwrite"
    done = run([BED, "run", "sh", "-c", launch], expect=2, quiet=True)
    wanted = "giving back a range of a file (job job): fuse (mfs#10.77.0.1:9421) refuses it (fallocate: EOPNOTSUPP) on client1, client2, client3"
    check(f"rbench: {wanted}\n" in done.stderr, f"{done.stderr}")
    left = run([BED, "run", "ls", "-A", mount], quiet=True).stdout
    check(".needs-" not in left and "job" not in left, f"left: {left}")
    print(f"   {wanted}", flush=True)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if "--bed" in sys.argv[2:]:
        on_bed(program)
    else:
        with tempfile.TemporaryDirectory(prefix="check-needs-") as folder:
            without_direct(program, pathlib.Path(folder))
        errors(program)
    finish()


main()
