//! The file of the coflow benchmark (FB2010, Chowdhury and Stoica): `<ports> <coflows>`, then a line for each coflow:
//! number, arrival in ms, number of mappers and their ports, number of reducers and `port:megabytes` of each. Ports count
//! from 0. A reducer's bytes come from the mappers in equal parts, and a megabyte has 2^20 bytes, as in CoflowSim.

use super::{CommonKeys, Described, Own, Transfer, TransferEnd};
use crate::files::Beside;
use serde_json::Value;
use std::collections::BTreeSet;
use subak_core::keys::{Key, Low, ValueType};
use subak_core::quantity::quoted;
use subak_core::section::Section;
use subak_core::{InputError, Ns};

pub(super) const KEYS: &[Key] = &[
    Key::required("file", ValueType::Text, "a file of the coflow benchmark, such as \"FB2010-1Hr-150-0.txt\""),
    Key::open("first", ValueType::Whole(1, 1 << 32), "all", "number of coflows to read from the begin of the file"),
    Key::new(
        "scale",
        ValueType::Number(Low::Above(0.0), 1e6),
        "1",
        "factor of all arrival times and sizes; the load stays the same",
    ),
];

const MEGABYTE_BYTES: f64 = 1_048_576.0;
/// Largest number of transfers in a file.
const MOST_FLOWS: usize = 5_000_000;

/// The coflows of the file as jobs.
pub(super) fn read(value: &Value, common: &CommonKeys, files: &Beside) -> Result<Vec<Described>, InputError> {
    let mut section = Section::of(value, KEYS)?;
    let (file, first, scale): (String, _, _) = (section.take("file"), section.given("first"), section.take("scale"));
    section.end(Ok(()))?;
    if file.to_lowercase().ends_with(".et") {
        let hint = "list the jobs in the spec: a task for each node that computes, a flow for each that communicates, and after";
        return Err(InputError::new("file", "Chakra's execution traces are not read", hint));
    }
    let jobs = coflows(&files.text(&file)?, first, scale, common);
    jobs.map_err(|e| e.in_file(files.shown(&file)))
}

fn at(line: usize, what: impl Into<String>, hint: &str) -> InputError {
    InputError::new(format!("line {line}"), what, hint)
}

fn coflows(text: &str, first: Option<u64>, scale: f64, common: &CommonKeys) -> Result<Vec<Described>, InputError> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let mut lines = lines.map(|(line, words)| Words { line, rest: words.split_whitespace() });
    let hint = "begin with the number of ports and the number of coflows";
    let mut head = lines.next().ok_or_else(|| at(1, "the file is empty", hint))?;
    let (ports, announced): (usize, u64) = (head.number("the number of ports")?, head.number("the number of coflows")?);
    head.end()?;
    if announced == 0 {
        return Err(at(1, "the file announces no coflow", hint));
    }
    let wanted = first.unwrap_or(announced);
    if wanted > announced {
        let what = format!("the first {wanted} coflows are wanted, and the file announces {announced}");
        return Err(InputError::new("", what, "give a smaller number as first, or leave it out"));
    }
    let (mut jobs, mut flows, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for words in lines.by_ref().take(wanted as usize) {
        let line = words.line;
        let job = coflow(words, ports, scale, jobs.len() as u64, common)?;
        if !seen.insert(job.id.clone()) {
            return Err(at(line, format!("{} is there twice", job.id), "give every coflow a number of its own"));
        }
        flows += job.flows.len();
        if flows > MOST_FLOWS {
            let hint = "give a smaller number as first";
            return Err(InputError::new("", format!("the coflows have more than {MOST_FLOWS} flows"), hint));
        }
        jobs.push(job);
    }
    if (jobs.len() as u64) < wanted {
        let what = format!("{wanted} coflows are wanted, and the file has {}", jobs.len());
        return Err(InputError::new("", what, "let the first line agree with the others: the file may be cut"));
    }
    if let Some(words) = lines.nth((announced - wanted) as usize) {
        return Err(at(
            words.line,
            format!("the file announces {announced} coflows, and here is another"),
            "let the two agree",
        ));
    }
    Ok(jobs)
}

fn coflow(
    mut words: Words,
    ports: usize,
    scale: f64,
    number: u64,
    common: &CommonKeys,
) -> Result<Described, InputError> {
    let line = words.line;
    let id: u64 = words.number("the coflow's number")?;
    let arrival_ms: u64 = words.number("the arrival in ms")?;
    let mappers: usize = words.number("the number of mappers")?;
    let mappers = (0..mappers).map(|_| words.port(ports)).collect::<Result<Vec<_>, _>>()?;
    let reducers: usize = words.number("the number of reducers")?;
    let mut flows = Vec::new();
    for _ in 0..reducers {
        let (to, bytes) = words.reducer(ports, scale)?;
        for (m, &from) in mappers.iter().enumerate() {
            // Equal parts that sum up to the reducer's bytes.
            let part = |k: usize| (bytes as u128 * k as u128 / mappers.len() as u128) as u64;
            flows.push(Transfer {
                id: format!("{from}-{to}"),
                ends: [TransferEnd::Nth(from), TransferEnd::Nth(to)],
                size_bytes: common.size_bytes.unwrap_or((part(m + 1) - part(m)).max(1)),
                start_ns: 0,
                after: Vec::new(),
            });
        }
    }
    words.end()?;
    if flows.is_empty() {
        return Err(at(line, format!("coflow {id} has no flow"), "give a mapper and a reducer"));
    }
    let start_ns = (arrival_ms as f64 * 1e6 * scale).round() as Ns;
    let start_ns = start_ns.saturating_add(common.spacing_ns.saturating_mul(number));
    let (who, every_ns) = (common.who.clone(), common.every_ns);
    let id = format!("coflow {id}");
    Ok(Described { id, start_ns, who, budget: None, every_ns, flows, tasks: Vec::new(), own: Own::default() })
}

/// The words of a line.
struct Words<'a> {
    line: usize,
    rest: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, InputError> {
        let hint = "a coflow is: number, arrival in ms, mappers, their ports, reducers, port:megabytes of each";
        self.rest.next().ok_or_else(|| at(self.line, format!("{what} is missing"), hint))
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, InputError> {
        let word = self.word(what)?;
        word.parse().map_err(|_| at(self.line, format!("{what} is {}", quoted(word)), "give a whole number"))
    }

    fn port(&mut self, ports: usize) -> Result<usize, InputError> {
        let port = self.number("a mapper's port")?;
        self.check(port, ports)
    }

    fn check(&self, port: usize, ports: usize) -> Result<usize, InputError> {
        match port < ports {
            true => Ok(port),
            false => Err(at(self.line, format!("there is no port {port}"), "count the ports of the first line from 0")),
        }
    }

    fn reducer(&mut self, ports: usize, scale: f64) -> Result<(usize, u64), InputError> {
        let word = self.word("a reducer")?;
        let parts = word.split_once(':').and_then(|(port, size)| {
            let megabytes = size.parse::<f64>().ok().filter(|size| *size > 0.0 && *size < 1e9)?;
            Some((port.parse().ok()?, (megabytes * MEGABYTE_BYTES * scale).round() as u64))
        });
        let (port, bytes) = parts.ok_or_else(|| {
            at(self.line, format!("{} is no reducer", quoted(word)), "give port:megabytes, such as 3:48.0")
        })?;
        Ok((self.check(port, ports)?, bytes))
    }

    fn end(&mut self) -> Result<(), InputError> {
        match self.rest.next() {
            None => Ok(()),
            Some(more) => Err(at(self.line, format!("{} is one word too many", quoted(more)), "let the numbers agree")),
        }
    }
}
