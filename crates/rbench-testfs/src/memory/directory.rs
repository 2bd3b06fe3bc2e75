//! The entries of one directory in memory: looked up by name, listed in the order of
//! their creation.
//!
//! Every entry has a cookie, larger than those of earlier entries, which it keeps. A
//! listing continues after the last cookie that it has returned. So an entry that
//! exists all the time appears exactly once, whatever is added or removed.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::sync::Arc;

/// Cookies of `.` and `..`; those of the entries follow.
const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

/// The entries of a directory of inodes of type `I`, without `.` and `..`.
#[derive(Debug)]
pub(crate) struct Entries<I> {
    by_name: HashMap<Arc<OsStr>, (u64, I)>,
    by_cookie: BTreeMap<u64, (Arc<OsStr>, I)>,
    last_cookie: u64,
    /// The directory was removed, and takes no more entries.
    pub(crate) removed: bool,
}

/// An element of a listing.
pub(crate) enum Listed<'a, I> {
    /// The directory itself.
    Dot,
    /// The parent directory.
    DotDot,
    /// An entry.
    Entry(&'a OsStr, &'a I),
}

impl<I> Default for Entries<I> {
    fn default() -> Entries<I> {
        Entries {
            by_name: HashMap::new(),
            by_cookie: BTreeMap::new(),
            last_cookie: DOT_DOT,
            removed: false,
        }
    }
}

impl<I: Clone> Entries<I> {
    pub(crate) fn get(&self, name: &OsStr) -> Option<&I> {
        self.by_name.get(name).map(|(_, inode)| inode)
    }

    /// All names with their inodes, in the order of their creation.
    pub(crate) fn all(&self) -> impl Iterator<Item = &(Arc<OsStr>, I)> {
        self.by_cookie.values()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Puts `inode` at `name`, and returns the previous inode. An existing name keeps
    /// its place in listings.
    pub(crate) fn put(&mut self, name: &OsStr, inode: I) -> Option<I> {
        if let Some((cookie, held)) = self.by_name.get_mut(name) {
            let old = std::mem::replace(held, inode.clone());
            if let Some((_, listed)) = self.by_cookie.get_mut(cookie) {
                *listed = inode;
            }
            return Some(old);
        }
        self.last_cookie += 1;
        let name: Arc<OsStr> = name.into();
        let entry = (Arc::clone(&name), inode.clone());
        self.by_cookie.insert(self.last_cookie, entry);
        self.by_name.insert(name, (self.last_cookie, inode));
        None
    }

    /// Removes the inode from `name`.
    pub(crate) fn take(&mut self, name: &OsStr) -> Option<I> {
        let (cookie, inode) = self.by_name.remove(name)?;
        self.by_cookie.remove(&cookie);
        Some(inode)
    }

    /// The cookie of the newest entry, at which a listing that starts now ends.
    pub(crate) fn last_cookie(&self) -> u64 {
        self.last_cookie
    }

    /// The elements with a cookie above `after` and at most `last`, with their
    /// cookies.
    pub(crate) fn list(&self, after: u64, last: u64) -> impl Iterator<Item = (u64, Listed<'_, I>)> {
        let dots = [(DOT, Listed::Dot), (DOT_DOT, Listed::DotDot)];
        let range = (
            Bound::Excluded(after),
            Bound::Included(last.max(after.saturating_add(1))),
        );
        let entries = self.by_cookie.range(range);
        dots.into_iter()
            .filter(move |(cookie, _)| *cookie > after)
            .chain(entries.map(|(cookie, (name, inode))| (*cookie, Listed::Entry(name, inode))))
            .take_while(move |(cookie, _)| *cookie <= last)
    }
}
