//! Promises of a file system that can be broken on purpose, and their names.
//! `broken::effects` and `broken::store` implement the broken behaviour.

use std::fmt;
use std::str::FromStr;

pub(crate) mod effects;
mod store;

macro_rules! promises {
    ($($variant:ident => $name:literal, $says:literal;)*) => {
        /// A promise that the file system breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum BrokenPromise { $(#[doc = $says] $variant,)* }

        impl BrokenPromise {
            /// Every broken promise, in the order of the documentation.
            pub const ALL: &'static [BrokenPromise] = &[$(BrokenPromise::$variant,)*];

            /// Its name: `rename-loses-target`.
            pub fn name(self) -> &'static str {
                match self { $(BrokenPromise::$variant => $name,)* }
            }

            /// A clause that describes the defect.
            pub fn says(self) -> &'static str {
                match self { $(BrokenPromise::$variant => $says,)* }
            }
        }
    };
}

promises! {
    NameCut => "name-cut", "names are cut to 100 bytes";
    NameLong => "name-too-long-taken", "names of more than 255 bytes are cut to 255";
    NameRefused => "name-255-refused", "names of more than 200 bytes are refused";
    CaseIgnored => "case-ignored", "names are found regardless of case";
    BytesLost => "bytes-lost", "listings show bytes above 127 as question marks";
    UnlinkKeeps => "unlink-keeps-name", "the first unlink of a file of one byte does nothing";
    RmdirKeeps => "rmdir-keeps-name", "the first rmdir of a directory does nothing";
    RmdirFull => "rmdir-takes-full", "rmdir of a non-empty directory reports success";
    MkdirMode => "mkdir-ignores-mode", "directories are created with mode 0755";
    CreateMode => "create-ignores-mode", "files are created with mode 0644";
    FifoMode => "fifo-ignores-mode", "named pipes are created with mode 0600";
    FifoFile => "fifo-is-file", "mkfifo creates a regular file";
    SymlinkCut => "symlink-cut", "targets of symbolic links are cut to 255 bytes";
    SymlinkSize => "symlink-size-zero", "the size of symbolic links is 0";
    SymlinkRelative => "symlink-relative", "absolute targets of symbolic links lose the leading slash";

    RenameLosesTarget => "rename-loses-target", "rename over a file removes both names";
    RenameKeepsSource => "rename-keeps-source", "a file renamed to a free name keeps its old name too";
    ExchangeMoves => "exchange-moves", "RENAME_EXCHANGE renames one way only";
    RenameTouches => "rename-touches", "rename changes the file's modification time";
    RenameFullError => "rename-full-error", "rename over a non-empty directory fails with EIO";
    RenameEmpties => "rename-empties", "a renamed directory loses its files";
    RenameDropsAttributes => "rename-drops-attributes", "a renamed file loses its extended attributes";

    LinkCount => "link-count-stays", "the link count of a file is at most 1";
    LinkCopies => "link-copies", "link makes a copy of the file";
    LinkTouches => "link-touches", "link changes the file's modification time";
    LinkStatus => "link-ctime-stays", "link keeps the change time";
    UnlinkStatus => "unlink-ctime-stays", "unlink of one of several names keeps the change time";
    UnlinkedCount => "unlinked-count-one", "an unlinked open file has a link count of 1";
    UnlinkedEmpty => "unlinked-empty", "an open file loses its content with its last name";
    UnlinkedGone => "unlinked-gone", "fstat of an unlinked open file fails with ESTALE";

    ChmodBareWrite => "chmod-drops-bare-write", "chmod removes write permission from those without read permission";
    ChmodSticky => "chmod-drops-sticky", "chmod does not set the sticky bit";
    ChmodSetId => "chmod-drops-set-id", "chmod does not set the set-user-ID and set-group-ID bits";
    ChmodTouches => "chmod-touches", "chmod changes the modification time";
    ChmodStatus => "chmod-ctime-stays", "chmod keeps the change time";
    ChmodLater => "chmod-open-lost", "chmod of an open file is lost";
    ChownShort => "chown-16-bits", "owners and groups are cut to 16 bits";
    ChownSetId => "chown-keeps-set-id", "chown keeps the set-user-ID and set-group-ID bits";
    ChownStatus => "chown-ctime-stays", "chown keeps the change time";
    WriteSetId => "write-keeps-set-id", "a write keeps the set-user-ID and set-group-ID bits";
    OwnerRoot => "owner-is-root", "new files and directories belong to root";
    SetGroupIgnored => "set-group-ignored", "new entries in a directory with the set-group-ID bit have the caller's group";
    SetGroupBit => "set-group-bit-lost", "a new directory in one with the set-group-ID bit lacks the bit";
    DeviceLost => "device-number-lost", "device files have the number 0";

    WriteModified => "write-mtime-stays", "a write keeps the modification time";
    WriteStatus => "write-ctime-stays", "a write keeps the change time";
    TruncateModified => "truncate-mtime-stays", "truncate keeps the modification time";
    TruncateStatus => "truncate-ctime-stays", "truncate keeps the change time";
    OpenModified => "open-truncate-mtime-stays", "open with O_TRUNC keeps the modification time";
    FallocateStatus => "fallocate-ctime-stays", "fallocate keeps the change time";
    CreateModified => "create-mtime-stays", "creating a file keeps the directory's modification time";
    CreateStatus => "create-ctime-stays", "creating a file keeps the directory's change time";
    MkdirModified => "mkdir-mtime-stays", "mkdir keeps the parent directory's modification time";
    SymlinkModified => "symlink-mtime-stays", "symlink keeps the directory's modification time";
    MknodModified => "mknod-mtime-stays", "mknod keeps the directory's modification time";
    LinkModified => "link-mtime-stays", "link keeps the directory's modification time";
    UnlinkModified => "unlink-mtime-stays", "unlink keeps the directory's modification time";
    RmdirModified => "rmdir-mtime-stays", "rmdir keeps the parent directory's modification time";
    RenameFromModified => "rename-from-mtime-stays", "rename keeps the source directory's modification time";
    RenameIntoModified => "rename-into-mtime-stays", "rename keeps the target directory's modification time";
    ReadTouches => "read-touches", "a read changes the modification time";
    CloseTouches => "close-touches", "close of a written file changes the modification time";
    TimesStatus => "times-ctime-stays", "utimensat keeps the change time";
    TimesOmit => "times-omit-sets", "UTIME_OMIT sets the access time to now";
    TimesNow => "times-now-is-epoch", "UTIME_NOW sets times to the start of 1970";
    TimesShort => "times-32-bits", "times after 2038 wrap around to 1970";
    TimesPast => "times-before-1970", "times before 1970 become the start of 1970";
    TimesRound => "times-round-up", "times are rounded up to full seconds";
    TimesSymlink => "times-symlink-ignored", "the times of symbolic links are not set";

    SizeLags => "size-lags", "a write beyond the end does not change the size";
    SizeShort => "size-32-bits", "sizes are cut to 32 bits";
    OffsetShort => "offset-32-bits", "offsets are cut to 32 bits";
    TruncateKeeps => "truncate-keeps-data", "what truncate cuts off comes back when the file grows";
    TruncateDirty => "truncate-grows-dirty", "truncate fills what it adds with 0xff";
    TruncateOpen => "truncate-open-ignored", "ftruncate does nothing";
    HoleDirty => "hole-dirty", "a write beyond the end fills the gap with 0xff";
    SeekData => "seek-data-none", "SEEK_DATA finds no data";
    SeekHole => "seek-hole-everywhere", "SEEK_HOLE finds a hole everywhere";

    PunchIgnored => "punch-ignored", "punching a hole does nothing";
    PunchCuts => "punch-cuts", "punching a hole truncates the file there";
    PunchRounds => "punch-rounds", "a hole is rounded to whole blocks of 4 KiB";
    ReserveSize => "reserve-leaves-size", "fallocate does not extend a file";
    ReserveClears => "reserve-clears", "fallocate clears what it reserves";
    KeepSizeExtends => "keep-size-extends", "fallocate with FALLOC_FL_KEEP_SIZE extends a file";

    WriteFlips => "write-flips", "byte 100,000 of a file is changed when written";
    WriteFlipsRarely => "write-flips-rarely", "in one of some thousand writes, the same every time, one byte is changed";
    WriteLate => "write-late", "a write starts 300 us after it arrives, so others may read the old data meanwhile";
    WriteShort => "write-short", "writes of more than 64 KiB write only half";
    OverwriteLost => "overwrite-lost", "a write of less than 8 bytes inside a file is lost";
    AppendOverwrites => "append-overwrites", "O_APPEND writes at the beginning";
    CopyNothing => "copy-nothing", "copy_file_range copies nothing and reports success";
    SyncRefused => "fsync-refused", "fsync fails with EIO";
    SyncDirectory => "fsync-directory-error", "fsync of a directory fails with EIO";

    ListTwice => "list-twice", "the first entry of a directory is listed twice";
    ListMisses => "list-misses", "the last entry of a directory with more than 400 is not listed";
    ListTypes => "list-wrong-types", "listings call everything a named pipe";
    ListInodes => "list-wrong-inodes", "listings show other inode numbers than stat";
    ListRepeats => "list-repeats", "each part of a listing starts with the end of the previous part";
    ListPositions => "list-positions", "a listing resumes at a position, not after an entry";
    ListDots => "list-no-dots", "'.' and '..' are not listed";
    ListLate => "list-late", "a directory listed before shows new entries one listing late";

    AttributeLost => "xattr-lost", "extended attributes are not kept";
    AttributeCreates => "xattr-create-replaces", "XATTR_CREATE replaces existing attributes";
    AttributeReplaces => "xattr-replace-creates", "XATTR_REPLACE creates missing attributes";
    AttributeUnlisted => "xattr-unlisted", "extended attributes are not listed";
    AttributeStays => "xattr-remove-ignored", "extended attributes are not removed";
    AttributeCut => "xattr-cut", "values of extended attributes are cut to 200 bytes";
    AttributeEmpty => "xattr-empty-lost", "an empty extended attribute is not kept";
    AttributeMissing => "xattr-missing-empty", "a missing extended attribute reads as empty";
    AttributeDirectory => "xattr-directory-refused", "directories have no extended attributes";
    AttributeStatus => "xattr-ctime-stays", "setting an extended attribute keeps the change time";
    AttributeTouches => "xattr-touches", "setting an extended attribute changes the modification time";

    FlockTwice => "flock-given-twice", "every file lock is granted (flock)";
    LockTwice => "lock-given-twice", "every range lock is granted (fcntl)";

    FullLies => "full-lies", "writes to a full file system report success";
    FullError => "full-wrong-error", "writes to a full file system fail with EIO";
    FreeStays => "free-stays", "the reported free space does not change";
}

impl BrokenPromise {
    /// True if it shows in listings.
    pub(crate) fn is_of_listings(self) -> bool {
        use BrokenPromise as B;
        matches!(
            self,
            B::BytesLost
                | B::ListTwice
                | B::ListMisses
                | B::ListTypes
                | B::ListInodes
                | B::ListRepeats
                | B::ListPositions
                | B::ListDots
                | B::ListLate
        )
    }
}

/// A text that does not name a promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a promise that can be broken (expected one of {names})", names = names())]
pub struct UnknownPromise(String);

fn names() -> String {
    let names: Vec<&str> = BrokenPromise::ALL
        .iter()
        .map(|broken| broken.name())
        .collect();
    names.join(", ")
}

impl FromStr for BrokenPromise {
    type Err = UnknownPromise;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let promise = BrokenPromise::ALL
            .iter()
            .find(|broken| broken.name() == text);
        promise
            .copied()
            .ok_or_else(|| UnknownPromise(text.to_owned()))
    }
}

impl fmt::Display for BrokenPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        let mut names = std::collections::BTreeSet::new();
        for broken in BrokenPromise::ALL {
            assert!(names.insert(broken.name()), "{broken} twice");
            assert_eq!(broken.name().parse(), Ok(*broken));
            assert!(!broken.says().is_empty());
        }
        assert!(names.len() >= 60, "{}", names.len());
        let error = "nothing"
            .parse::<BrokenPromise>()
            .expect_err("no such promise");
        assert!(error.to_string().contains("name-cut, "), "{error}");
    }
}
