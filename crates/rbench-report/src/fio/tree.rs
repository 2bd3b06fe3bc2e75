//! JSON in fio's layout: ordered keys, floats with six decimals, `"key" : value` on a line of its
//! own.

use std::fmt::Write as _;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// Written without decimals: strict decoders depend on it.
    Int(u64),
    /// Written with six decimals.
    Float(f64),
    /// Text.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, keys in the order of writing.
    Map(Vec<(String, Json)>),
}

impl From<u64> for Json {
    fn from(value: u64) -> Json {
        Json::Int(value)
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Json {
        Json::Float(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Json {
        Json::Text(value.to_owned())
    }
}

impl From<Fields> for Json {
    fn from(fields: Fields) -> Json {
        Json::Map(fields.0)
    }
}

/// The fields of an object.
#[derive(Default)]
pub struct Fields(Vec<(String, Json)>);

impl Fields {
    /// Adds a field.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Json>) -> Fields {
        self.0.push((key.into(), value.into()));
        self
    }

    /// Adds a field if it has a value.
    pub fn with_some(self, key: &str, value: Option<impl Into<Json>>) -> Fields {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

impl Json {
    /// An object with these fields.
    pub fn map<K: Into<String>>(fields: impl IntoIterator<Item = (K, Json)>) -> Json {
        Json::Map(fields.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// The document; ends with a newline.
    pub fn document(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out.push('\n');
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        match self {
            Json::Int(value) => {
                let _ = write!(out, "{value}");
            }
            Json::Float(value) => {
                let _ = write!(out, "{value:.6}");
            }
            Json::Text(text) => out.push_str(&quoted(text)),
            Json::List(items) => enclosed(out, ['[', ']'], depth, items, |item, out| {
                item.write(out, depth + 1);
            }),
            Json::Map(fields) => enclosed(out, ['{', '}'], depth, fields, |(key, value), out| {
                let _ = write!(out, "{} : ", quoted(key));
                value.write(out, depth + 1);
            }),
        }
    }
}

/// Writes items on separate lines, indented by two more blanks than the brackets.
fn enclosed<T>(
    out: &mut String,
    brackets: [char; 2],
    depth: usize,
    items: &[T],
    write: impl Fn(&T, &mut String),
) {
    out.push(brackets[0]);
    for (i, item) in items.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\n{:1$}", "", 2 * (depth + 1));
        write(item, out);
    }
    if items.is_empty() {
        out.push('\n');
    }
    let _ = write!(out, "\n{:1$}{2}", "", 2 * depth, brackets[1]);
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_looks_as_fios() {
        let json = Json::map([
            ("text", Json::from("a \"b\"\n")),
            ("int", Json::from(7_u64)),
            ("float", Json::from(0.5)),
            ("empty", Json::Map(Vec::new())),
            (
                "list",
                Json::List(vec![Json::from(1_u64), Json::from(2_u64)]),
            ),
        ]);
        let expect = r#"{
  "text" : "a \"b\"\n",
  "int" : 7,
  "float" : 0.500000,
  "empty" : {

  },
  "list" : [
    1,
    2
  ]
}
"#;
        assert_eq!(json.document(), expect);
    }
}
