//! Soak test. `cargo run -p subak-fuzz --bin soak -- hours HOURS [FROM]` runs for that time, `seed SEED` repeats one
//! case, and `cases COUNT FROM` runs a number of cases: see `subak_fuzz::soak`.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use subak_fuzz::soak::memory::{Memory, resident_bytes};
use subak_fuzz::soak::{CaseResult, case, keep_panics};

const USAGE: &str = "give: hours HOURS [FIRST SEED], cases COUNT FIRST_SEED, or seed SEED";
/// Number of failures after which a soak test ends: one cause often shows in many cases.
const MOST_FAILURES: usize = 20;

/// Duration after which a running case is reported.
const SLOW: Duration = Duration::from_secs(60);

/// Limit of the work.
enum Until {
    Time(Duration),
    Cases(u64),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((first, until)) = asked(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    keep_panics();
    soak(first, until)
}

fn asked(words: &[&str]) -> Option<(u64, Until)> {
    let hours = |text: &str| {
        let hours = text.parse::<f64>().ok().filter(|hours| (0.0..=10_000.0).contains(hours))?;
        Some(Until::Time(Duration::from_secs_f64(hours * 3600.0)))
    };
    match words {
        // Each soak test starts at a different seed.
        ["hours", time] => Some((SystemTime::UNIX_EPOCH.elapsed().ok()?.as_secs() * 1000, hours(time)?)),
        ["hours", time, from] => Some((from.parse().ok()?, hours(time)?)),
        ["cases", count, from] => Some((from.parse().ok()?, Until::Cases(count.parse().ok()?))),
        ["seed", seed] => Some((seed.parse().ok()?, Until::Cases(1))),
        _ => None,
    }
}

fn soak(first: u64, until: Until) -> ExitCode {
    let (begun, mut memory) = (Instant::now(), Memory::default());
    let mut held: BTreeMap<(&str, CaseResult), u64> = BTreeMap::new();
    let (mut failures, mut done, mut told) = (Vec::new(), 0, Instant::now());
    let goes_on = |done: u64| match until {
        Until::Time(time) => begun.elapsed() < time,
        Until::Cases(cases) => done < cases,
    };
    let under_way = Arc::new(Mutex::new((first, Instant::now())));
    tell_of_slow_cases(&under_way);
    while goes_on(done) && failures.len() < MOST_FAILURES {
        let seed = first + done;
        let started = Instant::now();
        *under_way.lock().unwrap_or_else(|e| e.into_inner()) = (seed, started);
        match case(seed) {
            (kind, Ok(how)) => *held.entry((kind, how)).or_default() += 1,
            (kind, Err(what)) => {
                println!("\nseed {seed}, {kind}: {what}\nagain: make soak SEED={seed}");
                failures.push(seed);
            }
        }
        if started.elapsed() > SLOW {
            println!("\nseed {seed} took {:.0} s", started.elapsed().as_secs_f64());
        }
        done += 1;
        resident_bytes().into_iter().for_each(|bytes| memory.note(bytes));
        let every = Duration::from_secs(if std::io::stderr().is_terminal() { 1 } else { 60 });
        if told.elapsed() >= every {
            told = Instant::now();
            let megabytes = resident_bytes().unwrap_or(0) >> 20;
            let end = if std::io::stderr().is_terminal() { '\r' } else { '\n' };
            eprint!(
                "{:.0} s, {done} cases, {} failed, {megabytes} MB{end}",
                begun.elapsed().as_secs_f64(),
                failures.len()
            );
            let _ = std::io::stderr().flush();
        }
    }
    println!("{done} cases from seed {first} in {:.0} s, {} failed", begun.elapsed().as_secs_f64(), failures.len());
    for ((kind, how), count) in &held {
        println!("  {kind}: {count} {}", format!("{how:?}").to_lowercase());
    }
    if let Some((before, after)) = memory.before_and_after() {
        println!("  memory: {} MB after the warm-up, {} MB at the end", before >> 20, after >> 20);
    }
    if let Err(what) = memory.check() {
        println!("{what}");
        return ExitCode::FAILURE;
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reports a running case that takes long, so that a case which never ends can be repeated.
fn tell_of_slow_cases(under_way: &Arc<Mutex<(u64, Instant)>>) {
    let under_way = Arc::clone(under_way);
    std::thread::spawn(move || {
        let mut told = None;
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let (seed, started) = *under_way.lock().unwrap_or_else(|e| e.into_inner());
            if started.elapsed() > SLOW && told != Some(seed) {
                told = Some(seed);
                eprintln!("\nseed {seed} goes on for more than {} s", SLOW.as_secs());
            }
        }
    });
}
