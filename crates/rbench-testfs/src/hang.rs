//! Replies that are held until they are released.

use parking_lot::Mutex;

/// End of a held reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The reply is sent unchanged.
    Reply,
    /// The file system ends.
    Ended,
}

type Held = Box<dyn FnOnce(Release) + Send>;

/// The held replies.
#[derive(Default)]
pub(crate) struct Hangs(Mutex<State>);

#[derive(Default)]
struct State {
    held: Vec<Held>,
    closed: bool,
}

impl Hangs {
    /// Holds `reply` until it is released. If the file system has ended, it is not
    /// held.
    pub(crate) fn hold(&self, reply: impl FnOnce(Release) + Send + 'static) {
        let mut state = self.0.lock();
        if state.closed {
            drop(state);
            return reply(Release::Ended);
        }
        state.held.push(Box::new(reply));
    }

    /// The number of held replies.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().held.len()
    }

    /// Releases the replies that are held now. Returns their number.
    pub(crate) fn release(&self) -> usize {
        let held = std::mem::take(&mut self.0.lock().held);
        let count = held.len();
        held.into_iter().for_each(|reply| reply(Release::Reply));
        count
    }

    /// Ends the held replies and all later ones.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        let held = std::mem::take(&mut state.held);
        drop(state);
        held.into_iter().for_each(|reply| reply(Release::Ended));
    }
}

impl std::fmt::Debug for Hangs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hangs").field(&self.count()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_reply_is_held_until_it_is_released_or_all_ends() {
        let (hangs, (send, ended)) = (Hangs::default(), mpsc::channel());
        let hold = |name| {
            let send = send.clone();
            hangs.hold(move |release| send.send((name, release)).expect("it is read"));
        };
        hold("a");
        hold("b");
        assert_eq!(hangs.count(), 2);
        assert!(ended.try_recv().is_err());
        assert_eq!((hangs.release(), hangs.count()), (2, 0));
        hold("c");
        hangs.close();
        hold("d");
        assert_eq!(hangs.release(), 0);
        let all: Vec<_> = ended.try_iter().collect();
        let expect = [
            ("a", Release::Reply),
            ("b", Release::Reply),
            ("c", Release::Ended),
            ("d", Release::Ended),
        ];
        assert_eq!(all, expect);
    }
}
