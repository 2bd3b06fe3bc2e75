# Homebrew on Linux: brew install --build-from-source ./rbench.rb
# `scripts/package recipes` fills in the version, the address of the source and its checksum.
class Rbench < Formula
  desc "Load generator for mounted file systems: metadata and I/O, across MPI ranks"
  url "@URL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "llvm" => :build
  depends_on "pkgconf" => :build
  depends_on "rust" => :build
  depends_on :linux
  depends_on "open-mpi"

  def install
    ENV["LIBCLANG_PATH"] = Formula["llvm"].opt_lib
    system "cargo", "install", *std_cargo_args(path: "crates/rbench")
    generate_completions_from_executable(bin/"rbench", "completions", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/rbench version")
    system bin/"rbench", "io", "--dir", testpath, "--size", "1m", "--quiet"
  end
end
