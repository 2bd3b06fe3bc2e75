"""Checks commands around each phase (--before-phase, --after-phase): their environment, their order, on every host;
commands that fail or hang; and that no time includes them.

usage: hooks.py PROGRAM [--mpirun MPIRUN]
"""

import argparse
import os
import pathlib
import re
import tempfile
import time

from common import check, finish, heading, phases, result, run, wait_until

# Variables that a command records.
TOLD = ("RBENCH_PHASE", "RBENCH_PHASE_LABEL", "RBENCH_PHASE_NUMBER", "RBENCH_ITERATION", "RBENCH_RUN_ID",
        "RBENCH_DIRECTORY", "RBENCH_HOST")
SLEEP_S = 0.7


def noting(file, word, more=""):
    told = "\t".join(f"${name}" for name in TOLD)
    return f'printf "%s\\n" "{word}\t{told}" >>{file}; {more or "true"}'


def lines_of(file):
    return [line.split("\t") for line in file.read_text().splitlines()]


def around(program, folder):
    heading("which phases, in which order, and what the commands are told")
    target, notes, out = folder / "target", folder / "notes", folder / "around.json"
    target.mkdir()
    before = noting(notes, "before", f"ls -d $RBENCH_DIRECTORY >/dev/null && sleep {SLEEP_S}")
    begun = time.monotonic()
    done = run([program, "meta", "--dir", target, "--phases", "file-create,file-stat,file-remove", "--items", 30,
                "--iterations", 2, "--before-phase", before, "--after-phase", noting(notes, "after", "echo said"),
                "--out", out])
    took = time.monotonic() - begun
    document = result(out)
    found = lines_of(notes)
    rows = [(phase["name"], phase["label"], phase["iteration"] + 1) for phase in document["phases"]]
    expect = []
    for number, (name, label, iteration) in enumerate(rows, 1):
        for word in ("before", "after"):
            expect.append([word, name, label, str(number), str(iteration), document["run"]["id"]])
    check([line[:6] for line in found] == expect, f"{found} are not {expect}")
    directory = str(target / f"rbench.{document['run']['id']}")
    host = document["world"]["hosts"][0]["name"]
    check({tuple(line[6:]) for line in found} == {(directory, host)}, f"directory and host: {found}")
    check(done.stderr.count(f"{host}: said\n") == len(rows), f"what they print goes to standard error: {done.stderr}")
    check("said" not in done.stdout.replace("echo said", ""), "and not among the results")
    check(took > SLEEP_S * len(rows), f"all of them were waited for: {took:.1f} s")
    slow = {phase["name"]: phase["elapsed_s"] for phase in document["phases"] if phase["elapsed_s"] >= SLEEP_S}
    # On a busy machine some rows may take long; if the command's time were included, all would.
    check(len(slow) < len(rows), f"phases have the {SLEEP_S} s of their commands: {slow}")
    settings = document["settings"]
    check(settings["before-phase"]["text"] == before, f"the result has it: {settings}")
    check(settings["hook-timeout"]["value"] == 60 * 10**9, f"{settings['hook-timeout']}")
    check(list(target.iterdir()) == [], "nothing is left")
    print(f"   {len(found)} commands around {len(rows)} phases; the longest phase took "
          f"{max(phase['elapsed_s'] for phase in document['phases']):.3f} s", flush=True)


def workloads(program, folder):
    heading("io, ops, find, mix and replay have them, too; layouts and mdtest do not")
    target = folder / "workloads"
    target.mkdir()
    tree = folder / "tree"
    tree.mkdir()
    trace = folder / "trace"
    trace.write_text("fio version 2 iolog\n/file add\n/file open\n/file write 0 4096\n/file close\n")
    for name, words, expect in (
        ("io", ["--rw", "read,randrw,read", "--size", "1M"], ["read-1", "randrw", "read-3"]),
        ("ops", ["--only", "mkdir,rmdir", "--ops", 20], ["mkdir", "rmdir"]),
        ("find", ["--iterations", 2], ["find", "find"]),
        ("mix", ["--ops", "stat=1", "--files", 20, "--rounds", 5, "--iterations", 2], ["mix", "mix"]),
        ("replay", [trace], ["replay"]),
    ):
        notes = folder / f"notes-{name}"
        run([program, name, "--dir", tree if name == "find" else target, "--before-phase", noting(notes, "before"), *words])
        found = [line[1] for line in lines_of(notes)]
        check(found == expect, f"{name}: {found}, not {expect}")
        print(f"   {name}: {', '.join(found)}", flush=True)
    done = run([program, "mdtest", "-d", target, "-n", 3, "--before-phase", "true"], expect=None)
    check(done.returncode == 2, f"mdtest has none: {done.returncode}: {done.stderr}")


def failing(program, folder):
    heading("a command that fails")
    target, out = folder / "failing", folder / "failing.json"
    target.mkdir()
    common = [program, "io", "--dir", target, "--rw", "write,read", "--size", "1M", "--out", out, "--overwrite", "--quiet"]
    done = run([*common, "--before-phase", "test $RBENCH_PHASE = write || { echo no counters >&2; exit 3; }"], expect=1)
    told = r"--before-phase of Sequential read on \S+: .* failed with exit status 3: no counters"
    check(re.search(told, done.stderr), f"before: {done.stderr}")
    document = result(out)
    check("write" in phases(document) and "read" not in phases(document), f"no number behind it: {list(phases(document))}")
    check(not document["complete"], "the run is not complete")
    check(list(target.iterdir()) == [], "nothing is left")
    done = run([*common, "--after-phase", "test $RBENCH_PHASE = read || kill -TERM $$"])
    document = result(out)
    warnings = [w["message"] for w in document["warnings"] if w["code"] == "after-phase-failed"]
    check(len(warnings) == 1 and re.search(r"--after-phase of Sequential write on \S+: .* was killed by SIGTERM", warnings[0]),
          f"after: {warnings}")
    check(document["complete"] and "read" in phases(document), "and the run goes on")
    print(f"   {warnings and warnings[0]}", flush=True)
    for words, sentence in ((["--hook-timeout", "0", "--before-phase", "true"], "--hook-timeout must be longer than 0"),
                            (["--hook-timeout", "1s"], "--hook-timeout needs --before-phase or --after-phase")):
        done = run([*common, *words], expect=2)
        check(sentence in done.stderr, f"{words}: {done.stderr}")


def running(words):
    """Returns whether a process with these words exists."""
    needle = "\0".join(words).encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if needle in (process / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def hanging(program, folder):
    heading("a command that hangs, and one that leaves something running")
    target, out = folder / "hanging", folder / "hanging.json"
    target.mkdir()
    odd = f"9{os.getpid() % 100000:05d}.5"
    common = [program, "io", "--dir", target, "--rw", "write", "--size", "1M", "--out", out, "--overwrite", "--quiet"]
    begun = time.monotonic()
    done = run([*common, "--hook-timeout", "500ms", "--before-phase", f"trap '' TERM; sleep {odd} & sleep {odd}"], expect=1)
    took = time.monotonic() - begun
    told = r"--before-phase of Sequential write on \S+: .* did not finish within 0.5 s \(--hook-timeout\) and was stopped"
    check(re.search(told, done.stderr), f"hanging: {done.stderr}")
    check(took < 60, f"it took {took:.1f} s")
    # A killed process may still be visible for a moment.
    gone = lambda: wait_until(lambda: not running(["sleep", odd]), 20)
    check(gone(), "nothing of its group is left")
    check(list(target.iterdir()) == [], "nothing is left of the files")
    notes = folder / "beside"
    run([*common, "--before-phase", f"sleep {odd} >/dev/null 2>&1 & true",
         "--after-phase", f"pgrep -f '^sleep {odd}' >{notes}; true"])
    check(notes.read_text().strip() != "", "what it leaves running is there until the phase is over")
    check(gone(), "and not longer")
    print(f"   ended after {took:.1f} s", flush=True)


def hosts(program, launcher, folder):
    heading("once on each host, and all hosts wait for the slowest")
    target, notes, out = folder / "hosts", folder / "notes-hosts", folder / "hosts.json"
    target.mkdir()
    unshare = ["unshare", "-u"] if os.geteuid() == 0 else ["unshare", "-r", "-u"]
    wrap = [*unshare, "sh", "-c", 'hostname second && exec "$@"', "sh"]
    slow = f'if [ "$RBENCH_HOST" = second ]; then sleep {SLEEP_S}; fi; date +%s.%N >>{notes}.$RBENCH_HOST'
    words = [program, "meta", "--dir", target, "--phases", "file-create", "--items", 20, "--before-phase",
             noting(notes, "before", slow), "--quiet", "--out", out]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    run([launcher, "-np", 2, *words, ":", "-np", 2, *wrap, *words], env=environment)
    document = result(out)
    names = [host["name"] for host in document["world"]["hosts"]]
    check(len(names) == 2 and "second" in names, f"two hosts: {names}")
    found = sorted((line[1], line[7]) for line in lines_of(notes))
    expect = sorted((phase, host) for phase in ("tree-create", "file-create") for host in names)
    check(found == expect, f"{found}, not {expect}")
    slow = {phase["name"]: phase["elapsed_s"] for phase in document["phases"] if phase["elapsed_s"] >= SLEEP_S}
    check(len(slow) < len(document["phases"]), f"phases have the wait for the slow host: {slow}")
    words[words.index("--before-phase") + 1] = "test $RBENCH_HOST != second"
    words[-1] = folder / "failed.json"
    done = run([launcher, "-np", 2, *words, ":", "-np", 2, *wrap, *words], expect=None, env=environment)
    check(done.returncode == 1, f"exit code {done.returncode}")
    check(re.search(r"rbench: on second: --before-phase of Tree creation: .* failed with exit status 1", done.stderr),
          f"the host is named: {done.stderr}")
    check(list(target.iterdir()) == [], "nothing is left")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun", default="mpirun")
    options = parser.parse_args()
    program = options.program.resolve()
    with tempfile.TemporaryDirectory(prefix="check-hooks-") as name:
        folder = pathlib.Path(name)
        around(program, folder)
        workloads(program, folder)
        failing(program, folder)
        hanging(program, folder)
        hosts(program, options.mpirun, folder)
    finish()


main()
