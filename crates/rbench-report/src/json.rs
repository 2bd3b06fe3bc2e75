//! The result file as text: JSON with a line for each field, and for each
//! host, rank, distribution and row of a timeline.

use std::io;

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

use crate::schema::RunResult;

/// Containers nested deeper than this stay on one line.
const OPEN_DEPTH: usize = 4;

/// Renders the result as readable JSON.
pub fn render(result: &RunResult) -> String {
    pretty(result)
}

/// Renders a value whose types always serialise, in the same layout. Control characters are
/// escaped.
pub fn pretty(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Layout::default());
    value
        .serialize(&mut serializer)
        .expect("the types always serialise");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Rounds to ten digits, which removes rounding errors of the machine.
pub fn digits(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

/// Serialises ten digits of a number; none, and one beyond any number, as null.
pub fn ten_digits<S: Serializer>(
    value: &(impl Into<Option<f64>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*value).into().map(digits).serialize(serializer)
}

/// Indents the outer levels and keeps the inner ones on a line.
#[derive(Default)]
struct Layout {
    depth: usize,
    has_value: bool,
}

impl Layout {
    fn open<W: ?Sized + io::Write>(&mut self, w: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        w.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, w: &mut W, bracket: &[u8]) -> io::Result<()> {
        let broken = self.has_value && self.depth <= OPEN_DEPTH;
        self.depth -= 1;
        if broken {
            self.new_line(w)?;
        }
        w.write_all(bracket)
    }

    fn next<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        match (first, self.depth <= OPEN_DEPTH) {
            (true, true) => self.new_line(w),
            (false, true) => {
                w.write_all(b",")?;
                self.new_line(w)
            }
            (true, false) => Ok(()),
            (false, false) => w.write_all(b", "),
        }
    }

    fn new_line<W: ?Sized + io::Write>(&self, w: &mut W) -> io::Result<()> {
        w.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| w.write_all(b"  "))
    }
}

impl Formatter for Layout {
    /// JSON may contain control characters above ASCII 31 unescaped, but a terminal must not get
    /// them.
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(char::is_control) {
            let (before, from) = rest.split_at(at);
            w.write_all(before.as_bytes())?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                write!(w, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        w.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.open(w, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.close(w, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.next(w, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.open(w, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.close(w, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.next(w, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}
