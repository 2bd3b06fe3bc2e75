"""Parses results in OpenMetrics format with the official Python client: every sample must parse, and the numbers must
be those of the result file.

usage: openmetrics.py PROGRAM

Needs the package prometheus_client; scripts/test makes a virtual environment with it.
"""

import argparse
import math
import pathlib
import tempfile

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from common import check, finish, heading, result, run

QUANTILES = {"0.5": "p50_ns", "0.9": "p90_ns", "0.95": "p95_ns", "0.99": "p99_ns", "0.999": "p999_ns", "0.9999": "p9999_ns",
             "1": "max_ns"}


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15)


def sample(family, suffix, **labels):
    """Returns the single sample with this suffix and these labels."""
    found = [s for s in family.samples
             if s.name == family.name + suffix and all(s.labels.get(k) == v for k, v in labels.items())]
    check(len(found) == 1, f"{family.name}{suffix} {labels}: {len(found)} samples")
    return found[0].value if found else math.nan


def check_summary(family, hist, **labels):
    for quantile, field in QUANTILES.items():
        seconds = sample(family, "", quantile=quantile, **labels)
        check(near(seconds, hist[field] / 1e9), f"{labels} {quantile}: {seconds} s, not {hist[field]} ns")
    check(sample(family, "_count", **labels) == hist["count"], f"{labels}: the count")
    total = hist["mean_ns"] * hist["count"] / 1e9
    check(near(sample(family, "_sum", **labels), total), f"{labels}: the sum")


def check_document(known, document):
    run_id = document["run"]["id"]
    check(sample(known["rbench_run"], "_info", run=run_id, version=document["run"]["version"]) == 1, "the run's info")
    for name, value in document["run"]["labels"].items():
        check(sample(known["rbench_label"], "_info", run=run_id, name=name, value=value) == 1, f"label {name}")
    for phase in document["phases"]:
        labels = {"run": run_id, "operation": phase["name"], "iteration": str(phase["iteration"])}
        check(sample(known["rbench_operations"], "_total", **labels) == phase["items"], f"{labels}: items")
        check(sample(known["rbench_elapsed_seconds"], "", **labels) == phase["elapsed_s"], f"{labels}: time")
        if not phase["one_each"]:
            check(sample(known["rbench_operations_per_second"], "", **labels) == phase["rate"], f"{labels}: rate")
        if phase["bandwidth"] is not None:
            check(sample(known["rbench_moved_bytes"], "_total", **labels) == phase["bytes"], f"{labels}: bytes")
        for error, count in phase["errors"].items():
            check(sample(known["rbench_errors"], "_total", error=error, **labels) == count, f"{labels}: {error}")
        check_summary(known["rbench_latency_seconds"], phase["latency"]["service"], time="service", **labels)
        if phase["latency"]["response"]:
            check_summary(known["rbench_latency_seconds"], phase["latency"]["response"], time="response", **labels)
        for host in phase["hosts"]:
            check_summary(known["rbench_host_latency_seconds"], host["latency"], host=host["host"], **labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    program = parser.parse_args().program.resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        meta, io = place / "meta.json", place / "io.json"
        heading("runs whose names and labels have to be escaped")
        target = place / 'a "target" \\ here'
        target.mkdir()
        run([program, "meta", "--dir", target, "--items", "20", "--iterations", "2", "--label", 'note=say "hi" \\n\nline',
             "--out", meta, "--quiet"])
        run([program, "io", "--dir", target, "--size", "1M", "--bs", "4k", "--rate", "2000", "--out", io, "--quiet"])
        heading("read by the official parser")
        text = run([program, "show", "--format", "openmetrics", meta, io]).stdout
        known = families(text)
        samples = sum(len(family.samples) for family in known.values())
        print(f"{len(known)} families, {samples} samples, {len(text)} bytes")
        check(text.endswith("# EOF\n"), "the exposition ends")
        for path in (meta, io):
            document = result(path)
            for name, value in document["run"]["labels"].items():
                # Control characters are escaped, like in every report.
                document["run"]["labels"][name] = value.replace("\n", "\\n")
            check_document(known, document)
    finish()


main()
