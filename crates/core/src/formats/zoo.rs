//! Speeds as the Internet Topology Zoo writes them on the edges of its GraphML.

use crate::quantity::capacity_from_json;
use serde_json::Value;

/// Its attributes that tell a speed: bit/s; a number and the prefix of its unit; and what the operator's map said.
pub(super) const KEYS: [&str; 4] = ["LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits", "LinkLabel"];

/// Bit/s of an OC-1 and of an STM-1.
const SONET: [(&str, f64); 2] = [("OC", 51.84e6), ("STM", 155.52e6)];

/// The speed that the values of [`KEYS`] tell, if they tell one.
pub(super) fn capacity_bps(values: &[Option<String>; 4]) -> Option<f64> {
    let [raw, speed, units, label] = values.each_ref().map(|v| v.as_deref().map(str::trim));
    let raw = raw.and_then(|raw| usable(raw.parse().ok()?));
    let in_units = || usable(speed?.parse::<f64>().ok()? * factor(units?)?);
    raw.or_else(in_units).or_else(|| of_label(label?))
}

fn usable(bps: f64) -> Option<f64> {
    (bps.is_finite() && bps > 0.0).then_some(bps)
}

fn factor(prefix: &str) -> Option<f64> {
    match prefix.chars().next()?.to_ascii_uppercase() {
        'K' => Some(1e3),
        'M' => Some(1e6),
        'G' => Some(1e9),
        'T' => Some(1e12),
        _ => None,
    }
}

/// Labels such as "10 Gbps", "155 Mbit/s", "OC-48", "STM16", "10GE".
fn of_label(label: &str) -> Option<f64> {
    let plain: String = label.chars().filter(|c| !" -<>=~".contains(*c)).collect();
    let upper = plain.to_uppercase();
    for (name, each_bps) in SONET {
        if let Some(count) = upper.strip_prefix(name) {
            return usable(count.trim_end_matches('C').parse::<f64>().ok()? * each_bps);
        }
    }
    if let Some(count) = upper.strip_suffix("GE").or_else(|| upper.strip_suffix("GIGE")) {
        return usable(count.parse::<f64>().ok()? * 1e9);
    }
    if let Ok(bps) = capacity_from_json(&Value::from(plain.as_str())) {
        return Some(bps);
    }
    // "10 Gbit", "2.5 G"
    let end = upper.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upper.len());
    let (count, unit) = upper.split_at(end);
    let known =
        ["G", "GB", "GBIT", "GBITS", "GBIT/S", "M", "MB", "MBIT", "MBITS", "MBIT/S", "K", "KB", "KBIT", "KBIT/S"];
    known.contains(&unit).then(|| usable(count.parse::<f64>().ok()? * factor(unit)?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_zoo() {
        let label = |text: &str| of_label(text);
        for (text, want) in [
            ("10 Gbps", Some(10e9)),
            ("155 Mbit/s", Some(155e6)),
            ("2.5 G", Some(2.5e9)),
            ("OC-48", Some(48.0 * 51.84e6)),
            ("STM16", Some(16.0 * 155.52e6)),
            ("10GE", Some(10e9)),
            ("< 34 Mbps", Some(34e6)),
            ("Fibre", None),
            ("", None),
            ("0 Mbps", None),
        ] {
            assert_eq!(label(text), want, "{text}");
        }
        let some = |text: &str| Some(text.to_string());
        assert_eq!(capacity_bps(&[some("1e9"), None, None, some("10 Gbps")]), Some(1e9));
        assert_eq!(capacity_bps(&[None, some("34"), some("M"), None]), Some(34e6));
        assert_eq!(capacity_bps(&[some("nan"), None, None, None]), None);
    }
}
