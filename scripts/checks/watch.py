"""Checks live views of a run: frames of `rbench watch` and `--progress live` in pseudo-terminals, and metrics parsed by
the official Python client, compared with the result file. Also a stop that keeps results, hostile clients, sockets,
and names with control characters.

usage: watch.py PROGRAM [--mpirun LAUNCHER] [--frames]

Needs the packages pyte and prometheus_client; scripts/test makes a virtual environment with them. --frames prints
the frames.
"""

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import termios
import threading
import time

import pyte
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from common import PATIENCE_S, Testfs, check, finish, heading, in_attempts, mpirun, phases, result, run, valid, wait_until

FRAMES = False
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
# xterm's alternate screen.
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
# No program here writes this byte, and a terminal ignores it.
DRAINED = b"\0"


class Terminal:
    """A program in a pseudo-terminal, and the screen that it shows."""

    def __init__(self, command, columns, lines, stdout=None):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw, self.lock, self.alternate = b"", threading.Lock(), False
        self.drained = threading.Event()
        master, slave = pty.openpty()
        self.settings = termios.tcgetattr(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

        def own():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([str(word) for word in command], stdin=slave, stdout=stdout or slave, stderr=slave,
                                        preexec_fn=own, env=dict(os.environ, TERM="xterm-256color"))
        self.master, self.slave = master, slave
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while True:
            try:
                more = os.read(self.master, 65536)
            except OSError:
                return
            with self.lock:
                self.raw += more
                # pyte has no alternate screen: the output after a switch belongs to another frame.
                for part in re.split(b"(" + re.escape(ENTER) + b"|" + re.escape(LEAVE) + b")", more):
                    if part in (ENTER, LEAVE):
                        self.alternate = part == ENTER
                        self.screen.reset()
                    else:
                        self.stream.feed(part)
            if DRAINED in more:
                self.drained.set()

    def frame(self):
        with self.lock:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, *words):
        return wait_until(lambda: all(word in self.frame() for word in words), 30)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ended(self, expect):
        try:
            code = self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "none: it goes on"
        # The program's last output may still be in transit; this byte follows it.
        os.write(self.slave, DRAINED)
        check(self.drained.wait(PATIENCE_S), "all that it wrote has been read")
        left = self.raw.count(ENTER) == self.raw.count(LEAVE) and not self.alternate
        check(code == expect, f"exit code {code}, not {expect}:\n{self.frame()}")
        check(termios.tcgetattr(self.slave) == self.settings, "the terminal is as it was before")
        check(left, "the alternate screen is left as often as it is entered")
        return self.frame()

    def print(self, title):
        if FRAMES:
            rule = "-" * self.screen.columns
            print(f"{title}\n{rule}\n{self.frame()}\n{rule}", flush=True)


class Run:
    """A run with --serve."""

    def __init__(self, command, expect=0, env=None):
        self.command, self.expect = [str(word) for word in command], expect
        print("$ " + " ".join(self.command).encode("unicode_escape").decode(), flush=True)
        env = dict(os.environ, **(env or {}))
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.said, self.address = [], None
        self.errors = threading.Thread(target=self.listen, daemon=True)
        self.errors.start()
        if not wait_until(lambda: self.address or self.process.poll() is not None, 60) or not self.address:
            self.process.kill()
            raise SystemExit(f"FAILED: it says no address: {''.join(self.said)}")

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"to watch this run: rbench watch (\S+)", line)
            if found:
                self.address = found[1]

    def end(self):
        out = self.process.stdout.read()
        code = self.process.wait(timeout=PATIENCE_S)
        self.errors.join()
        check(code == self.expect, f"exit code {code}, not {self.expect}: {' '.join(self.command)}\n{''.join(self.said)}")
        return out, "".join(self.said)


def connection(address):
    if address.startswith("unix:"):
        class Unix(http.client.HTTPConnection):
            def connect(self):
                self.sock = socket.socket(socket.AF_UNIX)
                self.sock.connect(address.removeprefix("unix:"))
        return Unix("localhost", timeout=30)
    return http.client.HTTPConnection(address, timeout=30)


def get(address, path, method="GET", headers=None):
    asks = connection(address)
    asks.request(method, path, headers=headers or {})
    answer = asks.getresponse()
    text = answer.read().decode()
    asks.close()
    return answer.status, text


def metrics(address):
    status, text = get(address, "/metrics")
    check(status == 200 and text.endswith("# EOF\n"), f"/metrics: {status}")
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(families, name, suffix="", **labels):
    family = families.get(name)
    found = [s for s in (family.samples if family else [])
             if s.name == name + suffix and all(s.labels.get(k) == v for k, v in labels.items())]
    return [s.value for s in found]


def line(address):
    """Returns a line of the stream."""
    asks = connection(address)
    asks.request("GET", "/stream")
    answer = asks.getresponse()
    text = answer.readline()
    asks.close()
    return valid(json.loads(text), "a line of the stream")


def until(holds, patience_s=60):
    ok = wait_until(holds, patience_s)
    check(ok, "what was waited for came")
    return ok


def check_numbers(program, place, launcher):
    heading("metrics while a run goes on, by the official parser, against the result file")
    served = Testfs(program, "--latency", "read=2ms,write=4ms")
    out = place / "numbers.json"
    words = [program, "io", "--dir", served.mountpoint, "--size", "64k", "--bs", "4k", "--rw", "write,randread", "--time", "8",
             "--direct", "--fsync", "never", "--serve", "127.0.0.1:0", "--out", out]
    env = {}
    if launcher:
        words, env = mpirun(launcher, 2) + words + ["--threads", "2"], MPI
    goes = Run(words, env=env)
    seen = {}

    def look():
        now = metrics(goes.address)
        for operation in ("write", "randread"):
            total = samples(now, "rbench_operations", "_total", operation=operation)
            if total:
                seen.setdefault(operation, []).append(total[0])
                rate = samples(now, "rbench_interval_operations_per_second", operation=operation)
                p50 = samples(now, "rbench_interval_latency_seconds", operation=operation, quantile="0.5")
                hosts = sum(samples(now, "rbench_host_operations", "_total", operation=operation))
                seen.setdefault(operation + " hosts", []).append((hosts, total[0]))
                if rate and p50:
                    seen.setdefault(operation + " now", []).append((rate[0], p50[0]))
        if seen.get("randread"):
            seen["before"] = now
        line(goes.address)
        return goes.process.poll() is not None

    while not seen.get("randread") or len(seen["randread"]) < 5:
        if goes.process.poll() is not None or look():
            break
        time.sleep(0.5)
    before = seen.get("before", {})
    goes.end()
    served.end()
    document = result(out)
    known = phases(document)
    for operation, injected_s in (("write", 0.004), ("randread", 0.002)):
        phase, totals = known[operation], seen.get(operation, [])
        print(f"{operation}: {totals} while it ran, {phase['items']} in the end", flush=True)
        check(len(totals) >= 3, f"{operation}: seen {len(totals)} times")
        check(totals == sorted(totals), f"{operation}: a counter never falls: {totals}")
        check(all(total <= phase["items"] for total in totals), f"{operation}: never more than in the end")
        check(all(hosts <= phase["items"] for hosts, _ in seen[operation + " hosts"]), f"{operation}: hosts")
        # The duration of an operation is known: it limits the rate and the latency of every interval.
        most = document["world"]["ranks"] * (2 if launcher else 1) / injected_s
        for rate, p50 in seen.get(operation + " now", []):
            check(rate <= most * 1.02, f"{operation}: {rate}/s in an interval, at most {most} are possible")
            check(p50 >= injected_s, f"{operation}: half of an interval took less than {p50} s")
        check(operation + " now" in seen, f"{operation}: intervals were seen")
    # A finished row equals the row of the result file.
    check(samples(before, "rbench_operations", "_total", operation="write") == [known["write"]["items"]], "the row that ended")
    for quantile, field in (("0.5", "p50_ns"), ("0.99", "p99_ns"), ("1", "max_ns")):
        live = samples(before, "rbench_latency_seconds", operation="write", time="service", quantile=quantile)
        check(live == [known["write"]["latency"]["service"][field] / 1e9], f"write {quantile}: {live}")
    check(samples(before, "rbench_run_complete") == [0], "the run is not complete while it goes on")


def check_intervals(program, place):
    heading("the sums of intervals are the sums of the result's timeline")
    out = place / "intervals.json"
    out.unlink(missing_ok=True)
    goes = Run([program, "io", "--dir", place, "--size", "64k", "--bs", "4k", "--rw", "randread", "--time", "5", "--rate", "500",
                "--serve", "127.0.0.1:0", "--out", out, "--threads", "2"])
    last, backlogs = None, []
    asks = connection(goes.address)
    asks.request("GET", "/stream")
    answer = asks.getresponse()
    while True:
        text = answer.readline()
        if not text:
            break
        now = valid(json.loads(text), "a line of the stream")
        last = now if now["rows"] else last
        if now["progress"] and now["progress"]["backlog"] is not None:
            backlogs.append(now["progress"]["backlog"])
        end = now
    goes.end()
    check(end["state"] == "ended", f"the last line says that the run has ended: {end['state']}")
    phase = phases(result(out))["randread"]
    rows = last["rows"]
    check(len(rows) == 1 and rows[0]["response"], "a row with response times")
    # Complete intervals of the timeline in the file.
    width, timeline = phase["timeline_step_s"], phase["timeline"]
    each = {}
    for index, row in enumerate(timeline):
        number = int((index + 0.5) * width // last["interval_s"])
        each[number] = each.get(number, 0) + row["items"]
    rates = rows[0]["rates"]
    whole = [each.get(number, 0) / last["interval_s"] for number in range(len(rates))]
    check(rates[:4] == whole[:4] and len(rates) >= 4, f"rates {rates}, by the timeline {whole}")
    check(backlogs and max(backlogs) <= 500, f"a backlog is told: {backlogs}")
    finished = end["finished"][-1]
    check(finished["all"]["items"] == phase["items"], "the row that has ended")
    check(finished["all"]["p99_ns"] == phase["latency"]["response"]["p99_ns"], "its 99th percentile")


def check_frames(program, place, launcher):
    for columns, lines in ((80, 24), (160, 50)):
        heading(f"rbench watch at {columns}x{lines}")
        served = Testfs(program, "--latency", "read=1ms,write=2ms,create=1ms")
        words = [program, "io", "--dir", served.mountpoint, "--size", "256k", "--bs", "4k", "--rw", "write,randrw", "--time", "12",
                 "--fsync", "never", "--serve", "127.0.0.1:0", "--out", place / f"frames{columns}.json"]
        env = {}
        if launcher:
            words, env = mpirun(launcher, 3) + words, MPI
        goes = Run(words, env=env)
        views = Terminal([program, "watch", goes.address], columns, lines)
        check(views.shows("Random mix: reads", "Random mix: wr", "host", "p99.9", "q leave", "ended"), "all parts are shown")
        # On a busy machine it takes a while until all ranks have intervals.
        filled = (r"Random mix: rea\S* +1 s +[\d,.]+ +[\d.]+ [mu]s", r" all +[\d,.]+ +[\d.]+ [mu]s", "[▁▂▃▄▅▆▇█]", "elapsed.* left")
        wait_until(lambda: all(re.search(part, views.frame()) for part in filled), 10)
        frame = views.frame()
        views.print(f"{columns}x{lines}")
        shown = frame.split("\n")
        check(len(shown) == lines and "q leave   s stop the run" in shown[-1], "the keys stand in the last line")
        check(all(len(line) <= columns for line in shown), "no line is too wide")
        check(re.search(filled[0], frame), f"a row has its last interval:\n{frame}")
        check(re.search(filled[1], frame), f"and what it has done since the start:\n{frame}")
        check(any(c in frame for c in "▁▂▃▄▅▆▇█"), "there are curves")
        check(re.search(r"left", shown[2]) and "elapsed" in shown[2], f"phase and time left: {shown[2]}")
        # The frame follows a new size.
        views.screen.resize(30, 100)
        fcntl.ioctl(views.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        views.process.send_signal(signal.SIGWINCH)
        check(wait_until(lambda: "q leave" in views.frame().split("\n")[-1], 10), "it follows the size of the terminal")
        views.press("q")
        views.ended(0)
        goes.end()
        check(result(place / f"frames{columns}.json")["complete"], "the run goes on when its watcher leaves")
        served.end()


def check_stop(program, place):
    heading("s and y stop the run, which keeps what it has")
    sock = place / "run.sock"
    out = place / "stopped.json"
    goes = Run([program, "io", "--dir", place, "--size", "64k", "--bs", "4k", "--rw", "write,randread", "--time", "60",
                "--rate", "200", "--serve", f"unix:{sock}", "--out", out], expect=130)
    check(stat.S_IMODE(sock.stat().st_mode) == 0o600, f"the socket is its owner's: {oct(sock.stat().st_mode)}")
    views = Terminal([program, "watch", str(sock)], 80, 24)
    check(views.shows("Sequential write", "q leave"), "the phase is shown")
    views.press("y")
    time.sleep(1)
    views.press("s")
    check(views.shows("stop the run?"), "it asks first")
    views.press("n")
    check(views.shows("q leave"), "another key is no answer")
    check(goes.process.poll() is None, "the run goes on")
    time.sleep(2)
    views.press("s")
    views.shows("stop the run?")
    views.press("y")
    text = views.ended(0)
    check("has ended" in text, f"it says that the run has ended: {text}")
    _, said = goes.end()
    document = result(out)
    check(not document["complete"] and document["phases"][0]["items"] > 100, "what was measured is kept")
    warnings = [w["message"] for w in document["warnings"] if w["code"] == "stopped-by-signal"]
    expected = f"A request of rbench watch from process {views.process.pid} (user {os.getuid()})"
    check(len(warnings) == 1 and warnings[0].startswith(expected), f"it says who: {warnings}")
    check(not sock.exists(), "the socket is gone")


def check_early(program, place):
    heading("a run that ends early: its watcher says why")
    served = Testfs(program, "--latency", "write=2ms")
    goes = Run([program, "io", "--dir", served.mountpoint, "--size", "64k", "--bs", "4k", "--rw", "write", "--time", "60",
                "--no-round-trip", "--serve", "127.0.0.1:0", "--out", place / "early.json"], expect=1)
    views = Terminal([program, "watch", goes.address], 80, 24)
    check(views.shows("Sequential write", "q leave", "p99.9"), "the phase is shown")
    served.process.kill()
    text = views.ended(0).replace("\n", "")
    check("has ended early: the mount" in text and "no longer answers" in text, f"it says why: {text}")
    goes.end()
    served.bury()


def check_addresses(program, place):
    heading("addresses that cannot be served at: one sentence, and nothing is made")
    target = place / "untouched"
    target.mkdir()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    (place / "file").write_text("mine")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(place / "dead"))
    dead.close()
    alive = socket.socket(socket.AF_UNIX)
    alive.bind(str(place / "alive"))
    alive.listen()
    for at, more, words in (
        (f"127.0.0.1:{port}", [], "cannot be opened"),
        ("127.0.0.1", [], "is not an address to serve at"),
        ("nowhere.invalid:9180", [], "is not an address to serve at"),
        ("0.0.0.0:0", [], "other hosts can reach"),
        ("192.0.2.1:9180", ["--serve-remote"], "cannot be opened"),
        (f"unix:{place}/file", [], "already exists"),
        (f"unix:{place}/dead", [], "no process listens at the socket"),
        (f"unix:{place}/alive", [], "the socket of a running program"),
        (f"unix:{place}/nowhere/sock", [], "cannot be created"),
        (f"unix:{place}/{'x' * 120}", [], "longer than 107 bytes"),
    ):
        for command in (["meta", "--items", "1", "--dir", target], ["mdtest", "-n", "1", "-d", target],
                        ["fio", "--name=a", "--size=4k", f"--directory={target}"]):
            done = run([program, *command, "--serve", at, *more], expect=2, quiet=True)
            last = done.stderr.strip().split("\n")
            check(words in done.stderr and last[0].count("--serve") >= 1 and (len(last) == 1 or words == "is not an address to serve at"),
                  f"{command[0]} --serve {at}: {done.stderr}")
            check(list(target.iterdir()) == [], f"nothing is made: {list(target.iterdir())}")
    check((place / "file").read_text() == "mine" and (place / "dead").exists(), "what stood there stands there")
    taken.close()
    alive.close()
    done = run([program, "meta", "--items", "1", "--dir", target, "--progress", "live"], expect=2)
    check("needs a terminal" in done.stderr, f"without a terminal: {done.stderr}")
    done = run([program, "watch", "127.0.0.1:1"], expect=2)
    check("needs a terminal" in done.stderr, f"without a terminal: {done.stderr}")
    views = Terminal([program, "watch", "127.0.0.1:1"], 80, 24)
    check("cannot watch 127.0.0.1:1" in views.ended(1).replace("\n", ""), "nobody listens there")
    # A second signal ends a run at once, even in a slow call.
    slow = Testfs(program, "--latency", "create=2s")
    at = place / "twice"
    goes = Run([program, "meta", "--items", "9", "--dir", slow.mountpoint, "--serve", f"unix:{at}"], expect=130)
    # The socket exists before anything is created.
    wait_until(lambda: list(slow.mountpoint.iterdir()))
    time.sleep(0.5)
    for _ in range(2):
        goes.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    goes.end()
    check(not at.exists(), "the socket goes with the run")
    slow.end()


def respond_with(text):
    """A server that gives this answer to every connection."""
    listens = socket.socket()
    listens.bind(("127.0.0.1", 0))
    listens.listen()

    def serve():
        while True:
            try:
                peer, _ = listens.accept()
            except OSError:
                return
            peer.recv(65536)
            peer.sendall(text)
            peer.close()

    threading.Thread(target=serve, daemon=True).start()
    return listens, f"127.0.0.1:{listens.getsockname()[1]}"


def check_garbage(program):
    heading("what is no run of rbench: one sentence, and the terminal as it was")
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    for text, words in ((b"hello\r\n", "is not a run of rbench"), (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
                        (head + b"{}\n", "is not a run of this version"), (head, "has ended"),
                        (head + b'{"schema":"rbench.live/2"}\n', "rbench.live/2")):
        listens, address = respond_with(text)
        views = Terminal([program, "watch", address], 80, 24)
        shown = views.ended(1).replace("\n", "")
        check(words in shown, f"{text}: {shown}")
        listens.close()


def check_names(program, place):
    heading("names that would steer the terminal")
    steers = place / "a\x1b]0;owned\x07\x1b[31mred\x1b[2J\u202e"
    steers.mkdir()
    goes = Run([program, "io", "--dir", steers, "--size", "16k", "--bs", "4k", "--rw", "write,randread", "--time", "8", "--rate",
                "100", "--serve", "127.0.0.1:0"])
    views = Terminal([program, "watch", goes.address], 160, 50)
    check(views.shows("Random read", "\\u{1b}"), f"the name is written out: {views.frame()}")
    check("\\u{202e}" in views.frame(), "what turns the direction, too")
    check(b"\x1b]" not in views.raw and b"\x07" not in views.raw and "\u202e".encode() not in views.raw,
          "nothing of it reaches the terminal")
    views.press("q")
    views.ended(0)
    goes.end()


def check_hostile(program, place):
    heading("hostile clients disturb neither the run nor others")
    out = place / "hostile.json"
    goes = Run([program, "io", "--dir", place, "--size", "64k", "--bs", "4k", "--rw", "randread", "--time", "14", "--rate", "500",
                "--serve", "127.0.0.1:0", "--out", out])
    host, port = goes.address.split(":")

    def opened(first=b""):
        peer = socket.create_connection((host, int(port)), timeout=30)
        peer.settimeout(30)
        if first:
            peer.sendall(first)
        return peer

    # Some clients send nothing, some do not end, some do not read an endless stream, and 100 are too many.
    hang = [opened() for _ in range(10)]
    slow = opened(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
    mute = [opened(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") for _ in range(2)]
    for mad in (b"\x00\xff" * 5000, b"GET / HTTP/9.9\r\n\r\n", b"G" * 100_000, b"POST /stop HTTP/1.1\r\nHost: x\r\n\r\n",
                b"GET /" + b"a/../" * 3000 + b" HTTP/1.1\r\n\r\n"):
        peer = opened()
        try:
            peer.sendall(mad)
            peer.recv(1000)
        except OSError:
            pass
        peer.close()
    many = []
    for _ in range(100):
        many.append(opened())
    fds = len(os.listdir(f"/proc/{goes.process.pid}/fd"))
    check(fds < 100, f"{fds} open files: connections are bounded")
    # Silent clients are dropped, so that there is room again.
    patience = time.monotonic() + 12
    status = None
    while status != 200 and time.monotonic() < patience:
        try:
            status, _ = get(goes.address, "/metrics")
        except (OSError, http.client.HTTPException):
            time.sleep(0.3)
    check(status == 200, f"others are answered when those who hang are dropped: {status}")
    dropped = select.select([hang[0]], [], [], 10)[0]
    check(dropped and hang[0].recv(10) == b"", "who says nothing is dropped")
    # The maximum number of streams leaves room for short requests.
    streams = [opened(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") for _ in range(40)]
    answers = [peer.recv(12) for peer in streams]
    check(answers.count(b"HTTP/1.1 200") == 22 and b"HTTP/1.1 503" in answers, f"24 streams, 2 of them before: {answers}")
    status, _ = get(goes.address, "/metrics")
    check(status == 200, f"metrics beside 24 streams: {status}")
    many.extend(streams)
    for path, method, headers, expect in (
        ("/metrics", "GET", {"Host": "evil.example"}, 403), ("/stop", "POST", {}, 409), ("/stop", "POST", {"rbench-run": "x"}, 409),
        ("/stop", "GET", {}, 405), ("/", "GET", {}, 404), ("/etc/passwd", "GET", {}, 404), ("/stop", "POST", {"Host": "evil.example"}, 403),
    ):
        status, _ = get(goes.address, path, method, headers)
        check(status == expect, f"{method} {path} {headers}: {status}, not {expect}")
    goes.end()
    for peer in [*hang, slow, *mute, *many]:
        peer.close()
    document = result(out)
    phase = phases(document)["randread"]
    # On any machine, due operations were executed, or reported as not started.
    due = phase["items"] + phase["unissued"]
    check(document["complete"] and due == 7000, f"the run did what it was to do: {due}")
    check(phase["errors"] == {}, "without errors")


def check_remote(program, place):
    heading("other hosts may look, and not stop the run")
    goes = Run([program, "io", "--dir", place, "--size", "16k", "--bs", "4k", "--rw", "randread", "--time", "60", "--rate", "100",
                "--serve", "0.0.0.0:0", "--serve-remote"], expect=130)
    port = goes.address.rsplit(":", 1)[1]
    address = f"127.0.0.1:{port}"
    now = line(address)
    status, _ = get(address, "/stop", "POST", {"rbench-run": now["run"]})
    check(status == 403, f"a stop is refused: {status}")
    status, _ = get(address, "/metrics", headers={"Host": "node1.example"})
    check(status == 200, f"by any name: {status}")
    goes.process.send_signal(signal.SIGINT)
    _, said = goes.end()
    check("--serve-remote" in said, f"it is said who can look: {said}")


def check_series(program, place):
    heading("a series: the present cell; other front ends")
    goes = Run([program, "sweep", "--over", "bs=4k,8k", "--serve", "127.0.0.1:0", "--out", place / "series.json", "--", "io", "--dir",
                place, "--size", "32k", "--rw", "randread", "--time", "5", "--rate", "200"])
    runs = set()

    def both():
        # Between two cells the run may not answer.
        with contextlib.suppress(OSError, ValueError):
            runs.add(line(goes.address)["run"])
        return len(runs - {""}) == 2

    until(both)
    goes.end()
    cells = {cell["result"]["run"]["id"] for cell in json.loads((place / "series.json").read_text())["cells"]}
    check(runs - {""} == cells, f"{runs} are the runs of the cells {cells}")
    # Some thousand operations take some seconds.
    slow = Testfs(program, "--latency", "create=2ms,mknod=2ms,write=10ms")
    (slow.mountpoint / "md").mkdir()
    for command in (["mdtest", "-n", "3000", "-d", slow.mountpoint / "md"],
                    ["fio", "--name=a", "--size=64k", "--bs=4k", f"--directory={place}", "--rw=randread", "--time_based",
                     "--runtime=4", "--rate_iops=100"],
                    ["ior", "-b", "64k", "-t", "4k", "-i", "40", "-o", slow.mountpoint / "ior"]):
        goes = Run([program, *command, "--serve", "127.0.0.1:0"])
        status, text = get(goes.address, "/metrics")
        check(status == 200 and text.endswith("# EOF\n"), f"{command[0]} is served")
        goes.end()
    slow.end()


def check_live(program, place):
    heading("--progress live: the same view on standard error, and standard output stays clean")
    out = place / "live.out"
    words = [program, "io", "--dir", place, "--size", "64k", "--bs", "4k", "--rw", "write,randread", "--time", "8", "--rate", "300",
             "--progress", "live", "--out", place / "live.json"]
    with open(out, "wb") as file:
        views = Terminal(words, 80, 24, stdout=file)
        check(views.shows("Sequential write", "q leave", "p99.9"), f"the view is there: {views.frame()}")
        views.print("--progress live")
        views.ended(0)
    check("Sequential write" in out.read_text() and "\x1b" not in out.read_text(), "the report is on standard output, and nothing else")
    check(result(place / "live.json")["complete"], "the run is complete")
    words[-1] = place / "interrupted.json"
    for keys, who in (("\x03", "SIGINT from the terminal"), ("sy", "A request of the view of --progress live (key s)")):
        words += ["--overwrite"] if "--overwrite" not in words else []
        views = Terminal(words, 80, 24)
        views.shows("Sequential write", "q leave", "per s")
        for key in keys:
            views.press(key)
            time.sleep(0.7)
        views.ended(130)
        document = result(place / "interrupted.json")
        messages = [w["message"] for w in document["warnings"]]
        check(any(message.startswith(who) for message in messages), f"who stopped it: {messages}")
    views = Terminal(words, 80, 24)
    views.shows("Sequential write", "q leave")
    views.press("q")
    views.ended(0)
    check(re.search(rb"\x1b\[\?1049l.*Random read: .*elapsed", views.raw, re.S), "after q there are lines")


def main():
    global FRAMES
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpirun")
    parser.add_argument("--frames", action="store_true")
    parser.add_argument("--only")
    words = parser.parse_args()
    program, launcher = words.program.resolve(), words.mpirun
    FRAMES = words.frames
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        checks = {
            "numbers": lambda: check_numbers(program, place, launcher),
            # A machine that stalls for a second has a backlog.
            "intervals": lambda: in_attempts(3, check_intervals, program, place),
            "frames": lambda: check_frames(program, place, launcher),
            "stop": lambda: check_stop(program, place),
            "early": lambda: check_early(program, place),
            "addresses": lambda: check_addresses(program, place),
            "garbage": lambda: check_garbage(program),
            "names": lambda: check_names(program, place),
            "hostile": lambda: check_hostile(program, place),
            "remote": lambda: check_remote(program, place),
            "series": lambda: check_series(program, place),
            "live": lambda: check_live(program, place),
        }
        for name, once in checks.items():
            if words.only in (None, name):
                once()
    finish()


main()
