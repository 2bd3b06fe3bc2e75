//! Encoding of values that ranks send to each other. Not a file format: both ends are the same
//! build, so nothing here is a promise to users.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The message that holds `value`. A value without a form as a message (a sequence whose length
/// is unknown) gives an empty one, which [`decode`] refuses.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// The value of a message; `None` when it is malformed, cut off or too long.
pub fn decode<T: DeserializeOwned>(message: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(message).ok()?;
    rest.is_empty().then_some(value)
}

/// For `#[serde(with)]`: a path as its bytes, which need not be UTF-8.
pub mod path {
    use std::ffi::{OsStr, OsString};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes it.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        OsStr::new(path).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

/// For `#[serde(with)]`: the error of a system call, if there was one, as its number.
pub mod errno {
    use nix::errno::Errno;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes it.
    pub fn serialize<S: Serializer>(
        errno: &Option<Errno>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        errno.map(|errno| errno as i32).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Errno>, D::Error> {
        let number = Option::<i32>::deserialize(deserializer)?;
        Ok(number.map(Errno::from_raw))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    use nix::errno::Errno;
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use crate::{Latency, Nanos};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Sent {
        Nothing,
        Values(Vec<(Option<u64>, String)>, f64),
        System {
            #[serde(with = "path")]
            path: PathBuf,
            #[serde(with = "errno")]
            errno: Option<Errno>,
            latency: Latency,
        },
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let system = |(path, code, times): (Vec<u8>, i32, Vec<u64>)| {
            let mut latency = Latency::new();
            times.iter().for_each(|ns| latency.record(Nanos(*ns)));
            Sent::System {
                path: OsStr::from_bytes(&path).into(),
                errno: (code > 0).then(|| Errno::from_raw(code)),
                latency,
            }
        };
        prop_oneof![
            Just(Sent::Nothing),
            (any::<Vec<(Option<u64>, String)>>(), -1e9..1e9)
                .prop_map(|(all, number)| Sent::Values(all, number)),
            (
                any::<Vec<u8>>(),
                0..140,
                prop::collection::vec(0..1_u64 << 50, 0..20)
            )
                .prop_map(system),
        ]
    }

    proptest! {
        #[test]
        fn what_is_sent_arrives_whole_or_not_at_all(sent in sent(), more: u8, cut: prop::sample::Index) {
            let mut message = encode(&sent);
            prop_assert_eq!(decode::<Sent>(&message[..cut.index(message.len())]), None);
            prop_assert_eq!(decode(&message), Some(sent));
            message.push(more);
            prop_assert_eq!(decode::<Sent>(&message), None);
        }

        #[test]
        fn malformed_messages_are_refused(message: Vec<u8>) {
            let _ = decode::<Sent>(&message);
        }
    }
}
