//! Command lines and mount sources without confidential parts: passwords, tokens,
//! addresses with credentials. Words that are not known to be harmless are left out.

/// Replacement for a part that was left out.
const HIDDEN: &str = "***";

/// Parts of names of options whose values are never shown.
const SECRET: &[&str] = &[
    "pass", "pwd", "secret", "token", "key", "cred", "auth", "sas", "sign", "user", "login",
];

/// Address or name without its credentials: without the part before the last `@`
/// after `://` or with a colon, and without the part after a `?`.
pub fn without_credentials(text: &str) -> String {
    let text = match text.split_once('?') {
        Some((before, _)) => format!("{before}?{HIDDEN}"),
        None => text.to_owned(),
    };
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text.as_str()),
    };
    match rest.rsplit_once('@') {
        // `user@host:/path` contains no secret.
        Some((before, after)) if !scheme.is_empty() || before.contains(':') => {
            format!("{scheme}{HIDDEN}@{after}")
        }
        _ => text,
    }
}

/// The words of a command line, without possible secrets.
pub(super) fn harmless(words: &[String]) -> Vec<String> {
    let mut shown = Vec::with_capacity(words.len());
    let mut hides_next = false;
    for (nth, word) in words.iter().enumerate() {
        let hide = std::mem::take(&mut hides_next);
        shown.push(if nth == 0 {
            program(word)
        } else if word.starts_with('-') {
            let plain = !word.contains('=');
            hides_next = plain && (is_secret(word) || word == "-p");
            option(word)
        } else if hide {
            HIDDEN.to_owned()
        } else if nth == 1 && is_name(word) {
            // The subcommand, for programs that have several.
            word.clone()
        } else {
            list(word)
        });
    }
    shown
}

/// Name of the program. Some processes overwrite their words with a title.
fn program(word: &str) -> String {
    match word.split_once(' ') {
        Some((name, _)) => format!("{name} {HIDDEN}"),
        None => without_credentials(word),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word))
}

/// Reads `-x`, `-oallow_other`, `--name`, `--name=value`.
fn option(word: &str) -> String {
    let long = word.starts_with("--");
    match word.split_once('=') {
        Some((name, value)) if long => format!("{name}={}", value_of(name, value)),
        None if long || word.len() <= 2 => word.to_owned(),
        _ => match word.strip_prefix("-o") {
            Some(options) => format!("-o{}", list(options)),
            // The value may be attached to the letter.
            None if is_name(&word[1..]) && !word.starts_with("-p") => word.to_owned(),
            None => format!("{}{HIDDEN}", &word[..word.floor_char_boundary(2)]),
        },
    }
}

/// Options separated by commas, or one value.
fn list(word: &str) -> String {
    let piece = |piece: &str| match piece.split_once('=') {
        Some((name, value)) if is_name(name) => format!("{name}={}", value_of(name, value)),
        None if word.contains(',') && is_name(piece) => piece.to_owned(),
        _ => value_of("", piece),
    };
    word.split(',').map(piece).collect::<Vec<_>>().join(",")
}

fn value_of(name: &str, value: &str) -> String {
    let shown = without_credentials(value);
    let switch = matches!(
        value,
        "true" | "false" | "on" | "off" | "yes" | "no" | "auto"
    );
    let harmless = switch || is_quantity(value) || value.starts_with('/') || is_address(&shown);
    if is_secret(name) || !harmless {
        HIDDEN.to_owned()
    } else {
        shown
    }
}

/// Matches `100`, `1.5s`, `4G`, `0x10`, `100MiB`.
fn is_quantity(value: &str) -> bool {
    let digits = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    digits.len() < value.len()
        && digits.len() <= 3
        && digits.chars().all(|c| c.is_ascii_alphabetic() || c == '%')
}

/// Matches `redis://host:6379/1`.
fn is_address(value: &str) -> bool {
    let name = |scheme: &str| !scheme.is_empty() && scheme.chars().all(char::is_alphanumeric);
    value.split_once("://").is_some_and(|(s, _)| name(s))
}

/// Matches `allow_other`, `mount`.
fn is_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c);
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(plain)
}

/// Value of an option by one of its names (`_` for `-`), in any form: `--name=value`,
/// `--name value`, `-o name=value,…`.
pub(super) fn value<'w>(words: &'w [String], names: &[&str]) -> Option<&'w str> {
    let named = |name: &str| {
        let name = name.trim_start_matches('-').replace('-', "_");
        names.contains(&name.as_str())
    };
    for (nth, word) in words.iter().enumerate() {
        if word.starts_with("--") && named(word) {
            return words.get(nth + 1).map(String::as_str);
        }
        let pieces = word.strip_prefix("-o").unwrap_or(word).split(',');
        let pairs = pieces.filter_map(|piece| piece.split_once('='));
        if let Some((_, value)) = pairs.into_iter().find(|(name, _)| named(name)) {
            return Some(value);
        }
    }
    None
}

/// True if a switch has one of these names.
pub(super) fn has(words: &[String], names: &[&str]) -> bool {
    let plain = |piece: &str| piece.trim_start_matches('-').replace('-', "_");
    let mut pieces = words
        .iter()
        .flat_map(|word| word.strip_prefix("-o").unwrap_or(word).split(','));
    pieces.any(|piece| names.contains(&plain(piece).as_str()))
}

#[cfg(test)]
mod tests {
    use rbench_core::each;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn check(line: &str, expect: &str) {
        assert_eq!(harmless(&words(line)).join(" "), expect);
    }

    #[test]
    fn addresses_lose_their_credentials() {
        let check = |text: &str, expect: &str| assert_eq!(without_credentials(text), expect);
        each! { check:
            "redis://:pa@ss@10.0.0.1:6379/1" => "redis://***@10.0.0.1:6379/1";
            "mysql://u:p@(db:3306)/jfs?x=y" => "mysql://***@(db:3306)/jfs?***";
            "u:p@tcp(db)/jfs" => "***@tcp(db)/jfs";
            "me@host:/export" => "me@host:/export";
            "mfsmaster:9421" => "mfsmaster:9421";
            "https://a/b?sig=1" => "https://a/b?***";
            "JuiceFS:prod" => "JuiceFS:prod";
        }
    }

    #[test]
    fn command_lines_show_what_is_known_to_be_harmless() {
        each! { check:
            "/usr/bin/juicefs mount redis://:geheim@h:6379/1 /mnt/jfs --cache-size 102400 --attr-cache=1.5s"
                => "/usr/bin/juicefs mount redis://***@h:6379/1 /mnt/jfs --cache-size 102400 --attr-cache=1.5s";
            "s3fs bucket /mnt -o passwd_file=/etc/pw,use_cache=/tmp,url=https://k:s@s3/" => "s3fs bucket /mnt -o passwd_file=***,use_cache=/tmp,url=https://***@s3/";
            "c mount --password 1234 --token=abc -p 99" => "c mount --password *** --token=*** -p ***";
            "c -pgeheim -oallow_other,secret=5 Geheim" => "c -p*** -oallow_other,secret=*** ***";
            "c mount geheim" => "c mount ***";
            "c mount name=Geheim" => "c mount name=***";
            "c -o rw,max_read=128k -d -f" => "c -o rw,max_read=128k -d -f";
        }
    }

    #[test]
    fn a_title_in_place_of_a_command_line_is_cut_off() {
        let title = ["mfsmount (mounted on: /mnt, password: x)".to_owned()];
        assert_eq!(harmless(&title), ["mfsmount ***"]);
    }

    #[test]
    fn options_are_found_in_every_form() {
        let line = words("c --attr-timeout 0.5 -o entry_timeout=2,writeback_cache");
        assert_eq!(value(&line, &["attr_timeout"]), Some("0.5"));
        assert_eq!(value(&line, &["entry_timeout"]), Some("2"));
        assert_eq!(value(&line, &["other"]), None);
        assert!(has(&line, &["writeback_cache"]) && !has(&line, &["entry_timeout"]));
    }
}
