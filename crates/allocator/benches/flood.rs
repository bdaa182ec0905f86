//! Delay of an honest host's rate during a flood of ten times the honest load: datagrams without a key, with a wrong
//! key, and with misuse of a right key. Seconds without a flood alternate with seconds of each flood, so that other
//! load of the machine affects all alike. The confidence interval is a bootstrap over these rounds. The daemon is a
//! separate process.
//!
//! The benchmark fails if a flood more than doubles the honest p99: if the interval's lower limit is above 2.
//!
//! `cargo bench -p subak-allocator --bench flood -- [TURNS]`

#[path = "../tests/support/mod.rs"]
mod support;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use subak_wire::{Direction, Seal, Secret};
use support::{Crowd, Files, KEY, Process, address};

const ENDPOINTS: usize = 100;
/// Interval at which one of the honest hosts begins a flowlet.
const EVERY: Duration = Duration::from_millis(1);
/// Duration of each measurement: one flood, or none.
const PHASE: Duration = Duration::from_secs(1);
/// Ratio of the flood's load to the honest one.
const TIMES: f64 = 10.0;

/// One datagram of each kind of flood, with `host` as the claimed source.
fn misuses(host: usize) -> [(&'static str, Vec<u8>); 4] {
    let mut nobody = vec![0x55; 60];
    nobody[0] = 1;
    let mut wrong = nobody.clone();
    wrong[4..8].copy_from_slice(&address(host).to_be_bytes());
    let mut unsealed = wrong.clone();
    Seal::new(&Secret::new([8; 32]), address(host), Direction::Up).seal(&mut wrong);
    Seal::new(&Secret::new(KEY), address(host), Direction::Up).seal(&mut unsealed);
    [
        ("no key", nobody),
        ("a wrong key", wrong),
        ("a right key, noise", unsealed),
        ("a right key, replayed", Vec::new()),
    ]
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let turns = args.next().and_then(|a| a.parse().ok()).unwrap_or(20);
    // One host more than the honest ones: the attacker.
    let files = Files::new(ENDPOINTS + 1);
    let process = Process::start(&files, env!("CARGO_BIN_EXE_subak-allocator"));
    let mut crowd = Crowd::new(ENDPOINTS, &process);
    crowd.run(Duration::from_secs(2), EVERY);
    let misuses = misuses(ENDPOINTS);
    let mut quiet = Phases::default();
    let mut loud: [Phases; 4] = Default::default();
    for _ in 0..turns {
        quiet.add(&mut crowd, None);
        for (phases, (_, bytes)) in loud.iter_mut().zip(&misuses) {
            let bytes = if bytes.is_empty() { crowd.last_word_of(ENDPOINTS) } else { bytes.clone() };
            phases.add(&mut crowd, Some(Flood::start(bytes, process.address, TIMES * quiet.sent_per_s())));
        }
    }
    println!(
        "{:<24}{:>10}{:>10}{:>10}{:>10}{:>10}{:>22}",
        "flood", "honest/s", "flood/s", "answers", "p50 us", "p99 us", "p99 over none's"
    );
    let all: Vec<usize> = (0..turns).collect();
    quiet.row("none", &all, "");
    let mut surely: f64 = 0.0;
    for (phases, (what, _)) in loud.iter().zip(&misuses) {
        let ratio = phases.quantile(&all, 0.99) / quiet.quantile(&all, 0.99);
        let (low, high) = interval(phases, &quiet, turns);
        phases.row(what, &all, &format!("{ratio:.2} [{low:.2}, {high:.2}]"));
        surely = surely.max(low);
    }
    if surely > 2.0 {
        println!("a flood of {TIMES} times the honest load more than doubles the honest p99");
        std::process::exit(1);
    }
}

/// 95% bootstrap interval of the ratio of p99s, in rounds drawn with replacement; both loads use the same rounds.
fn interval(loud: &Phases, quiet: &Phases, turns: usize) -> (f64, f64) {
    let mut rng = subak_core::rng::Stream::new(1, "turns");
    let mut ratios: Vec<f64> = (0..400)
        .map(|_| {
            let draw: Vec<usize> = (0..turns).map(|_| rng.below(turns)).collect();
            loud.quantile(&draw, 0.99) / quiet.quantile(&draw, 0.99)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[10], ratios[389])
}

/// Measurements under one load, one row per round.
#[derive(Default)]
struct Phases {
    waits_ns: Vec<Vec<u64>>,
    sent: u64,
    flooded: u64,
}

impl Phases {
    fn add(&mut self, crowd: &mut Crowd, flood: Option<Flood>) {
        let sent = crowd.sent;
        self.waits_ns.push(crowd.run(PHASE, EVERY));
        self.sent += crowd.sent - sent;
        self.flooded += flood.map_or(0, Flood::end);
    }

    fn per_s(&self, count: u64) -> f64 {
        count as f64 / (PHASE.as_secs_f64() * self.waits_ns.len() as f64)
    }

    fn sent_per_s(&self) -> f64 {
        self.per_s(self.sent)
    }

    /// Quantile of all delays in these rounds, us.
    fn quantile(&self, turns: &[usize], q: f64) -> f64 {
        let mut waits: Vec<u64> = turns.iter().flat_map(|&turn| self.waits_ns[turn].iter().copied()).collect();
        let at = ((waits.len() - 1) as f64 * q) as usize;
        *waits.select_nth_unstable(at).1 as f64 * 1e-3
    }

    fn row(&self, what: &str, turns: &[usize], ratio: &str) {
        let (honest, flood) = (self.sent_per_s(), self.per_s(self.flooded));
        let answers: usize = self.waits_ns.iter().map(Vec::len).sum();
        let (p50, p99) = (self.quantile(turns, 0.5), self.quantile(turns, 0.99));
        println!("{what:<24}{honest:>10.0}{flood:>10.0}{answers:>10}{p50:>10.0}{p99:>10.0}{ratio:>22}");
    }
}

/// Sends one datagram repeatedly, at a constant rate.
struct Flood {
    end: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Flood {
    fn start(bytes: Vec<u8>, to: SocketAddr, per_s: f64) -> Flood {
        let (end, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, count) = (Arc::clone(&end), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let begun = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                let due = (begun.elapsed().as_secs_f64() * per_s) as u64;
                while count.load(Ordering::Relaxed) < due {
                    let _ = socket.send_to(&bytes, to);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Flood { end, sent, thread }
    }

    fn end(self) -> u64 {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        self.sent.load(Ordering::Relaxed)
    }
}
