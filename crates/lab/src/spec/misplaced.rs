//! Hints for keys in the wrong section of a spec.

use super::ROOT;
use subak_core::InputError;
use subak_core::keys::{Key, ValueType};

/// Keys that only some kinds of network or workload have, with their section.
const OF_A_KIND: &[(&str, &str)] = &[("[network]", "nic"), ("[workload]", "load"), ("[workload]", "sizes")];

/// Adds a hint to each error for an unknown key that belongs to another section: that section's name.
pub(super) fn hinted(mut fault: InputError) -> InputError {
    fault.more = fault.more.into_iter().map(hinted).collect();
    if !fault.what.starts_with("unknown key") {
        return fault;
    }
    let (section, name) = fault.place.rsplit_once('.').unwrap_or(("", &fault.place));
    let section = section.split(['[', '.']).next().unwrap_or_default();
    let Some(right) = section_of(name).filter(|right| right.trim_matches(['[', ']']) != section) else { return fault };
    let hint = format!("\"{name}\" is a key of {right}");
    fault.hint = if fault.hint.is_empty() { hint } else { format!("{}; {hint}", fault.hint) };
    fault
}

fn section_of(name: &str) -> Option<String> {
    let has = |keys: &[Key]| keys.iter().any(|key| key.name == name);
    let of_root = ROOT.iter().find_map(|section| match section.value_type {
        ValueType::Table(keys) if has(keys) => Some(format!("[{}]", section.name)),
        ValueType::List(ValueType::Table(keys)) if has(keys) => Some(format!("[[{}]]", section.name)),
        _ => None,
    });
    of_root.or_else(|| OF_A_KIND.iter().find(|(_, key)| *key == name).map(|(section, _)| (*section).to_string()))
}
