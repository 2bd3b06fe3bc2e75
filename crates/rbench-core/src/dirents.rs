//! The records of `getdents64`, by which the kernel lists a directory. The caller reads them.

use std::ffi::CStr;

use nix::errno::Errno;

/// Bytes before the name in a record: inode number (8), position (8), length of the
/// record (2), kind (1).
const NAME_START: usize = 19;

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// `DT_DIR`, `DT_REG` …; `DT_UNKNOWN` if the file system does not report it.
    pub kind: u8,
    /// Inode number and position.
    numbers: &'a [u8; 16],
    /// The name, with its NUL and padding.
    name: &'a [u8],
}

impl<'a> Record<'a> {
    /// True for `.` and `..`.
    #[inline]
    pub fn is_dots(&self) -> bool {
        matches!(self.name, [b'.', 0, ..] | [b'.', b'.', 0, ..])
    }

    /// The inode number, and the position after the record.
    pub fn numbers(&self) -> [u64; 2] {
        let (words, _) = self.numbers.as_chunks();
        [words[0], words[1]].map(u64::from_ne_bytes)
    }

    /// The name.
    ///
    /// # Errors
    /// `EIO` if it has no end.
    pub fn name(&self) -> Result<&'a CStr, Errno> {
        CStr::from_bytes_until_nul(self.name).map_err(|_| Errno::EIO)
    }
}

/// Iterator over the records of these bytes; it holds the rest of them. A record that does not fit
/// is `EIO`, and the last one.
#[derive(Debug)]
pub struct Records<'a>(pub &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Errno>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0;
        if rest.is_empty() {
            return None;
        }
        self.0 = &[];
        let Some((numbers, &[low, high, kind, ..])) = rest.split_first_chunk() else {
            return Some(Err(Errno::EIO));
        };
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let Some(name) = rest.get(NAME_START..length) else {
            return Some(Err(Errno::EIO));
        };
        self.0 = &rest[length..];
        Some(Ok(Record {
            kind,
            numbers,
            name,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc;

    fn record(name: &[u8], length: u16) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes.extend(length.to_ne_bytes());
        bytes.push(libc::DT_REG);
        bytes.extend(name);
        bytes.resize(bytes.len().max(usize::from(length)), 0);
        bytes
    }

    /// The names of all records, `!` for an error.
    fn names(bytes: &[u8]) -> Vec<String> {
        Records(bytes)
            .map(|record| match record.and_then(|r| r.name()) {
                Ok(name) => name.to_string_lossy().into_owned(),
                Err(errno) => format!("!{errno:?}"),
            })
            .collect()
    }

    #[test]
    fn records_are_walked_to_the_end() {
        let bytes = [record(b".\0", 24), record(b"file.1\0", 32)].concat();
        assert_eq!(names(&bytes), [".", "file.1"]);
        assert_eq!(names(&[]), [""; 0]);
    }

    #[test]
    fn records_that_do_not_fit_are_an_error_and_end_the_walk() {
        assert_eq!(names(&[0; 10]), ["!EIO"]);
        assert_eq!(names(&record(b"name\0", 0)), ["!EIO"]);
        assert_eq!(names(&record(b"name\0", 18)), ["!EIO"]);
        assert_eq!(names(&record(b"name\0", 64)[..40]), ["!EIO"]);
        assert_eq!(names(&record(b"endless!!", 28)), ["!EIO"]);
        assert_eq!(names(&[0; 19]), ["!EIO"]);
        assert_eq!(names(&[0xff; 40]), ["!EIO"]);
    }

    #[test]
    fn only_dot_and_dot_dot_are_dots() {
        let check = |name: &[u8], expect| {
            let bytes = record(name, 32);
            let seen: Vec<bool> = Records(&bytes)
                .map(|r| r.map(|r| r.is_dots()) == Ok(true))
                .collect();
            assert_eq!(seen, [expect], "{name:?}");
        };
        check(b".\0", true);
        check(b"..\0", true);
        check(b"...\0", false);
        check(b".a\0", false);
        check(b"a\0", false);
        check(b"\0", false);
    }
}
