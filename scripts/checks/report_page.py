"""Checks the page of rbench report in headless Chromium: at the width of a desktop and of a phone, light and dark,
without scripts. It must cause no console error and no request, fit the window, and have enough contrast.

usage: report_page.py PROGRAM [--chromium CHROMIUM] [--keep FOLDER] [--pictures FOLDER]

With --keep, the pages and their screenshots stay in FOLDER for inspection. With --pictures, nothing is checked: the
pictures of docs/pictures are generated in FOLDER.
"""

import argparse
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from common import Testfs, check, finish, heading, mpirun, run

WIDTHS = {"desktop": 1280, "phone": 390}
# Values of an enumeration in Blink.
SCHEMES = {"dark": 0, "light": 1}
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
NETWORK = re.compile(r"(https?|wss?|ftp):")
# Chromium's own requests, independent of the page; none is resolved (--host-resolver-rules).
ITS_OWN = re.compile(r"https?://([a-z0-9-]+\.)*(google|googleapis|gvt1)\.com/")
# Measures the page, and writes the result where --dump-dom prints it.
PROBE = """
<script>
addEventListener("load", () => {
  const style = (element, name) => element ? getComputedStyle(element)[name] : "";
  const wide = [...document.querySelectorAll("body *")].filter(e =>
    e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide"));
  const found = {
    inner: innerWidth, scroll: document.documentElement.scrollWidth,
    wide: wide.slice(0, 5).map(e => e.outerHTML.slice(0, 120)),
    bars: Math.max(0, ...[...document.querySelectorAll(".bars td")].map(e => e.getBoundingClientRect().right)),
    back: style(document.body, "backgroundColor"), text: style(document.body, "color"),
    card: style(document.querySelector("figure"), "backgroundColor"),
    label: style(document.querySelector("figure svg text"), "fill"),
    quiet: style(document.querySelector("figcaption"), "color"),
    line: style(document.querySelector("figure svg polyline.k0"), "stroke"),
    axis: style(document.querySelector("figure svg path.axis"), "stroke"),
  };
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
</script>
"""


class Browser:
    """Headless Chromium with a new profile for each page."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def open(self, page, *options, width=1280, scheme="light", height=2000):
        """Opens a page. Returns Chromium's output, and the addresses that it requested."""
        with tempfile.TemporaryDirectory(dir=self.folder) as profile:
            net_log = pathlib.Path(profile) / "net.json"
            environment = dict(os.environ, DBUS_SESSION_BUS_ADDRESS="unix:path=/dev/null")
            done = subprocess.run(
                [self.program, *QUIET, f"--user-data-dir={profile}", f"--log-net-log={net_log}",
                 f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", *options,
                 page.as_uri()],
                capture_output=True, text=True, timeout=120, check=False, env=environment)
            check(done.returncode == 0, f"Chromium ends with {done.returncode}: {done.stderr[-500:]}")
            events = json.loads(net_log.read_text())["events"]
        addresses = {event["params"]["url"] for event in events if "url" in event.get("params", {})}
        return done, {address for address in addresses if NETWORK.match(address) and not ITS_OWN.match(address)}


def luminance(color):
    """Returns the relative luminance of a CSS colour, as defined by WCAG."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_quiet(done, addresses, label):
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    check(not console, f"{label}: the console says {console}")
    check(not addresses, f"{label}: requests to {sorted(addresses)}")


def probe(browser, page, label, width, scheme):
    """Measures a copy of the page that may run the probe's script, in a frame of this width: windows cannot be that
    narrow."""
    text = page.read_text()
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    check(len(policy.findall(text)) == 1, f"{label}: the page has a policy")
    copy = policy.sub("", text).replace("</body>", PROBE + "</body>")
    copy = copy.replace("document.body.append(out)", "parent.document.body.append(out)")
    frame = browser.folder / "frame.html"
    frame.write_text(f'<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0"><iframe width="{width}" '
                     f'height="1500" style="border:0" srcdoc="{html.escape(copy)}"></iframe></body>')
    done, _ = browser.open(frame, "--dump-dom", "--virtual-time-budget=5000", width=1400, scheme=scheme)
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    check(found, f"{label}: the probe ran")
    return json.loads(html.unescape(found.group(1))) if found else None


def check_look(browser, page, label, width, scheme):
    found = probe(browser, page, label, width, scheme)
    if not found:
        return
    check(found["inner"] == width, f"{label}: {found['inner']} wide, not {width}")
    check(found["scroll"] <= width and not found["wide"], f"{label}: wider than the window: {found}")
    check(found["bars"] <= width, f"{label}: the bars end at {found['bars']}, beyond the window")
    dark = luminance(found["back"]) < 0.2
    check(dark == (scheme == "dark"), f"{label}: the background is {found['back']}")
    for name, back, least in [("text", "back", 7), ("label", "card", 7), ("quiet", "card", 4.5), ("line", "card", 3),
                              ("axis", "card", 3)]:
        ratio = contrast(found[name], found[back])
        check(ratio >= least, f"{label}: {name} {found[name]} on {found[back]} has a contrast of {ratio:.1f}")


def check_page(browser, page, words, keep):
    text = page.read_text()
    print(f"{page.name}: {len(text.encode()) / 1024:.0f} KiB, {text.count('<svg')} charts", flush=True)
    for device, width in WIDTHS.items():
        for scheme in SCHEMES:
            label = f"{page.stem}, {device}, {scheme}"
            picture = keep / f"{page.stem}-{device}-{scheme}.png"
            # Chromium's windows are not narrower: the probe shows the phone's page in a frame.
            done, addresses = browser.open(page, f"--screenshot={picture}", width=max(width, 500), scheme=scheme,
                                           height=3000)
            check_quiet(done, addresses, label)
            check(picture.exists() and picture.stat().st_size > 10_000, f"{label}: a screenshot")
            check_look(browser, page, label, width, scheme)
    body = html.unescape(re.sub(r"<script.*?</script>", "", text, flags=re.S))
    for word in words:
        check(word in body, f"{page.stem}: '{word}' is there without scripts")


def check_print(browser, page, most):
    """It prints on at most that many pages, and is not too large."""
    paper = page.with_suffix(".pdf")
    browser.open(page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    count = len(re.findall(rb"/Type\s*/Page[^s]", paper.read_bytes()))
    size = len(page.read_bytes())
    print(f"{page.name}: {count} pages on paper, {size} bytes", flush=True)
    check(1 <= count <= most, f"{page.stem}: {count} pages on paper")
    check(size < 1_000_000, f"{page.stem}: {size} bytes")


def check_itself(browser, place):
    """Checks that a request and a console error would be detected."""
    page = place / "bad.html"
    page.write_text('<img src="http://images.invalid/x.png"><script>console.error("seen")</script>')
    done, addresses = browser.open(page, "--dump-dom", "--virtual-time-budget=2000")
    check(addresses == {"http://images.invalid/x.png"}, f"a request is seen: {addresses}")
    check("CONSOLE" in done.stderr, "an error on the console is seen")


def search(program, out, *words):
    """Searches for the highest rate of a file system with a known capacity of 1000 per second."""
    target = Testfs(program, "--servers", 8, "--latency", "read=8ms", "--attr-timeout", "0", "--entry-timeout", "100",
                    "--direct-io")
    run([program, "knee", *words, "--quiet", "--out", out, "--", "io", "--dir", target.mountpoint, "--rw", "randread", "--bs", "4k",
         "--size", "1m", "--direct", "--threads", "64", "--no-round-trip"])
    target.end()


def pictures(program, browser, place, folder):
    """Generates the pictures of the documentation from real runs, in light mode."""
    folder.mkdir(exist_ok=True)
    knee, io = place / "knee.json", place / "io.json"
    search(program, knee, "--slo", "p90=25ms", "--arrival", "poisson", "--time", "2")
    target = Testfs(program, "--direct-io", "--latency", "read=300us,write=500us")
    run([*mpirun("mpirun", 4), program, "io", "--dir", target.mountpoint, "--size", "8M", "--bs", "16k", "--rw", "write,randread",
         "--direct", "--time", "5", "--out", io, "--quiet"])
    target.end()
    charts_alone = "<style>body > :not(#charts) { display: none }</style></head>"
    for name, file, height, change in [("knee", knee, 625, "</head>"), ("charts", io, 695, charts_alone)]:
        page = place / f"{name}.html"
        run([program, "report", file, "--html", page])
        page.write_text(page.read_text().replace("</head>", change, 1))
        browser.open(page, f"--screenshot={folder / name}.png", width=1000, height=height)


def pages(program, place):
    """Pages of a run of several ranks, of two runs, of two with iterations, of a sweep and a search."""
    quiet = ["--quiet"]
    meta, io, again, sweep, knee = (place / f"{name}.json" for name in ("meta", "io", "again", "sweep", "knee"))
    search(program, knee, "--slo", "mean=60ms", "--time", "1", "--precision", "20%")
    run([*mpirun("mpirun", 4), program, "meta", "--items", "200", "--iterations", "2", "--out", meta, "--label",
         "name=<b>a & 'b'</b>", *quiet])
    for path in (io, again):
        run([*mpirun("mpirun", 4), program, "io", "--size", "32M", "--bs", "16k", "--rw", "write,randread", "--rate", "3000", "--time", "2",
             "--out", path, *quiet])
    iterated = [place / f"iterated-{n}.json" for n in (1, 2)]
    for path in iterated:
        run([*mpirun("mpirun", 4), program, "meta", "--dir", place, "--items", "300", "--iterations", "5", "--out", path, *quiet])
    run([program, "sweep", "--over", "threads=1,2,4", "--over", "bs=4k,64k", "--out", sweep, "--", "io", "--dir", place, "--rw",
         "write,read", "--size", "1M"])
    made = {"run": ([meta], ["File creation", "Latency by percentile", "What was run", "<b>a & 'b'</b>"]),
            "loop": ([io], ["response time", "Latency over time", "demonstration"]),
            "both": ([io, again], ["Random read", "Items/s", "again.json", "MiB per second over time"]),
            "iterated": (iterated, ["All iterations", "±", "Iteration 5", "iterated-2.json (NEW)", "Verdict"]),
            "sweep": ([sweep], ["Operations per second over bs", "threads 4"]),
            "knee": ([knee], ["Response time over offered load", "mean at most 60.0 ms", "the objective held", "Steps"])}
    for name, (files, words) in made.items():
        page = place / f"{name}.html"
        run([program, "report", *files, "--html", page])
        yield page, words


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        keep = (arguments.keep or place).resolve()
        keep.mkdir(exist_ok=True)
        browser = Browser(arguments.chromium, place)
        if arguments.pictures:
            pictures(program, browser, place, arguments.pictures.resolve())
            finish()
            return
        check_itself(browser, place)
        for page, words in pages(program, place):
            heading(page.stem)
            check_page(browser, page, words, keep)
            if page.stem == "iterated":
                check_print(browser, page, 6)
            if arguments.keep:
                shutil.copy(page, keep)
    finish()


main()
