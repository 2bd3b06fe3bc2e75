//! State of an engine for each attached file, found by descriptor.

use std::os::fd::RawFd;

/// Values for some descriptors. The system assigns the lowest free number, so the
/// array is about as long as the number of open files.
pub(super) struct FdTable<T>(Vec<Option<T>>);

impl<T> FdTable<T> {
    pub(super) const fn new() -> FdTable<T> {
        FdTable(Vec::new())
    }

    /// Sets the value of `fd`. Has no effect for an invalid descriptor.
    pub(super) fn insert(&mut self, fd: RawFd, value: T) {
        let Ok(index) = usize::try_from(fd) else {
            return;
        };
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(value);
    }

    /// Removes the value of `fd`, and returns it.
    pub(super) fn remove(&mut self, fd: RawFd) -> Option<T> {
        self.place(fd)?.take()
    }

    #[inline]
    pub(super) fn get(&self, fd: RawFd) -> Option<&T> {
        self.0.get(usize::try_from(fd).ok()?)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, fd: RawFd) -> Option<&mut T> {
        self.place(fd)?.as_mut()
    }

    #[inline]
    fn place(&mut self, fd: RawFd) -> Option<&mut Option<T>> {
        self.0.get_mut(usize::try_from(fd).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_descriptor_has_its_value_until_it_is_removed() {
        let mut table = FdTable::new();
        assert_eq!(table.get(3), None);
        table.insert(3, "three");
        table.insert(0, "zero");
        table.insert(3, "new");
        table.insert(-1, "none");
        assert_eq!(table.get(3), Some(&"new"));
        assert_eq!(table.get_mut(0), Some(&mut "zero"));
        assert_eq!([table.get(2), table.get(4), table.get(-1)], [None; 3]);
        assert_eq!(table.remove(3), Some("new"));
        assert_eq!(table.remove(3), None);
        assert_eq!(table.remove(100), None);
        assert_eq!(table.remove(-1), None);
    }
}
