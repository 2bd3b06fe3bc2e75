//! Memory that can hold data read on this host.

use std::fs;

use rbench_core::Bytes;

use crate::proc::kib;
use crate::surroundings::own_limits;

/// The memory of this host or, if smaller, the limit of a control group for this
/// process and its page cache. `None` if the kernel does not report it.
pub fn memory() -> Option<Bytes> {
    let all = kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let limit = own_limits().memory_bytes.map(Bytes);
    Some(limit.map_or(all, |limit| all.min(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_host_is_known() {
        let here = memory().expect("/proc is mounted");
        assert!(here.0 > 1 << 20, "{here}");
    }
}
