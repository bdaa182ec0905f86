//! `subak-agent`: what a Linux host runs.

use clap::{Parser, Subcommand};
use std::io::{Read, Write};
use std::process::ExitCode;
use subak_agent::traffic;
use subak_testbed::Schedule;

/// What a Linux host runs for Subak.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Sends the flows of a schedule between network namespaces and records when they arrive.
    ///
    /// The schedule is JSON on standard input, the recording JSON on standard output, and progress JSON lines on standard
    /// error. It ends early when its parent does.
    Traffic,
    /// Puts Soze and queues that tell their delays to work, until standard input ends.
    ///
    /// The order is one JSON line on standard input; {"ready": true} on standard output says that all is in place. Nothing stays
    /// when this program ends, however it ends.
    Hosts,
    /// Says in JSON what this machine's kernel takes, and how much of Subak's is in it now.
    Doctor {
        /// Only how much of Subak's is in the kernel; nothing is tried.
        #[arg(long)]
        present: bool,
    },
}

/// The most bytes of a schedule.
const MOST_INPUT: u64 = 1 << 30;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Traffic => carry(),
        Command::Hosts => serve(),
        Command::Doctor { present } => doctor(present),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("subak-agent: {what}");
            ExitCode::from(2)
        }
    }
}

fn carry() -> Result<(), String> {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(MOST_INPUT).read_to_end(&mut text);
    read.map_err(|e| format!("standard input: {e}"))?;
    let schedule: Schedule = serde_json::from_slice(&text).map_err(|e| format!("the schedule: {e}"))?;
    drop(text);
    let recording = traffic::carry(&schedule, &mut |share| eprintln!("{{\"share\": {share:.4}}}"))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut out, &recording).map_err(|e| format!("standard output: {e}"))?;
    out.flush().map_err(|e| format!("standard output: {e}"))
}

#[cfg(feature = "bpf")]
fn serve() -> Result<(), String> {
    use std::io::BufRead;
    use subak_agent::hosts::{Order, Running};
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.by_ref().take(MOST_INPUT).read_line(&mut line).map_err(|e| format!("standard input: {e}"))?;
    let order: Order = serde_json::from_str(&line).map_err(|e| format!("the order: {e}"))?;
    let running = Running::new(&order)?;
    println!("{{\"ready\": true}}");
    // Whoever asked for it lives as long as this does not end.
    std::io::copy(&mut input, &mut std::io::sink()).map_err(|e| format!("standard input: {e}"))?;
    drop(running);
    Ok(())
}

#[cfg(not(feature = "bpf"))]
fn serve() -> Result<(), String> {
    Err("it was built without eBPF: install clang, libelf-dev and zlib1g-dev, and build with --features bpf"
        .to_string())
}

/// What the kernel takes, each with why not.
fn doctor(present: bool) -> Result<(), String> {
    let told = subak_agent::doctor::look(!present);
    println!("{}", serde_json::to_string(&told).map_err(|e| e.to_string())?);
    Ok(())
}
