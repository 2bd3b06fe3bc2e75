//! Numbers in fio's formats: short ones with a unit, units of latency, and percentages that never
//! round to 0.

/// A base, and the prefixes of its powers.
pub type Base = (u64, [&'static str; 7]);

/// `4096KiB`
pub const BINARY: Base = (1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
/// `4194kB`
pub const DECIMAL: Base = (1000, ["", "k", "M", "G", "T", "P", "E"]);

/// Divides by `base` until at most `width` digits are left, and adds the decimals that fit. With
/// width 4 and base 1000, 13580 is 13.6 and one power. Returns the digits and the power.
fn shortened(value: u64, base: u64, width: usize) -> (String, usize) {
    let digits = |n: u64| n.checked_ilog10().unwrap_or(0) as usize + 1;
    let (mut whole, mut rest, mut power) = (value, None, 0);
    while digits(whole) > width {
        rest = Some(whole % base);
        whole /= base;
        power += 1;
    }
    let text = match (rest, (width - digits(whole)).saturating_sub(1)) {
        (None, _) => whole.to_string(),
        (Some(rest), 0) => (whole + u64::from(2 * rest >= base)).to_string(),
        (Some(rest), decimals) => {
            // fio rounds the fraction separately: 99.950 is 99.9, 10.050 is 10.1.
            let fraction = format!("{:.decimals$}", rest as f64 / base as f64);
            let (carry, fraction) = fraction.split_once('.').unwrap_or(("0", ""));
            format!("{}.{fraction}", whole + u64::from(carry == "1"))
        }
    };
    (text, power)
}

/// A number of at most `width` characters and a decimal prefix: `5923`,
/// `13.6k`.
pub fn short(value: u64, width: usize) -> String {
    prefixed(value, DECIMAL, width)
}

fn prefixed(value: u64, (base, prefixes): Base, width: usize) -> String {
    let (digits, power) = shortened(value, base, width);
    digits + prefixes[power]
}

/// The format of amounts and rates in the normal output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// `significant_figures`: maximum number of digits.
    pub figures: usize,
    /// `unit_base=1`: bandwidth is in bits.
    pub bits: bool,
}

impl Default for Form {
    /// The defaults of fio.
    fn default() -> Form {
        Form {
            figures: 4,
            bits: false,
        }
    }
}

impl Form {
    /// A number and a decimal prefix.
    pub fn short(self, value: u64) -> String {
        short(value, self.figures)
    }

    /// Bytes: `4096KiB`, `4194kB`.
    pub fn bytes(self, bytes: u64, base: Base) -> String {
        prefixed(bytes, base, self.figures) + "B"
    }

    /// Bandwidth: `448MiB/s`, or in bits `286Mibit/s`.
    pub fn rate(self, bytes_per_s: u64, base: Base) -> String {
        let (value, unit) = match self.bits {
            true => (bytes_per_s.saturating_mul(8), "bit/s"),
            false => (bytes_per_s, "B/s"),
        };
        prefixed(value, base, self.figures) + unit
    }

    /// Bandwidth in both bases: `448MiB/s (469MB/s)`.
    pub fn bandwidth(self, bytes_per_s: u64) -> String {
        let [binary, decimal] = [BINARY, DECIMAL].map(|base| self.rate(bytes_per_s, base));
        format!("{binary} ({decimal})")
    }
}

/// The unit of the latencies in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// `nsec`, `usec` or `msec`.
    pub name: &'static str,
    /// Its length, ns.
    pub ns: u64,
}

const fn unit(name: &'static str, ns: u64) -> Unit {
    Unit { name, ns }
}

const UNITS: [Unit; 3] = [
    unit("nsec", 1),
    unit("usec", 1_000),
    unit("msec", 1_000_000),
];

impl Unit {
    /// The unit for values from `min` to `max` ns: the next larger one if the smallest exceeds 2000
    /// and the largest needs more than 5 digits. A deviation (ns) must exceed 1000, too.
    pub fn of(min: u64, max: u64, stddev: Option<f64>) -> Unit {
        let too_fine = |unit: &Unit| {
            min / unit.ns > 2000
                && max / unit.ns > 99_999
                && stddev.is_none_or(|ns| ns / unit.ns as f64 > 1000.0)
        };
        let enough = UNITS[..2].iter().find(|unit| !too_fine(unit));
        *enough.unwrap_or(&UNITS[2])
    }

    /// `ns` in this unit, rounded up.
    pub fn up(self, ns: u64) -> u64 {
        ns.div_ceil(self.ns)
    }
}

/// `part` of `whole` in percent, at least `trace` if `part` is not 0.
pub fn percent(part: u64, whole: u64, trace: f64) -> f64 {
    if part == 0 || whole == 0 {
        return 0.0;
    }
    (100.0 * part as f64 / whole as f64).max(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_four_characters_and_a_unit() {
        // In the format of fio 3.33.
        let check = |bytes: u64, binary: &str, decimal: &str| {
            let form = Form::default();
            assert_eq!(form.bytes(bytes, BINARY), binary, "{bytes}");
            assert_eq!(form.bytes(bytes, DECIMAL), decimal, "{bytes}");
        };
        check(0, "0B", "0B");
        check(9_999, "9999B", "9999B");
        check(10_000, "9.77KiB", "10.0kB");
        check(10_240, "10.0KiB", "10.2kB");
        check(4 << 20, "4096KiB", "4194kB");
        check(469_000_000, "447MiB", "469MB");
        check(102_348, "99.9KiB", "102kB");
        check(102_349, "100.0KiB", "102kB");
        check(107_307_073_536, "99.9GiB", "107GB");
        check(387_000_000_000, "360GiB", "387GB");
    }

    #[test]
    fn a_half_is_rounded_as_the_fraction_alone_would_be() {
        let check = |bytes: u64, expect: &str| {
            assert_eq!(Form::default().bytes(bytes, DECIMAL), expect);
        };
        check(99_950, "99.9kB");
        check(99_951, "100.0kB");
        check(10_050, "10.1kB");
        check(10_150, "10.1kB");
        check(10_450, "10.5kB");
        check(10_650, "10.7kB");
    }

    #[test]
    fn counts_take_decimal_prefixes() {
        let check =
            |value: u64, width: usize, expect: &str| assert_eq!(short(value, width), expect);
        check(5_923, 4, "5923");
        check(13_580, 4, "13.6k");
        check(369_119, 4, "369k");
        check(481, 6, "481");
        check(8_044_010, 6, "8044.0k");
        check(150_516_411, 6, "150516k");
        check(u64::MAX, 4, "18.4E");
    }

    #[test]
    fn rates_are_in_bits_and_have_as_many_digits_as_asked_for() {
        // In the format of fio 3.33.
        let form = |figures, bits| Form { figures, bits };
        let [bits, two, eight] = [form(4, true), form(2, false), form(8, false)];
        assert_eq!(bits.bandwidth(37_449_142), "286Mibit/s (300Mbit/s)");
        assert_eq!(eight.bandwidth(65_536_000), "65536000B/s (65536000B/s)");
        assert_eq!(two.bandwidth(65_536_000), "63MiB/s (66MB/s)");
        assert_eq!(two.bytes(262_144, BINARY), "0MiB");
        assert_eq!(two.short(16_000), "16k");
        assert_eq!(eight.short(16_000), "16000");
    }

    #[test]
    fn units_grow_where_five_digits_do_not_do() {
        let check = |min: u64, max: u64, stddev: Option<f64>, expect: &str| {
            let name = Unit::of(min, max, stddev).name;
            assert_eq!(name, expect, "{min} {max} {stddev:?}");
        };
        check(2_093, 27_521, Some(1_443.6), "nsec");
        check(481, 8_044_010, Some(395_558.0), "nsec");
        check(51_037, 4_167_983, Some(108_929.8), "usec");
        check(10_290_000, 47_716_000, Some(8_493_123.0), "usec");
        check(150_144_658, 150_198_308, Some(37_936.3), "usec");
        check(150_100_000, 168_900_000, Some(4_690_000.0), "msec");
        check(150_100_000, 150_200_000, None, "msec");
        check(2_096, 125_440, None, "usec");
        check(422, 149_946_368, None, "nsec");
    }

    #[test]
    fn a_trace_is_not_nothing() {
        assert_eq!(percent(0, 10, 0.01), 0.0);
        assert_eq!(percent(1, 1_000_000, 0.01), 0.01);
        assert_eq!(percent(1, 3, 0.1), 100.0 / 3.0);
        assert_eq!(percent(1, 0, 0.1), 0.0);
    }
}
