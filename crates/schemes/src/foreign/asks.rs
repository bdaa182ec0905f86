//! Checks of the values that a user-supplied scheme passes to Subak. The language adapters and the guard share them.

use subak_core::SubflowId;

/// Problem and hint of an error message.
pub type Refusal = (String, &'static str);

/// The rate in bit/s on the wire; `None` (unlimited) if `rate` is infinite. Negative rates and NaN are refused.
#[inline]
pub fn rate_bps(rate: f64) -> Result<Option<f64>, Refusal> {
    if rate >= 0.0 {
        return Ok(rate.is_finite().then_some(rate));
    }
    Err(refused("rate", rate, "give bit/s on the wire, 0 or more"))
}

/// The window in whole payload bytes; `None` (unlimited) if `window` is infinite. Negative windows and NaN are refused.
#[inline]
pub fn window_bytes(window: f64) -> Result<Option<u64>, Refusal> {
    if window >= 0.0 {
        return Ok(window.is_finite().then_some(window as u64));
    }
    Err(refused("window", window, "give payload bytes, 0 or more"))
}

#[cold]
fn refused(what: &str, value: f64, hint: &'static str) -> Refusal {
    (format!("the {what} is {}", shown(value)), hint)
}

/// Subflow `number` of a flow with `subflows` subflows; refuses a number out of range.
#[inline]
pub fn subflow(number: i64, subflows: usize) -> Result<SubflowId, Refusal> {
    match usize::try_from(number) {
        Ok(number) if number < subflows => Ok(SubflowId::from_index(number)),
        _ => Err(no_subflow(number, subflows)),
    }
}

#[cold]
fn no_subflow(number: i64, subflows: usize) -> Refusal {
    if subflows == 1 {
        return (format!("there is no subflow {number}"), "the flow has one subflow, number 0");
    }
    (format!("there is no subflow {number}: the flow has {subflows}"), "count subflows from 0, below flow.subflows")
}

/// Checks a requested pacing rate (bit/s) and window (payload bytes). `None` means unlimited, also in the result.
#[inline]
pub fn pace(rate: Option<f64>, window: Option<f64>) -> Result<(Option<f64>, Option<u64>), Refusal> {
    let rate = rate.map_or(Ok(None), rate_bps)?;
    Ok((rate, window.map_or(Ok(None), window_bytes)?))
}

/// The value of the note called `name`; refuses infinite numbers and NaN.
#[inline]
pub fn note(name: &str, value: f64) -> Result<f64, Refusal> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(refused(&format!("note {name}"), value, "give a finite number"))
}

fn shown(x: f64) -> String {
    if x.is_nan() { "not a number".to_string() } else { x.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_windows_are_numbers_of_zero_or_more() {
        assert_eq!(pace(Some(1e9), None), Ok((Some(1e9), None)));
        assert_eq!(pace(Some(f64::INFINITY), Some(2.9)), Ok((None, Some(2))));
        assert_eq!(pace(None, Some(1e300)), Ok((None, Some(u64::MAX))));
        assert_eq!(pace(Some(f64::NAN), None).unwrap_err().0, "the rate is not a number");
        assert_eq!(pace(Some(-1.0), None).unwrap_err().0, "the rate is -1");
        assert_eq!(pace(None, Some(-0.5)).unwrap_err().0, "the window is -0.5");
        assert_eq!(pace(None, Some(f64::NEG_INFINITY)).unwrap_err().0, "the window is -inf");
    }

    #[test]
    fn notes_are_finite_numbers() {
        assert_eq!(note("alpha", -0.5), Ok(-0.5));
        assert_eq!(note("alpha", f64::NAN).unwrap_err().0, "the note alpha is not a number");
        assert_eq!(note("alpha", f64::INFINITY).unwrap_err().0, "the note alpha is inf");
    }

    #[test]
    fn subflows_are_those_of_the_flow() {
        assert_eq!(subflow(1, 2), Ok(SubflowId(1)));
        for number in [-1, 2, i64::MAX] {
            assert!(subflow(number, 2).unwrap_err().0.contains("the flow has 2"));
        }
        assert_eq!(subflow(1, 1).unwrap_err().0, "there is no subflow 1");
    }
}
