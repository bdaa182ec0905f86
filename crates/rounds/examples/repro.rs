//! Computes one experiment and prints its JSON: `cargo run --release -p subak-rounds --example repro -- perc-fig3.5 paper`.

use subak_rounds::experiments::{Scale, run};

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let scale = if args.next().as_deref() == Some("paper") { Scale::Paper } else { Scale::Smoke };
    let runs = args.next().and_then(|n| n.parse().ok());
    let mut progress = |done, of| eprint!("\r{done}/{of} ");
    match run(&name, scale, runs, 1, &mut progress) {
        Ok(answer) => println!("{answer:#}"),
        Err(fault) => eprintln!("{fault}"),
    }
}
