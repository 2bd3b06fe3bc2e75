//! Power cuts of the in-memory file system: what makes content and names durable, and
//! what survives a cut.
//!
//! A sync of a file makes its content and its names durable, and the directories
//! above it. A sync of a directory makes the names in it durable. Removals and
//! renames are durable at once, and so are attributes. Files that were open at a cut
//! can no longer be used: a later sync could not save data that the cut removed.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::errno::Errno;
use parking_lot::RwLockReadGuard;
use rbench_core::random::Stream;

use super::Memory;
use super::durable::{Change, Fate};
use super::inode::Inode;
use super::names::disown;
use crate::fault::log::{Damage, FaultRecord};
use crate::kind::Kind;
use crate::store::{Answer, ROOT};

/// Result of a power cut.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// The fate of every change that was not durable.
    pub(crate) records: Vec<FaultRecord>,
    /// The inodes whose content or attributes may have changed.
    pub(crate) inodes: Vec<u64>,
    /// Removed names, with their directories.
    pub(crate) names: Vec<(u64, OsString)>,
}

impl Memory {
    /// Prevents a power cut while a file is used that was opened after `cuts` power
    /// cuts.
    ///
    /// # Errors
    /// EIO if there was a cut since.
    pub(super) fn with_power(&self, cuts: u64) -> Answer<Option<RwLockReadGuard<'_, u64>>> {
        if !self.durably {
            return Ok(None);
        }
        let now = self.cuts.read();
        match *now == cuts {
            true => Ok(Some(now)),
            false => Err(Errno::EIO),
        }
    }

    /// Makes the content and the names of a file durable.
    pub(super) fn make_durable(&self, inode: &Inode) {
        if !self.durably {
            return;
        }
        if let Ok(file) = inode.file() {
            file.sync();
        }
        self.keep(inode);
    }

    /// Makes the names in a directory durable.
    pub(super) fn make_names_durable(&self, inode: &Inode) -> Answer<()> {
        if self.durably {
            self.keep(inode);
            for (_, below) in inode.directory()?.read().all() {
                below.is_kept.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Makes an inode's names durable, and those of the directories above it.
    fn keep(&self, inode: &Inode) {
        if inode.is_kept.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Ok(above) = self.inode(inode.home.load(Ordering::Relaxed)) {
            self.keep(&above);
        }
    }

    /// Makes a durable inode durable in its new directory, too.
    pub(super) fn keep_where_it_is(&self, inode: &Inode) {
        if self.durably
            && inode.is_kept.load(Ordering::Relaxed)
            && let Ok(above) = self.inode(inode.home.load(Ordering::Relaxed))
        {
            self.keep(&above);
        }
    }

    /// Cuts the power: changes that are not durable are lost, except those that
    /// `survivors` chooses.
    ///
    /// # Errors
    /// ENOSPC if durable data that was removed since no longer fits.
    pub(crate) fn cut_power(&self, mut survivors: Option<Stream>) -> Answer<Cut> {
        let mut cuts = self.cuts.write();
        *cuts += 1;
        let mut cut = Cut::default();
        let root = self.inode(ROOT)?;
        self.cut_directory(&root, Path::new(""), &mut survivors, &mut cut)?;
        Ok(cut)
    }

    fn cut_directory(
        &self,
        directory: &Inode,
        path: &Path,
        survivors: &mut Option<Stream>,
        cut: &mut Cut,
    ) -> Answer<()> {
        cut.inodes.push(directory.ino);
        let entries: Vec<(Arc<OsStr>, Arc<Inode>)> =
            directory.directory()?.read().all().cloned().collect();
        for (name, inode) in entries {
            let path = path.join(&*name);
            if !inode.is_kept.load(Ordering::Relaxed) {
                let survives = survivors.as_mut().is_some_and(|draws| draws.below(2) == 0);
                if !survives {
                    self.vanish(directory, &name, &inode, &path, cut)?;
                    continue;
                }
                cut.records.push(named("survived", &inode, &path));
                inode.is_kept.store(true, Ordering::Relaxed);
            }
            if inode.is_directory() {
                self.cut_directory(&inode, &path, survivors, cut)?;
            } else {
                self.cut_file(&inode, &path, survivors.as_mut(), cut)?;
            }
        }
        Ok(())
    }

    /// Removes the name `name`, and everything below it.
    fn vanish(
        &self,
        above: &Inode,
        name: &OsStr,
        inode: &Inode,
        path: &Path,
        cut: &mut Cut,
    ) -> Answer<()> {
        if let Ok(directory) = inode.directory() {
            let below: Vec<(Arc<OsStr>, Arc<Inode>)> = {
                let mut entries = directory.write();
                entries.removed = true;
                entries.all().cloned().collect()
            };
            for (name, inside) in below {
                self.vanish(inode, &name, &inside, &path.join(&*name), cut)?;
            }
        }
        if above.directory()?.write().take(name).is_some() {
            disown(above, inode);
            cut.names.push((above.ino, name.to_owned()));
            cut.records.push(named("vanished", inode, path));
            self.unlinked(inode);
        }
        Ok(())
    }

    fn cut_file(
        &self,
        inode: &Inode,
        path: &Path,
        survivors: Option<&mut Stream>,
        cut: &mut Cut,
    ) -> Answer<()> {
        let Ok(file) = inode.file() else {
            return Ok(());
        };
        let Some(durable) = file.durable() else {
            return Err(Errno::EOPNOTSUPP);
        };
        let mut durable = durable.lock();
        // A file with a second name comes here again, without changes.
        let fates = durable.cut(survivors);
        if fates.is_empty() {
            return Ok(());
        }
        durable.restore(&self.space, file.data())?;
        drop(durable);
        cut.inodes.push(inode.ino);
        let changes = (1..).zip(&fates);
        cut.records
            .extend(changes.map(|(number, (change, fate))| changed(number, change, fate, path)));
        Ok(())
    }
}

/// The record of a power cut about the file at `path`.
fn record(kind: Kind, action: &str, path: &Path) -> FaultRecord {
    FaultRecord {
        fault: "power-cut".to_owned(),
        kind: kind.name().to_owned(),
        action: action.to_owned(),
        path: path.display().to_string(),
        ..FaultRecord::default()
    }
}

/// The fate of a name.
fn named(action: &str, inode: &Inode, path: &Path) -> FaultRecord {
    let kind = match inode.kind {
        fuser::FileType::Directory => Kind::Mkdir,
        fuser::FileType::RegularFile => Kind::Create,
        fuser::FileType::Symlink => Kind::Symlink,
        _ => Kind::Mknod,
    };
    record(kind, action, path)
}

/// The fate of a change of a file.
fn changed(number: u64, change: &Change, fate: &Fate, path: &Path) -> FaultRecord {
    let (kind, offset, length) = match change {
        Change::Write { offset, data } => (Kind::Write, *offset, Some(data.len() as u64)),
        Change::Truncate(size) => (Kind::Setattr, *size, None),
        Change::Punch { offset, length } => (Kind::Fallocate, *offset, Some(*length)),
        Change::Extend(size) => (Kind::Fallocate, *size, None),
    };
    let (action, damage) = match fate {
        Fate::Survived => ("survived", Vec::new()),
        Fate::Lost => ("lost", vec![Damage::range(offset, length.unwrap_or(0))]),
        Fate::Torn(lost) => {
            let range =
                |lost: &std::ops::Range<u64>| Damage::range(lost.start, lost.end - lost.start);
            ("torn", lost.iter().map(range).collect())
        }
    };
    FaultRecord {
        request: Some(number),
        offset: Some(offset),
        length,
        damage,
        ..record(kind, action, path)
    }
}
