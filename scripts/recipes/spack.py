# Spack: a package of rbench built against the MPI that the environment has chosen.
# `scripts/package recipes` fills in the version, the address of the source and its checksum.
from spack.package import *


class Rbench(Package):
    """Load generator for mounted file systems: metadata and I/O, across MPI ranks."""

    url = "@URL@"

    license("MIT OR Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("mpi", default=True, description="Measure from several hosts")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("llvm+clang", type="build", when="+mpi")
    depends_on("mpi", when="+mpi")

    def install(self, spec, prefix):
        words = ["install", "--locked", "--root", prefix, "--path", "crates/rbench"]
        if spec.satisfies("~mpi"):
            words += ["--no-default-features", "--features", "testfs"]
        else:
            env["MPICC"] = spec["mpi"].mpicc
        which("cargo", required=True)(*words)

    def test_version(self):
        """The program starts."""
        out = Executable(self.prefix.bin.rbench)("version", output=str.split, error=str.split)
        assert "@VERSION@" in out
