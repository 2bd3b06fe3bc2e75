//! rbench's own traces (`rbench record`): a line of JSON for each operation, documented in
//! docs/replay.md. Writing and reading.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rbench_core::{By, Call, Nanos, OpKind, OpenFlags, linux};
use serde_json::{Map, Value, json};

use super::names::{Unmapped, attribute};
use super::{Kind, MODES, Name, Op, Other, Out, Outcome, Reader, Reading, Target, Told};

/// The first line: name and version of the format.
pub const HEADER: &str = "{\"rbench-trace\":1}";

/// Names of the kinds of objects.
const KINDS: [(&str, Kind); 3] = [
    ("file", Kind::File),
    ("directory", Kind::Directory),
    ("link", Kind::Link),
];

/// The line of an operation, with its line end. Times are in ns since `origin`.
pub fn line(op: &Op, origin: Nanos) -> Vec<u8> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    put("at", json!(op.at.since(origin).0));
    put("process", json!(op.process));
    put("op", json!(op.call.op().name()));
    let (returned, error) = match op.result {
        Outcome::Unknown => (None, None),
        Outcome::Done(value) => (Some(json!(value)), None),
        Outcome::Failed(errno) => (None, Some(json!(linux::errno_name(errno)))),
    };
    let named = |kind: Kind| KINDS.iter().find(|(_, known)| *known == kind);
    let kind = op.told.kind.and_then(named).map(|(name, _)| json!(name));
    let optional = [
        ("took", op.took.map(|took| json!(took.0))),
        ("returned", returned),
        ("error", error),
        ("kind", kind),
        ("size", op.told.size.map(|size| json!(size))),
        ("implied", op.implied.then_some(json!(true))),
        ("path", op.path.as_deref().map(text)),
        ("file", op.file.map(|file| json!(file))),
        ("length", op.length.map(|length| json!(length))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            put(key, value);
        }
    }
    match (&op.other, op.call) {
        (Other::Nothing, _) => {}
        (Other::Path(to), _) => put("to", text(to)),
        (Other::Bytes(target), Call::Symlink) => put("target", text(target)),
        (Other::Bytes(data), _) if op.writes() => put("data", json!(STANDARD.encode(data))),
        (Other::Bytes(name), _) => put("name", text(name)),
    }
    put_parameters(op.call, &mut put);
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

fn put_parameters(call: Call, put: &mut dyn FnMut(&str, Value)) {
    match call {
        Call::Open(OpenFlags { bits, mode }) => {
            put("flags", json!(bits));
            put("mode", json!(mode));
        }
        Call::Read | Call::Write => put("offset", Value::Null),
        Call::ReadAt(offset) | Call::WriteAt(offset) => put("offset", json!(offset)),
        Call::Seek(offset, whence) => {
            put("offset", json!(offset));
            put("whence", json!(whence));
        }
        Call::Truncate(_, length) => put("length", json!(length)),
        Call::Allocate {
            mode,
            offset,
            length,
        } => {
            put("mode", json!(mode));
            put("offset", json!(offset));
            put("length", json!(length));
        }
        Call::Access(mode) => put("mode", json!(mode)),
        Call::Mkdir(mode) | Call::Mknod(mode) | Call::Chmod(_, mode) => put("mode", json!(mode)),
        Call::Chown(_, uid, gid) => {
            put("uid", json!(uid));
            put("gid", json!(gid));
        }
        Call::Rename(flags) => put("flags", json!(flags)),
        Call::Setxattr(_, _, flags) => put("flags", json!(flags)),
        _ => {}
    }
    if let Some(by @ (By::Path | By::Link)) = call.by() {
        put("follows", json!(by == By::Path));
    }
}

/// Reader of such a trace.
pub struct OwnForm {
    reading: Reading,
    begun: bool,
}

impl OwnForm {
    /// Creates a reader before its first line.
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
        if let Some(op) = out.mapped(fields.op(number))? {
            out.push(op);
        }
        Ok(())
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

fn needed<T>(key: &str, value: Option<T>) -> Found<T> {
    value.ok_or_else(|| Unmapped::Wrong(format!("'{key}' is missing")))
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
        needed(key, self.optional(key)?)
    }

    /// A length or an offset in a file.
    fn place(&self, key: &str) -> Found<u64> {
        needed(key, self.place_if_any(key)?)
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
            None => needed(key, None),
        }
    }

    /// A path; the path of the directory itself is empty.
    fn path(&self, key: &str) -> Found<Name> {
        let mut bytes = self.bytes(key)?;
        if bytes.is_empty() {
            bytes.push(b'.');
        }
        self.reading.names.map(b"/", &bytes)
    }

    fn target(&self) -> Found<Target> {
        match self.optional("file")? {
            Some(file) => Ok(Target::File(file)),
            None => match self.get("follows").and_then(Value::as_bool) {
                Some(false) => Ok(Target::Link(self.path("path")?)),
                Some(true) | None => Ok(Target::Path(self.path("path")?)),
            },
        }
    }

    fn attribute(&self) -> Found<Other> {
        Ok(Other::Bytes(attribute(&self.bytes("name")?)?))
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
        let op = self.call()?;
        let implied = self.get("implied").and_then(Value::as_bool);
        let implied = implied.unwrap_or(false);
        if implied && !matches!(op.call, Call::Open(_) | Call::Close) {
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
            ..op
        })
    }

    fn call(&self) -> Found<Op> {
        let name = self.get("op").and_then(Value::as_str).unwrap_or("");
        let kind = OpKind::ALL.iter().find(|kind| kind.name() == name);
        let Some(kind) = kind else {
            return wrong(format!("'{name}' is not an operation of a trace"));
        };
        let on_path = |call: Call| Ok::<_, Unmapped>(Op::on_path(self.path("path")?, call));
        let on_file = |call: Call| Ok::<_, Unmapped>(Op::on_file(self.number("file")?, call));
        let mode = || Ok::<u32, Unmapped>(self.small("mode")? & MODES);
        // Room for names and values.
        let room = || Ok::<u64, Unmapped>(self.number("length")?.min(1 << 16));
        Ok(match kind {
            OpKind::Open => {
                let (path, flags) = (self.path("path")?, self.number("flags")? as i32);
                Op::opening(path, (flags, mode()?), self.number("file")?)
            }
            OpKind::Close => on_file(Call::Close)?,
            OpKind::Read => {
                let (file, at) = (self.number("file")?, self.place_if_any("offset")?);
                Op::on_file(file, at.map_or(Call::Read, Call::ReadAt)).moving(self.place("length")?)
            }
            OpKind::Write => self.write()?,
            OpKind::Seek => Op::on_file(
                self.number("file")?,
                Call::Seek(self.signed("offset")?, self.small("whence")?.min(4) as i32),
            ),
            OpKind::Fsync => on_file(Call::Fsync)?,
            OpKind::Fdatasync => on_file(Call::Fdatasync)?,
            OpKind::Truncate => {
                let (on, length) = (self.target()?, self.place("length")?);
                on.op(|by| Call::Truncate(by, length))
            }
            OpKind::Allocate => Op::on_file(
                self.number("file")?,
                Call::Allocate {
                    mode: self.small("mode")? as i32,
                    offset: self.place("offset")?,
                    length: self.place("length")?,
                },
            ),
            OpKind::Stat => self.target()?.op(Call::Stat),
            OpKind::Access => {
                let (path, mode) = (self.path("path")?, self.small("mode")? & 7);
                Op::on_path(path, Call::Access(mode as i32))
            }
            OpKind::Readdir => {
                on_file(Call::Readdir)?.moving(self.number("length")?.clamp(1 << 12, 1 << 20))
            }
            OpKind::Mkdir => Op::on_path(self.path("path")?, Call::Mkdir(mode()?)),
            OpKind::Mknod => Op::on_path(self.path("path")?, Call::Mknod(mode()?)),
            OpKind::Rmdir => on_path(Call::Rmdir)?,
            OpKind::Unlink => on_path(Call::Unlink)?,
            OpKind::Rename => {
                let (path, to) = (self.path("path")?, self.path("to")?);
                Op::on_path(path, Call::Rename(self.small("flags")?)).with(Other::Path(to))
            }
            OpKind::Link => on_path(Call::Link)?.with(Other::Path(self.path("to")?)),
            OpKind::Symlink => on_path(Call::Symlink)?.with(self.link_target()?),
            OpKind::Readlink => on_path(Call::Readlink)?,
            OpKind::Chmod => {
                let (on, mode) = (self.target()?, mode()?);
                on.op(|by| Call::Chmod(by, mode))
            }
            OpKind::Chown => {
                let (on, uid, gid) = (self.target()?, self.small("uid")?, self.small("gid")?);
                on.op(|by| Call::Chown(by, uid, gid))
            }
            OpKind::Utimes => self.target()?.op(|by| Call::Utimes(by, None)),
            OpKind::Statfs => self.target()?.op(Call::Statfs),
            OpKind::Setxattr => {
                let (on, name, length) = (self.target()?, self.attribute()?, room()?);
                let flags = self.small("flags")? as i32;
                on.op(|by| Call::Setxattr(by, None, flags))
                    .with(name)
                    .moving(length)
            }
            OpKind::Getxattr => {
                let op = self.target()?.op(|by| Call::Getxattr(by, None));
                op.with(self.attribute()?).moving(room()?)
            }
            OpKind::Listxattr => self.target()?.op(Call::Listxattr).moving(room()?),
            OpKind::Removexattr => {
                let op = self.target()?.op(|by| Call::Removexattr(by, None));
                op.with(self.attribute()?)
            }
            _ => return wrong(format!("'{name}' is not an operation of a trace")),
        })
    }

    fn write(&self) -> Found<Op> {
        let length = self.place("length")?;
        let data = match self.get("data").and_then(Value::as_str) {
            None => Other::Nothing,
            Some(text) => match STANDARD.decode(text) {
                Ok(data) if data.len() as u64 == length => Other::Bytes(Arc::from(data)),
                Ok(data) => {
                    return wrong(format!("its data has {} bytes, not {length}", data.len()));
                }
                Err(_) => return wrong("its data is not valid base64"),
            },
        };
        let (file, at) = (self.number("file")?, self.place_if_any("offset")?);
        let op = Op::on_file(file, at.map_or(Call::Write, Call::WriteAt));
        Ok(op.moving(length).with(data))
    }

    fn link_target(&self) -> Found<Other> {
        match self.get("to") {
            Some(_) => Ok(Other::Path(self.path("to")?)),
            None => {
                let target = self.bytes("target")?;
                let names = &self.reading.names;
                names.target(b"/", &self.bytes("path")?, &target)
            }
        }
    }
}
