//! Promises that can be broken on purpose, one at a time, and their names. What a broken one
//! does to the file system is told in `broken::effects` and `broken::store`.

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
            /// Every one, in the order of the documentation.
            pub const ALL: &'static [BrokenPromise] = &[$(BrokenPromise::$variant,)*];

            /// Its name: `rename-loses-target`.
            pub fn name(self) -> &'static str {
                match self { $(BrokenPromise::$variant => $name,)* }
            }

            /// What is wrong then, a clause.
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
    CaseIgnored => "case-ignored", "a name is found in upper and lower case";
    BytesLost => "bytes-lost", "listings show bytes above 127 as question marks";
    UnlinkKeeps => "unlink-keeps-name", "the first unlink of a file of one byte does nothing";
    RmdirKeeps => "rmdir-keeps-name", "the first rmdir of a directory does nothing";
    RmdirFull => "rmdir-takes-full", "rmdir of a directory with something in it says that it is done";
    MkdirMode => "mkdir-ignores-mode", "directories are made with mode 0755";
    CreateMode => "create-ignores-mode", "files are made with mode 0644";
    FifoMode => "fifo-ignores-mode", "named pipes are made with mode 0600";
    FifoFile => "fifo-is-file", "a file is made in the place of a named pipe";
    SymlinkCut => "symlink-cut", "targets of symbolic links are cut to 255 bytes";
    SymlinkSize => "symlink-size-zero", "the size of symbolic links is 0";
    SymlinkRelative => "symlink-relative", "absolute targets of symbolic links lose their slash";

    RenameLosesTarget => "rename-loses-target", "rename over a file removes both names";
    RenameKeepsSource => "rename-keeps-source", "a file that is renamed to a free name keeps the old one too";
    ExchangeMoves => "exchange-moves", "RENAME_EXCHANGE renames one way only";
    RenameTouches => "rename-touches", "rename changes the time of modification of the file";
    RenameFullError => "rename-full-error", "rename over a directory with something in it fails with EIO";
    RenameEmpties => "rename-empties", "a renamed directory loses the files in it";
    RenameDropsAttributes => "rename-drops-attributes", "a renamed file loses its extended attributes";

    LinkCount => "link-count-stays", "the number of links of a file is 1 at most";
    LinkCopies => "link-copies", "link makes a copy of the file";
    LinkTouches => "link-touches", "link changes the time of modification of the file";
    LinkStatus => "link-ctime-stays", "link leaves the time of status change";
    UnlinkStatus => "unlink-ctime-stays", "unlink of one of several names leaves the time of status change";
    UnlinkedCount => "unlinked-count-one", "a file without a name shows one link";
    UnlinkedEmpty => "unlinked-empty", "a file loses its content with its last name";
    UnlinkedGone => "unlinked-gone", "fstat of a file without a name fails with ESTALE";

    ChmodBareWrite => "chmod-drops-bare-write", "chmod takes the right to write from who may not read";
    ChmodSticky => "chmod-drops-sticky", "chmod does not set the sticky bit";
    ChmodSetId => "chmod-drops-set-id", "chmod does not set the set-user-id and set-group-id bits";
    ChmodTouches => "chmod-touches", "chmod changes the time of modification";
    ChmodStatus => "chmod-ctime-stays", "chmod leaves the time of status change";
    ChmodLater => "chmod-open-lost", "chmod of a file that is open is lost";
    ChownShort => "chown-16-bits", "owners and groups are cut to 16 bits";
    ChownSetId => "chown-keeps-set-id", "chown leaves the set-user-id and set-group-id bits";
    ChownStatus => "chown-ctime-stays", "chown leaves the time of status change";
    WriteSetId => "write-keeps-set-id", "a write leaves the set-user-id and set-group-id bits";
    OwnerRoot => "owner-is-root", "what is made belongs to root";
    SetGroupIgnored => "set-group-ignored", "what is made in a directory with the set-group-id bit has the caller's group";
    SetGroupBit => "set-group-bit-lost", "a directory made in one with the set-group-id bit lacks the bit";
    DeviceLost => "device-number-lost", "device files have the number 0";

    WriteModified => "write-mtime-stays", "a write leaves the time of modification";
    WriteStatus => "write-ctime-stays", "a write leaves the time of status change";
    TruncateModified => "truncate-mtime-stays", "truncate leaves the time of modification";
    TruncateStatus => "truncate-ctime-stays", "truncate leaves the time of status change";
    OpenModified => "open-truncate-mtime-stays", "open with O_TRUNC leaves the time of modification";
    FallocateStatus => "fallocate-ctime-stays", "fallocate leaves the time of status change";
    CreateModified => "create-mtime-stays", "making a file leaves the time of modification of the directory";
    CreateStatus => "create-ctime-stays", "making a file leaves the time of status change of the directory";
    MkdirModified => "mkdir-mtime-stays", "mkdir leaves the time of modification of the directory above";
    SymlinkModified => "symlink-mtime-stays", "symlink leaves the time of modification of the directory";
    MknodModified => "mknod-mtime-stays", "mknod leaves the time of modification of the directory";
    LinkModified => "link-mtime-stays", "link leaves the time of modification of the directory";
    UnlinkModified => "unlink-mtime-stays", "unlink leaves the time of modification of the directory";
    RmdirModified => "rmdir-mtime-stays", "rmdir leaves the time of modification of the directory above";
    RenameFromModified => "rename-from-mtime-stays", "rename leaves the time of modification of the old directory";
    RenameIntoModified => "rename-into-mtime-stays", "rename leaves the time of modification of the new directory";
    ReadTouches => "read-touches", "a read changes the time of modification";
    CloseTouches => "close-touches", "close of a file that was written changes the time of modification";
    TimesStatus => "times-ctime-stays", "utimensat leaves the time of status change";
    TimesOmit => "times-omit-sets", "UTIME_OMIT sets the time of access to now";
    TimesNow => "times-now-is-epoch", "UTIME_NOW sets times to the beginning of 1970";
    TimesShort => "times-32-bits", "times after 2038 begin again at 1970";
    TimesPast => "times-before-1970", "times before 1970 are those of its beginning";
    TimesRound => "times-round-up", "times are rounded up to a second";
    TimesSymlink => "times-symlink-ignored", "the times of symbolic links are not set";

    SizeLags => "size-lags", "the size of a file that is written behind its end is the one of before";
    SizeShort => "size-32-bits", "sizes are cut to 32 bits";
    OffsetShort => "offset-32-bits", "offsets are cut to 32 bits";
    TruncateKeeps => "truncate-keeps-data", "what truncate cuts off comes back when the file grows";
    TruncateDirty => "truncate-grows-dirty", "truncate fills what it adds with 0xff";
    TruncateOpen => "truncate-open-ignored", "ftruncate does nothing";
    HoleDirty => "hole-dirty", "a write behind the end fills the gap with 0xff";
    SeekData => "seek-data-none", "SEEK_DATA finds no data";
    SeekHole => "seek-hole-everywhere", "SEEK_HOLE finds a hole everywhere";

    PunchIgnored => "punch-ignored", "punching a hole does nothing";
    PunchCuts => "punch-cuts", "punching a hole cuts the file off there";
    PunchRounds => "punch-rounds", "a hole is rounded to whole blocks of 4 KiB";
    ReserveSize => "reserve-leaves-size", "fallocate does not make a file longer";
    ReserveClears => "reserve-clears", "fallocate clears what it reserves";
    KeepSizeExtends => "keep-size-extends", "fallocate with FALLOC_FL_KEEP_SIZE makes a file longer";

    WriteFlips => "write-flips", "byte 100,000 of a file is changed on its way";
    WriteFlipsRarely => "write-flips-rarely", "in one of some thousand writes, the same every time, one byte is changed";
    WriteLate => "write-late", "a write begins 300 us after it came, so that others may read what was there before";
    WriteShort => "write-short", "writes of more than 64 KiB write the half";
    OverwriteLost => "overwrite-lost", "a write of less than 8 bytes inside a file is lost";
    AppendOverwrites => "append-overwrites", "O_APPEND writes at the beginning";
    CopyNothing => "copy-nothing", "copy_file_range copies nothing and says that it did";
    SyncRefused => "fsync-refused", "fsync fails with EIO";
    SyncDirectory => "fsync-directory-error", "fsync of a directory fails with EIO";

    ListTwice => "list-twice", "the first entry of a directory is listed twice";
    ListMisses => "list-misses", "the last entry of a directory with more than 400 is not listed";
    ListTypes => "list-wrong-types", "listings call everything a named pipe";
    ListInodes => "list-wrong-inodes", "listings show other inode numbers than stat";
    ListRepeats => "list-repeats", "each part of a listing begins with the end of the part before";
    ListPositions => "list-positions", "a listing goes on at a position, not behind an entry";
    ListDots => "list-no-dots", "'.' and '..' are not listed";
    ListLate => "list-late", "a directory that was listed before shows new entries one listing later";

    AttributeLost => "xattr-lost", "extended attributes are not kept";
    AttributeCreates => "xattr-create-replaces", "XATTR_CREATE replaces";
    AttributeReplaces => "xattr-replace-creates", "XATTR_REPLACE creates";
    AttributeUnlisted => "xattr-unlisted", "extended attributes are not listed";
    AttributeStays => "xattr-remove-ignored", "extended attributes are not removed";
    AttributeCut => "xattr-cut", "values of extended attributes are cut to 200 bytes";
    AttributeEmpty => "xattr-empty-lost", "an empty extended attribute is not kept";
    AttributeMissing => "xattr-missing-empty", "a missing extended attribute is empty";
    AttributeDirectory => "xattr-directory-refused", "directories have no extended attributes";
    AttributeStatus => "xattr-ctime-stays", "setting an extended attribute leaves the time of status change";
    AttributeTouches => "xattr-touches", "setting an extended attribute changes the time of modification";

    FlockTwice => "flock-given-twice", "every lock of a file is given (flock)";
    LockTwice => "lock-given-twice", "every lock of a range is given (fcntl)";

    FullLies => "full-lies", "writes into a full file system say that they are done";
    FullError => "full-wrong-error", "writes into a full file system fail with EIO";
    FreeStays => "free-stays", "the free space that is told stays as it was";
}

impl BrokenPromise {
    /// Whether it shows in what is listed.
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

/// Why a text names no promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no promise that can be broken; there are {names}", names = names())]
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
        let found = BrokenPromise::ALL
            .iter()
            .find(|broken| broken.name() == text);
        found
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
