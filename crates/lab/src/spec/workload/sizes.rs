//! Flow size distributions of a workload.

use super::points;
use crate::files::Beside;
use crate::spec::section::{Section, text};
use serde_json::Value;
use subak_core::InputError;
use subak_core::document::unknown_word;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::bytes_from_json;
use subak_core::sizes::Sizes;

/// Key `sizes`: the distribution of flow sizes.
pub(super) const SIZES: Key = Key::required("sizes", ANY_SIZES, "distribution of flow sizes: see below");
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
    ValueType::List(&ValueType::Pair(&ValueType::Size)),
    ValueType::Table(points::FILE),
]);

fn names() -> Vec<&'static str> {
    Sizes::names().chain(SHAPES).collect()
}

/// Names of distributions that have further keys.
const SHAPES: [&str; 2] = ["fixed", "uniform"];

/// Reads the keys `sizes`, `size`, `smallest` and `largest` of a workload; a file of sizes is taken from `files`.
pub(super) fn read(section: &mut Section, files: &Beside) -> Result<Sizes, InputError> {
    let names = names();
    let hint = format!(
        "name one of {}, give points [[bytes, share of flows up to it], ...], or a file of them: {{file = \"sizes.csv\"}}",
        names.join(", ")
    );
    let sizes = section.must("sizes", &hint, Ok)?;
    let points = match sizes {
        Value::Array(_) => points::listed(sizes).map_err(|e| e.below("sizes"))?,
        Value::Object(_) => points::of_file(sizes, files).map_err(|e| e.below("sizes"))?,
        other => match text(other).map_err(|e| e.below("sizes"))? {
            "fixed" => {
                vec![(section.need("size", "give the size of every flow, such as \"100KB\"", 1.0, size), 1.0)]
            }
            "uniform" => {
                let low = section.need("smallest", "give the smallest size, such as \"1KB\"", 1.0, size);
                let high = section.need("largest", "give the largest size, such as \"1MB\"", 1.0, size);
                if low > high && section.is_sound() {
                    return Err(InputError::new("smallest", "it is above the largest", "give a smaller size"));
                }
                vec![(low, 0.0), (high, 1.0)]
            }
            name => {
                let published = Sizes::published(name);
                return published.ok_or_else(|| unknown_word(name, "distribution of sizes", &names).below("sizes"));
            }
        },
    };
    Ok(Sizes::through(points))
}

/// Reads a size of at least one byte.
fn size(value: &Value) -> Result<f64, InputError> {
    match bytes_from_json(value)? {
        0 => Err(InputError::new("", "the size is 0", "give at least one byte")),
        bytes => Ok(bytes as f64),
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
            (json!({"sizes": [[5, 0], ["6 furlongs", 1]]}), "sizes[1]"),
        ] {
            assert_eq!(sizes(bad.clone()).unwrap_err().place, place, "{bad}");
        }
    }
}
