"""Checks `rbench io --steadystate`: the totals of all ranks are judged at each interval, and the phase ends once they
are steady, not before and not much later. Compares the judged values with the timeline, which is reduced separately.

usage: steady.py PROGRAM [--mpirun MPIRUN]
"""

import argparse
import math
import pathlib
import tempfile

from common import Testfs, attempt, check, finish, heading, mpirun, result, run

# The first FAST_FOR_S s of reads take 10 ms each, later ones 40 ms.
FAST_S, SLOW_S = 0.010, 0.040
FAST_FOR_S = 2.6
WINDOW_S = 4


def totals(document, name, step_s):
    """Returns the items of all rows of a phase in each step, from its timelines."""
    sums = {}
    for phase in document["phases"]:
        if phase["name"].split("-")[0] == name and phase["op"] in ("read", "write"):
            check(phase["timeline_step_s"] <= step_s, f"rows of {phase['timeline_step_s']} s lie within steps")
            for row in phase["timeline"]:
                number = math.floor(row["t_s"] / step_s + 1e-6)
                sums[number] = sums.get(number, 0) + row["items"]
    return sums


def deviation(values):
    mean = sum(values) / len(values)
    return 100 * max(abs(value - mean) for value in values) / mean


def slope(values):
    mean, middle = sum(values) / len(values), (len(values) - 1) / 2
    rise = sum((i - middle) * (value - mean) for i, value in enumerate(values))
    return 100 * rise / sum((i - middle) ** 2 for i in range(len(values))) / mean


def judged(document, name, measure):
    """Compares the result of a phase with the timeline. Its values must be the totals of all ranks, no earlier window
    may meet the limit, and this one must if it claims so."""
    rows = [phase for phase in document["phases"] if phase["name"].split("-")[0] == name and phase["op"] in ("read", "write")]
    steady = rows[0]["steady"]
    check(all(row["steady"] == steady for row in rows), f"{name}: the rows of a phase share it")
    step_s, length = steady["interval_s"], round(steady["window_s"] / steady["interval_s"])
    sums = totals(document, name, step_s)
    first = round(steady["window_from_s"] / step_s)
    expect = [sums.get(first + i, 0) / step_s for i in range(length)]
    check(len(steady["iops"]) == length, f"{name}: {length} values, not {steady['iops']}")
    check(all(abs(a - b) < 1e-6 for a, b in zip(steady["iops"], expect)), f"{name}: {steady['iops']}, not {expect}")
    check(abs(steady["value"] - measure(expect)) < 1e-6, f"{name}: {steady['value']}, not {measure(expect)}")
    check(abs(steady["iops_mean"] - sum(expect) / length) < 1e-6, f"{name}: the mean is {steady['iops_mean']}")
    begin = math.ceil((rows[0]["measured_from_s"] + steady["ramp_s"]) / step_s - 1e-9)
    for earlier in range(begin, first):
        window = [sums.get(earlier + i, 0) for i in range(length)]
        value = measure(window) if sum(window) else math.inf
        check(abs(value) > steady["limit"], f"{name}: the window from {earlier * step_s} s on had kept it: {window}")
    check(steady["attained"] == (abs(steady["value"]) <= steady["limit"]), f"{name}: {steady}")
    if steady["attained"]:
        at = steady["attained_at_s"]
        check(abs(at - steady["window_from_s"] - steady["window_s"]) < 1e-6, f"{name}: attained at {at} s")
        check(all(row["measured_from_s"] + row["elapsed_s"] >= at for row in rows), f"{name}: it ended before {at} s")
    return steady, rows


def falls_into_place(program, before, ranks, folder):
    """Latency changes once in the first seconds; a window with both rates does not meet the limit."""
    fast = round(FAST_FOR_S / FAST_S * ranks)
    stall = f"read:stall={round((SLOW_S - FAST_S) * 1000)}ms@after={fast}"
    target = Testfs(program, "--latency", f"read={round(FAST_S * 1000)}ms", "--fault", stall, "--direct-io")
    out = folder / f"falls-{ranks}.json"
    told = run([*before, program, "io", "--dir", target.mountpoint, "--rw", "randread", "--bs", "4k", "--size", "1m",
                "--direct", "--time", "40", "--steadystate", "iops:20%", "--ss-dur", WINDOW_S, "--out", out, "--overwrite",
                "--no-round-trip"])
    target.end()
    document = result(out)
    steady, (row,) = judged(document, "randread", deviation)
    if not steady["attained"]:
        return f"it never became steady: {steady}"
    # The change is in the interval of the last fast read's start: no steady window starts before it.
    sums = totals(document, "randread", 1)
    changed, done = 0, 0
    while done + sums.get(changed, 0) < fast:
        done += sums[changed]
        changed += 1
    check(steady["window_from_s"] >= changed, f"the rate changed in second {changed}: {steady}")
    check("attained after" in told.stdout, f"the report says so:\n{told.stdout}")
    check(document["complete"] and row["complete"], "the run is complete")
    at, ended = steady["attained_at_s"], row["elapsed_s"]
    print(f"   {ranks} ranks: changed in second {changed}, steady at {at} s, ended at {ended:.3f} s: {steady['iops']}", flush=True)
    if at > changed + 1 + WINDOW_S:
        return f"a later window than the first whole one: {at} s"
    if ended > at + 2:
        return f"it ended at {ended} s, and was steady at {at} s"
    return None


def mixed(program, before, ranks, folder):
    """Operations take several intervals, in two rows: no part of an interval may be missing when it is judged."""
    target = Testfs(program, "--latency", "read=130ms,write=70ms", "--direct-io")
    out = folder / f"mixed-{ranks}.json"
    run([*before, program, "io", "--dir", target.mountpoint, "--rw", "randrw", "--mix", "90", "--bs", "4k", "--size", "256k",
         "--threads", "2", "--direct", "--time", "8", "--ramp", "0.3", "--interval", "50ms", "--ss-interval", "100ms",
         "--steadystate", "iops_slope:2%", "--ss-dur", "2", "--ss-ramp", "0.4", "--out", out, "--overwrite", "--no-round-trip"])
    target.end()
    steady, rows = judged(result(out), "randrw", slope)
    print(f"   {ranks} ranks: {steady['attained']} at {steady['attained_at_s']} s of {rows[0]['elapsed_s']:.3f} s", flush=True)


def never(program, folder):
    heading("a rate that does not become steady")
    out = folder / "never.json"
    told = run([program, "io", "--dir", folder, "--rw", "randread,write", "--bs", "4k", "--size", "256k", "--rate", "500",
                "--arrival", "poisson", "--time", "3", "--interval", "100ms", "--ss-interval", "100ms", "--ss", "bw:0.0001%",
                "--ss-dur", "2", "--out", out])
    document = result(out)
    for phase in document["phases"]:
        if phase["op"] == "fsync":
            check("steady" not in phase, "a sync has no rate of its own")
            continue
        steady = phase["steady"]
        check(not steady["attained"] and steady["attained_at_s"] is None, f"{steady}")
        check(phase["elapsed_s"] > 2.5, f"it had its time: {phase['elapsed_s']} s")
    codes = [warning["code"] for warning in document["warnings"]]
    check("not-steady" in codes, f"a warning says so: {codes}")
    check("not attained" in told.stdout, f"so does the report:\n{told.stdout}")
    shown = run([program, "show", "--format", "md", out], quiet=True).stdout
    check("not attained" in shown, f"and Markdown:\n{shown}")


def refused(program, folder):
    heading("what is refused, in one sentence and before anything runs")
    wanted = ["--steadystate", "iops:2%", "--ss-dur", "4"]
    for options, words in [
        (wanted, "--steadystate needs --time"),
        (["--time", "9", "--steadystate", "iops:2%"], "--steadystate needs --ss-dur"),
        (["--time", "9", "--ss-dur", "4"], "--ss-dur needs --steadystate"),
        (["--time", "9", "--ss-ramp", "4"], "--ss-ramp needs --steadystate"),
        (["--time", "9", "--ss-interval", "1"], "--ss-interval needs --steadystate"),
        (["--time", "9", "--steadystate", "iops", "--ss-dur", "4"], "has no limit"),
        (["--time", "9", "--steadystate", "rate:2%", "--ss-dur", "4"], "--steadystate"),
        (["--time", "9", "--steadystate", "iops:x%", "--ss-dur", "4"], "is not a percentage"),
        (["--time", "9", "--steadystate", "iops:-2%", "--ss-dur", "4"], "is not a percentage"),
        (["--time", "9", "--steadystate", "iops:2%", "--ss-dur", "1"], "--ss-dur 1"),
        (["--time", "9", "--steadystate", "iops:2%", "--ss-dur", "2.5"], "--ss-dur 2.5"),
        (["--time", "9", *wanted, "--ss-interval", "1.5"], "--ss-interval 1.5"),
        (["--time", "9", *wanted, "--ss-interval", "500ms"], "not a multiple of --interval"),
        (["--time", "9", *wanted, "--ss-ramp", "6"], "no window would be complete"),
    ]:
        done = run([program, "io", "--dir", folder, *options], expect=2, quiet=True)
        lines = done.stderr.strip().splitlines()
        check(words in done.stderr and not done.stdout, f"{options}: {done.stderr}")
        # Clap adds a pointer to --help, after an empty line.
        check(len(lines) == 1 or lines[1:] == ["", "For more information, try '--help'."], f"{options}: one sentence, not {lines}")
    check(not any(path.name.startswith("rbench.") for path in folder.iterdir()), "nothing was made")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun")
    given = parser.parse_args()
    program = given.program.resolve()
    several = [([], 1)] + ([(mpirun(given.mpirun, 4), 4)] if given.mpirun else [])
    with tempfile.TemporaryDirectory(prefix="rbench-steady-") as folder:
        folder = pathlib.Path(folder)
        refused(program, folder)
        never(program, folder)
        for before, ranks in several:
            heading(f"{ranks} ranks: the latency changes after {FAST_FOR_S} s")
            attempt(3, lambda before=before, ranks=ranks: falls_into_place(program, before, ranks, folder))
            heading(f"{ranks} ranks: operations of several intervals")
            mixed(program, before, ranks, folder)
    finish()


if __name__ == "__main__":
    main()
