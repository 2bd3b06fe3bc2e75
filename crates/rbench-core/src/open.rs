//! With which flags a file is opened.

/// The flags of an open; a file that is made has mode 0664.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// `O_RDONLY`, or with `writes` `O_RDWR`.
    pub reads: bool,
    /// `O_WRONLY`, or with `reads` `O_RDWR`.
    pub writes: bool,
    /// `O_CREAT`
    pub creates: bool,
    /// `O_EXCL`
    pub exclusive: bool,
    /// `O_TRUNC`
    pub truncates: bool,
    /// `O_APPEND`: every write goes to the end of the file.
    pub appends: bool,
    /// `O_DSYNC`: every write is on stable storage when it returns.
    pub data_synced: bool,
}
