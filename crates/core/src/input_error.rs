//! Errors of input: place, problem and hint.

use std::fmt;

/// Largest number of errors reported for one input.
pub const MOST_FAULTS: usize = 50;

/// Error of an unusable input. Every layer passes it up unchanged; the command prints it and exits with status 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file of the input, set by the layer that knows the file's name.
    pub file: Option<String>,
    /// The place in the input: `flows[3].path[1]`, or `line 4, column 7`.
    pub place: String,
    /// The problem.
    pub what: String,
    /// The hint: a valid value or the next step.
    pub hint: String,
    /// Further errors, at other places.
    pub more: Vec<InputError>,
}

impl InputError {
    /// An error at `place`: `what` is the problem, `hint` a valid value or the next step.
    pub fn new(place: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        InputError { file: None, place: place.into(), what: what.into(), hint: hint.into(), more: Vec::new() }
    }

    /// Combines errors into one, without duplicates; `None` if there is none.
    pub fn all(faults: impl IntoIterator<Item = InputError>) -> Option<InputError> {
        let mut each: Vec<InputError> = Vec::new();
        for fault in faults.into_iter().flat_map(InputError::each) {
            if each.len() < MOST_FAULTS && !each.contains(&fault) {
                each.push(fault);
            }
        }
        let more = each.split_off(each.len().min(1));
        each.pop().map(|first| InputError { more, ..first })
    }

    /// Splits a combined error into single ones.
    pub fn each(mut self) -> Vec<InputError> {
        let more = std::mem::take(&mut self.more);
        std::iter::once(self).chain(more.into_iter().flat_map(InputError::each)).collect()
    }

    /// Adds a hint to the error.
    #[must_use]
    pub fn hinted(mut self, hint: &str) -> Self {
        self.hint = if self.hint.is_empty() { hint.to_string() } else { format!("{}; {hint}", self.hint) };
        self
    }

    /// Sets the error's file unless it has one.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        let file = file.into();
        self.more = self.more.into_iter().map(|f| f.in_file(file.as_str())).collect();
        self.file.get_or_insert(file);
        self
    }

    /// Prepends `prefix` to the place: `path[1]` below `flows[3]` becomes `flows[3].path[1]`. An error that names a
    /// file is unchanged, since its place is relative to that file.
    #[must_use]
    pub fn below(mut self, prefix: &str) -> Self {
        self.more = self.more.into_iter().map(|f| f.below(prefix)).collect();
        if self.file.is_some() {
            return self;
        }
        self.place = match self.place.as_str() {
            "" => prefix.to_string(),
            inner if inner.starts_with('[') => format!("{prefix}{inner}"),
            inner => format!("{prefix}.{inner}"),
        };
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(out, "{file}: ")?;
        }
        if !self.place.is_empty() {
            write!(out, "{}: ", self.place)?;
        }
        write!(out, "{}", self.what)?;
        if !self.hint.is_empty() {
            write!(out, "; {}", self.hint)?;
        }
        self.more.iter().try_for_each(|fault| write!(out, "\n{fault}"))
    }
}

impl std::error::Error for InputError {}

/// Collects the errors of an input whose parts are read one after the other.
#[derive(Debug, Clone, Default)]
pub struct InputErrors(Vec<InputError>);

impl InputErrors {
    /// The value of a valid part; keeps the error of an invalid one.
    pub fn keep<T>(&mut self, part: Result<T, InputError>) -> Option<T> {
        match part {
            Ok(part) => Some(part),
            Err(fault) => {
                self.push(fault);
                None
            }
        }
    }

    /// Adds an error.
    pub fn push(&mut self, fault: InputError) {
        if !self.is_full() {
            self.0.push(fault);
        }
    }

    /// The number of errors so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no errors so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the largest number of reported errors is reached.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_FAULTS
    }

    /// Returns all errors as one, if there are any.
    pub fn done(self) -> Result<(), InputError> {
        InputError::all(self.0).map_or(Ok(()), Err)
    }

    /// Returns `made`, or the collected errors if there are any. `made` is `None` only after an error.
    pub fn or<T>(self, made: Option<T>) -> Result<T, InputError> {
        self.done()?;
        made.ok_or_else(|| InputError::new("", "a part is missing", ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_faults_are_told_in_order_each_once_and_each_below_its_place() {
        let mut faults = InputErrors::default();
        assert_eq!(faults.keep(Ok(3)), Some(3));
        for place in ["b", "a", "b"] {
            assert_eq!(faults.keep(Err::<(), _>(InputError::new(place, "it is wrong", "correct it"))), None);
        }
        let fault = faults.done().unwrap_err().below("x").in_file("f");
        assert_eq!(fault.to_string(), "f: x.b: it is wrong; correct it\nf: x.a: it is wrong; correct it");
        assert_eq!(fault.each().len(), 2);
    }

    #[test]
    fn memory_for_faults_is_bounded() {
        let mut faults = InputErrors::default();
        (0..1_000_000).for_each(|i| faults.push(InputError::new(i.to_string(), "it is wrong", "")));
        assert_eq!(faults.done().unwrap_err().each().len(), MOST_FAULTS);
    }
}
