//! Fields that options fill, for fio's options and for options with letters.

use std::path::PathBuf;

use rbench_core::{Call, Nanos};
use rbench_plan::iolog::Skip;
use rbench_plan::jobs::{
    Advised, Distribution, Each, Fallocate, FileLock, FileService, SyncMode, Unified, WindowValue,
};
use rbench_plan::meta::Backend;

use crate::{Communicator, Format, IorSummary, Progress};

/// A field that an option fills.
pub trait Field {
    /// The type that the option's reader returns.
    type Value;
    /// Stores the value.
    fn put(&mut self, value: Self::Value);
}

impl<T> Field for Option<T> {
    type Value = T;
    fn put(&mut self, value: T) {
        *self = Some(value);
    }
}

/// An omitted element keeps its value.
impl<T> Field for Each<Option<T>> {
    type Value = Each<Option<T>>;
    fn put(&mut self, value: Each<Option<T>>) {
        let Each { read, write, trim } = value;
        for (field, value) in self.all_mut().into_iter().zip([read, write, trim]) {
            if value.is_some() {
                *field = value;
            }
        }
    }
}

/// Implements [`Field`] for types that always hold a value.
macro_rules! plain_fields {
    ($($type:ty)*) => {
        $(impl Field for $type {
            type Value = $type;
            fn put(&mut self, value: $type) {
                *self = value;
            }
        })*
    };
}

plain_fields! {
    bool i32 u8 u32 u64 Nanos PathBuf [Vec<i32>; 3] Vec<u32> Vec<usize> Vec<f64> Vec<String>
    Vec<PathBuf> Vec<&'static str> Call WindowValue Unified Skip Distribution FileService FileLock
    Fallocate Advised SyncMode Backend Communicator Format IorSummary Progress
}
