"""Compares switches of fio's command line outside its jobs with fio itself: idle processors, devices, triggers, the
aggregate bandwidth log, debug types, tests of checksums and clocks."""

import json
import re
import subprocess
import time

from common import attempt, check, heading

# Number of attempts for results that depend on time.
TRIES = 5
NUMBER = r"\d+\.\d\d"
JOB = ["--name=a", "--rw=write", "--size=64k", "--eta=never"]
# A run of a minute that a trigger ends.
PACED = ["--name=a", "--ioengine=null", "--size=1g", "--rw=write", "--rate_iops=500", "--time_based", "--runtime=60",
         "--verify=crc32c", "--do_verify=0"]

# fio reads the counter without a fence, so a processor may read it this much too early or late.
UNORDERED_TICKS = 2000


def ran(tool, words, folder):
    """Returns the finished process, and the files that exist then."""
    done = subprocess.run(["env", "-C", str(folder), *tool.words, *words], capture_output=True, text=True)
    there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return done, there


def idle(place):
    heading("idle processors: the form of normal reports and of JSON")
    for how in ("system", "percpu"):
        def shown(tool, folder):
            done, _ = ran(tool, [*JOB, f"--idle-prof={how}", "--output-format=normal,json"], folder)
            document = json.loads(done.stdout[done.stdout.index("\n{\n"):].split("\n}\n")[0] + "\n}")
            text = done.stdout[done.stdout.index("\nCPU idleness:"):].split("\n{")[0].strip()
            kinds = {key: type(value).__name__ for key, value in document["cpu_idleness"].items()}
            parts = [value for key, value in document["cpu_idleness"].items() if not key.startswith("unit")]
            # fio compares with an idle processor at its start, which on a busy machine can be slower than later.
            most = 100 if tool.name == "rbench" else float("inf")
            check(all(0 <= part <= most for part in parts), f"{tool.name}: {how}: {parts}")
            return done.returncode, re.sub(NUMBER, "N", text), kinds

        theirs, ours = place.side_by_side(shown)
        check(theirs == ours, f"--idle-prof={how}: fio {theirs}, rbench {ours}")
    calibrated = [re.sub(NUMBER, "N", ran(tool, ["--idle-prof=calibrate"], place.memory)[0].stdout) for tool in place.both]
    check(calibrated[0] == calibrated[1], f"--idle-prof=calibrate: {calibrated}")


def together(place):
    heading("the log of what all workers move together")

    def logged(tool, folder):
        words = ["--name=a", "--ioengine=null", "--size=1g", "--rw=rw", "--rate=1m,2m", "--numjobs=2", "--time_based",
                 "--runtime=2", "--bandwidth-log", "--eta=always", "--output=o.txt", "--bwavgtime=200"]
        _, there = ran(tool, words, folder)
        tables = {name: [[int(field) for field in line.split(", ")] for line in (folder / name).read_text().splitlines()]
                  for name in there if name.endswith(".log")}
        return {name: ({len(row) for row in rows}, {row[2] for row in rows}) for name, rows in tables.items()}, tables

    def once():
        (theirs, _), (ours, tables) = place.side_by_side(logged)
        if theirs != ours or len(ours) != 3:
            return f"--bandwidth-log: fio {theirs}, rbench {ours}"
        # KiB/s of two workers.
        rates = {name: [row[1] for row in rows[1:-1]] for name, rows in tables.items()}
        means = [sum(rates[f"agg-{way}_bw.log"]) / max(len(rates[f"agg-{way}_bw.log"]), 1) for way in ("read", "write")]
        near = abs(means[0] - 2048) < 300 and abs(means[1] - 4096) < 600
        return None if near else f"{means} KiB/s, not 2048 and 4096"

    attempt(TRIES, once)


def triggers(place):
    heading("triggers end a run early: exit code, files")
    for options in (["--trigger-timeout=1"], ["--trigger-file=go"], ["--trigger-file=go", "--trigger-timeout=30"]):
        def ended(tool, folder):
            begun = time.monotonic()
            words = ["env", "-C", str(folder), *tool.words, *PACED, *options, "--trigger=echo x > fired", "--output=o.txt"]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if "--trigger-file=go" in options:
                time.sleep(1)
                (folder / "go").touch()
            _, said = process.communicate(timeout=120)
            took = time.monotonic() - begun
            check(took < 30, f"{tool.name}: {options}: it took {took:.0f} s")
            check(said == "" or tool is place.fio, f"{options}: standard error: {said}")
            return process.returncode, sorted(path.name for path in folder.iterdir())

        theirs, ours = place.side_by_side(ended)
        check(theirs == ours, f"{options}: fio {theirs}, rbench {ours}")

    def aside(tool, folder):
        (folder / "aux").mkdir()
        words = [*JOB, "--verify=crc32c", "--do_verify=0", "--write_lat_log=l", "--aux-path=aux", "--output=o.txt"]
        done, there = ran(tool, words, folder)
        return done.returncode, there

    theirs, ours = place.side_by_side(aside)
    check(theirs == ours, f"--aux-path: fio {theirs}, rbench {ours}")
    done, there = ran(place.ours, [*JOB, "--aux-path=none"], place.folder())
    check(done.returncode == 1 and not there and "none is not a directory" in done.stderr, f"--aux-path=none: {done}, {there}")


def tools(place):
    heading("types of messages, checksums, clocks")
    listed = [ran(tool, ["--debug=help"], place.memory)[0].stdout.strip().split(":")[-1] for tool in place.both]
    check(listed[0] == listed[1], f"--debug=help: {listed}")
    # fio reports an unknown type and continues.
    done, there = ran(place.ours, ["--debug=nosuch", *JOB], place.folder())
    check(done.returncode == 2 and not there and "nosuch" in done.stderr, f"--debug=nosuch: {done}, {there}")
    for words in (["--crctest=nosuch"], ["--idle-prof=nosuch", *JOB],
                  ["--eta-interval=100ms", *JOB], ["--inflate-log=nosuch"], ["--trigger-timeout=x", *JOB]):
        def refused(tool, folder):
            done, there = ran(tool, words, folder)
            return done.returncode != 0, there

        theirs, ours = place.side_by_side(refused)
        check(theirs == ours, f"{words}: fio {theirs}, rbench {ours}")
    folder = place.folder()
    done, _ = ran(place.ours, [*JOB, "--debug=file,job", "--output-format=json"], folder)
    # As with fio, they are in the output, before the report.
    debugging, report = re.split(r"^(?={$)", done.stdout, maxsplit=1, flags=re.M)
    kinds = {line.split()[0] for line in debugging.splitlines()}
    check(kinds == {"file", "job"}, f"--debug: {debugging}")
    check("a" == json.loads(report)["jobs"][0]["jobname"], "the report is as without --debug")

    names = [ran(tool, ["--crctest=help"], place.memory)[0].stdout.split() for tool in place.both]
    check(set(names[1]) <= set(names[0]), f"checksums: {names}")
    speeds = []
    for tool in place.both:
        text = ran(tool, ["--crctest=md5,crc7"], place.memory)[0].stdout
        speeds.append(re.sub(r" *\d+\.\d\d", " N", text).rstrip())
    check(speeds[0] == speeds[1], f"--crctest: {speeds}")
    clocks = []
    for tool in place.both:
        done, _ = ran(tool, ["--cpuclock-test"], place.memory)
        behind = [int(ticks) for ticks in re.findall(r"mismatch \(diff=(\d+)\)", done.stdout)]
        lines = [re.sub(r"\d+", "N", line) for line in done.stdout.splitlines() if line.startswith("cs: ")]
        clocks.append((done.returncode, max(behind, default=0), sorted({re.sub(r" +", " ", line) for line in lines})))
    (code, behind, lines), (own_code, own_behind, own_lines) = clocks
    if 0 < behind < UNORDERED_TICKS:
        # If some of its readings were out of order, it cannot judge the counters.
        verdict = ("cs: CPU clock mismatch (diff=N):", "cs: Failed: N", "cs: Pass!")
        lines, own_lines = ([line for line in some if line not in verdict] for some in (lines, own_lines))
        check(lines == own_lines and (own_code != 0) == (own_behind > 0), f"--cpuclock-test: {clocks}")
    else:
        check((code, lines) == (own_code, own_lines), f"--cpuclock-test: {clocks}")


def switches(place):
    idle(place)
    together(place)
    triggers(place)
    tools(place)
