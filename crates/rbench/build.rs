//! Tells the program which commit it is built from.

use std::path::Path;
use std::process::Command;

/// Output of git, if this is a repository and git is there.
fn git(words: &[&str]) -> Option<String> {
    let done = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    let text = text.trim();
    (done.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Every commit, and every change of branches, is noted there.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // Builds outside of a repository may know it all the same.
    println!("cargo::rerun-if-env-changed=RBENCH_COMMIT");
    let given = std::env::var("RBENCH_COMMIT").ok();
    if let Some(commit) = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"])) {
        println!("cargo::rustc-env=RBENCH_COMMIT={commit}");
    }
}
