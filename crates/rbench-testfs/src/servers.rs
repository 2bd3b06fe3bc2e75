//! Limit of requests that are served at once, which gives the file system a known
//! capacity.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use parking_lot::Mutex;
use rbench_core::Nanos;

/// Servers with one queue of requests in the order of their arrival.
pub(crate) struct Servers {
    /// The time at which each is free.
    free: Mutex<BinaryHeap<Reverse<Nanos>>>,
}

impl Servers {
    /// Creates this number of free servers.
    pub(crate) fn new(servers: usize) -> Servers {
        let free = (0..servers.max(1)).map(|_| Reverse(Nanos(0))).collect();
        Servers {
            free: Mutex::new(free),
        }
    }

    /// The time of the reply to a request that arrives at `arrival` and takes a
    /// server for `takes`.
    pub(crate) fn answered(&self, arrival: Nanos, takes: Nanos) -> Nanos {
        let mut free = self.free.lock();
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
        // The earlier requests have ended.
        assert_eq!([at(100), at(100), at(100)], [110, 110, 120]);
    }
}
