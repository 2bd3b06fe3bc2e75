#!/usr/bin/env python3
"""Makes archives, deb, rpm and wheel of built programs: for scripts/package.

usage: packages.py WORK OUT
"""

import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
SUMMARY = "Load generator for mounted file systems, over MPI ranks"
TEXT = """Measures the metadata and I/O performance of a mounted file system, from one
process or from MPI ranks on many hosts, and merges latencies exactly over all
of them. It takes the command lines of mdtest, fio and IOR."""
# The packages' maintainer: the author of the commit.
AUTHOR = subprocess.run(["git", "log", "-1", "--format=%an <%ae>"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
# Maximum requirements of the programs for MPI libraries.
WHEEL = "py3-none-manylinux_2_28_x86_64"


def version():
    """Returns the version of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr, **options)


def tree(work, target, root):
    """Copies the files of a package below `root`: programs, and shared files."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(work / target, root)
    shutil.copytree(work / "share", root / "share", dirs_exist_ok=True)
    for path in [root, *root.rglob("*")]:
        executable = path.is_dir() or path.parent.name in ("bin", "rbench") and "share" not in path.parts
        path.chmod(0o755 if executable else 0o644)
        os.utime(path, (EPOCH, EPOCH))


def archive(work, out, target, processor):
    name = f"rbench-{version()}-{processor}-linux"
    root = work / "tree" / name
    tree(work, target, root)
    tar = ["tar", "--sort=name", f"--mtime=@{EPOCH}", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]
    plain = work / f"{name}.tar"
    run(*tar, "-C", root.parent, "-cf", plain, name)
    # The number of threads decides what compressed files look like.
    run("zstd", "-q", "-19", "--single-thread", "-f", plain, "-o", out / f"{name}.tar.zst")
    plain.unlink()


def deb(work, out, target):
    root = work / "tree" / "deb"
    shutil.rmtree(root, ignore_errors=True)
    tree(work, target, root / "usr")
    doc = root / "usr" / "share" / "doc" / "rbench"
    (doc / "copyright").write_text(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        f"Upstream-Name: rbench\nUpstream-Contact: {AUTHOR}\n\nFiles: *\nCopyright: The rbench developers\nLicense: Expat or Apache-2.0\n\n"
        f"License: Expat\n{indented((ROOT / 'LICENSE-MIT').read_text())}\n"
        "License: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n"
    )
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"):
        (doc / name).unlink()
    changes = f"rbench ({version()}) unstable; urgency=medium\n\n  * See /usr/share/doc/rbench/README.md.\n\n -- {AUTHOR}  "
    stamp = subprocess.run(["date", "-u", "-R", f"-d@{EPOCH}"], check=True, capture_output=True, text=True).stdout
    compressed(doc / "changelog.gz", changes + stamp)
    overrides = root / "usr" / "share" / "lintian" / "overrides"
    overrides.mkdir(parents=True)
    # The package also serves hosts without MPI, so it depends on no library; the stand-in of Debian's MPICH is empty.
    (overrides / "rbench").write_text("rbench: statically-linked-binary [usr/bin/rbench]\n"
        "rbench: shared-library-lacks-prerequisites [usr/bin/rbench]\nrbench: custom-library-search-path\n"
        "rbench: undeclared-elf-prerequisites\n"
        "rbench: library-not-linked-against-libc [usr/libexec/rbench/debian/libmpi.so.12]\n")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    control = root / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(
        f"Package: rbench\nVersion: {version()}\nArchitecture: amd64\nMaintainer: {AUTHOR}\nInstalled-Size: {size}\n"
        "Recommends: openmpi-bin\nSuggests: fuse3, mpich\nSection: utils\nPriority: optional\n"
        f"Description: {SUMMARY[0].lower() + SUMMARY[1:]}\n{indented(TEXT)}\n"
    )
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        elif path.parent.name not in ("bin",) and path.name not in ("rbench-openmpi", "rbench-mpich"):
            path.chmod(0o644)
    once = {**os.environ, "DPKG_DEB_THREADS_MAX": "1"}
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, out / f"rbench_{version()}_amd64.deb", env=once)


def indented(text):
    return "\n".join(f" {line}" if line.strip() else " ." for line in text.strip().splitlines())


def compressed(path, text):
    done = subprocess.run(["gzip", "-9nc"], input=text.encode(), check=True, capture_output=True)
    path.write_bytes(done.stdout)


def rpm(work, out, target):
    root = work / "tree" / "rpm"
    shutil.rmtree(root, ignore_errors=True)
    tree(work, target, root / "usr")
    top = work / "rpm"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    files = "\n".join(f"/{path.relative_to(root)}" for path in sorted(root.rglob("*")) if path.is_file())
    spec = top / "rbench.spec"
    spec.write_text(
        f"Name: rbench\nVersion: {version()}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n"
        "AutoReqProv: no\nRecommends: openmpi\nSuggests: mpich, fuse3\n%define _build_id_links none\n"
        "%define __os_install_post %{nil}\n%define _buildhost rbench\n%define use_source_date_epoch_as_buildtime 1\n"
        "%define clamp_mtime_to_source_date_epoch 1\n%define _binary_payload w9.xzdio\n"
        f"\n%description\n{TEXT}\n\n%install\nmkdir -p %{{buildroot}}\ncp -a {root.resolve()}/. %{{buildroot}}/\n\n"
        f"%files\n%defattr(-,root,root)\n{files}\n"
    )
    run("rpmbuild", "-bb", "--quiet", "--target", "x86_64", "--define", f"_topdir {top.resolve()}", spec)
    for built in (top / "RPMS").rglob("*.rpm"):
        shutil.move(built, out / built.name)


def wheel(work, out, target):
    """Builds a wheel with the module, and with programs in the place where `pip` installs programs."""
    name = f"rbench-{version()}"
    metadata = (
        f"Metadata-Version: 2.1\nName: rbench\nVersion: {version()}\nSummary: {SUMMARY}\n"
        "License: MIT OR Apache-2.0\nRequires-Python: >=3.8\nProvides-Extra: openmpi\n"
        'Provides-Extra: mpich\nProvides-Extra: pandas\nRequires-Dist: openmpi>=5; extra == "openmpi"\n'
        'Requires-Dist: mpich>=4; extra == "mpich"\n'
        'Requires-Dist: pandas; extra == "pandas"\nDescription-Content-Type: text/plain\n\n' + TEXT + "\n"
    )
    files = {
        "rbench/__init__.py": (ROOT / "scripts/python/rbench/__init__.py").read_bytes(),
        f"{name}.data/scripts/rbench": (work / target / "bin" / "rbench").read_bytes(),
        f"{name}.dist-info/METADATA": metadata.encode(),
        f"{name}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: rbench\nRoot-Is-Purelib: false\nTag: {WHEEL}\n".encode(),
    }
    for file in sorted((work / target / "libexec").rglob("*")):
        if file.is_file():
            files[f"{name}.data/data/{file.relative_to(work / target)}"] = file.read_bytes()
    for text in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{name}.dist-info/{text}"] = (ROOT / text).read_bytes()
    record = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}\n")
    files[f"{name}.dist-info/RECORD"] = "".join([*record, f"{name}.dist-info/RECORD,,\n"]).encode()
    with zipfile.ZipFile(out / f"{name}-{WHEEL}.whl", "w", zipfile.ZIP_DEFLATED) as packed:
        for path, data in files.items():
            # The earliest time that zip can store; permissions are in the upper half.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            executable = "/scripts/" in path or "/libexec/" in path and not path.endswith(".so.12")
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, data)


def main():
    work, out = (pathlib.Path(word) for word in sys.argv[1:])
    x86, arm = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
    for old in [*out.glob("*.tar.zst"), *out.glob("*.deb"), *out.glob("*.rpm"), *out.glob("*.whl")]:
        old.unlink()
    archive(work, out, x86, "x86_64")
    if (work / arm).is_dir():
        archive(work, out, arm, "aarch64")
    deb(work, out, x86)
    rpm(work, out, x86)
    wheel(work, out, x86)


if __name__ == "__main__":
    main()
