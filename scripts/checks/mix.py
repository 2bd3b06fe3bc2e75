"""Compares rbench mix with the built-in file system's request counts, with counts derived here from the profiles'
texts, and with strace; weights, open loops, ranks, and mistakes.

usage: mix.py PROGRAM
"""

import collections
import math
import os
import pathlib
import re
import sys
import tempfile
import tomllib

from common import Testfs, check, finish, heading, mpirun, phases, result, run

# No kernel cache answers: every call of these kinds is a request.
UNCACHED = ["--direct-io", "--attr-timeout", "0", "--entry-timeout", "0"]
# The request of each row. Rows that are missing here consist of lookups and attributes, which other calls also need.
REQUESTS = {
    "create": "create", "open": "open", "read": "read", "write": "write", "append": "write", "fsync": "fsync",
    "fdatasync": "fsync", "close": "flush", "rename": "rename", "replace": "rename", "symlink": "symlink",
    "readlink": "readlink", "mkdir": "mkdir", "setxattr": "setxattr", "list": "opendir",
}
# Random operations open and close their files themselves.
WHOLE = {
    "create": ["create", "write", "flush"], "open": ["open", "flush"], "read": ["open", "read", "flush"],
    "write": ["open", "write", "flush"], "append": ["open", "write", "flush"], "setxattr": ["open", "setxattr", "flush"],
    "getxattr": ["open", "getxattr", "flush"], "rename": ["rename"], "symlink": ["symlink"], "readlink": ["readlink"],
    "mkdir": ["mkdir"], "list": ["opendir"],
}
# Options of each profile, and the rounds of its workers if another worker determines them.
SMALL = ["--scale-size", "0.1"]
PROFILES = {
    "fileserver": (["--threads", "4", "--scale", "0.02", "--rounds", "12", *SMALL], {}),
    "varmail": (["--threads", "4", "--scale", "0.1", "--rounds", "25", *SMALL], {}),
    "webserver": (["--threads", "4", "--scale", "0.1", "--rounds", "10", *SMALL], {}),
    "webproxy": (["--threads", "4", "--scale", "0.02", "--rounds", "25", *SMALL], {}),
    "oltp": (["--threads", "12", "--scale-size", "0.05", "--rounds", "2000"], {"writer": 20, "log": 6}),
    "videoserver": (["--threads", "4", "--scale", "0.1", "--scale-size", "0.000005", "--rounds", "2"], {}),
    "openfiles": (["--threads", "4", "--scale", "0.01", "--rounds", "200"], {}),
    "smallfile": (["--threads", "2", "--rounds", "300", *SMALL], {}),
    "git": (["--threads", "5", "--scale", "0.1", "--rounds", "4", *SMALL], {}),
    "logs": (["--threads", "5", "--rounds", "3"], {}),
    "backup": (["--threads", "4", "--scale", "0.5", "--rounds", "3", "--scale-size", "0.02"], {}),
    "database": (["--threads", "8", "--scale-size", "0.01", "--rounds", "1200"], {"checkpoint": 2}),
}


# A ring does not support listings, readlink, chmod, utimes and access.
NOT_IN_A_RING = ("smallfile", "git", "logs", "backup")
RING = ["--engine", "io_uring", "--iodepth", "8"]


def split(text):
    """Splits a list at commas outside parentheses."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()]


def counted(text):
    """Counts the occurrences of each row in a list."""
    rows = collections.Counter()
    for part in split(text):
        repeated = re.fullmatch(r"(\d+)x \((.*)\)", part, re.DOTALL)
        if repeated:
            for row, count in counted(repeated[2]).items():
                rows[row] += int(repeated[1]) * count
        else:
            word = re.split(r"[ @]", part)[0]
            if word != "think":
                rows[word] += 1
    return rows


def shares(kinds, asked):
    """Returns the threads of each kind of worker, for a total of `asked`."""
    total = sum(kind.get("threads", 1) for kind in kinds)
    each = [max(1, kind.get("threads", 1) * asked // total) for kind in kinds]
    largest = max(range(len(kinds)), key=lambda at: (kinds[at].get("threads", 1), -at))
    each[largest] = asked - sum(each[:largest] + each[largest + 1:])
    return each


def option(options, name):
    return int(options[options.index(name) + 1])


def expected(program, name, options, decided):
    """Returns the items of each row, counted from the profile's text; None for random operations."""
    profile = tomllib.loads(run([program, "mix", "--show", name], quiet=True).stdout)
    kinds = profile["worker"]
    rows = collections.Counter()
    for kind, threads in zip(kinds, shares(kinds, option(options, "--threads"))):
        if "ops" in kind:
            return None
        before = f"{kind['name']}-" if len(kinds) > 1 else ""
        rounds = decided.get(kind.get("name"), threads * option(options, "--rounds"))
        for row, count in counted(kind["list"]).items():
            rows[before + row] += count * rounds
        rows[before + "all"] += sum(counted(kind["list"]).values()) * rounds
        rows[before + "round"] += rounds
        for row, count in (counted(kind["first"]) if "first" in kind else {}).items():
            rows[before + row] += count * threads
            rows[before + "all"] += count * threads
    return rows


def plain(row):
    """Returns the kind of a row, without its worker's name."""
    return row.split("-")[-1]


def requests(found, drawn):
    """Returns the requests that the rows mean."""
    made = collections.Counter()
    for row, phase in found.items():
        for kind in (WHOLE.get(row, []) if drawn else [REQUESTS.get(plain(row))]):
            made[kind] += phase["items"]
    return made


def measured(program, out, *options, launcher=()):
    run([*launcher, program, "mix", "--out", out, "--quiet", "--no-round-trip", "--untried", *options], quiet=True)
    document = result(out)
    out.unlink()
    found = phases(document)
    errors = {row: phase["errors"] for row, phase in found.items() if phase["errors"]}
    check(not errors, f"{options}: {errors}")
    return found


def account(program, out, name, options):
    """Returns the rows of a run on a new file system, and its counters."""
    target = Testfs(program, *UNCACHED)
    found = measured(program, out, "--dir", target.mountpoint, "--seed", "5", *name, *options)
    stats = {kind: entry["count"] if isinstance(entry, dict) else entry for kind, entry in target.stats().items()}
    target.end()
    return found, stats


def profiles_are_what_they_say(program, out, ring=()):
    heading(f"each profile: items are the list's times rounds, requests are those of the items {' '.join(ring)}")
    able = {name: profile for name, profile in PROFILES.items() if not ring or name not in NOT_IN_A_RING}
    for name, (options, decided) in able.items():
        options = [*options, *ring]
        found, stats = account(program, out, ["--profile", name], options)
        rows = expected(program, name, options, decided)
        for row, count in (rows or {}).items():
            # A miss was repeated at once on another file.
            items = found[row]["items"]
            check(items == count, f"{name}: {items} of {row}, {count} by its list, missed {found[row]['missed']}")
        # Preparation and removal are the same in a run with fewer rounds.
        drawn = rows is None
        less = [*options]
        less[less.index("--rounds") + 1] = "1000" if name == "oltp" else "1"
        few, before = account(program, out, ["--profile", name], less)
        of_more, of_few = requests(found, drawn), requests(few, drawn)
        # The removal lists directories again that were created and removed.
        skipped = {None, "opendir"} if "mkdir" in found else {None}
        for kind in sorted(set(of_more) - skipped):
            difference = stats.get(kind, 0) - before.get(kind, 0)
            expect = of_more[kind] - of_few[kind]
            # The kernel itself answers a ring's reads of files that another worker has created but not yet written, in
            # both runs.
            unasked = expect // 20 if ring and kind == "read" else 0
            check(
                abs(difference - expect) <= unasked,
                f"{name}: {difference} requests {kind}, {expect} by the rows",
            )
        for rows, one in ((found, stats), (few, before)):
            over = sum(phase["items"] for row, phase in rows.items() if plain(row) == "replace")
            made = one["create"] + one.get("symlink", 0) - over
            check(one["unlink"] == made, f"{name}: all that is made is removed: {one}")
        print(f"   {name}: {dict(of_more)}", flush=True)


def empty_files(program, out):
    heading("reading an empty file: a request with calls, and none in a ring, where the kernel knows the length")
    for ring, asked in (([], 40), (RING, 0)):
        for size, bytes_each in (("0", 0), ("1k", 1024)):
            words = ["--list", "open, read whole, close", "--files", "50", "--prepared", "100", "--file-size", size, "--rounds", "40"]
            target = Testfs(program, *UNCACHED)
            found = measured(program, out, "--dir", target.mountpoint, *words, *ring)["read"]
            count = target.stats().get("read", {"count": 0})["count"]
            target.end()
            check((found["items"], found["bytes"]) == (40, 40 * bytes_each), f"{ring} {size}: {found['items']}, {found['bytes']}")
            check(count == (asked if size == "0" else 40), f"{ring} {size}: {count} requests")


def weights_hold(program, folder, out):
    heading("weights, within five standard deviations")
    weights = {"stat": 60, "open": 20, "create": 10, "rename": 5, "delete": 5}
    words = ",".join(f"{op}={weight}" for op, weight in weights.items())
    found = measured(program, out, "--dir", folder, "--ops", words, "--rounds", 5000, "--threads", 4, "--files", 4000)
    drawn = {op: found[op]["items"] + found[op]["missed"] for op in weights}
    total = sum(drawn.values())
    for op, weight in weights.items():
        share = weight / 100
        spread = 5 * math.sqrt(total * share * (1 - share))
        check(abs(drawn[op] - total * share) < spread, f"{op}: {drawn[op]} of {total}")
    check(found["all"]["items"] == sum(found[op]["items"] for op in weights), "the row of all has all of them")
    # More names are created than removed: the names run out, and further operations miss.
    print(f"   {drawn}, missed: {({op: found[op]['missed'] for op in weights})}", flush=True)


def open_loop(program, out):
    heading("open loop at 50, 80 and 95 % of the closed one, 1 ms in each request")
    target = Testfs(program, "--latency", "all=1ms")
    words = ["--dir", target.mountpoint, "--list", "create, append 4k, fsync, close, open, read whole, close, delete"]
    words += ["--threads", 4, "--time", 4]
    closed = measured(program, out, *words)["round"]
    print(f"   closed: {closed['rate']:.1f} rounds/s", flush=True)
    for percent in (50, 80, 95):
        found = measured(program, out, *words, "--rate", f"{closed['rate'] * percent / 100:.3f}", "--arrival", "poisson")
        phase = found["round"]
        service, response = (phase["latency"][kind] for kind in ("service", "response"))
        print(
            f"   {percent} %: {phase['rate']:.1f} rounds/s, service {service['mean_ns'] / 1e6:.2f} ms, response "
            f"{response['mean_ns'] / 1e6:.2f} ms, never started {phase['unissued']}",
            flush=True,
        )
        check(response["count"] == phase["items"], f"{percent} %: each round has a response time")
        check(response["mean_ns"] >= service["mean_ns"], f"{percent} %: nobody answers before the start")
        check(found["open"]["latency"]["response"] is None, "operations of a round have no intended start")
        check(phase["items"] + phase["unissued"] > 0.5 * percent / 100 * closed["items"], f"{percent} %: it kept on")
    target.end()


def ranks_share(program, folder, out):
    heading("four ranks, with sets of their own and with shared ones")
    text = "create, write whole, close, stat, open, read whole, close, rename, delete"
    for layout in ("unique", "shared"):
        found = measured(
            program, out, "--dir", folder, "--list", text, "--layout", layout, "--threads", 2, "--rounds", 200, "--files", 400,
            launcher=mpirun("mpirun", 4),
        )
        rounds = found["round"]
        check(rounds["items"] + rounds["missed"] == 4 * 2 * 200, f"{layout}: all rounds: {rounds['items']}")
        for row in ("create", "rename", "delete"):
            check(found[row]["items"] == 1600 and found[row]["missed"] == 0, f"{layout}: {row} never misses")
        missed = {row: phase["missed"] for row, phase in found.items() if phase["missed"]}
        print(f"   {layout}: missed {missed}", flush=True)
        if layout == "unique":
            check(found["stat"]["missed"] < 160, "ranks on their own do not miss much")
        else:
            check(found["stat"]["missed"] > 0, "what other ranks have removed is missed")
    check(not os.listdir(folder), "nothing is left")


def calls(program, folder, seed):
    """Returns the calls of one worker on the files, in order, without descriptors and results."""
    trace = folder / "trace"
    text = "create, append 1k, close, open, read whole, close, stat, rename, delete"
    words = [program, "mix", "--dir", folder / "target", "--list", text, "--rounds", "60", "--seed", seed, "--files", "100"]
    names = "trace=openat,unlinkat,renameat,newfstatat,write"
    run(["strace", "-f", "-qq", "-o", trace, "-e", names, *words, "--quiet", "--no-round-trip"], quiet=True)
    lines = trace.read_text(errors="replace").splitlines()
    # A line may be without its result, and without what the call returns: strace splits a call that another thread
    # interrupts.
    called = re.compile(r"^\d+ +(\w+)\((.*?)(?:, \{st_mode.*|\) += .*| <unfinished.*)$")
    found = [called.sub(r"\1 \2", line).rstrip(", ") for line in lines if '"0/0/files/' in line]
    return [re.sub(r'\b\d+, (?=")', "", call) for call in found]


def seeds_repeat(program, folder):
    heading("the same seed gives the same calls, by strace")
    (folder / "target").mkdir()
    first, again, other = (calls(program, folder, seed) for seed in (1, 1, 2))
    check(len(first) > 300, f"strace sees the calls: {len(first)}")
    check(first == again, "the same seed, other calls")
    check(first != other, "another seed, the same calls")


MISTAKES = [
    (["--ops", "stat"], "--ops: 'stat' is not a weighted operation"),
    (["--ops", "sta=5"], "nearest: stat"),
    (["--ops", "stat=0"], "not a weighted operation"),
    (["--ops", "stat=5", "--list", "stat"], "cannot be used with"),
    ([], "mix needs --ops"),
    (["--list", "open, open, close"], "one file of a set open at a time"),
    (["--list", "read whole"], "needs an open or create"),
    (["--list", "open"], "each open needs a close"),
    (["--list", "stat@x"], "unknown set 'x'"),
    (["--list", "create, close, delete", "--files", "2", "--threads", "3"], "2 names for 3 workers"),
    (["--list", "stat", "--file-size", "many"], "16k"),
    (["--list", "stat", "--prepared", "150"], "percentage"),
    (["--list", "stat", "--rate", "0"], "rate"),
    (["--list", "stat", "--rate", "5", "--think", "1"], "cannot be combined"),
    (["--list", "stat", "--time", "0"], "--time"),
    (["--list", "stat", "--rounds", "0"], "--rounds"),
    (["--profile", "vermail"], "nearest: varmail"),
    (["--profile", "varmail", "--files", "5"], "cannot be combined"),
    (["--profile", "git", "--threads", "2"], "3 kinds of workers"),
    (["--profile", "oltp", "--rate", "5"], "--rate needs a single kind"),
    (["--profile", "/nowhere/x.toml"], "cannot be read"),
    (["--profile", "varmail", "--scale", "0"], "--scale 0 is not a factor"),
    (["--show", "nothing"], "unknown profile 'nothing'"),
    *((["--profile", name, *RING], "--engine io_uring does not perform ") for name in NOT_IN_A_RING),
    (["--list", "create, close, delete", "--files", "7", *RING], "7 names for 8 rounds in flight"),
    (["--list", "stat", "--iodepth", "8"], "--iodepth 8 needs --engine io_uring"),
]
# Texts of profiles, the expected message, and its line.
HOSTILE = [
    ('[set."../up"]\nnumber = 1\n', "not a valid name", 1),
    ('[set."/tmp/x"]\nnumber = 1\n', "not a valid name", 1),
    ('[set."a\\u0000"]\nnumber = 1\n', "not a valid name", 1),
    (f'[set.{"a" * 255}]\nnumber = 1\n', "not a valid name", 1),
    ("[set.files]\nnumber = 99999999999999\n", "from 1 to", 2),
    ('[set.files]\nnumber = 5\n[[worker]]\nlist = "stat@../up"\n', "unknown set", 3),
    ('[set.files]\nnumber = 5\n[[worker]]\nlist = "9999999x (9999999x (stat))"\n', "more than", 4),
    ('[set.files]\nnumber = 5\n[[worker]]\nname = "../x"\nlist = "stat"\n', "not a valid name", 3),
    ("[set.files]\nnumber = \n", "", 2),
    ("\0\1\2", "", 1),
    ("[set.files]\nnumber = 5\n[[worker]]\nlist = '" + "(" * 100_000 + "'\n", "", 4),
]


def mistakes_are_told(program, folder):
    heading("mistakes: one sentence, exit code 2, nothing made")
    target = folder / "none"
    target.mkdir()

    def refused(options, part):
        done = run([program, "mix", "--dir", target, *options], expect=2, quiet=True)
        check(part in done.stderr, f"{options}: '{part}' is not in: {done.stderr}")
        check(not done.stdout and not os.listdir(target), f"{options}: something was made")
        return done.stderr

    for options, part in MISTAKES:
        refused(options, part)
    for number, (text, part, line) in enumerate(HOSTILE):
        profile = folder / f"hostile{number}.toml"
        profile.write_text(text)
        said = refused(["--profile", profile], part)
        check(f"line {line}: " in said, f"{text[:60]!r}: line {line} is not in: {said[:300]}")
        check(len(said.strip().splitlines()) == 1, f"{text[:60]!r}: {said[:300]}")
    large = folder / "large.toml"
    large.write_bytes(b"# " + b"x" * (1 << 21))
    refused(["--profile", large], "larger than 1 MiB")


def profiles_are_printed(program, folder, out):
    heading("every profile is listed and printed, and what is printed is a profile")
    names = [line.split()[0] for line in run([program, "mix", "--profiles"], quiet=True).stdout.splitlines()]
    check(sorted(names) == sorted(PROFILES), f"profiles that are not checked: {set(names) ^ set(PROFILES)}")
    own = folder / "mine.toml"
    own.write_text(run([program, "mix", "--show", "varmail"], quiet=True).stdout)
    # Two workers may race for a name, and then one of them misses it.
    words = ["--dir", folder / "mine", "--threads", 1, "--scale", 0.1, "--rounds", 10, "--seed", 3]
    (folder / "mine").mkdir()
    of_file = measured(program, out, "--profile", own, *words)
    built_in = measured(program, out, "--profile", "varmail", *words)
    items = lambda found: {row: (phase["items"], phase["bytes"]) for row, phase in found.items()}
    check(items(of_file) == items(built_in), "a file of the same text is the same mix")
    series = folder / "series.json"
    run([program, "sweep", "--over", "threads=1,2", "--out", series, "--quiet", "--", "mix", "--dir", folder / "mine", "--list",
         "stat", "--rounds", 10], quiet=True)
    check(series.exists(), "a sweep over mixes has a result")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="rbench-mix-") as name:
        folder = pathlib.Path(name)
        out = folder / "mix.json"
        plain_folder = folder / "plain"
        plain_folder.mkdir()
        mistakes_are_told(program, folder)
        profiles_are_printed(program, folder, out)
        weights_hold(program, plain_folder, out)
        ranks_share(program, plain_folder, out)
        seeds_repeat(program, folder)
        profiles_are_what_they_say(program, out)
        profiles_are_what_they_say(program, out, RING)
        empty_files(program, out)
        open_loop(program, out)
    finish()


if __name__ == "__main__":
    main()
