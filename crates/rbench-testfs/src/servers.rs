//! How many requests are served at a time: what gives the file system a capacity that
//! is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;

use rbench_core::Nanos;

use crate::sync::lock;

/// Servers in front of which requests wait in the order of their arrival.
pub(crate) struct Servers {
    /// When each is free.
    free: Mutex<BinaryHeap<Reverse<Nanos>>>,
}

impl Servers {
    /// So many, all of them free.
    pub(crate) fn new(servers: usize) -> Servers {
        let free = (0..servers.max(1)).map(|_| Reverse(Nanos(0))).collect();
        Servers {
            free: Mutex::new(free),
        }
    }

    /// When a request is answered that arrives then and takes a server so long.
    pub(crate) fn answered(&self, arrival: Nanos, takes: Nanos) -> Nanos {
        let mut free = lock(&self.free);
        let begins = match free.pop() {
            Some(Reverse(at)) => at.max(arrival),
            None => arrival,
        };
        let answered = Nanos(begins.0.saturating_add(takes.0));
        free.push(Reverse(answered));
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_requests_than_servers_wait_for_each_other() {
        let servers = Servers::new(2);
        let at = |arrival| servers.answered(Nanos(arrival), Nanos(10)).0;
        assert_eq!([at(0), at(1), at(2), at(3), at(4)], [10, 11, 20, 21, 30]);
        // Nobody is there any more.
        assert_eq!([at(100), at(100), at(100)], [110, 110, 120]);
    }
}
