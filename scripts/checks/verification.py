"""Checks that fio and rbench verify each other's data in every format, and that both find damage."""

import errno
import json
import pathlib
import shutil
import signal
import subprocess

from common import PATIENCE_S, check, heading, wait_until

SUMS = ("md5", "crc64", "crc32", "crc32c", "crc32c-intel", "crc16", "crc7", "sha1", "sha256", "sha512", "sha3-224",
        "sha3-256", "sha3-384", "sha3-512", "xxhash", "meta", "null")
PATTERNS = ("0xff", "0xdeadbeefaa", '"abcd"-120x11', "%o", '0xdead%o"x y"', "258", "-1", '"a%o"%o')
# fio 3.33 has no pattern_hdr.
FORMS = [f"--verify={name}" for name in SUMS] + ["--verify=meta --verify_pattern=0xab%o", "--verify=md5 --verify_pattern=0xab"]
SHAPES = ("--bs=512", "--bs=4k", "--bs=64k", "--bs=4k --verify_interval=512", "--bs=64k --verify_interval=4k",
          "--bs=4k --verify_offset=1000", "--bs=4k --verify_interval=1k --verify_offset=300", "--bsrange=4k-16k",
          "--bs=4k --rw=randwrite", "--bs=4k --offset=12k")
SIZE = 192 * 1024


def several(shape):
    """Returns the jobs of one command line, one per format, all with the same block shape."""
    # At each random block length, the verifier draws again, so its offset cannot be in a pattern then.
    forms = [form.split() for form in FORMS if not ("bsrange" in shape and "%o" in form)]
    if shape in SHAPES[:3]:
        forms += [["--verify=pattern", f"--verify_pattern={pattern}"] for pattern in PATTERNS]
    words = ["--rw=write", f"--size={SIZE}", *shape.split()]
    for number, form in enumerate(forms):
        words += [f"--name=v{number}", f"--filename=v{number}", *form]
    return words, forms


def verified(tool, folder, words):
    """Returns the errno of each job that verifies the existing data."""
    # Before the first job, so that it applies to all.
    done = tool.run("--verify_only", *words, "--output-format=json", cwd=folder, expect=None)
    text = done.stdout[done.stdout.index("{\n"):]
    return [job["error"] for job in json.loads(text)["jobs"]]


def run(tool, folder, words, more=()):
    words = ["--name=v", "--filename=v", f"--size={SIZE}", *words, *more, "--output-format=terse"]
    return subprocess.run([*tool.words, *words], cwd=folder, capture_output=True, text=True, timeout=60)


def works(done, what):
    check(done.returncode == 0, f"{what}: exit code {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}")


def both_ways(place):
    heading("each writes, both verify; and what is damaged, both find")
    for shape in SHAPES:
        words, forms = several(shape)
        for writer in place.both:
            folder = place.folder()
            writer.run(*words, cwd=folder)
            for reader in place.both:
                for form, error in zip(forms, verified(reader, folder, words)):
                    check(error == 0, f"{writer.name} wrote, {reader.name} verifies {shape} {form}: {error}")
            for number in range(len(forms)):
                file = folder / f"v{number}"
                data = bytearray(file.read_bytes())
                # Damages the last byte, or a byte of the first header if only headers are verified.
                at = len(data) - 1
                if "meta" in " ".join(forms[number]):
                    # At a known offset: the magic number may also occur in random data before it.
                    at = {"--offset=12k": 12 * 1024, "--verify_offset=1000": 1000, "--verify_offset=300": 300}.get(
                        shape.split()[-1], 0)
                    check(data[at : at + 2] == b"\xca\xac", f"{writer.name} wrote no header at {at}: {shape}")
                    at += 20
                data[at] ^= 1
                file.write_bytes(data)
            for reader in place.both:
                for form, error in zip(forms, verified(reader, folder, words)):
                    expect = 0 if form == ["--verify=null"] else errno.EILSEQ
                    check(error == expect, f"{writer.name} wrote, {reader.name}, damaged {shape} {form}: {error}")
    print(f"   {len(SHAPES)} shapes of blocks, each with {len(FORMS)} forms and more", flush=True)


def same_order(place):
    heading("what is read back, and in which numbers")
    for more in ("--rw=rw", "--rw=randrw", "--rw=randwrite --norandommap", "--rw=randwrite --verify_backlog=5",
                 "--rw=write --verify_backlog=5 --verify_backlog_batch=2", "--rw=randrw --verify_backlog=3",
                 "--rw=write --verify_backlog=3 --verify_backlog_batch=7", "--rw=write --loops=2", "--rw=write --do_verify=0",
                 "--rw=write --verify_async=2", "--rw=randwrite --ioengine=io_uring --iodepth=4 --verify_async=2"):
        done = []
        for tool in place.both:
            folder = place.folder()
            words = f"--name=v --filename=v --size=256k --bs=4k --verify=crc32c {more}".split()
            document = tool.json(*words, cwd=folder)["jobs"][0]
            done.append((document["read"]["total_ios"], document["write"]["total_ios"]))
            check((folder / "local-v-0-verify.state").exists(), f"{tool.name} saves its state: {more}")
        fio, ours = done
        # Random numbers differ: the share of reads in a mix, and repetitions of blocks.
        sums = [sum(each) for each in done]
        exact = "rand" not in more.replace("randwrite --verify", "").replace("randwrite --io", "") and "=rw" not in more
        check(fio == ours if exact else abs(sums[0] - sums[1]) <= 40, f"{more}: fio {fio}, rbench {ours}")


def states(place):
    heading("states of jobs that verify, saved by one and loaded by the other")
    words = "--rw=write --bs=4k --verify=md5".split()
    for writer in place.both:
        for reader in place.both:
            folder = place.folder()
            works(run(writer, folder, words, ["--number_ios=13"]), f"{writer.name} writes a part")
            # Simulates the loss of the last write, which no state then names.
            state = folder / "local-v-0-verify.state"
            left = state.read_bytes()
            check(len(left) == 192, f"{writer.name}: a state of {len(left)} bytes")
            with open(folder / "v", "r+b") as file:
                file.truncate(SIZE)
            document = reader.json("--name=v", "--filename=v", f"--size={SIZE}", *words, "--verify_only",
                                   "--verify_state_load=1", cwd=folder)
            ios = document["jobs"][0]["read"]["total_ios"]
            check(ios == 13, f"{writer.name} wrote 13 blocks, {reader.name} verifies {ios} of them")
            state.write_bytes(left[:16] + b"\0\0\0\0" + left[20:])
            done = run(reader, folder, words, ["--verify_only", "--verify_state_load=1"])
            check(done.returncode != 0, f"{reader.name} takes a damaged state")


def killed(place):
    heading("a job that verifies is interrupted: what it had written verifies with either tool")
    words = "--name=v --filename=v --size=4m --rw=write --bs=4k --verify=crc32c".split()
    for writer in place.both:
        for number in (signal.SIGINT, signal.SIGTERM):
            folder = place.folder()
            line = [*writer.words, *words, "--do_verify=0", "--rate_iops=100", "--verify_state_save=1"]
            with subprocess.Popen(line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                # Waits for the blocks of half a second out of ten.
                wait_until(lambda: (folder / "v").exists() and any((folder / "v").read_bytes()[50 * 4096:51 * 4096]))
                process.send_signal(number)
                process.wait(PATIENCE_S)
            seen = []
            for reader in place.both:
                # A reader saves a state of its own.
                copy = shutil.copytree(folder, place.folder(), dirs_exist_ok=True)
                document = reader.json(*words, "--verify_only", "--verify_state_load=1", cwd=copy)
                seen.append(document["jobs"][0]["read"]["total_ios"])
            check(0 < seen[0] < 1024 and seen[0] == seen[1], f"{writer.name}, {number.name}: blocks verified: {seen}")
            print(f"   {writer.name}, {number.name}: {seen[0]} blocks of 1024", flush=True)


def dumps(place):
    heading("verify_dump: the same names, and the block as it was read")
    for tool in place.both:
        folder = place.folder()
        words = "--rw=write --bs=4k --verify=pattern --verify_pattern=0xab%o".split()
        works(run(tool, folder, words), tool.name)
        whole = (folder / "v").read_bytes()
        data = bytearray(whole)
        data[5000] ^= 0xff
        (folder / "v").write_bytes(data)
        run(tool, folder, words, ["--verify_only", "--verify_dump=1"])
        for what, expect in (("received", bytes(data)), ("expected", whole)):
            path = folder / f"v.4096.{what}"
            check(path.exists() and path.read_bytes() == expect[4096:8192], f"{tool.name}: {pathlib.Path(path).name}")


def verification(place):
    both_ways(place)
    same_order(place)
    states(place)
    killed(place)
    dumps(place)
