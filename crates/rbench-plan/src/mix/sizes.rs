//! Sizes of the files of a set: a pure function of seed and name, so that every worker knows
//! the size of every file.

use rbench_core::Bytes;
use rbench_core::random::Stream;

/// Sizes of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All files have this size.
    Fixed(Bytes),
    /// Gamma distribution with this mean and the shape 1.5, like filebench.
    Gamma(Bytes),
    /// Exponential distribution with this mean, cut at 8 times the mean, like smallfile.
    Exponential(Bytes),
}

/// Shape of the gamma distribution.
const SHAPE: f64 = 1.5;

impl Sizes {
    /// The given mean in bytes. The cut makes the mean of exponential sizes smaller by a
    /// thirtieth of a percent.
    pub fn mean(self) -> u64 {
        match self {
            Sizes::Fixed(Bytes(size))
            | Sizes::Gamma(Bytes(size))
            | Sizes::Exponential(Bytes(size)) => size,
        }
    }

    /// Returns the distribution with the mean multiplied by `by`, at least a byte unless the mean
    /// is 0.
    pub fn scaled(self, by: f64) -> Sizes {
        let scale = |Bytes(size): Bytes| {
            let least = size.min(1);
            Bytes(((size as f64 * by).round() as u64).max(least))
        };
        match self {
            Sizes::Fixed(size) => Sizes::Fixed(scale(size)),
            Sizes::Gamma(size) => Sizes::Gamma(scale(size)),
            Sizes::Exponential(size) => Sizes::Exponential(scale(size)),
        }
    }

    /// The size of a file in bytes, drawn from its own stream.
    pub fn of(self, parts: &[u64]) -> u64 {
        match self {
            Sizes::Fixed(Bytes(size)) => size,
            Sizes::Gamma(Bytes(mean)) => {
                let mut stream = Stream::new(parts);
                positive(gamma(&mut stream, SHAPE) * mean as f64 / SHAPE)
            }
            Sizes::Exponential(Bytes(mean)) => {
                let mut stream = Stream::new(parts);
                let drawn = stream.exponential() * mean as f64;
                positive(drawn.min(8.0 * mean as f64))
            }
        }
    }

    /// Description for people.
    pub fn describe(self) -> String {
        match self {
            Sizes::Fixed(size) => size.to_string(),
            Sizes::Gamma(mean) => format!("{mean} on average, gamma distributed"),
            Sizes::Exponential(mean) => format!("{mean} on average, exponentially distributed"),
        }
    }
}

fn positive(bytes: f64) -> u64 {
    (bytes.round() as u64).max(1)
}

/// A gamma distributed number of that shape (at least 1) and scale 1 (Marsaglia, Tsang 2000).
fn gamma(stream: &mut Stream, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        // A normally distributed number (Box, Muller 1958).
        let radius = (-2.0 * stream.unit().ln()).sqrt();
        let x = radius * (std::f64::consts::TAU * stream.unit()).cos();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && stream.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(sizes: Sizes) -> (f64, f64, u64) {
        let all: Vec<u64> = (0..40_000).map(|n| sizes.of(&[7, n])).collect();
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        let square = |size: &u64| (*size as f64 - mean).powi(2);
        let variance = all.iter().map(square).sum::<f64>() / all.len() as f64;
        (
            mean,
            variance.sqrt() / mean,
            all.iter().copied().max().unwrap_or(0),
        )
    }

    #[test]
    fn sizes_have_their_mean_and_spread() {
        let mean = 100_000;
        let (got, spread, _) = moments(Sizes::Gamma(Bytes(mean)));
        assert!((got / mean as f64 - 1.0).abs() < 0.02, "{got}");
        // 1 / sqrt(shape)
        assert!((spread - 0.8165).abs() < 0.02, "{spread}");
        let (got, spread, most) = moments(Sizes::Exponential(Bytes(mean)));
        assert!((got / mean as f64 - 1.0).abs() < 0.02, "{got}");
        assert!((spread - 1.0).abs() < 0.03, "{spread}");
        assert_eq!(most, 8 * mean);
        assert_eq!(moments(Sizes::Fixed(Bytes(5))), (5.0, 0.0, 5));
    }

    #[test]
    fn the_size_of_a_file_is_always_the_same() {
        let sizes = Sizes::Gamma(Bytes(1000));
        assert_eq!(sizes.of(&[1, 2]), sizes.of(&[1, 2]));
        assert_ne!(sizes.of(&[1, 2]), sizes.of(&[1, 3]));
    }

    #[test]
    fn a_part_of_a_size_is_no_empty_file() {
        let check = |size: u64, by: f64, expect: u64| {
            assert_eq!(Sizes::Fixed(Bytes(size)).scaled(by).mean(), expect);
        };
        check(1000, 0.5, 500);
        check(10, 0.001, 1);
        check(0, 0.5, 0);
    }
}
