//! Topologies and demands of REPETITA (Gay et al., 2017): `NODES n` and `EDGES m`, or `DEMANDS k`, each followed by a
//! line of titles and a line per item. Demands have nodes by number, so that a node's number is its name here. Bandwidth
//! is in kbit/s and delay in microseconds, unless another unit stands beside the file.

use super::drawn::{Drawn, rate_in, time_in, words};
use super::{Defaults, at_line, refuse_beside};
use crate::quantity::quoted;
use crate::{InputError, Network};
use serde_json::{Value, json};

const UNIT: &str = "kbps";

/// Lines of the section `title`, after its line of titles.
fn section<'a>(
    lines: &mut impl Iterator<Item = (usize, Vec<&'a str>)>,
    title: &str,
) -> Result<Vec<(usize, Vec<&'a str>)>, InputError> {
    let hint = format!("write {title} and the number of lines that follow its line of titles");
    let (line, count) = match lines.next() {
        Some((line, head)) => match head[..] {
            [found, count] if found == title => (line, count.parse::<usize>().ok()),
            _ => return Err(at_line(line, format!("{title} is expected here"), &hint)),
        },
        None => return Err(InputError::new("", format!("the file has no section {title}"), hint)),
    };
    let count = count.ok_or_else(|| at_line(line, format!("{title} has no number of lines"), &hint))?;
    lines.next();
    let rows: Vec<_> = lines.take(count).collect();
    if rows.len() < count {
        let what = format!("{count} lines of {title} are announced, {} follow", rows.len());
        return Err(at_line(line, what, "let the two agree: the file may be cut"));
    }
    Ok(rows)
}

/// Parses a topology.
pub(super) fn network(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &["capacity", "delay", "range"], "each edge has its own")?;
    let unit = beside.unit.as_deref().unwrap_or(UNIT);
    let mut lines = words(text, "");
    let mut drawn = Drawn::default();
    for (n, _) in section(&mut lines, "NODES")?.into_iter().enumerate() {
        drawn.node(&n.to_string(), None);
    }
    for (line, row) in section(&mut lines, "EDGES")? {
        let [_, src, dst, weight, capacity, delay] = row[..] else {
            return Err(at_line(line, "is no edge", "give label, source, destination, weight, bandwidth and delay"));
        };
        drawn.check(src, line)?;
        drawn.check(dst, line)?;
        drawn.edge(
            src,
            dst,
            [
                ("weight", weight.into()),
                ("capacity", rate_in(line, capacity, unit)?),
                ("delay", time_in(line, delay, "us")?),
            ],
        );
    }
    no_more(lines.next())?;
    drawn.network(true, &beside.of_backbone())
}

fn no_more(line: Option<(usize, Vec<&str>)>) -> Result<(), InputError> {
    match line {
        None => Ok(()),
        Some((line, _)) => Err(at_line(line, "no line is announced here", "let the number of lines agree with them")),
    }
}

/// Parses demands as the flows of a case.
pub(super) fn demands(text: &str, unit: Option<&str>) -> Result<Vec<Value>, InputError> {
    let mut lines = words(text, "");
    let flow = |(line, row): (usize, Vec<&str>)| match row[..] {
        [label, src, dst, _] if src == dst => Err(at_line(
            line,
            format!("{} is a demand from a node to itself", quoted(label)),
            "remove the line, and count one less",
        )),
        [label, src, dst, rate] => {
            let rate = rate_in(line, rate, unit.unwrap_or(UNIT))?;
            Ok(json!({"id": label, "src": src, "dst": dst, "demand": rate}))
        }
        _ => Err(at_line(
            line,
            format!("{} is no demand", quoted(&row.join(" "))),
            "give label, source, destination and rate",
        )),
    };
    let flows = section(&mut lines, "DEMANDS")?.into_iter().map(flow).collect::<Result<Vec<_>, _>>()?;
    no_more(lines.next())?;
    Ok(flows)
}
