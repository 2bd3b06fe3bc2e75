//! Reads and writes, with injected damage to data.

use std::borrow::Cow;

use nix::errno::Errno;
use rbench_core::random::Stream;

use super::{Service, Subject, Ticket};
use crate::damage::{BLOCK, flip, shortened, zero};
use crate::fault::Action;
use crate::fault::log::{Damage, OtherPlace};
use crate::fault::table::Hit;
use crate::store::{Answer, Store};

/// Number of attempts to draw another place for misdirected data.
const TRIES: usize = 16;

/// A write request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) ino: u64,
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) data: &'a [u8],
    pub(super) kill_privileges: bool,
    /// The flags of the open file, with those of the call.
    pub(super) flags: i32,
}

/// Destination of a write's data.
enum Way {
    Home,
    /// The data is lost.
    Lost,
    /// Another inode and offset.
    Astray(u64, u64),
}

impl<S: Store> Service<S> {
    /// Reads into `buffer` from its start. Returns the number of bytes.
    pub(super) fn read_data(
        &self,
        ticket: &Ticket,
        (ino, handle, offset): (u64, u64, u64),
        buffer: &mut [u8],
    ) -> Answer<usize> {
        let mut length = self.store.read(ino, handle, offset, buffer)?;
        let subject = Subject::Range(ino, offset, buffer.len() as u64);
        let mut harmed = false;
        for hit in &ticket.harm {
            if harmed {
                break;
            }
            let draws = &mut self.stats().faults().stream(*hit);
            let bytes = &mut buffer[..length];
            let damage = match hit.action {
                Action::Short => {
                    let Some(half) = shortened(length) else {
                        continue;
                    };
                    let cut = Damage::range(offset + half as u64, (length - half) as u64);
                    length = half;
                    vec![cut]
                }
                Action::Flip => flip(bytes, offset, draws).into_iter().collect(),
                Action::Zero => zero(bytes, offset, draws).into_iter().collect(),
                Action::Stale => self.control.history.make_stale(ino, offset, bytes),
                Action::Misdirect => self.read_astray(ino, offset, bytes, draws),
                _ => Vec::new(),
            };
            if !damage.is_empty() {
                harmed = hit.action != Action::Short;
                self.fire(*hit, subject, damage);
            }
        }
        Ok(length)
    }

    /// Replaces `bytes` by those of another place.
    fn read_astray(
        &self,
        ino: u64,
        offset: u64,
        bytes: &mut [u8],
        draws: &mut Stream,
    ) -> Vec<Damage> {
        let Some((other, other_offset, found)) = self.elsewhere(ino, offset, bytes, draws) else {
            return Vec::new();
        };
        bytes.copy_from_slice(&found);
        vec![self.astray(offset, bytes.len(), other, other_offset)]
    }

    fn astray(&self, offset: u64, length: usize, other: u64, other_offset: u64) -> Damage {
        let path = self.path(other);
        Damage {
            other: Some(OtherPlace {
                path,
                offset: other_offset,
            }),
            ..Damage::range(offset, length as u64)
        }
    }

    /// A place with as many bytes as `bytes`, but different ones. It is in the same
    /// file, at a distance of a multiple of their length, or in another file.
    fn elsewhere(
        &self,
        ino: u64,
        offset: u64,
        bytes: &[u8],
        draws: &mut Stream,
    ) -> Option<(u64, u64, Vec<u8>)> {
        let length = bytes.len() as u64;
        if length == 0 {
            return None;
        }
        let mut data = vec![0; bytes.len()];
        for _ in 0..TRIES {
            let own = draws.below(2) == 0;
            let other = match &self.paths {
                Some(paths) if !own => paths.some_file(draws.next_u64()).unwrap_or(ino),
                _ => ino,
            };
            let size = self.store.getattr(other).map_or(0, |attr| attr.size);
            let places = size.saturating_sub(offset % length) / length;
            if places == 0 {
                continue;
            }
            let place = offset % length + draws.below(places) * length;
            if (other, place) == (ino, offset) {
                continue;
            }
            let read = self.store.peek(other, place, &mut data);
            if read == Ok(bytes.len()) && data != bytes {
                return Some((other, place, data));
            }
        }
        None
    }

    /// Writes. Returns the number of acknowledged bytes.
    pub(super) fn write_data(&self, ticket: &Ticket, write: Write<'_>) -> Answer<u32> {
        if self.config.injects(Action::Stale) {
            self.note_overwriting(&write)?;
        }
        let written = match ticket.harm.is_empty() {
            true => self.write_home(write, write.data),
            false => self.write_with_harm(ticket, write),
        };
        let synced = write.flags & (libc::O_SYNC | libc::O_DSYNC) != 0;
        // Only power cuts need to know.
        if written.is_ok() && synced && self.config.power_cut {
            self.store.fsync(write.ino, write.handle, true)?;
        }
        written
    }

    fn note_overwriting(&self, write: &Write<'_>) -> Answer<()> {
        let first = write.offset / BLOCK * BLOCK;
        let behind = (write.offset + write.data.len() as u64).next_multiple_of(BLOCK);
        let mut old = vec![0; (behind - first) as usize];
        let length = self.store.peek(write.ino, first, &mut old)?;
        self.control
            .history
            .overwriting(write.ino, write.offset, write.data, &old[..length]);
        Ok(())
    }

    /// Writes `data` at the file and offset of the request.
    fn write_home(&self, write: Write<'_>, data: &[u8]) -> Answer<u32> {
        let (handle, kill) = (write.handle, write.kill_privileges);
        self.store
            .write(write.ino, handle, write.offset, data, kill)
    }

    fn write_with_harm(&self, ticket: &Ticket, write: Write<'_>) -> Answer<u32> {
        let Write {
            ino,
            handle,
            offset,
            data,
            ..
        } = write;
        let subject = Subject::Range(ino, offset, data.len() as u64);
        let mut done: Vec<(Hit, Damage)> = Vec::new();
        let mut bytes = Cow::Borrowed(data);
        let mut way = Way::Home;
        for hit in &ticket.harm {
            if done.iter().any(|(hit, _)| hit.action != Action::Short) {
                break;
            }
            let draws = &mut self.stats().faults().stream(*hit);
            let damage = match hit.action {
                Action::Short => shortened(bytes.len()).map(|half| {
                    let cut = Damage::range(offset + half as u64, (bytes.len() - half) as u64);
                    bytes = bytes[..half].to_vec().into();
                    cut
                }),
                Action::Flip => flip(bytes.to_mut(), offset, draws),
                Action::Zero => zero(bytes.to_mut(), offset, draws),
                Action::Lost if self.differs(ino, offset, &bytes) => {
                    way = Way::Lost;
                    Some(Damage::range(offset, bytes.len() as u64))
                }
                Action::Misdirect if self.differs(ino, offset, &bytes) => self
                    .elsewhere(ino, offset, &bytes, draws)
                    .map(|(other, place, _)| {
                        way = Way::Astray(other, place);
                        self.astray(offset, bytes.len(), other, place)
                    }),
                _ => None,
            };
            done.extend(damage.map(|damage| (*hit, damage)));
        }
        let written = match way {
            Way::Home => self.write_home(write, &bytes)?,
            Way::Lost => {
                self.reach(ino, handle, offset, bytes.len())?;
                bytes.len() as u32
            }
            Way::Astray(other, place) => {
                if self.store.poke(other, place, &bytes)? < bytes.len() {
                    return Err(Errno::ENOSPC);
                }
                self.reach(ino, handle, offset, bytes.len())?;
                bytes.len() as u32
            }
        };
        for (hit, damage) in done {
            // Bytes without room did no damage.
            let reached = damage.offset < offset + u64::from(written);
            if reached || hit.action == Action::Short {
                self.fire(hit, subject, vec![damage]);
            }
        }
        Ok(written)
    }

    /// True if writing `bytes` at `offset` would change the content.
    fn differs(&self, ino: u64, offset: u64, bytes: &[u8]) -> bool {
        let mut old = vec![0; bytes.len()];
        // After the end of the file zeros are read.
        self.store.peek(ino, offset, &mut old).is_ok() && old != bytes
    }

    /// Moves the end of the file as a write of `length` bytes at `offset` would have.
    fn reach(&self, ino: u64, handle: u64, offset: u64, length: usize) -> Answer<()> {
        let end = offset + length as u64;
        match self.store.getattr(ino)?.size < end {
            true => self.store.fallocate(ino, handle, end - 1, 1, 0),
            false => Ok(()),
        }
    }

    /// Records the part of a write or a reservation of `length` bytes at `offset`
    /// that the quota refused.
    pub(super) fn book_refusal(&self, ticket: &Ticket, subject: Subject<'_>, outcome: Answer<u64>) {
        if self.config.quota.is_none() || ticket.error.is_some() {
            return;
        }
        let Subject::Range(_, offset, length) = subject else {
            return;
        };
        let cut_by_fault = ticket.harm.iter().any(|hit| hit.action == Action::Short);
        match outcome {
            Err(Errno::ENOSPC) => {
                let all = Damage::range(offset, length);
                self.refuse(ticket.kind, "ENOSPC", subject, all);
            }
            Ok(done) if done < length && !cut_by_fault => {
                let rest = Damage::range(offset + done, length - done);
                self.refuse(ticket.kind, "short", subject, rest);
            }
            _ => {}
        }
    }
}
