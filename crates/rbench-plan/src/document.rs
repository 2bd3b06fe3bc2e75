//! Files written as TOML: profiles, suites, expectations. Anything unknown is an error with its
//! line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its position.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// The error in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct DocumentError {
    /// The line, from 1.
    pub line: usize,
    /// A clause that names the error.
    pub message: String,
}

type Found<T> = Result<T, DocumentError>;

/// The text of a file, to find the lines of errors.
pub(crate) struct Text<'t>(pub(crate) &'t str);

impl<'t> Text<'t> {
    /// The line of a position, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        let before = self.0.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    pub(crate) fn error(&self, at: usize, message: impl Into<String>) -> DocumentError {
        DocumentError {
            line: self.line(at),
            message: message.into(),
        }
    }

    /// The whole file, which has only these keys.
    pub(crate) fn parse(&self, keys: &[&str]) -> Found<DeTable<'t>> {
        let table = DeTable::parse(self.0).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, error.message().lines().collect::<Vec<_>>().join(", "))
        })?;
        self.known(table.get_ref(), keys)?;
        Ok(table.into_inner())
    }

    /// Refuses unknown keys.
    pub(crate) fn known(&self, table: &DeTable<'_>, keys: &[&str]) -> Found<()> {
        let mut all = table.keys();
        match all.find(|key| !keys.contains(&key.get_ref().as_ref())) {
            Some(key) => {
                let (name, keys) = (key.get_ref(), keys.join(", "));
                let message = format!("unknown key '{name}' (expected one of {keys})");
                Err(self.error(key.span().start, message))
            }
            None => Ok(()),
        }
    }

    /// The value of a key that `owner`, at this position, must have.
    pub(crate) fn need<'v, 'd>(
        &self,
        table: &'v DeTable<'d>,
        key: &str,
        (at, owner): (usize, &str),
    ) -> Found<&'v Value<'d>> {
        let value = table.get(key);
        value.ok_or_else(|| self.error(at, format!("{owner} lacks '{key}'")))
    }

    /// A text that is not empty.
    pub(crate) fn words<'v>(&self, key: &str, value: &'v Value<'_>) -> Found<&'v str> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(self.not(key, value, "must be a non-empty text in quotes")),
        }
    }

    /// A text that is parsed by `read`.
    pub(crate) fn of<T>(
        &self,
        (key, value): (&str, &Value<'_>),
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Found<T> {
        let words = self.words(key, value)?;
        read(words).map_err(|message| self.error(value.span().start, format!("'{key}': {message}")))
    }

    /// The text of a key, parsed by `read`; `None` without the key.
    pub(crate) fn of_key<T>(
        &self,
        table: &DeTable<'_>,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Found<Option<T>> {
        let value = table.get(key);
        value.map(|value| self.of((key, value), read)).transpose()
    }

    /// The text of a key as it is; `None` without the key.
    pub(crate) fn text_of_key(&self, table: &DeTable<'_>, key: &str) -> Found<Option<String>> {
        self.of_key(table, key, |text| Ok(text.to_owned()))
    }

    /// The number of a key, as in [`Text::number`]; `None` without the key.
    pub(crate) fn number_of_key(
        &self,
        table: &DeTable<'_>,
        key: &str,
        most: Option<u64>,
    ) -> Found<Option<u64>> {
        let value = table.get(key);
        value.map(|value| self.number(key, value, most)).transpose()
    }

    /// A number of at least 1, up to `most` if there is a limit to name.
    pub(crate) fn number(&self, key: &str, value: &Value<'_>, most: Option<u64>) -> Found<u64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let fits = |number: &u64| (1..=most.unwrap_or(u32::MAX.into())).contains(number);
        number.filter(fits).ok_or_else(|| match most {
            Some(most) => self.not(key, value, &format!("must be a number from 1 to {most}")),
            None => self.not(key, value, "must be a number of at least 1"),
        })
    }

    pub(crate) fn table<'v, 'd>(&self, key: &str, value: &'v Value<'d>) -> Found<&'v DeTable<'d>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.not(key, value, "must be a table")),
        }
    }

    pub(crate) fn list<'v, 'd>(&self, key: &str, value: &'v Value<'d>) -> Found<&'v [Value<'d>]> {
        match value.get_ref() {
            DeValue::Array(list) => Ok(list),
            _ => Err(self.not(key, value, "must be a list")),
        }
    }

    /// An element of a list of tables, which has only these keys.
    pub(crate) fn element<'v, 'd>(
        &self,
        key: &str,
        value: &'v Value<'d>,
        keys: &[&str],
    ) -> Found<&'v DeTable<'d>> {
        let DeValue::Table(table) = value.get_ref() else {
            let wrong = format!("is not a list of tables: start each {key} with [[{key}]]");
            return Err(self.not(key, value, &wrong));
        };
        self.known(table, keys).map(|()| table)
    }

    /// The error that the value of a key is not what it must be.
    pub(crate) fn not(&self, key: &str, value: &Value<'_>, wrong: &str) -> DocumentError {
        self.error(value.span().start, format!("'{key}' {wrong}"))
    }
}
