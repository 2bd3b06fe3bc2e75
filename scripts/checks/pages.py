"""Runs the command lines of the README and of docs/guide as they are written, on the built-in file system.

usage: pages.py PROGRAM [--python PYTHON] [--only PAGE]…

Each page runs in its own process and mount namespaces, in a fresh directory, its code blocks in order. The built-in file
system is mounted at every /mnt/NAME that the page uses. Ranks under mpirun run on this machine, as three hosts: each has
one of three node names. A comment line before a block states what the block is, if its first word does not show it:

    <!-- not run: REASON -->            commands that need what this check cannot have
    <!-- output of the command above -->
    <!-- output of: COMMAND -->         runs COMMAND
    <!-- text: WHAT -->                 neither commands nor their output

Row labels and column headers of a quoted output must appear in the output of the command.
"""

import argparse
import ast
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from common import check, finish, heading, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide"
PYTHON_PAGES = ("pandas.md",)
# First words of commands.
COMMANDS = {"$", "for", "jq", "mkdir", "mpirun", "rbench", "set", "strace", "tar"}
# First words of commands that need what is not here.
ELSEWHERE = {"docker": "needs Docker", "kubectl": "needs Kubernetes", "sbatch": "needs a Slurm cluster", "skopeo": "needs a registry",
             "srun": "needs a Slurm cluster", "ssh": "needs other hosts", "scp": "needs other hosts"}
# A page's directory contains what the page assumes. Results of pages have names that their own commands create.
SMALL_META = "rbench meta --dir /mnt/fs --files-only --items 20 --seed 7 --quiet >>made.txt --out"
JOBS = r"printf '[global]\nsize=4m\ndirectory=/mnt/fs\nbs=4k\n[one]\nrw=write\n[two]\nrw=randread\nstonewall\n' >jobs.fio"
REPOSITORY = """mkdir -p /srv/repo && cd /srv/repo && git init -q . && cp -r /etc/skel . && date >file && git add .
    git -c user.name=a -c user.email=a@example.org commit -qm first && cd - >made.txt"""
GIVEN = {
    "README.md": f"""{JOBS}
        {REPOSITORY}
        printf '[global]\\ndatadir = /mnt/fs\\n[debug]\\nstonewall-time = 1\\n' >io500.ini
        {SMALL_META} before.json --iterations 5; {SMALL_META} after.json --iterations 5""",
    "ci.md": f"""{REPOSITORY}; cp -r /srv/repo/.git .
        for n in 1 2 3 4; do {SMALL_META} old-$n.json; {SMALL_META} new-$n.json; done""",
    "from-fio.md": JOBS,
    # The program's directory has one file: it does not need the others.
    "install.md": """name=rbench-0.1.0-x86_64-linux; mkdir -p $name/bin; cp "$(command -v rbench)" $name/bin/
        tar --zstd -cf $name.tar.zst $name; rm -r $name""",
    "pandas.md": """for day in monday tuesday; do
        rbench io --dir /mnt/fs --rw randread --bs 4k --size 4M --time 2 --label fs=old --quiet --out $day.json >>made.txt; done""",
    # Names are relative, so the trace fits the page's --cwd. It has one process: workers keep no order between several.
    "replay.md": f"""{REPOSITORY}
        mkdir project && cd project && cp -r /srv/repo data
        strace -f -ttt -T -o ../app.strace cp -r data copy""",
    # A run that is killed after its first phase leaves a journal and a directory.
    "troubleshooting.md": """rbench meta --dir /mnt/fs --items 1000000 --phases tree-create,file-create --out run.json --quiet &
        until grep -qs '"tree-create"' run.json.journal; do sleep 0.1; done
        kill -9 $!; wait $!; test -s run.json.journal""",
}
MORE_MOUNTS = {"metadata-engines.md": ("/mnt/jfs-redis", "/mnt/jfs-tikv", "/mnt/jfs-mysql"), "replay.md": ("/mnt/a", "/mnt/b")}
# The file system of the page's example: 1,000 requests per second.
MOUNT_OPTIONS = {"open-loop.md": ("--latency", "read=8ms", "--servers", "8")}
BLOCK_LIMIT_S = 1200
# Two pages run at a time: many of their commands wait for a clock.
PARALLEL = 2


@dataclasses.dataclass
class Block:
    """A code block of a page."""

    line: int
    lines: list
    marker: str = ""
    # Lines of quoted output.
    quoted: list = dataclasses.field(default_factory=list)

    def first_word(self):
        return self.lines[0].split()[0]


def blocks(text):
    """Returns the code blocks of a page: indented lines, also in lists."""
    found, current, blank = [], None, 0
    marker = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            blank += 1
            continue
        comment = re.fullmatch(r" {0,3}<!-- (.*) -->", line)
        if comment:
            current, marker = None, comment[1]
        elif line.startswith("    "):
            if current is None:
                current = Block(number, [], marker)
                found.append(current)
            else:
                current.lines += [""] * blank
            current.lines.append(line)
            marker = ""
        else:
            current, marker = None, ""
        blank = 0
    for block in found:
        margin = min(len(line) - len(line.lstrip()) for line in block.lines if line)
        block.lines = [line[margin:] for line in block.lines]
        if block.first_word() == "$":
            block.quoted, block.lines = block.lines[1:], [block.lines[0].removeprefix("$ ")]
    return found


def labels(quoted):
    """Returns row labels and column headers of quoted output."""
    found = []
    for at, line in enumerate(quoted):
        cells = re.split(r"\s{2,}", line.strip())
        if set(line.strip()) == {"-"}:
            found += [word for header in quoted[max(at - 2, 0):at] for word in header.split()]
        elif line and not line.startswith((" ", "-")) and len(cells) > 1:
            found.append(cells[0])
    return [label for label in found if re.match(r"[A-Za-z]", label)]


class Page:
    """A page in its namespaces."""

    def __init__(self, path, program, python):
        self.path, self.program, self.python = path, program, python
        self.blocks = blocks(path.read_text())
        self.ran, self.not_run, self.output = 0, {}, ""

    def at(self, block):
        return f"{self.path.relative_to(ROOT)}:{block.line}"

    def prepare(self):
        """Mounts the file systems, and creates what the page assumes."""
        for folder in ("/mnt", "/srv", "/dev/shm"):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder], check=True)
        programs = pathlib.Path("programs").resolve()
        work = pathlib.Path("page").resolve()
        programs.mkdir()
        work.mkdir()
        wrapper = programs / "rbench"
        program = shlex.quote(self.program)
        wrapper.write_text(
            "#!/bin/sh\n"
            'if [ "${OMPI_COMM_WORLD_SIZE:-1}" -gt 1 ]; then\n'
            "    exec unshare --uts sh -c 'hostname \"$0\" && exec \"$@\"'"
            f' client$((OMPI_COMM_WORLD_RANK * 3 / OMPI_COMM_WORLD_SIZE + 1)) {program} "$@"\n'
            "fi\n"
            f'exec {program} "$@"\n'
        )
        wrapper.chmod(0o755)
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
        os.environ["MPLBACKEND"] = "Agg"
        os.environ["PYTHONPATH"] = str(ROOT / "scripts" / "python")
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
        os.environ.pop("RBENCH_DIR", None)
        os.chdir(work)
        name = self.path.name
        pathlib.Path("myhost").write_text("localhost slots=12\n")
        code = "\n".join([GIVEN.get(name, ""), *(line for block in self.blocks for line in block.lines)])
        for mount in sorted({*re.findall(r"/mnt/\w+\b(?![-$])", code), *MORE_MOUNTS.get(name, ())}):
            os.mkdir(mount)
            options = MOUNT_OPTIONS.get(name, ())
            process = subprocess.Popen([self.program, "testfs", mount, "--memory", "4g", "--allow-other", *options])
            wait_until(lambda m=mount, p=process: os.path.ismount(m) or p.poll() is not None)
            check(os.path.ismount(mount), f"{mount} was not mounted")
        if name in GIVEN:
            started = time.monotonic()
            done = subprocess.run(["bash", "-c", GIVEN[name]], check=False)
            check(done.returncode == 0, f"{name}: what the page assumes was not created ({done.returncode})")
            print(f"   {time.monotonic() - started:5.1f} s  to create what the page assumes", flush=True)

    def kind(self, block):
        """Returns what a block is, and its details."""
        for kind in ("not run", "output of", "text"):
            if block.marker.startswith(kind):
                return kind, block.marker.removeprefix(kind).removeprefix(":").strip()
        check(not block.marker, f"{self.at(block)}: unknown comment before the block: {block.marker}")
        word = block.first_word()
        if self.path.name in PYTHON_PAGES:
            return "python", ""
        if word in ELSEWHERE:
            return "not run", ELSEWHERE[word]
        if word in COMMANDS:
            return "commands", ""
        if word.endswith(":"):
            return "text", "message or YAML"
        return None, word

    def run(self):
        python = []
        for block in self.blocks:
            kind, detail = self.kind(block)
            if kind == "commands":
                self.shell(block, block.lines)
                self.compare(block, block.quoted)
            elif kind == "output of":
                if detail != "the command above":
                    self.shell(block, [detail], counted=False)
                self.compare(block, block.lines)
            elif kind == "not run":
                lines = sum(1 for line in block.lines if line.strip() and not line.startswith(" "))
                self.not_run[detail] = self.not_run.get(detail, 0) + lines
            elif kind == "python":
                python.append(block)
            else:
                check(kind == "text", f"{self.at(block)}: neither a known command ({detail}) nor marked by a comment")
        if python:
            self.run_python(python)

    def shell(self, block, lines, counted=True):
        """Runs commands in a shell, checks the exit code of each, and prints their times."""
        log = pathlib.Path("../commands").resolve()
        log.write_text("")
        # All in one line, so that the numbers of the others are known. A command substitution that fails is reported, too.
        first = (f"set -ET; exec 9>>{shlex.quote(str(log))}; "
                 "trap 'printf \"E %s %s %s\\n\" $? $LINENO \"${BASH_COMMAND//$'\"'\\\\n'\"'/ }\" >&9' ERR; "
                 "trap 'printf \"D %s %s %s\\n\" $EPOCHREALTIME $LINENO \"${BASH_COMMAND//$'\"'\\\\n'\"'/ }\" >&9' DEBUG")
        script = pathlib.Path("../script").resolve()
        script.write_text(first + "\n" + "\n".join(lines) + "\n")
        try:
            done = subprocess.run(["bash", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=BLOCK_LIMIT_S, check=False)
            code, self.output, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, self.output, errors = None, "", (late.stderr or b"").decode(errors="replace")
            check(False, f"{self.at(block)}: not finished after {BLOCK_LIMIT_S} s")
        ended = time.time()
        entries = [line.split(" ", 3) for line in log.read_text(errors="replace").splitlines()]
        starts = [(float(time_), int(line), command) for kind, time_, line, command in entries if kind == "D"]
        failed = [(int(status), int(line), command) for kind, status, line, command in entries if kind == "E"]
        for (start, _, command), (end, *_) in zip(starts, [*starts[1:], (ended,)]):
            if end - start >= 0.5:
                print(f"   {end - start:5.1f} s  {command}", flush=True)
        self.ran += len({line for _, line, command in starts if not command.startswith("for ")}) * counted
        check(starts, f"{self.at(block)}: nothing ran\n{errors}")
        wrong = False
        for status, line, command in failed:
            # 1: a condition is met. Two equal runs may differ by chance; the built-in file system has cache hits.
            allowed = (0, 1) if "--fail-if" in command or command.startswith("jq -e") else (0,)
            wrong |= status not in allowed
            check(status in allowed, f"{self.at(block)}, line {line - 1} of the block: exit code {status}: {command}")
        wrong |= code != 0 and not failed
        check(code == 0 or failed, f"{self.at(block)}: exit code {code}")
        if wrong:
            print(f"standard error of the block:\n{errors[-3000:]}", flush=True)

    def compare(self, block, quoted):
        # Words for headers, the first cells of lines for rows.
        shown = {*self.output.split(), *(re.split(r"\s{2,}", line.strip())[0] for line in self.output.splitlines())}
        for label in dict.fromkeys(labels(quoted)):
            check(label in shown, f"{self.at(block)}: the output quoted has {label!r}, the command's output has not:\n{self.output[:6000]}")

    def run_python(self, parts):
        source = ""
        for part in parts:
            # Tracebacks have the page's line numbers.
            source += "\n" * (part.line - 1 - source.count("\n")) + "\n".join(part.lines) + "\n"
        statements = len(ast.parse(source, str(self.path)).body)
        if self.python is None:
            self.not_run["Python code: needs --python"] = statements
            return
        script = pathlib.Path("../page.py")
        script.write_text(source)
        done = subprocess.run([self.python, script], capture_output=True, text=True, timeout=BLOCK_LIMIT_S, check=False)
        check(done.returncode == 0, f"{self.path.name}: exit code {done.returncode}\n{done.stderr}")
        self.ran += statements


def inside(path, program, python):
    """Runs a page in the namespaces of this process; writes the numbers to a file."""
    page = Page(path, program, python)
    page.prepare()
    started = time.monotonic()
    page.run()
    print(f"   {page.ran} commands in {time.monotonic() - started:.0f} s", flush=True)
    pathlib.Path("../numbers").write_text(json.dumps({"ran": page.ran, "not_run": page.not_run}))
    finish()


def outside(path, program, python):
    """Runs a page in new namespaces, which the kernel ends with it. Returns its output and its numbers."""
    with tempfile.TemporaryDirectory(prefix="rbench-page-") as top:
        # They end with this process, too.
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--mount", "--fork", "--kill-child=KILL", "--mount-proc",
                 sys.executable, __file__, program, "--inside", path]
        words += ["--python", python] if python else []
        with subprocess.Popen(words, cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace") as process:
            try:
                output, _ = process.communicate()
            finally:
                process.kill()
        numbers = pathlib.Path(top, "numbers")
        return process.returncode, output, json.loads(numbers.read_text()) if numbers.exists() else {}


def run_pages(program, python=None, only=()):
    """Runs all pages, or only the named ones, and prints what they print and the numbers of commands."""
    paths = [README, *sorted(GUIDE.glob("*.md"))]
    paths = [path for path in paths if not only or path.name in only]
    # Not resolved: the link in a virtual environment is what makes it one.
    python = os.path.abspath(python) if python else None
    ran, not_run, started = 0, {}, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for path, (code, output, numbers) in zip(paths, pool.map(lambda path: outside(path, program, python), paths)):
            heading(path.relative_to(ROOT))
            print(output, end="", flush=True)
            check(code == 0 and numbers, f"{path.name}: see above ({code})")
            ran += numbers.get("ran", 0)
            for reason, number in numbers.get("not_run", {}).items():
                not_run[reason] = not_run.get(reason, 0) + number
    heading(f"{ran} commands of {len(paths)} pages ran, in {time.monotonic() - started:.0f} s")
    for reason, number in sorted(not_run.items()):
        print(f"   {number} not run: {reason}", flush=True)
    check(ran > 0, "no command was found")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--python")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--inside", type=pathlib.Path)
    given = parser.parse_args()
    program = str(pathlib.Path(shutil.which(given.program) or given.program).resolve())
    if given.inside:
        inside(given.inside, program, given.python)
    else:
        run_pages(program, given.python, given.only)
        finish()


if __name__ == "__main__":
    main()
