"""Compares the offsets of a job's I/Os in the logs of fio and of the program: deterministic ones must be equal, random
ones must follow fio's rules. A part of fio.py."""

import collections

from common import check, heading

BLOCK = 4096
KIB = 1024

# Fully deterministic: the sequences of (direction, offset) must be equal in both tools.
SAME = (
    "--rw=read --size=64k",
    "--rw=write:4k --size=64k",
    "--rw=write:1k --size=32k",
    "--rw=read:60k --size=64k",
    "--rw=read:-8k --size=64k",
    "--rw=read:-8k --offset=64k --size=64k",
    "--rw=read:4k --offset=64k --size=64k",
    "--rw=read:4k --size=64k --io_size=128k",
    "--rw=read:4k --size=64k --loops=2",
    "--rw=read:4 --size=64k",
    "--rw=randwrite:0 --size=64k",
    "--rw=randread --percentage_random=0 --size=64k",
    "--rw=read --bs=4k,8k --bs_is_seq_rand=1 --size=64k",
    "--rw=read --zonemode=strided --zonesize=8k --zoneskip=8k --size=64k",
    "--rw=read --zonemode=strided --zonesize=8k --zonerange=16k --zoneskip=4k --size=128k",
    "--rw=read --zonemode=strided --zonesize=16k --zonerange=8k --size=64k",
    "--rw=write --zonemode=strided --zonesize=10k --zoneskip=6k --size=64k",
    "--rw=read --zonemode=strided --zonesize=8k --zoneskip=8k --offset=16k --size=64k",
    "--rw=read --zonemode=strided --zonesize=8k --zoneskip=8k --size=60k",
    "--rw=read --zonemode=strided --zonesize=8k --zoneskip=8k --bs=16k --size=64k",
    "--rw=trim --ioengine=falloc --size=64k --bs=4k,4k,8k",
    "--rw=trim:4k --ioengine=falloc --size=64k",
    "--rw=trimwrite --ioengine=falloc --size=64k",
    "--rw=trimwrite --ioengine=falloc --size=64k --bs=4k,16k,16k",
    "--rw=trimwrite --ioengine=falloc --size=64k --loops=2",
    "--rw=trimwrite --ioengine=falloc --size=64k --io_size=16k",
)

# The same in an existing file of 69536 bytes.
THERE = (
    "--rw=read",
    "--rw=read --size=50%",
    "--rw=randread --randrepeat=1 --size=50% --percentage_random=0",
    "--rw=read --size=50% --offset=16k",
    "--rw=read --size=50% --offset=48k",
    "--rw=read --offset=25%",
    "--rw=write --offset=25% --size=16k",
    "--rw=read --offset=10% --size=16k --offset_align=512",
    "--rw=read --offset=10% --size=16k --offset_align=16k",
    "--rw=read --offset=5k --size=16k --offset_align=16k",
    "--rw=read --offset=10% --offset_increment=25% --size=10%",
    "--rw=read --offset_increment=10% --offset=4k --size=8k",
    "--rw=read --io_size=50%",
    "--rw=read --size=50% --io_size=50%",
    "--rw=read --filesize=64k --offset=16k",
    "--rw=read --filesize=64k --size=50%",
    "--rw=write --file_append=1 --size=16k",
    "--rw=write --file_append=1 --size=16k --offset=4k",
    "--rw=write --file_append=1 --filesize=80k",
)


def accesses(tool, folder, line, there=None):
    """Returns (direction, offset, length) of each I/O, in order; with `there`, in an existing file of that many bytes."""
    if there:
        (folder / "o").write_bytes(b"x" * there)
    tool.json(f"--directory={folder}", "--name=o", "--filename=o", "--thread", "--write_lat_log=o", "--log_offset=1",
              *line.split(), cwd=folder)
    rows = [[int(field) for field in row.split(", ")] for row in (folder / "o_lat.1.log").read_text().splitlines()]
    return [(row[2], row[4], row[3]) for row in rows]


def offsets_of(found):
    return [offset for _, offset, _ in found]


def each_once(size):
    """Every block of `size` bytes once."""
    def rule(found):
        return sorted(offsets_of(found)) == list(range(0, size, BLOCK))
    return rule


def each_pass_once(size, passes):
    def rule(found):
        count = size // BLOCK
        parts = [found[at:at + count] for at in range(0, len(found), count)]
        return len(parts) == passes and all(each_once(size)(part) for part in parts)
    return rule


def with_repeats(size):
    """Random blocks with repetitions: a share of 1/e of the blocks does not occur."""
    def rule(found):
        places = offsets_of(found)
        share = len(set(places)) / (size // BLOCK)
        return len(places) == size // BLOCK and max(places) < size and abs(share - 0.632) < 0.03
    return rule


def skewed(size, least, most):
    """The share of the most frequent twentieth of the blocks is between these."""
    def rule(found):
        counts = sorted(collections.Counter(offsets_of(found)).values(), reverse=True)
        share = sum(counts[:size // BLOCK // 20]) / len(found)
        return len(found) == size // BLOCK and least <= share <= most
    return rule


def runs(length, stays, size):
    """A new start after `length` blocks; each block of the map starts at most one run."""
    def rule(found):
        places = offsets_of(found)
        parts = [places[at:at + length] for at in range(0, len(places), length)]
        step = 0 if stays else BLOCK
        # At the end of the file a run continues elsewhere.
        pairs = [pair for part in parts for pair in zip(part, part[1:])]
        fits = all(after == before + step or before + BLOCK == size for before, after in pairs)
        starts = [part[0] for part in parts]
        return len(places) == size // BLOCK and fits and len(set(starts)) == len(starts)
    return rule


def strides(zone, span, stride, size):
    """A fixed number of bytes in each zone, at random and without repetition."""
    def rule(found):
        places = offsets_of(found)
        each = zone // BLOCK
        parts = [places[at:at + each] for at in range(0, len(places), each)]
        def good(number, part):
            start = number * stride % size
            return all(start <= place < start + span for place in part) and len(set(part)) == len(part)
        return len(places) * BLOCK == size and all(good(number, part) for number, part in enumerate(parts))
    return rule


def trimmed_then_written(size, lengths):
    """Ranges of these lengths (the last may be shorter), together the whole file: each is trimmed and then written in
    one piece."""
    def rule(found):
        pairs = list(zip(found[::2], found[1::2]))
        ranges = sorted((place, place + length) for (_, place, length) in found[::2])
        ends = [end for (_, end) in ranges]
        return (all(end - place in lengths for (place, end) in ranges[:-1]) and len(found) == 2 * len(pairs)
                and [place for (place, _) in ranges] == [0, *ends[:-1]] and ends[-1] == size
                and all((one[0], other[0], one[1:]) == (2, 1, other[1:]) for one, other in pairs))
    return rule


MIB = KIB * KIB
# Random: (options, the rule that both follow).
DRAWN = (
    ("--rw=randread --size=8m", each_once(8 * MIB)),
    ("--rw=randwrite --size=8m", each_once(8 * MIB)),
    ("--rw=randread --size=1m --loops=3", each_pass_once(MIB, 3)),
    ("--rw=randread --size=1m --io_size=2m", each_pass_once(MIB, 2)),
    ("--rw=randrw --size=4m", each_once(4 * MIB)),
    ("--rw=randread --size=8m --norandommap", with_repeats(8 * MIB)),
    ("--rw=randread --size=4m --random_generator=lfsr", each_once(4 * MIB)),
    ("--rw=randread --size=4m --random_generator=lfsr --norandommap", each_once(4 * MIB)),
    ("--rw=randread --size=4m --random_generator=tausworthe64", each_once(4 * MIB)),
    ("--rw=randread --size=4m --softrandommap=1", each_once(4 * MIB)),
    ("--rw=randread --size=16m --random_distribution=zipf:1.2", skewed(16 * MIB, 0.75, 0.99)),
    ("--rw=randread --size=16m --random_distribution=pareto:0.2", skewed(16 * MIB, 0.3, 0.8)),
    ("--rw=randread --size=16m --random_distribution=zoned:95/5:5/95", skewed(16 * MIB, 0.93, 0.98)),
    ("--rw=randwrite:4 --size=4m", runs(4, False, 4 * MIB)),
    ("--rw=randread:8 --rw_sequencer=identical --size=4m", runs(8, True, 4 * MIB)),
    ("--rw=randread --zonemode=strided --zonesize=16k --zonerange=32k --size=128k",
     strides(16 * KIB, 32 * KIB, 32 * KIB, 128 * KIB)),
    ("--rw=randread --zonemode=strided --zonesize=16k --zonerange=32k --zoneskip=32k --size=256k",
     strides(16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB)),
    ("--rw=randtrim --ioengine=falloc --size=4m", each_once(4 * MIB)),
    ("--rw=randtrimwrite --ioengine=falloc --size=1m", trimmed_then_written(MIB, [BLOCK])),
    ("--rw=trimwrite --ioengine=falloc --size=1m --bsrange=512-4k", trimmed_then_written(MIB, range(512, 4097, 512))),
    ("--rw=trimwrite --ioengine=falloc --size=1m --bssplit=4k/25:8k/:16k/",
     trimmed_then_written(MIB, [4 * KIB, 8 * KIB, 16 * KIB])),
)

# Features that fio 3.33 lacks: (options, offsets in KiB).
NEWER = (
    ("--rw=randread --random_distribution=sequence:2,0,1 --size=48k --io_size=24k", [8, 0, 4, 8, 0, 4]),
    ("--rw=randread --random_distribution=sequence:2,0,1 --random_sequence_stride=1 --size=48k --io_size=24k",
     [8, 0, 4, 20, 12, 16]),
)


def offsets(place):
    heading("offsets, by the logs of both")
    for line in SAME:
        theirs, ours = place.side_by_side(lambda tool, folder: accesses(tool, folder, line))
        check(theirs and ours == theirs, f"the same offsets: {line}: fio {theirs[:40]}, rbench {ours[:40]}")
    for line in THERE:
        theirs, ours = place.side_by_side(lambda tool, folder: accesses(tool, folder, line, 69536))
        check(theirs and ours == theirs, f"the same offsets: {line}: fio {theirs[:40]}, rbench {ours[:40]}")
    for line, rule in DRAWN:
        both = place.side_by_side(lambda tool, folder: accesses(tool, folder, line))
        for tool, found in zip(place.both, both):
            check(rule(found), f"{tool.name}: {line}: {len(found)} I/Os: {offsets_of(found)[:24]}")
        # The same seed gives the same offsets.
        again = [accesses(place.ours, place.folder(), line) for _ in range(2)]
        check(again[0] == again[1], f"offsets are the same in every run: {line}")
    for line, expect in NEWER:
        found = offsets_of(accesses(place.ours, place.folder(), line))
        check(found == [offset * KIB for offset in expect], f"{line}: {found}")
    print(f"   {len(SAME) + len(THERE)} sequences, {len(DRAWN)} rules, {len(NEWER)} of later versions", flush=True)
