//! Flow size distributions of a workload.

use super::points;
use crate::files::Beside;
use serde_json::Value;
use subak_core::InputError;
use subak_core::keys::{Key, SHARE, ValueType};
use subak_core::section::Section;
use subak_core::sizes::Sizes;

/// Key `sizes`: the distribution of flow sizes.
pub(super) const SIZES: Key = Key::required(
    "sizes",
    ANY_SIZES,
    "the distribution of flow sizes: a name, points [[bytes, share of flows up to it], ...], or {file = \"sizes.csv\"}",
);
/// Key `size`: the size of every flow, under the distribution `fixed`.
pub(super) const SIZE: Key = Key::open("size", ValueType::Size, "only with `sizes = \"fixed\"`", "size of every flow");
/// Key `smallest`: the smallest size, under the distribution `uniform`.
pub(super) const SMALLEST: Key =
    Key::open("smallest", ValueType::Size, "only with `sizes = \"uniform\"`", "minimum size");
/// Key `largest`: the largest size, under the distribution `uniform`.
pub(super) const LARGEST: Key =
    Key::open("largest", ValueType::Size, "only with `sizes = \"uniform\"`", "maximum size");

const ANY_SIZES: ValueType = ValueType::Either(&[
    ValueType::Named(names),
    ValueType::List(&ValueType::Pair(&ValueType::Size, &SHARE)),
    ValueType::Table(points::FILE),
]);

fn names() -> Vec<&'static str> {
    Sizes::names().chain(SHAPES).collect()
}

/// Names of distributions that have further keys.
const SHAPES: [&str; 2] = ["fixed", "uniform"];

/// Reads the keys `sizes`, `size`, `smallest` and `largest` of a workload; a file of sizes is taken from `files`.
pub(super) fn read(section: &mut Section, files: &Beside) -> Result<Sizes, InputError> {
    let sizes: Value = section.must("sizes")?;
    let points = match &sizes {
        Value::Array(_) => points::listed(&sizes).map_err(|e| e.below("sizes"))?,
        Value::Object(_) => points::of_file(&sizes, files).map_err(|e| e.below("sizes"))?,
        other => match other.as_str().unwrap_or_default() {
            "fixed" => {
                vec![(needed(section, "size")?, 1.0)]
            }
            "uniform" => {
                let low = needed(section, "smallest")?;
                let high = needed(section, "largest")?;
                if low > high && section.is_sound() {
                    return Err(InputError::new("smallest", "it is above the largest", "give a smaller size"));
                }
                vec![(low, 0.0), (high, 1.0)]
            }
            name => {
                let published = Sizes::published(name);
                return Ok(published.unwrap_or_else(|| unreachable!("{name} is a name of sizes")));
            }
        },
    };
    Ok(Sizes::through(points))
}

/// The size in key `name`, bytes, which the distribution needs.
fn needed(section: &mut Section, name: &'static str) -> Result<f64, InputError> {
    let missing = || {
        let what = format!("\"{name}\" is missing");
        InputError::new(name, what, "give a size, such as \"100KB\"")
    };
    match section.get(name) {
        None => Err(missing()),
        Some(_) => Ok(section.given(name).unwrap_or(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    fn sizes(value: Value) -> Result<Sizes, InputError> {
        const KEYS: &[Key] = &[SIZES, SIZE, SMALLEST, LARGEST];
        let mut section = Section::of(&value, KEYS).unwrap();
        let read = read(&mut section, &Beside::Folder(PathBuf::new()));
        section.end(read)
    }

    #[test]
    fn published_ones_are_known_by_name() {
        for name in Sizes::names() {
            assert_eq!(sizes(json!({"sizes": name})).unwrap(), Sizes::published(name).unwrap());
        }
        assert_eq!(sizes(json!({"sizes": "fixed", "size": 1447})).unwrap().mean_bytes(), 1447.0);
        assert_eq!(sizes(json!({"sizes": "uniform", "smallest": 1, "largest": 9000})).unwrap().mean_bytes(), 4500.5);
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        for (bad, place) in [
            (json!({"sizes": "bing"}), "sizes"),
            (json!({}), "sizes"),
            (json!({"sizes": "fixed"}), "size"),
            (json!({"sizes": "fixed", "size": 0}), "size"),
            (json!({"sizes": []}), "sizes"),
            (json!({"sizes": {}}), "sizes.file"),
            (json!({"sizes": {"file": "a.csv", "size": 1}}), "sizes.size"),
            (json!({"sizes": [[1, 0], [2, 0.5]]}), "sizes"),
            (json!({"sizes": [[5, 0], [2, 1]]}), "sizes[1]"),
            (json!({"sizes": [[5, 0.5], [6, 0.2]]}), "sizes[1]"),
            (json!({"sizes": [[5, 0], [6]]}), "sizes[1]"),
            (json!({"sizes": [[5, 0], ["6 furlongs", 1]]}), "sizes[1][0]"),
        ] {
            assert_eq!(sizes(bad.clone()).unwrap_err().place, place, "{bad}");
        }
    }
}
