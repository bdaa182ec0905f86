//! Flow files of HPCC's simulator and of those that follow it.

use super::{MOST_FLOWS, Traced, at_line, quantity, size, too_many};
use std::collections::BTreeSet;
use subak_core::InputError;
use subak_core::formats::hpcc::{behind, lines};
use subak_core::quantity::ns_from_json;

/// Reads HPCC's six columns, or ConWeave's five, without port. Lines after the announced number of flows are not read.
pub(super) fn from_hpcc(text: &str, notes: &mut Vec<String>) -> Result<Vec<Traced>, InputError> {
    let mut lines = lines(text).map(|(line, words)| (line as u64, words));
    let shape = "a flow is: source destination priority port bytes seconds, or without the port";
    let (head, first) =
        lines.next().ok_or_else(|| at_line(1, "the file is empty", "begin with the number of flows"))?;
    let count: usize =
        first.parse().map_err(|_| at_line(head, "is no number of flows", "begin with the number of flows"))?;
    if count > MOST_FLOWS {
        return Err(too_many());
    }
    let mut flows = Vec::new();
    let (mut priorities, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for (line, words) in lines.by_ref().take(count) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (src, dst, bytes, start) = match words[..] {
            [src, dst, _, port, bytes, start] if !is_older(port, bytes, start) => (src, dst, bytes, start),
            [src, dst, _, bytes, start] => (src, dst, bytes, start),
            [_, _, _, packets, _, _] => {
                let what =
                    format!("a flow of {packets} packets from a start to a stop, as in older files, is not read");
                return Err(at_line(line, &what, shape));
            }
            _ => return Err(at_line(line, &format!("has {} words", words.len()), shape)),
        };
        priorities.insert(words[2]);
        ports.extend(words.get(3).filter(|_| words.len() == 6));
        flows.push(Traced {
            line,
            row: false,
            id: None,
            src: src.to_string(),
            dst: dst.to_string(),
            size_bytes: Some(size(line, &quantity(bytes))?),
            start_ns: ns_from_json(&quantity(start)).map_err(|e| at_line(line, &e.what, shape))?,
            weight: 1.0,
            after: Vec::new(),
            needed: None,
        });
    }
    if flows.len() < count {
        let what = format!("{count} flows are announced, {} follow", flows.len());
        return Err(at_line(head, &what, "give the number of the lines that follow"));
    }
    notes.extend(behind(lines.count(), "flows"));
    for (what, numbers) in [("priorities", priorities), ("ports", ports)] {
        if numbers.len() > 1 {
            notes.push(format!("the flows have {} {what}, which are not read", numbers.len()));
        }
    }
    Ok(flows)
}

/// Whether a line has the columns of the simulator that preceded HPCC's: packets, start and stop in place of port,
/// bytes and start.
fn is_older(port: &str, bytes: &str, start: &str) -> bool {
    const LARGEST_PORT: f64 = 65535.0;
    let number = |text: &str| text.parse::<f64>().ok();
    let is_time = |text: &str| text.contains('.');
    let before = number(bytes).zip(number(start)).is_some_and(|(start, stop)| start <= stop);
    number(port).is_some_and(|port| port > LARGEST_PORT) || is_time(bytes) && is_time(start) && before
}
