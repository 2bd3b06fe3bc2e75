//! Expressions in place of numbers: `128*1`, `(4k + 512) / 2`.
//!
//! Owns their grammar: + - * / % ^ and parentheses. How the numbers in them are
//! written is for the caller to say.

/// Most levels of parentheses.
const NESTED: usize = 32;

/// Above it a result is not exact any more.
const EXACT: f64 = (1_u64 << 53) as f64;

/// Returns true if a value is an expression and not a number: a range such as `4k-64k` is neither.
pub fn is_expression(text: &str) -> bool {
    text.trim_start().starts_with('(') || text.contains(['*', '/', '^'])
}

/// The value of an expression whose numbers `number` reads; with `whole` a division leaves
/// no rest. `None` if it is not an expression, is below 0, or too large to be exact.
pub fn evaluate(
    text: &str,
    whole: bool,
    number: &mut dyn FnMut(&str) -> Option<f64>,
) -> Option<f64> {
    let mut reader = Reader {
        rest: text,
        whole,
        number,
    };
    let value = reader.terms(0)?;
    let sound = reader.rest.trim_start().is_empty() && (0.0..EXACT).contains(&value);
    sound.then_some(value)
}

struct Reader<'a, 'n> {
    rest: &'a str,
    whole: bool,
    number: &'n mut dyn FnMut(&str) -> Option<f64>,
}

impl Reader<'_, '_> {
    /// The next character, if it is one of these.
    fn take(&mut self, any: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let next = self.rest.chars().next().filter(|next| any.contains(next))?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn terms(&mut self, nested: usize) -> Option<f64> {
        let mut value = self.factors(nested)?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.factors(nested)?;
            value = match sign {
                '+' => value + next,
                _ => value - next,
            };
        }
        Some(value)
    }

    fn factors(&mut self, nested: usize) -> Option<f64> {
        let mut value = self.power(nested)?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.power(nested)?;
            value = match (sign, next == 0.0) {
                ('*', _) => value * next,
                (_, true) => return None,
                ('/', _) if self.whole => (value / next).trunc(),
                ('/', _) => value / next,
                _ => value % next,
            };
        }
        Some(value)
    }

    fn power(&mut self, nested: usize) -> Option<f64> {
        let base = self.atom(nested)?;
        match self.take(&['^']) {
            Some(_) => Some(base.powf(self.atom(nested)?)),
            None => Some(base),
        }
    }

    fn atom(&mut self, nested: usize) -> Option<f64> {
        if nested > NESTED {
            return None;
        }
        match self.take(&['(', '-']) {
            Some('(') => {
                let value = self.terms(nested + 1)?;
                self.take(&[')']).map(|_| value)
            }
            Some(_) => self.atom(nested + 1).map(|value| -value),
            None => {
                let end = self
                    .rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
                let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                (self.number)(number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_worked_out_and_other_texts_are_not() {
        let value = |text: &str| evaluate(text, true, &mut |digits| digits.parse().ok());
        for (text, expect) in [
            ("8*4096", 32_768.0),
            ("4 * (4096 + 4)/2 - 1", 8199.0),
            ("4096/4", 1024.0),
            ("7", 7.0),
            ("7/2*2", 6.0),
            ("(2^10)", 1024.0),
            ("(7 % 4)", 3.0),
            ("(1 + -1)", 0.0),
        ] {
            assert_eq!(value(text), Some(expect), "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(40), ")".repeat(40));
        let words = "x7 1/0 1-2 (1 1) 2**3 2* 9^99 99999999999999999999";
        for text in words.split(' ').chain(["", &deep]) {
            assert_eq!(value(text), None, "{text}");
        }
        assert_eq!(evaluate("7/2", false, &mut |d| d.parse().ok()), Some(3.5));
    }

    #[test]
    fn a_range_is_no_expression() {
        for (text, expect) in [
            ("4k-64k", false),
            ("0x10", false),
            ("(4k-1k)", true),
            ("2*3", true),
        ] {
            assert_eq!(is_expression(text), expect, "{text}");
        }
    }
}
