//! `rbench mix`: a mix of operations on sets of files.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_plan::mix::profile::{self, BUILT_IN};
use rbench_plan::spec::{self, MixText};

use crate::Stop;
use crate::series::is_file;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Operations: stat, open, create, read, write, append, delete, rename, list, mkdir, rmdir, \
    symlink, readlink, chmod, utimes, access, setxattr, getxattr, fsync, truncate SIZE. A list can also have \
    steps on open files; docs/reference/mix.md describes all operations, the rows and the figures. Sizes: k, \
    m, g, t, p are powers of 1024. Times: 500us, 30s; a bare number is in seconds.\n\nExamples:\n  rbench mix \
    --dir /mnt/fs --ops stat=60,open=20,create=8,rename=4,unlink=8\n  mpirun -np 12 --hostfile myhost rbench \
    mix --dir /mnt/fs --profile varmail \\\n    --time 60 --out varmail.json\n  rbench mix --dir /mnt/fs \\\n    --list \
    'create, append 16k, fsync, close, open, read whole, close, delete'"
)]
#[group(id = "what", required = true, multiple = false, args = ["ops", "list", "profile", "show", "profiles"])]
pub struct MixArgs {
    /// Draw operations at random with these weights: stat=60,open=20,create=10
    #[arg(long, value_name = "OPS")]
    ops: Option<String>,
    /// Run these steps in order, round after round, in each worker
    #[arg(long, value_name = "STEPS")]
    list: Option<String>,
    /// Run a profile: a name that --profiles prints, or a file NAME.toml
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Print the text of a built-in profile
    #[arg(long, value_name = "NAME")]
    show: Option<String>,
    /// Print the built-in profiles
    #[arg(long)]
    profiles: bool,
    /// The other options of a mix.
    #[command(flatten)]
    mix: spec::Mix,
}

impl MixArgs {
    /// Converts the options into a mix.
    ///
    /// # Errors The text to print when there is nothing to run.
    pub fn mix(self) -> Result<spec::Mix, Stop> {
        if self.profiles {
            return Err(Stop::print(profiles()));
        }
        if let Some(name) = &self.show {
            let text = profile::built_in(name).ok_or_else(|| Stop::misuse(unknown(name)))?;
            return Err(Stop::print(text.to_owned()));
        }
        let text = match (self.ops, self.list, self.profile) {
            (Some(ops), _, _) => MixText::Ops(ops),
            (_, Some(list), _) => MixText::List(list),
            (_, _, name) => {
                let name = name.unwrap_or_default();
                if !is_file(&name) && profile::built_in(&name).is_none() {
                    return Err(Stop::misuse(unknown(&name)));
                }
                MixText::Profile { name, text: None }
            }
        };
        Ok(spec::Mix { text, ..self.mix })
    }
}

/// Returns the profile that a command line of `rbench mix` names as a file.
pub fn profile_file(argv: &[OsString]) -> Option<PathBuf> {
    let [_, command, words @ ..] = argv else {
        return None;
    };
    if command != "mix" {
        return None;
    }
    let mut words = words.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let name = match word.strip_prefix("--profile") {
            Some("") => words.next()?,
            Some(rest) if rest.starts_with('=') => &rest[1..],
            _ => continue,
        };
        return is_file(name).then(|| PathBuf::from(name));
    }
    None
}

fn unknown(name: &str) -> String {
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    super::unknown("profile", name, names, "rbench mix --profiles")
}

/// Lists the profiles, one a line.
fn profiles() -> String {
    let line = |(name, text): &(&str, &str)| {
        let profile = profile::read(text).ok()?;
        Some(format!("{name:<12} {}\n", profile.title))
    };
    BUILT_IN.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_listed() {
        assert_eq!(profiles().lines().count(), BUILT_IN.len());
    }

    #[test]
    fn a_profile_that_does_not_exist_has_a_near_one() {
        assert!(unknown("vermail").contains("(nearest: varmail)"));
    }
}
