//! How ranks write small values for each other: little-endian 64-bit words
//! and length-prefixed text. Not a file format: both ends are the same build.

/// Appends values to a message.
#[derive(Debug, Clone, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Appends a number.
    pub fn number(&mut self, n: u64) -> &mut Self {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    /// Appends bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends text with its length.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Appends numbers with their count.
    pub fn numbers(&mut self, numbers: &[u64]) -> &mut Self {
        self.number(numbers.len() as u64);
        numbers.iter().for_each(|n| {
            self.number(*n);
        });
        self
    }

    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values from a message; every method gives `None` at its end or when
/// it is malformed.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start of `message`.
    pub fn new(message: &'a [u8]) -> Reader<'a> {
        Reader(message)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    /// Bytes with their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    /// Text with its length; what is not UTF-8 is replaced.
    pub fn text(&mut self) -> Option<String> {
        self.bytes()
            .map(|b| String::from_utf8_lossy(b).into_owned())
    }

    /// Numbers with their count.
    pub fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.0.len() / 8 {
            return None;
        }
        (0..count).map(|_| self.number()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(n: u64, text: String, numbers: Vec<u64>) {
            let mut w = Writer::default();
            w.number(n).text(&text).numbers(&numbers);
            let message = w.finish();
            let mut r = Reader::new(&message);
            prop_assert_eq!((r.number(), r.text(), r.numbers()), (Some(n), Some(text), Some(numbers)));
            prop_assert!(r.is_empty());
        }

        #[test]
        fn malformed_messages_are_refused(message: Vec<u8>) {
            let mut r = Reader::new(&message);
            let _ = (r.text(), r.numbers(), r.bytes());
        }
    }
}
