//! Link speeds in the Internet Topology Zoo's edge attributes and in labels of operators' maps.

use crate::quantity::capacity_from_json;
use serde_json::Value;

/// Speed attributes of the Topology Zoo: rate in bit/s, number, unit prefix, and the label of the operator's map.
pub(super) const KEYS: [&str; 4] = ["LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits", "LinkLabel"];

/// Speed of an edge, read from its attributes, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Speed {
    /// A single speed.
    One(f64),
    /// Lowest and highest speed of a range or of two alternatives.
    Range(f64, f64),
}

impl Speed {
    fn of(least: f64, most: f64) -> Self {
        if most <= least * ALIKE { Speed::One(least) } else { Speed::Range(least, most) }
    }

    /// Whether `bps` is this speed, or lies in this range.
    pub(super) fn agrees(self, bps: f64) -> bool {
        let (Speed::One(least) | Speed::Range(least, _)) = self;
        let (Speed::One(most) | Speed::Range(_, most)) = self;
        bps * ALIKE >= least && bps <= most * ALIKE
    }
}

/// Ratio below which two speeds count as equal, such as 45 Mb/s and a DS-3 of 44.736.
const ALIKE: f64 = 1.05;

/// Speeds named by letters and a level, such as DS-3. For each: the letters, the speeds of levels 0, 1, ..., and the
/// speed that a higher level multiplies, all in bit/s. OC-48 is 48 times 51.84 Mb/s.
const CARRIERS: [(&str, &[f64], f64); 5] = [
    ("STM", &[], 155.52e6),
    ("OC", &[], 51.84e6),
    ("DS", &[64e3, 1.544e6, 6.312e6, 44.736e6], 0.0),
    ("T", &[0.0, 1.544e6, 6.312e6, 44.736e6], 0.0),
    ("E", &[64e3, 2.048e6, 8.448e6, 34.368e6, 139.264e6], 0.0),
];

/// The speed given by the values of [`KEYS`], if any.
pub(super) fn speed(values: &[Option<String>; 4]) -> Option<Speed> {
    let [raw, speed, units, label] = values.each_ref().map(|v| v.as_deref().map(str::trim));
    let label = label.and_then(of_label);
    // For a range in the label, the numeric attributes hold only one of its ends.
    if let Some(Speed::Range(..)) = label {
        return label;
    }
    let raw = raw.and_then(|raw| usable(raw.parse().ok()?)).map(Speed::One);
    raw.or_else(|| of_numbers(speed, units)).or(label)
}

/// The speed given by the number and the unit prefix.
fn of_numbers(speed: Option<&str>, units: Option<&str>) -> Option<Speed> {
    of_label(&format!("{}{}bps", speed?, units?.chars().next()?))
}

/// Why the values of [`KEYS`] are doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubtful {
    /// The raw speed is 0, or no speed at all.
    NoSpeed,
    /// The numbers and the label tell different speeds.
    Contradicts,
}

/// Whether the values of [`KEYS`] are doubtful.
pub(super) fn doubtful(values: &[Option<String>; 4]) -> Option<Doubtful> {
    let [raw, speed, units, label] = values.each_ref().map(|v| v.as_deref().map(str::trim));
    let read = raw.and_then(|raw| usable(raw.parse().ok()?)).map(Speed::One);
    if raw.is_some_and(|raw| !raw.is_empty()) && read.is_none() {
        return Some(Doubtful::NoSpeed);
    }
    let contradicts = match (read.or_else(|| of_numbers(speed, units)), label.and_then(of_label)) {
        (Some(Speed::One(bps)), Some(label)) => !label.agrees(bps),
        _ => false,
    };
    contradicts.then_some(Doubtful::Contradicts)
}

fn usable(bps: f64) -> Option<f64> {
    (bps.is_finite() && bps > 0.0).then_some(bps)
}

/// A token of a label.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// A speed in bit/s, and one of its unit in bit/s, which also applies to the first number of "2-10 Gbps".
    Speed(f64, f64),
    /// A number without a unit.
    Number(f64),
    Times,
    To,
    Or,
}

/// Parses labels such as "10 Gbps", "OC-48", "2 x 10GE", "45 Mbps DS-3", "OC192/STM64", "155 Mbit/s - 2.5 G".
fn of_label(label: &str) -> Option<Speed> {
    let pieces = pieces(label)?;
    let mut speeds: Vec<f64> = Vec::new();
    let mut rest = &pieces[..];
    let mut is_range = false;
    while let Some(first) = rest.first() {
        rest = match rest {
            [Piece::Number(count), Piece::Times, Piece::Speed(each, _), ..]
            | [Piece::Speed(each, _), Piece::Times, Piece::Number(count), ..] => {
                speeds.push(usable(count * each)?);
                &rest[3..]
            }
            [Piece::Number(from), Piece::To, Piece::Speed(to, unit), ..] => {
                speeds.extend([usable(from * unit)?, *to]);
                is_range = true;
                &rest[3..]
            }
            [Piece::Number(_) | Piece::Times, ..] => return None,
            _ => {
                match first {
                    Piece::Speed(bps, _) => speeds.push(*bps),
                    Piece::To => is_range |= !speeds.is_empty() && rest.len() > 1,
                    _ => {}
                }
                &rest[1..]
            }
        };
    }
    let least = speeds.iter().copied().reduce(f64::min)?;
    let most = speeds.iter().copied().fold(least, f64::max);
    Some(if is_range && most > least { Speed::Range(least, most) } else { Speed::of(least, most) })
}

/// Splits a label into tokens; `None` if a number belongs to no speed.
fn pieces(label: &str) -> Option<Vec<Piece>> {
    let plain = label
        .replace(['\u{2013}', '\u{2014}', '\u{2212}'], "-")
        .replace('\u{d7}', "x")
        .replace("...", "-")
        .replace("..", "-");
    let mut pieces = Vec::new();
    let mut rest = plain.trim();
    let mut is_in_word = false;
    while let Some(c) = rest.chars().next() {
        let (piece, length) = if c.is_ascii_digit() || c == '.' {
            number(rest)?
        } else if c.is_ascii_alphabetic() {
            if is_vague(rest) {
                return None;
            }
            // "2xOC-48": the letter belongs to the number.
            match multiplied(rest).filter(|_| matches!(pieces.last(), Some(Piece::Number(_)))) {
                Some(length) => (Some(Piece::Times), length),
                None => word(rest),
            }
        } else {
            let next = rest[c.len_utf8()..].trim_start();
            let is_sign = pieces.is_empty() && !is_in_word && rest[c.len_utf8()..].starts_with(is_of_number);
            let piece = match c {
                '-' | '+' if is_sign => return None,
                // An open end, such as "10G+".
                '-' if next.is_empty() => return None,
                '+' if !next.starts_with(is_of_number) && !matches!(word(next).0, Some(Piece::Speed(..))) => {
                    return None;
                }
                // A bound such as "< 1G", or an estimate such as "~ 1G", is no speed.
                '<' | '>' | '\u{2264}' | '\u{2265}' | '~' | '\u{2248}' | '?' => return None,
                '-' => Some(Piece::To),
                '*' => Some(Piece::Times),
                '/' | ',' | ';' | '+' | '&' => Some(Piece::Or),
                _ => None,
            };
            (piece, c.len_utf8())
        };
        pieces.extend(piece);
        is_in_word = rest[..length].ends_with(char::is_alphanumeric) && !rest[length..].starts_with(' ');
        rest = rest[length..].trim_start();
    }
    Some(pieces)
}

/// Whether a number starts with `c`.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Length of the "x" at the start of `text`, if the name of a speed follows it.
fn multiplied(text: &str) -> Option<usize> {
    let named = text.strip_prefix(['x', 'X'])?;
    matches!(word(named).0, Some(Piece::Speed(..))).then_some(1)
}

/// Parses a number and its unit at the start of `text`; also returns the length parsed.
fn number(text: &str) -> Option<(Option<Piece>, usize)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let mut end = digits;
    let exponent = text[end..].strip_prefix(['e', 'E']).map(|after| after.trim_start_matches(['+', '-']));
    if let Some(after) = exponent.filter(|after| after.starts_with(|c: char| c.is_ascii_digit())) {
        let tail = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        end = text.len() - after.len() + tail;
    }
    let value: f64 = text[..end].parse().ok()?;
    let between = text[end..].trim_start_matches([' ', '-']).len();
    let after = &text[text.len() - between..];
    let unit_end = after.find(|c: char| !c.is_ascii_alphabetic() && c != '/').unwrap_or(after.len());
    let mut unit = &after[..unit_end];
    // "155Mbps/622Mbps" and "OC192/STM64" have a slash that belongs to no unit.
    if let Some((before, behind)) = unit.split_once('/')
        && !matches!(behind.to_ascii_lowercase().as_str(), "s" | "sec")
    {
        unit = before;
    }
    match in_unit(&text[..end], value, unit) {
        Some(bps) => {
            let piece = Piece::Speed(usable(bps)?, in_unit("1", 1.0, unit)?);
            Some((Some(piece), text.len() - between + unit.len()))
        }
        None => Some((Some(Piece::Number(value)), end)),
    }
}

/// Parses a rate with a unit of bits, such as "Gbps", "G", "GE", "Mbit/s".
fn in_unit(digits: &str, value: f64, unit: &str) -> Option<f64> {
    // "Bs" would be bytes, which operators' labels do not use; in "MBPS" the case carries no meaning.
    if unit.get(1..).is_some_and(|tail| matches!(tail, "Bs" | "Bps" | "B/s" | "B/sec")) {
        return None;
    }
    if let Ok(bps) = capacity_from_json(&Value::from(format!("{digits}{unit}")))
        && !unit.is_empty()
    {
        return Some(bps);
    }
    let upper = unit.to_ascii_uppercase();
    let (prefix, tail) = upper.split_at_checked(1)?;
    let factor = match prefix {
        "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    let tails = [
        "", "B", "BS", "BPS", "B/S", "B/SEC", "BIT", "BITS", "BIT/S", "BITS/S", "BIT/SEC", "BITPS", "BE", "E", "IGE",
        "IG", "IGABIT", "IGABITS", "EG", "EGABIT", "EGABITS", "BASE",
    ];
    tails.contains(&tail).then_some(value * factor)
}

/// Whether `text` starts with a word after which a speed is a bound, an estimate or one of an unknown number.
fn is_vague(text: &str) -> bool {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(letters);
    match word.to_ascii_lowercase().as_str() {
        "up" => rest.trim_start().get(..2).is_some_and(|next| next.eq_ignore_ascii_case("to")),
        "several" | "multiple" | "many" | "some" | "about" | "approx" | "approximately" | "circa" | "ca" | "max"
        | "maximum" | "min" | "minimum" | "least" | "most" | "less" | "more" | "dual" | "double" | "triple"
        | "quad" | "half" | "pair" | "two" | "three" | "no" | "decommissioned" | "ieee" => true,
        _ => false,
    }
}

/// Parses a word at the start of `text`: a named speed, a separator or a filler; also returns its length.
fn word(text: &str) -> (Option<Piece>, usize) {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let upper = text[..letters].to_ascii_uppercase();
    let between = text[letters..].strip_prefix(['-', ' ']).unwrap_or(&text[letters..]);
    let digits = between.find(|c: char| !c.is_ascii_digit()).unwrap_or(between.len());
    let end = text.len() - between.len() + digits;
    if let (Ok(level), Some((_, levels, each))) =
        (between[..digits].parse::<usize>(), CARRIERS.iter().find(|(name, ..)| *name == upper))
    {
        let bps = levels.get(level).copied().unwrap_or(level as f64 * each);
        let concatenated =
            text[end..].starts_with(['c', 'C']) && !text[end + 1..].starts_with(|c: char| c.is_alphanumeric());
        return (usable(bps).map(|bps| Piece::Speed(bps, *each)), end + usize::from(concatenated));
    }
    let piece = match upper.as_str() {
        "X" | "NX" => Some(Piece::Times),
        // "nx2Mbps" is an unknown multiple.
        many if many.ends_with('X') && text[letters..].starts_with(|c: char| c.is_ascii_digit()) => Some(Piece::Times),
        "TO" => Some(Piece::To),
        "GE" | "GIGE" | "GBE" => Some(Piece::Speed(1e9, 1e9)),
        "FE" => Some(Piece::Speed(1e8, 1e8)),
        _ => None,
    };
    (piece, letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_one_speed() {
        for (text, want) in [
            ("10 Gbps", Some(10e9)),
            ("155 Mbit/s", Some(155e6)),
            ("2.5 G", Some(2.5e9)),
            ("OC-48", Some(48.0 * 51.84e6)),
            ("OC-12c", Some(12.0 * 51.84e6)),
            ("STM16", Some(16.0 * 155.52e6)),
            ("10GE", Some(10e9)),
            ("GigE", Some(1e9)),
            ("100-Mbps", Some(1e8)),
            ("< 34 Mbps", None),
            ("10G?", None),
            ("dual 10G", None),
            ("pair of 10G", None),
            ("no longer 10G", None),
            ("decommissioned 10G", None),
            ("IEEE 802.11g", None),
            (">=1Gbps", None),
            ("\u{2265} 10G", None),
            ("10 GB/s", None),
            ("10GBps", None),
            ("2x10GB/s", None),
            ("nx2Mbps", None),
            ("NX10G", None),
            ("Telex 10 Gbps", Some(10e9)),
            ("100 MBPS", Some(1e8)),
            ("155Mbs", Some(155e6)),
            ("~10G", None),
            ("several", None),
            ("several 10GE", None),
            ("Multiple 2.5 Gbps", None),
            ("up to 10 Gbps", None),
            ("Up To 155Mbps", None),
            ("uplink 10 Gbps", Some(10e9)),
            ("at least 1 Gbps", None),
            ("approx. 1 Gbps", None),
            ("45 Mbps DS-3", Some(44.736e6)),
            ("DS3", Some(44.736e6)),
            ("E3", Some(34.368e6)),
            ("T1", Some(1.544e6)),
            ("OC192/STM64", Some(192.0 * 51.84e6)),
            ("STM-64 (10 Gbps)", Some(64.0 * 155.52e6)),
            ("2x10Gb/s", Some(20e9)),
            ("2 x 10GE", Some(20e9)),
            ("4*2.5G", Some(10e9)),
            ("10GE x 2", Some(20e9)),
            ("2 \u{d7} STM-16", Some(32.0 * 155.52e6)),
            ("2xOC-48", Some(96.0 * 51.84e6)),
            ("4xE1", Some(4.0 * 2.048e6)),
            ("3 xDS3", Some(3.0 * 44.736e6)),
            ("2XSTM-16", Some(32.0 * 155.52e6)),
            ("2xGigE", Some(2e9)),
            ("E1x4", Some(4.0 * 2.048e6)),
            ("nx OC-48", None),
            ("nxE1", None),
            ("xe-1/0/0 10G", None),
            ("-10Gbps", None),
            ("\u{2212}10 Gbps", None),
            ("+10G", None),
            ("Fibre (-2.5G)", None),
            ("10G+", None),
            ("10 Gbps + (leased)", None),
            ("OC-48+", None),
            ("1Gbps+ leased", None),
            ("155Mbps -", None),
            ("AARNET-10Gbps", Some(10e9)),
            ("Fibre - 10 Gbps", Some(10e9)),
            ("10 Gbps - leased", Some(10e9)),
            ("10G + 10G", Some(10e9)),
            ("IRU 10 Gbps leased", Some(10e9)),
            ("Fibre", None),
            ("", None),
            ("0 Mbps", None),
            ("n x 10G", None),
            ("1995", None),
            ("10 Gbps (2011)", None),
            ("1e400 Gbps", None),
        ] {
            assert_eq!(of_label(text), want.map(Speed::One), "{text}");
        }
    }

    #[test]
    fn a_range_is_two_speeds() {
        for (text, least, most) in [
            ("1-20Gbps", 1e9, 20e9),
            ("70-154Mbps", 70e6, 154e6),
            ("10 - 20 Gbps", 10e9, 20e9),
            ("155Mbps-2.5Gbps", 155e6, 2.5e9),
            ("2.5 to 10 G", 2.5e9, 10e9),
            ("34\u{2013}45 Mbit/s", 34e6, 45e6),
            ("OC-3 - OC-12", 3.0 * 51.84e6, 12.0 * 51.84e6),
            ("10G/1G", 1e9, 10e9),
            ("155 Mbps, 622 Mbps", 155e6, 622e6),
            ("1..10Gbps", 1e9, 10e9),
            ("155Mbs/1Gbps", 155e6, 1e9),
            ("155 Mbps -622 Mbps", 155e6, 622e6),
            ("OC-3 + OC-12", 3.0 * 51.84e6, 12.0 * 51.84e6),
        ] {
            assert_eq!(of_label(text), Some(Speed::Range(least, most)), "{text}");
        }
    }

    #[test]
    fn the_label_tells_of_a_range_that_numbers_hide() {
        let some = |text: &str| Some(text.to_string());
        assert_eq!(speed(&[some("1e9"), None, None, some("10 Gbps")]), Some(Speed::One(1e9)));
        assert_eq!(speed(&[None, some("34"), some("M"), None]), Some(Speed::One(34e6)));
        assert_eq!(speed(&[None, some("1-20"), some("G"), None]), Some(Speed::Range(1e9, 20e9)));
        assert_eq!(speed(&[some("120e9"), None, None, some("1-20Gbps")]), Some(Speed::Range(1e9, 20e9)));
        assert_eq!(speed(&[some("nan"), None, None, None]), None);
    }

    #[test]
    fn numbers_that_tell_no_speed_or_another_than_the_label_are_doubtful() {
        let some = |text: &str| Some(text.to_string());
        for (values, want) in [
            ([some("0"), None, None, some("10 Gbps")], Some(Doubtful::NoSpeed)),
            ([some("n/a"), None, None, None], Some(Doubtful::NoSpeed)),
            ([some("-1e9"), some("1"), some("G"), None], Some(Doubtful::NoSpeed)),
            ([some("1e9"), None, None, some("10 Gbps")], Some(Doubtful::Contradicts)),
            ([None, some("1"), some("G"), some("10 Gbps")], Some(Doubtful::Contradicts)),
            ([some("30e9"), None, None, some("1-20Gbps")], Some(Doubtful::Contradicts)),
            ([some("1e9"), None, None, some("1-20Gbps")], None),
            ([some("1e9"), None, None, some("GigE")], None),
            ([some("1e9"), None, None, some("Fibre")], None),
            ([None, None, None, some("10 Gbps")], None),
            ([some(""), None, None, None], None),
        ] {
            assert_eq!(doubtful(&values), want, "{values:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_label_panics(text in "[-0-9.xX* /,GMKTbpsEeOCSTMDF\\PC]{0,16}") {
            if let Some(Speed::One(a) | Speed::Range(a, _)) = of_label(&text) {
                proptest::prop_assert!(a.is_finite() && a > 0.0);
            }
        }
    }
}
