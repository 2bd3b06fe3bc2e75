//! Priorities of single requests (`cmdprio_percentage` and its like of fio).

use rbench_core::{Direction, Each, IoPriority};

/// Priorities that a job's requests have in place of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Priorities {
    /// For each direction; a request outside of all shares has the job's own priority.
    pub shares: Each<Vec<PriorityShare>>,
}

/// A share of the requests of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityShare {
    /// Bytes of these requests; `None`: of any length.
    pub block: Option<u64>,
    /// Percentage of them, 1 to 100.
    pub percent: u32,
    /// Their priority.
    pub priority: IoPriority,
}

impl Priorities {
    /// The priorities of one direction, each once, in fio's order: the job's own comes first.
    pub fn of(&self, direction: Direction, own: IoPriority) -> Vec<IoPriority> {
        let mut all = vec![own];
        for PriorityShare { priority, .. } in self.shares.of(direction) {
            if !all.contains(priority) {
                all.push(*priority);
            }
        }
        all
    }
}
