//! The flows of a case as typed columns, for tables of a million rows: no JSON value is made for each cell.

use crate::document::unknown_key;
use crate::formats::flows::{COLUMNS, in_unit};
use crate::quantity::quoted;
use crate::{InputError, InputErrors};
use serde_json::Value;

/// Index of an empty cell in a column of words.
pub const NO_WORD: u32 = u32::MAX;

/// A column of the table of flows, with one cell for each flow.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseColumn {
    /// Numbers; NaN where the cell is empty.
    Numbers(Vec<f64>),
    /// Words, as indices into the list of distinct words; [`NO_WORD`] where the cell is empty.
    Words {
        /// The distinct words.
        words: Vec<String>,
        /// Index into `words` for each cell.
        of: Vec<u32>,
    },
}

impl CaseColumn {
    fn len(&self) -> usize {
        match self {
            CaseColumn::Numbers(numbers) => numbers.len(),
            CaseColumn::Words { of, .. } => of.len(),
        }
    }

    /// The distinct words, and the index of each cell.
    pub(super) fn words(&self) -> Option<(&[String], &[u32])> {
        match self {
            CaseColumn::Numbers(_) => None,
            CaseColumn::Words { words, of } => Some((words, of)),
        }
    }

    /// The cell's value as JSON.
    pub(super) fn cell(&self, row: usize) -> Option<Value> {
        match self {
            CaseColumn::Numbers(numbers) => number(*numbers.get(row)?),
            CaseColumn::Words { words, of } => words.get(*of.get(row)? as usize).map(|word| Value::from(word.as_str())),
        }
    }
}

/// `given` as a JSON value: an integer if it is whole, text if infinite, `None` if NaN.
fn number(given: f64) -> Option<Value> {
    const MOST: f64 = 9e15;
    match given {
        _ if given.is_nan() => None,
        _ if given.is_infinite() => Some(Value::from(given.to_string())),
        _ if given.fract() == 0.0 && (0.0..MOST).contains(&given) => Some(Value::from(given as u64)),
        _ if given.fract() == 0.0 && given.abs() < MOST => Some(Value::from(given as i64)),
        _ => Some(Value::from(given)),
    }
}

/// The links of each flow's path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathColumns {
    /// Link names of all paths, concatenated.
    pub links: CaseColumn,
    /// Index in `links` at which each path starts, then the length of `links`.
    pub begins: Vec<u32>,
    /// Indices of the flows without a path, ascending.
    pub missing: Vec<u32>,
}

/// Flows in named columns: the columns of a table of flows (`src`, `dst`, `demand`, ...), or `path` in place of `src`
/// and `dst`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowColumns {
    columns: Vec<(String, CaseColumn)>,
    paths: Option<PathColumns>,
    rows: usize,
}

impl FlowColumns {
    /// Builds the table; an error if the columns differ in length.
    pub fn new(columns: Vec<(String, CaseColumn)>, paths: Option<PathColumns>) -> Result<Self, InputError> {
        let of_path = paths.iter().map(|paths| paths.begins.len().saturating_sub(1));
        let rows = columns.iter().map(|(_, column)| column.len()).chain(of_path).max().unwrap_or(0);
        let uneven = columns.iter().find(|(_, column)| column.len() != rows);
        let mut faults = InputErrors::default();
        if let Some((name, column)) = uneven {
            let what = format!("the column has {} cells, and another has {rows}", column.len());
            faults.push(InputError::new(name.as_str(), what, "give columns of one length"));
        }
        let sound = |PathColumns { links, begins, .. }: &PathColumns| {
            let rises = begins.windows(2).all(|pair| pair[0] <= pair[1]);
            begins.len() == rows + 1 && rises && begins.last().is_some_and(|&end| end as usize <= links.len())
        };
        if !paths.as_ref().is_none_or(sound) {
            faults.push(InputError::new("path", "the lists of links are not one a flow", "give a list in each row"));
        }
        for (at, (name, _)) in columns.iter().enumerate() {
            if !COLUMNS.contains(&name.as_str()) {
                faults.push(unknown_key(name, &[&COLUMNS[..], &["path"]].concat()));
            } else if columns[..at].iter().any(|(other, _)| other == name) {
                faults.push(InputError::new(
                    "",
                    format!("the column {} is there twice", quoted(name)),
                    "leave one away",
                ));
            }
        }
        faults.done().map(|()| FlowColumns { columns, paths, rows })
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) fn column(&self, name: &str) -> Option<&CaseColumn> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column)
    }

    pub(super) fn paths(&self) -> Option<&PathColumns> {
        self.paths.as_ref()
    }

    /// The row as the JSON value of a flow.
    pub(super) fn row(&self, row: usize, unit: Option<&str>) -> Value {
        let cells = self.columns.iter().filter_map(|(name, column)| {
            let value = column.cell(row)?;
            Some((name.clone(), if name == "demand" { in_unit(value, unit) } else { value }))
        });
        let given = self.paths.as_ref().filter(|paths| paths.missing.binary_search(&(row as u32)).is_err());
        let path = given.map(|PathColumns { links, begins, .. }| {
            let cells = begins[row] as usize..begins[row + 1] as usize;
            ("path".to_string(), cells.map(|cell| links.cell(cell).unwrap_or(Value::Null)).collect())
        });
        Value::Object(cells.chain(path).collect())
    }
}
