//! Runs one experiment and prints its result as JSON: `cargo run --release -p subak-experiments --example repro --
//! perc-fig3.5 24`.

use subak_experiments::{ExperimentPlan, run};

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let runs = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let plan = ExperimentPlan { runs, seed: 1, settings: serde_json::Map::new() };
    let mut progress = |done, of| eprint!("\r{done}/{of} ");
    match run(&name, &plan, &mut progress) {
        Ok(answer) => println!("{answer:#}"),
        Err(fault) => eprintln!("{fault}"),
    }
}
