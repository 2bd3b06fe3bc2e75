#!/usr/bin/env python3
"""Compares the field `hdr` of result files with their other fields.

Usage: decode_hdr.py RESULT.json...

Decodes every distribution with HdrHistogram's Python library (PyPI package `hdrhistogram`),
which shares no code with rbench. Checks that count, minimum, p50, p90, p95, p99, p99.9, p99.99
and maximum are in the same bucket as the fields next to it. Exit code 0: all agree. 1:
mismatches, one per line. 2: wrong usage, or a file without any distribution.
"""

import json
import math
import sys

from hdrh.histogram import HdrHistogram

HIGHEST_NS = 3_600_000_000_000
QUANTILES = {
    "p50_ns": 0.5,
    "p90_ns": 0.9,
    "p95_ns": 0.95,
    "p99_ns": 0.99,
    "p999_ns": 0.999,
    "p9999_ns": 0.9999,
}


def distributions(value, path="$"):
    """Yields every object with a field `hdr`, and the path to it."""
    if isinstance(value, dict):
        if "hdr" in value:
            yield path, value
        for key, inner in value.items():
            yield from distributions(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from distributions(inner, f"{path}[{index}]")


def buckets(histogram):
    """The recorded buckets as (highest value, count), ascending."""
    return [
        (item.value_iterated_to, item.count_added_in_this_iter_step)
        for item in histogram.get_recorded_iterator()
    ]


def ranked(recorded, rank):
    """Returns the bucket of the rank-th smallest value, counting from 1."""
    for value, count in recorded:
        rank -= count
        if rank <= 0:
            return value
    raise ValueError("fewer values than the rank")


def mismatches(hist):
    """Yields a sentence for each field of `hist` that contradicts its `hdr`."""
    histogram = HdrHistogram.decode(hist["hdr"])
    recorded = buckets(histogram)
    count = sum(n for _, n in recorded)
    if count != hist["count"]:
        yield f"hdr holds {count} values, count is {hist['count']}"
        return
    if count == 0:
        return
    # By rank, so that no library's rounding of percentiles matters.
    decoded = {
        name: ranked(recorded, max(1, math.ceil(quantile * count)))
        for name, quantile in QUANTILES.items()
    }
    decoded["min_ns"] = recorded[0][0]
    decoded["max_ns"] = recorded[-1][0]
    for name, value in decoded.items():
        # Values above the range are encoded at its end.
        beside = min(hist[name], HIGHEST_NS)
        if not histogram.values_are_equivalent(value, beside):
            yield f"{name}: hdr gives {value}, the field is {hist[name]}"


def main(files):
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    code = 0
    for name in files:
        with open(name, encoding="utf-8") as file:
            found = list(distributions(json.load(file)))
        if not found:
            print(f"{name}: no distribution in it", file=sys.stderr)
            return 2
        for path, hist in found:
            for mismatch in mismatches(hist):
                print(f"{name}: {path}: {mismatch}", file=sys.stderr)
                code = 1
        values = sum(hist["count"] for _, hist in found)
        print(f"{name}: {len(found)} distributions, {values} values decoded")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
