//! Values of fio's options: sizes, times, lists, patterns. A message is a
//! clause that follows the name of the option.

use std::cell::RefCell;

use crate::jobs::{Checksum, Each, RangeSync, VerifyPattern};
use crate::process::{MemoryPolicy, Nodes};
use rbench_core::Nanos;
use rbench_core::steady::Criterion;

pub use arithmetic::evaluate;
use arithmetic::is_expression;
pub use pattern::Contents;
pub use priorities::PrioritySplit;

mod arithmetic;
mod distribution;
pub mod pattern;
mod priorities;

/// Most numbers of a range.
const LIST_MAX: u32 = 1 << 16;

/// A size that may be a part of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many bytes.
    Bytes(u64),
    /// This many per cent.
    Percent(u32),
}

/// One entry of `bssplit`: bytes, and its percentage if one is given.
pub type Split = (u64, Option<u32>);

/// `verify`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// `verify=0`
    Off,
    /// By this.
    With(Checksum),
}

/// The meaning of `k` and `kib`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base {
    /// `kb_base=1024`: k is 1024 and kib is 1000.
    #[default]
    Binary,
    /// `kb_base=1000`: k is 1000 and kib is 1024.
    Decimal,
    /// Like sizes of the native commands: k and kib are 1024.
    Native,
}

impl Base {
    /// `kb_base`
    ///
    /// # Errors
    /// A clause on what is wrong.
    pub fn read(text: &str) -> Result<Base, String> {
        one_of(text, &[("1024", Base::Binary), ("1000", Base::Decimal)])
    }

    /// The factor of one step of a suffix.
    fn step(self, with_i: bool) -> u64 {
        match (self, with_i) {
            (Base::Binary, true) | (Base::Decimal, false) => 1000,
            (Base::Binary | Base::Native, false) | (Base::Decimal | Base::Native, true) => 1024,
        }
    }
}

/// A value as it was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given<'a> {
    /// The text.
    pub text: &'a str,
    /// The meaning of its suffixes.
    pub base: Base,
    /// Contents of the files that it may name.
    pub files: Option<&'a Contents>,
    /// Takes notes on unread parts of a number; without it such a number is refused.
    pub notes: Option<&'a RefCell<Vec<String>>>,
}

/// The meaning of a word.
pub fn one_of<T: Clone>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    words
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, meaning)| meaning.clone())
        .ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("'{text}' is not one of {}", words.join(", "))
        })
}

/// Splits `4.5ms` into `4.5` and `ms`, `0x10k` into `0x10` and `k`.
fn split_unit(text: &str) -> (&str, &str) {
    let hex = text.starts_with("0x") || text.starts_with("0X");
    let (from, digit): (usize, fn(char) -> bool) = if hex {
        (2, |c| c.is_ascii_hexdigit())
    } else {
        (0, |c| c.is_ascii_digit() || c == '.')
    };
    let end = text[from..]
        .find(|c| !digit(c))
        .map_or(text.len(), |at| from + at);
    text.split_at(end)
}

/// Both ends of a range, whose sign stands outside of all parentheses.
fn split_range(text: &str) -> Option<(&str, &str)> {
    let mut nested = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => nested += 1,
            ')' => nested = nested.saturating_sub(1),
            '-' | ':' if nested == 0 => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Digits, decimal or after `0x`.
fn whole(digits: &str) -> Option<u64> {
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
        None => None,
    }
}

impl<'a> Given<'a> {
    /// A text without files or notes, whose suffixes are fio's.
    pub fn alone(text: &'a str) -> Given<'a> {
        Given {
            text,
            base: Base::Binary,
            files: None,
            notes: None,
        }
    }

    /// Another text under the same rules.
    fn part<'b>(self, text: &'b str) -> Given<'b>
    where
        'a: 'b,
    {
        Given { text, ..self }
    }

    /// `0` or `1`.
    pub fn flag(self) -> Result<bool, String> {
        one_of(self.text, &[("0", false), ("1", true)])
    }

    /// Notes the reading of a number that fio reads in part. Returns whether such a number is allowed.
    fn read_as(self, value: u64, fio: &str) -> bool {
        let Some(notes) = self.notes else {
            return false;
        };
        notes
            .borrow_mut()
            .push(format!("'{}' is read as {value}{fio}", self.text.trim()));
        true
    }

    /// A whole number with an optional suffix, or an expression of such numbers.
    pub fn number(self) -> Result<u64, String> {
        if self.base == Base::Native || !is_expression(self.text) {
            return self.plain_number();
        }
        let mut atom = |text: &str| {
            let number = self.part(text).plain_number();
            number.ok().map(|number| number as f64)
        };
        let value = evaluate(self.text, true, &mut atom).map(|value| value as u64);
        value.ok_or_else(|| format!("'{}' is not a number or an expression like 8*4k", self.text))
    }

    /// A whole number with an optional suffix.
    fn plain_number(self) -> Result<u64, String> {
        const FORM: &str = "a whole number with k, m, g, t or p";
        let text = self.text.trim();
        let wrong = || {
            let example = match self.base {
                Base::Binary => "4k = 4096, 4kib = 4000",
                Base::Decimal => "4k = 4000, 4kib = 4096",
                Base::Native => "binary: 4k = 4096",
            };
            format!("'{}' is not {FORM} ({example})", self.text)
        };
        let (digits, unit) = split_unit(text);
        let unit = unit.to_ascii_lowercase();
        let power = match unit.bytes().next() {
            None | Some(b'b') => 0,
            Some(letter) => match b"kmgtp".iter().position(|known| *known == letter) {
                Some(index) => index as u32 + 1,
                // A closing mark cannot be meant as a unit.
                None if b")]};\"'".contains(&letter) => 0,
                None => return Err(wrong()),
            },
        };
        // Only with its b does an i make a difference: fio reads 4ki as 4k.
        let behind = unit.get(usize::from(power > 0)..).unwrap_or_default();
        let with_i = behind.starts_with("ib");
        let rest = match behind.strip_prefix("ib") {
            Some(rest) => rest,
            None => behind.strip_prefix(['b', 'i']).unwrap_or(behind),
        };
        let scale = self.base.step(with_i).pow(power);
        let value = match (whole(digits), digits.parse::<f64>()) {
            (Some(number), _) => number.checked_mul(scale),
            (None, Ok(number)) if digits.contains('.') && digits != "." => {
                // Beyond 2^53 a fraction says nothing.
                let value = (number * scale as f64).floor();
                (value < (1_u64 << 53) as f64).then_some(value as u64)
            }
            _ => None,
        };
        let value = value.ok_or_else(|| match digits.is_empty() {
            true => wrong(),
            false => format!("'{}' is too large or not a number", self.text),
        })?;
        let read = match digits.split_once('.') {
            Some((whole, _)) => self.read_as(value, &format!("; fio reads {whole}")),
            None if !rest.is_empty() => {
                self.read_as(value, &format!(": '{rest}' is ignored, as in fio"))
            }
            None => true,
        };
        if read { Ok(value) } else { Err(wrong()) }
    }

    /// A number that fits, at least `least`.
    pub fn count<T: TryFrom<u64>>(self, least: u64) -> Result<T, String> {
        let number = self.number()?;
        if number < least {
            return Err(format!("{number} is less than {least}"));
        }
        T::try_from(number).map_err(|_| format!("'{}' is too large", self.text))
    }

    /// A whole number from `least` to `most`, which may be negative.
    pub fn integer<T: TryFrom<i64>>(self, least: i64, most: i64) -> Result<T, String> {
        let text = self.text.trim();
        let number: i64 = match is_expression(text) {
            true => self.count(0)?,
            false => text
                .parse()
                .map_err(|_| format!("'{text}' is not a whole number"))?,
        };
        if !(least..=most).contains(&number) {
            return Err(format!("{number} is not between {least} and {most}"));
        }
        T::try_from(number).map_err(|_| format!("'{}' is too large", self.text))
    }

    /// Numbers and ranges, `0-3,7`; at least one.
    pub fn numbers(self) -> Result<Vec<u32>, String> {
        let wrong = || format!("'{}' is not a list like 0-3,7", self.text);
        let mut all = Vec::new();
        for part in self.text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
            let (first, last) = (number(first)?, number(last)?);
            if last < first || last - first >= LIST_MAX {
                return Err(wrong());
            }
            all.extend(first..=last);
        }
        Ok(all)
    }

    /// The positions of the bits that are set, for processors.
    pub fn bits(self) -> Result<Vec<u32>, String> {
        let mask = self.number()?;
        match mask {
            0 => Err("it has no bit set for a processor".to_owned()),
            _ => Ok((0..64).filter(|bit| mask >> bit & 1 == 1).collect()),
        }
    }

    /// Memory nodes: a list, or `all`.
    pub fn nodes(self) -> Result<Nodes, String> {
        match self.text.trim() {
            "all" => Ok(Nodes::All),
            _ => self.numbers().map(Nodes::Some),
        }
    }

    /// `default`, `local`, `prefer:N`, `bind:LIST` or `interleave:LIST`.
    pub fn memory_policy(self) -> Result<MemoryPolicy, String> {
        let (mode, nodes) = match self.text.split_once(':') {
            Some((mode, nodes)) => (mode.trim(), Some(self.part(nodes))),
            None => (self.text.trim(), None),
        };
        let missing = || format!("{mode} needs memory nodes, as in {mode}:0");
        match (mode, nodes) {
            ("default", None) => Ok(MemoryPolicy::Default),
            ("local", None) => Ok(MemoryPolicy::Local),
            ("default" | "local", Some(_)) => Err(format!("{mode} takes no memory nodes")),
            ("prefer", Some(node)) => node.count(0).map(MemoryPolicy::Prefer),
            ("bind", Some(nodes)) => nodes.nodes().map(MemoryPolicy::Bind),
            ("interleave", Some(nodes)) => nodes.nodes().map(MemoryPolicy::Interleave),
            ("prefer" | "bind" | "interleave", None) => Err(missing()),
            _ => Err(format!(
                "'{mode}' is not one of default, prefer, bind, interleave, local"
            )),
        }
    }

    /// A number from `least` to `most`.
    pub fn within<T: TryFrom<u64>>(self, least: u64, most: u64) -> Result<T, String> {
        match self.count::<u64>(least)? {
            more if more > most => Err(format!("{more} is more than {most}")),
            number => self.part(&number.to_string()).count(least),
        }
    }

    /// 0 to 100.
    pub fn percent(self) -> Result<u32, String> {
        match self.number()? {
            percent @ 0..=100 => Ok(percent as u32),
            more => Err(format!("{more} is more than 100 percent")),
        }
    }

    /// Bytes, or percent of something.
    pub fn extent(self) -> Result<Extent, String> {
        // Like in fio, text after the first % is not read.
        match self.text.split_once('%') {
            Some((percent, rest))
                if !percent.contains('(') && rest.trim_matches('%').is_empty() =>
            {
                self.part(percent).percent().map(Extent::Percent)
            }
            Some((_, rest)) if !self.text.contains('(') => {
                Err(format!("unexpected '{rest}' after %"))
            }
            _ => self.number().map(Extent::Bytes),
        }
    }

    /// A time; a bare number is in `unit`, and so is an expression of bare numbers.
    pub fn time(self, unit: Nanos) -> Result<Nanos, String> {
        if self.base == Base::Native || !is_expression(self.text) {
            return self.plain_time(unit);
        }
        let mut has_unit = false;
        let mut atom = |text: &str| {
            let bare = text.parse::<f64>().ok();
            has_unit |= bare.is_none();
            bare.or_else(|| self.part(text).plain_time(unit).ok().map(|ns| ns.0 as f64))
        };
        let value = evaluate(self.text, false, &mut atom);
        let scale = if has_unit { 1.0 } else { unit.0 as f64 };
        let ns = value.map(|value| (value * scale).round());
        ns.filter(|ns| *ns < u64::MAX as f64)
            .map(|ns| Nanos(ns as u64))
            .ok_or_else(|| format!("'{}' is not a time or an expression like 60*2", self.text))
    }

    /// A time that is not an expression.
    fn plain_time(self, unit: Nanos) -> Result<Nanos, String> {
        const FORM: &str = "a time (a number with ns, us, ms, s, m, h or d)";
        let wrong = || format!("'{}' is not {FORM}", self.text);
        let (number, suffix) = split_unit(self.text.trim());
        let scale: u64 = match suffix.to_ascii_lowercase().as_str() {
            "" => unit.0,
            "ns" | "nsec" => 1,
            "us" | "usec" => 1_000,
            "ms" | "msec" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return Err(wrong()),
        };
        let ns = match whole(number) {
            Some(number) => number.checked_mul(scale),
            None => {
                let number: f64 = number.parse().map_err(|_| wrong())?;
                let ns = (number * scale as f64).round();
                (ns < u64::MAX as f64).then_some(ns as u64)
            }
        };
        ns.map(Nanos)
            .ok_or_else(|| format!("'{}' is too large", self.text))
    }

    /// `all`, `reads,writes`, `reads,writes,trims`; each may be left out. The last value
    /// holds for what comes after it, unless a comma follows.
    pub fn each<T: Clone>(
        self,
        read: impl Fn(Given<'_>) -> Result<T, String>,
    ) -> Result<Each<Option<T>>, String> {
        let one = |text: &str| match text {
            "" => Ok(None),
            text => read(self.part(text)).map(Some),
        };
        let parts: Vec<&str> = self.text.split(',').collect();
        let each = match parts.as_slice() {
            [all] => return Ok(Each::same(Some(read(self.part(all))?))),
            [reads, writes] => {
                let writes = one(writes)?;
                Each {
                    read: one(reads)?,
                    write: writes.clone(),
                    trim: writes,
                }
            }
            [reads, writes, trims] => Each {
                read: one(reads)?,
                write: one(writes)?,
                trim: one(trims)?,
            },
            _ => {
                return Err(format!(
                    "'{}' has more than three values, for reads, writes and trims",
                    self.text
                ));
            }
        };
        if each.all().into_iter().all(Option::is_none) {
            return Err(format!(
                "'{}' has no value for reads, writes or trims",
                self.text
            ));
        }
        Ok(each)
    }

    /// `least-most`
    pub fn range(self) -> Result<(u64, u64), String> {
        let (least, most) = split_range(self.text)
            .ok_or_else(|| format!("'{}' is not a range (4k-64k)", self.text))?;
        let least: u64 = self.part(least).count(1)?;
        let most: u64 = self.part(most).count(1)?;
        Ok((least.min(most), most.max(least)))
    }

    /// `size` or `least-most`
    pub fn size_or_range(self) -> Result<(u64, u64), String> {
        if split_range(self.text).is_some() {
            return self.range();
        }
        let size = self.count(1)?;
        Ok((size, size))
    }

    /// `4k/60:8k/40`
    pub fn splits(self) -> Result<Vec<Split>, String> {
        let entry = |entry: &str| {
            let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
            let size = self.part(size).count(1)?;
            let percent = match percent {
                "" => None,
                percent => Some(self.part(percent).percent()?),
            };
            Ok((size, percent))
        };
        self.text.split(':').map(entry).collect()
    }

    /// Percentiles, separated by colons.
    pub fn percentiles(self) -> Result<Vec<f64>, String> {
        /// The number that fio's reports have room for.
        const MOST: usize = 20;
        let mut list: Vec<f64> = self
            .text
            .split(':')
            .map(|text| match text.trim().parse::<f64>() {
                Ok(value) if value > 0.0 && value <= 100.0 => Ok(value),
                _ => Err(format!("'{text}' is not a percentile above 0, up to 100")),
            })
            .collect::<Result<_, String>>()?;
        if list.len() > MOST {
            let note = format!(
                "of {} percentiles only the first {MOST} are reported, as in fio",
                list.len()
            );
            match self.notes {
                Some(notes) => notes.borrow_mut().push(note),
                None => return Err(format!("at most {MOST} percentiles are reported")),
            }
            list.truncate(MOST);
        }
        Ok(list)
    }

    /// Names, separated by colons that no backslash precedes.
    pub fn names(self) -> Vec<String> {
        let mut names = vec![String::new()];
        let mut chars = self.text.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek(), names.last_mut()) {
                ('\\', Some(':'), Some(name)) => {
                    name.push(':');
                    chars.next();
                }
                (':', ..) => names.push(String::new()),
                (c, _, Some(name)) => name.push(c),
                (_, _, None) => {}
            }
        }
        names
    }

    /// `wait_before,write:8`; without a number after every write.
    pub fn range_sync(self) -> Result<RangeSync, String> {
        let (words, every) = match self.text.split_once(':') {
            Some((words, number)) => (words, self.part(number).number()?),
            None => (self.text, 1),
        };
        let mut all = RangeSync {
            every,
            wait_before: false,
            write: false,
            wait_after: false,
        };
        for word in words.split(',') {
            let names = [("wait_before", 0), ("write", 1), ("wait_after", 2)];
            match one_of(word.trim(), &names)? {
                0 => all.wait_before = true,
                1 => all.write = true,
                _ => all.wait_after = true,
            }
        }
        Ok(all)
    }

    /// `iops:10%`, `bw_slope:5`
    pub fn criterion(self) -> Result<Criterion, String> {
        let (word, limit) = self
            .text
            .split_once(':')
            .ok_or_else(|| format!("'{}' has no limit: iops_slope:0.3%", self.text))?;
        let (bandwidth, slope) = one_of(
            word,
            &[
                ("iops", (false, false)),
                ("iops_slope", (false, true)),
                ("bw", (true, false)),
                ("bw_slope", (true, true)),
            ],
        )?;
        let (number, percent) = match limit.strip_suffix('%') {
            Some(number) => (number, true),
            None => (limit, false),
        };
        let limit = match number.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit >= 0.0 => limit,
            _ if percent => return Err(format!("'{limit}' is not a percentage")),
            _ => self.part(number).number()? as f64,
        };
        Ok(Criterion {
            bandwidth,
            slope,
            limit,
            percent,
        })
    }

    /// `EAGAIN,ENOSPC:122`: lists of errors for reads, writes and verification.
    pub fn error_lists(self) -> Result<[Vec<i32>; 3], String> {
        /// The number that fio takes.
        const MOST: usize = 16;
        let mut lists: [Vec<i32>; 3] = Default::default();
        let texts: Vec<&str> = self.text.split(',').collect();
        if texts.len() > lists.len() {
            return Err(format!(
                "'{}' has more than three lists, for reads, writes and verification",
                self.text
            ));
        }
        for (list, text) in lists.iter_mut().zip(texts) {
            let words = text.split(':').filter(|word| !word.is_empty());
            *list = words.map(errno).collect::<Result<_, String>>()?;
            if list.len() > MOST {
                return Err(format!("'{text}' has more than {MOST} errors"));
            }
        }
        Ok(lists)
    }

    /// `verify`
    pub fn check(self) -> Result<Check, String> {
        let mut words = vec![("0", Check::Off)];
        words.extend(Checksum::ALL.map(|(name, checksum)| (name, Check::With(checksum))));
        one_of(self.text, &words)
    }

    /// `verify_pattern`: a pattern of data, in which the offset may stand (`%o`).
    pub fn verify_pattern(self) -> Result<VerifyPattern, String> {
        pattern::read(self.text, self.files)
    }

    /// Processors: `0,2-4`.
    pub fn cpus(self) -> Result<Vec<usize>, String> {
        let all = self.numbers()?;
        Ok(all.into_iter().map(|cpu| cpu as usize).collect())
    }

    /// A pattern of data that is the same everywhere.
    pub fn pattern(self) -> Result<Vec<u8>, String> {
        let VerifyPattern { bytes, offsets } = self.verify_pattern()?;
        if !offsets.is_empty() {
            return Err("%o (the offset) is not allowed here".to_owned());
        }
        Ok(bytes)
    }
}

/// Names of errors that fio knows, from 1 on.
const ERRORS: &str = "EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM \
    EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY \
    ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE";

/// The value of an error by its name or number.
fn errno(word: &str) -> Result<i32, String> {
    let mut named = (1..).zip(ERRORS.split_whitespace());
    let found = named.find(|(_, name)| *name == word).map(|(code, _)| code);
    let number = || word.parse().ok().filter(|code| *code > 0);
    found.or_else(number).ok_or_else(|| {
        format!("'{word}' is not an error: a number, or a name from EPERM to ERANGE")
    })
}

#[cfg(test)]
mod tests;
