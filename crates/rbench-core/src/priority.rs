//! I/O priorities, in the kernel's form, and latencies by priority.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hist::{ExactHist, unless_empty};
use crate::latency::Latency;

/// An I/O priority in the form of `<linux/ioprio.h>`: the class from bit 13, the hint from bit 3,
/// the level below. The default has no class: that of the thread counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct IoPriority(pub u16);

/// The real-time class, the highest.
const REAL_TIME: u8 = 1;

impl IoPriority {
    /// Class 0 to 3, level 0 to 7, hint 0 to 1023.
    pub const fn new(class: u8, level: u8, hint: u16) -> IoPriority {
        IoPriority((class as u16 & 7) << 13 | (hint & 0x3ff) << 3 | (level as u16 & 7))
    }

    /// Its class: 0 none, 1 real time, 2 best effort, 3 idle.
    pub const fn class(self) -> u8 {
        (self.0 >> 13) as u8
    }

    /// Its level, 0 to 7; 0 is the highest.
    pub const fn level(self) -> u8 {
        (self.0 & 7) as u8
    }

    /// Its hint, 0 to 1023.
    pub const fn hint(self) -> u16 {
        self.0 >> 3 & 0x3ff
    }

    /// True if it is of the highest class.
    pub const fn is_real_time(self) -> bool {
        self.class() == REAL_TIME
    }
}

/// Latencies of the operations of one priority.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioPriorityResult")]
pub struct AtPriority {
    /// The priority as in ioprio_set(2): class · 8192 + hint · 8 + level.
    pub priority: IoPriority,
    /// Their latencies; `None` without any.
    #[serde(with = "unless_empty")]
    #[schemars(with = "Option<ExactHist>")]
    pub latency: Latency,
}

/// Adds latencies of other operations to those of the same priority. Priorities that are new come
/// last, as in fio.
pub fn merge(mine: &mut Vec<AtPriority>, theirs: &[AtPriority]) {
    for AtPriority { priority, latency } in theirs {
        match mine.iter_mut().find(|one| one.priority == *priority) {
            Some(one) => one.latency.merge(latency),
            None => mine.push(AtPriority {
                priority: *priority,
                latency: latency.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn priorities_have_the_kernels_form() {
        // <linux/ioprio.h>: class from bit 13, hint from bit 3, level below.
        let check = |(class, level, hint), expect: u16| {
            let priority = IoPriority::new(class, level, hint);
            assert_eq!(priority.0, expect);
            let parts = (priority.class(), priority.level(), priority.hint());
            assert_eq!(parts, (class, level, hint));
        };
        check((2, 3, 0), 0x4003);
        check((3, 0, 0), 0x6000);
        check((1, 7, 5), 0x2000 | 5 << 3 | 7);
        check((0, 0, 1023), 1023 << 3);
    }

    #[test]
    fn merging_adds_up_each_priority_and_keeps_the_order() {
        let of = |class, values: &[u64]| {
            let mut latency = Latency::default();
            values.iter().for_each(|ns| latency.record(Nanos(*ns)));
            AtPriority {
                priority: IoPriority::new(class, 0, 0),
                latency,
            }
        };
        let mut all = vec![of(2, &[10, 20]), of(1, &[5])];
        merge(&mut all, &[of(3, &[7]), of(1, &[6, 8])]);
        assert_eq!(all, [of(2, &[10, 20]), of(1, &[5, 6, 8]), of(3, &[7])]);
    }
}
