//! The traces that rbench itself writes (`rbench record`): a line of JSON for each operation,
//! documented in docs/reference/replay.md. Writing and reading.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rbench_core::{Nanos, OpKind, linux};
use serde_json::{Map, Value, json};

use super::names::{Unmapped, attribute};
use super::{
    Call, Kind, LinkTarget, MODES, Name, OPEN_FLAGS, Op, Out, Outcome, Reader, Reading, Target,
    Told,
};

/// The first line: the form's name and version.
pub const HEADER: &str = "{\"rbench-trace\":1}";

/// Names of kinds of objects.
const KINDS: [(&str, Kind); 3] = [
    ("file", Kind::File),
    ("directory", Kind::Directory),
    ("link", Kind::Link),
];

/// The line of an operation, with its end. Times are ns since `origin`.
pub fn line(op: &Op, origin: Nanos) -> Vec<u8> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    put("at", json!(op.at.since(origin).0));
    put("process", json!(op.process));
    put("op", json!(op.call.kind().name()));
    if let Some(took) = op.took {
        put("took", json!(took.0));
    }
    match op.result {
        Outcome::Unknown => {}
        Outcome::Done(value) => put("returned", json!(value)),
        Outcome::Failed(errno) => put("error", json!(linux::errno_name(errno))),
    }
    if let Some(kind) = op.told.kind {
        let named = KINDS.iter().find(|(_, known)| *known == kind);
        put("kind", json!(named.map_or("", |(name, _)| name)));
    }
    if let Some(size) = op.told.size {
        put("size", json!(size));
    }
    if op.implied {
        put("implied", json!(true));
    }
    put_call(&op.call, &mut put);
    let mut line = Value::Object(map).to_string().into_bytes();
    line.push(b'\n');
    line
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

fn put_call(call: &Call, put: &mut dyn FnMut(&str, Value)) {
    let about = |what: &Target, put: &mut dyn FnMut(&str, Value)| match what {
        Target::Path(path, follows) => {
            put("path", text(path));
            put("follows", json!(follows));
        }
        Target::Open(file) => put("file", json!(file)),
    };
    match call {
        Call::Open {
            path,
            flags,
            mode,
            file,
        } => {
            put("path", text(path));
            put("flags", json!(flags));
            put("mode", json!(mode));
            put("file", json!(file));
        }
        Call::Close { file } => put("file", json!(file)),
        Call::Read { file, at, length } => {
            put("file", json!(file));
            put("offset", json!(at));
            put("length", json!(length));
        }
        Call::Write {
            file,
            at,
            length,
            data,
        } => {
            put("file", json!(file));
            put("offset", json!(at));
            put("length", json!(length));
            if let Some(data) = data {
                put("data", json!(STANDARD.encode(data)));
            }
        }
        Call::Seek {
            file,
            offset,
            whence,
        } => {
            put("file", json!(file));
            put("offset", json!(offset));
            put("whence", json!(whence));
        }
        Call::Sync { file, .. } => put("file", json!(file)),
        Call::Truncate { what, length } => {
            about(what, put);
            put("length", json!(length));
        }
        Call::Allocate {
            file,
            mode,
            offset,
            length,
        } => {
            put("file", json!(file));
            put("mode", json!(mode));
            put("offset", json!(offset));
            put("length", json!(length));
        }
        Call::Stat { what } | Call::Utimes { what } | Call::Statfs { what } => about(what, put),
        Call::Access { path, mode } => {
            put("path", text(path));
            put("mode", json!(mode));
        }
        Call::List { file, length } => {
            put("file", json!(file));
            put("length", json!(length));
        }
        Call::Mkdir { path, mode } | Call::Mknod { path, mode } => {
            put("path", text(path));
            put("mode", json!(mode));
        }
        Call::Rmdir { path } | Call::Unlink { path } | Call::Readlink { path } => {
            put("path", text(path));
        }
        Call::Rename { from, to, flags } => {
            put("path", text(from));
            put("to", text(to));
            put("flags", json!(flags));
        }
        Call::Link { from, to } => {
            put("path", text(from));
            put("to", text(to));
        }
        Call::Symlink { target, path } => {
            put("path", text(path));
            match target {
                LinkTarget::Verbatim(target) => put("target", text(target)),
                LinkTarget::Below(to) => put("to", text(to)),
            }
        }
        Call::Chmod { what, mode } => {
            about(what, put);
            put("mode", json!(mode));
        }
        Call::Chown { what, uid, gid } => {
            about(what, put);
            put("uid", json!(uid));
            put("gid", json!(gid));
        }
        Call::Setxattr {
            what,
            name,
            length,
            flags,
        } => {
            about(what, put);
            put("name", text(name));
            put("length", json!(length));
            put("flags", json!(flags));
        }
        Call::Getxattr { what, name, length } => {
            about(what, put);
            put("name", text(name));
            put("length", json!(length));
        }
        Call::Listxattr { what, length } => {
            about(what, put);
            put("length", json!(length));
        }
        Call::Removexattr { what, name } => {
            about(what, put);
            put("name", text(name));
        }
    }
}

/// Reads such a trace.
pub struct OwnForm {
    reading: Reading,
    begun: bool,
}

impl OwnForm {
    /// Before its first line.
    pub fn new(reading: &Reading) -> OwnForm {
        let names = reading.names.of_a_mount();
        OwnForm {
            reading: Reading {
                names,
                ..reading.clone()
            },
            begun: false,
        }
    }
}

impl Reader for OwnForm {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        let value: Value =
            serde_json::from_slice(line).map_err(|error| format!("not valid JSON: {error}"))?;
        let Value::Object(map) = value else {
            return Err("not a JSON object".to_owned());
        };
        if !self.begun {
            self.begun = true;
            return match map.get("rbench-trace") {
                Some(version) if *version == json!(1) => Ok(()),
                Some(version) => Err(format!(
                    "unknown version {version} of the format (expected 1)"
                )),
                None => Err(format!("the first line is not {HEADER}")),
            };
        }
        let fields = Fields {
            map: &map,
            reading: &self.reading,
        };
        match fields.op(number) {
            Ok(op) => {
                out.push(op);
                Ok(())
            }
            Err(Unmapped::LeftOut(why)) => {
                out.left_out.add(why);
                Ok(())
            }
            Err(Unmapped::Wrong(why)) => Err(why),
        }
    }

    fn end(&mut self, _out: &mut Out) -> Result<(), String> {
        match self.begun {
            true => Ok(()),
            false => Err("the trace is empty".to_owned()),
        }
    }
}

type Found<T> = Result<T, Unmapped>;

fn wrong<T>(why: impl Into<String>) -> Found<T> {
    Err(Unmapped::Wrong(why.into()))
}

/// The fields of a line.
struct Fields<'m> {
    map: &'m Map<String, Value>,
    reading: &'m Reading,
}

impl Fields<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn optional(&self, key: &str) -> Found<Option<u64>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => wrong(format!("'{key}' is not a whole number of at least 0")),
            },
        }
    }

    fn number(&self, key: &str) -> Found<u64> {
        match self.optional(key)? {
            Some(number) => Ok(number),
            None => wrong(format!("'{key}' is missing")),
        }
    }

    /// A length or an offset in a file.
    fn place(&self, key: &str) -> Found<u64> {
        match self.place_if_any(key)? {
            Some(number) => Ok(number),
            None => wrong(format!("'{key}' is missing")),
        }
    }

    fn place_if_any(&self, key: &str) -> Found<Option<u64>> {
        let number = self.optional(key)?;
        match number.is_none_or(|number| i64::try_from(number).is_ok()) {
            true => Ok(number),
            false => wrong(format!("'{key}' exceeds the largest file size")),
        }
    }

    fn small(&self, key: &str) -> Found<u32> {
        let number = self.number(key)?;
        u32::try_from(number).or_else(|_| wrong(format!("'{key}' is too large")))
    }

    fn signed(&self, key: &str) -> Found<i64> {
        match self.get(key).and_then(Value::as_i64) {
            Some(number) => Ok(number),
            None => wrong(format!("'{key}' is not a whole number")),
        }
    }

    fn bytes(&self, key: &str) -> Found<Vec<u8>> {
        match self.get(key) {
            Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
            Some(Value::Object(map)) => match map.get("base64").and_then(Value::as_str) {
                Some(text) => STANDARD
                    .decode(text)
                    .or_else(|_| wrong(format!("'{key}' is not valid base64"))),
                None => wrong(format!("'{key}' is neither a string nor base64")),
            },
            Some(_) => wrong(format!("'{key}' is not a string")),
            None => wrong(format!("'{key}' is missing")),
        }
    }

    /// A path; that of the directory itself is empty.
    fn path(&self, key: &str) -> Found<Name> {
        let mut bytes = self.bytes(key)?;
        if bytes.is_empty() {
            bytes.push(b'.');
        }
        self.reading.names.map(b"/", &bytes)
    }

    fn target(&self) -> Found<Target> {
        match self.optional("file")? {
            Some(file) => Ok(Target::Open(file)),
            None => {
                let follows = self.get("follows").and_then(Value::as_bool);
                Ok(Target::Path(self.path("path")?, follows.unwrap_or(true)))
            }
        }
    }

    fn attribute(&self) -> Found<Name> {
        attribute(&self.bytes("name")?)
    }

    fn op(&self, line: u64) -> Found<Op> {
        let kind = match self.get("kind").and_then(Value::as_str) {
            None => None,
            Some(name) => match KINDS.iter().find(|(known, _)| *known == name) {
                Some((_, kind)) => Some(*kind),
                None => return wrong(format!("'{name}' is not a kind of object")),
            },
        };
        let result = match (self.get("error"), self.place_if_any("returned")?) {
            (Some(error), _) => {
                let name = error.as_str().unwrap_or("");
                match linux::errno(name).or_else(|| name.parse().ok()) {
                    Some(errno) => Outcome::Failed(errno),
                    None => return wrong(format!("{error} is not a Linux error")),
                }
            }
            (None, Some(value)) => Outcome::Done(value),
            (None, None) => Outcome::Unknown,
        };
        let call = self.call()?;
        let implied = self.get("implied").and_then(Value::as_bool);
        let implied = implied.unwrap_or(false);
        if implied && !matches!(call, Call::Open { .. } | Call::Close { .. }) {
            return wrong("only an operation that opens or closes a file may be implied");
        }
        Ok(Op {
            line,
            at: Nanos(self.number("at")?),
            process: self.number("process")?,
            took: self.optional("took")?.map(Nanos),
            result,
            told: Told {
                kind,
                size: self.place_if_any("size")?,
            },
            implied,
            call,
        })
    }

    fn call(&self) -> Found<Call> {
        let name = self.get("op").and_then(Value::as_str).unwrap_or("");
        let kind = OpKind::ALL.iter().find(|kind| kind.name() == name);
        let Some(kind) = kind else {
            return wrong(format!("'{name}' is not an operation of a trace"));
        };
        let file = || self.number("file");
        let mode = || Ok::<u32, Unmapped>(self.small("mode")? & MODES);
        Ok(match kind {
            OpKind::Open => Call::Open {
                path: self.path("path")?,
                flags: self.number("flags")? as i32 & OPEN_FLAGS,
                mode: mode()?,
                file: file()?,
            },
            OpKind::Close => Call::Close { file: file()? },
            OpKind::Read => Call::Read {
                file: file()?,
                at: self.place_if_any("offset")?,
                length: self.place("length")?,
            },
            OpKind::Write => self.write()?,
            OpKind::Seek => Call::Seek {
                file: file()?,
                offset: self.signed("offset")?,
                whence: self.small("whence")?.min(4) as i32,
            },
            OpKind::Fsync | OpKind::Fdatasync => Call::Sync {
                file: file()?,
                data_only: *kind == OpKind::Fdatasync,
            },
            OpKind::Truncate => Call::Truncate {
                what: self.target()?,
                length: self.place("length")?,
            },
            OpKind::Allocate => Call::Allocate {
                file: file()?,
                mode: self.small("mode")? as i32,
                offset: self.place("offset")?,
                length: self.place("length")?,
            },
            OpKind::Stat => Call::Stat {
                what: self.target()?,
            },
            OpKind::Access => Call::Access {
                path: self.path("path")?,
                mode: (self.small("mode")? & 7) as i32,
            },
            OpKind::Readdir => Call::List {
                file: file()?,
                length: self.number("length")?.clamp(1 << 12, 1 << 20),
            },
            OpKind::Mkdir => Call::Mkdir {
                path: self.path("path")?,
                mode: mode()?,
            },
            OpKind::Mknod => Call::Mknod {
                path: self.path("path")?,
                mode: mode()?,
            },
            OpKind::Rmdir => Call::Rmdir {
                path: self.path("path")?,
            },
            OpKind::Unlink => Call::Unlink {
                path: self.path("path")?,
            },
            OpKind::Rename => Call::Rename {
                from: self.path("path")?,
                to: self.path("to")?,
                flags: self.small("flags")?,
            },
            OpKind::Link => Call::Link {
                from: self.path("path")?,
                to: self.path("to")?,
            },
            OpKind::Symlink => self.symlink()?,
            OpKind::Readlink => Call::Readlink {
                path: self.path("path")?,
            },
            OpKind::Chmod => Call::Chmod {
                what: self.target()?,
                mode: mode()?,
            },
            OpKind::Chown => Call::Chown {
                what: self.target()?,
                uid: self.small("uid")?,
                gid: self.small("gid")?,
            },
            OpKind::Utimes => Call::Utimes {
                what: self.target()?,
            },
            OpKind::Statfs => Call::Statfs {
                what: self.target()?,
            },
            OpKind::Setxattr => Call::Setxattr {
                what: self.target()?,
                name: self.attribute()?,
                length: self.number("length")?.min(1 << 16),
                flags: self.small("flags")? as i32,
            },
            OpKind::Getxattr => Call::Getxattr {
                what: self.target()?,
                name: self.attribute()?,
                length: self.number("length")?.min(1 << 16),
            },
            OpKind::Listxattr => Call::Listxattr {
                what: self.target()?,
                length: self.number("length")?.min(1 << 16),
            },
            OpKind::Removexattr => Call::Removexattr {
                what: self.target()?,
                name: self.attribute()?,
            },
            _ => return wrong(format!("'{name}' is not an operation of a trace")),
        })
    }

    fn write(&self) -> Found<Call> {
        let length = self.place("length")?;
        let data = match self.get("data").and_then(Value::as_str) {
            None => None,
            Some(text) => match STANDARD.decode(text) {
                Ok(data) if data.len() as u64 == length => Some(Arc::from(data)),
                Ok(data) => {
                    return wrong(format!("its data has {} bytes, not {length}", data.len()));
                }
                Err(_) => return wrong("its data is not valid base64"),
            },
        };
        Ok(Call::Write {
            file: self.number("file")?,
            at: self.place_if_any("offset")?,
            length,
            data,
        })
    }

    fn symlink(&self) -> Found<Call> {
        let path = self.path("path")?;
        let target = match self.get("to") {
            Some(_) => LinkTarget::Below(self.path("to")?),
            None => {
                let target = self.bytes("target")?;
                let names = &self.reading.names;
                names.target(b"/", &self.bytes("path")?, &target)?
            }
        };
        Ok(Call::Symlink { target, path })
    }
}
