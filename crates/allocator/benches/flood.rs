//! How long an honest host waits for its rate while somebody floods the daemon with ten times the honest load: datagrams without a
//! key, with a wrong key, and with a right key misused. Each beside a quiet phase of the same run. The daemon is a process of its own.
//!
//! `cargo bench -p subak-allocator --bench flood -- [SECONDS A PHASE]`

#[path = "../tests/support/mod.rs"]
mod support;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use subak_wire::{Direction, Seal, Secret};
use support::{Crowd, Files, KEY, Process, address};

const ENDPOINTS: usize = 100;
/// One of the honest hosts begins a flowlet so often.
const EVERY: Duration = Duration::from_millis(1);
/// The flood's load over the honest one's.
const TIMES: f64 = 10.0;

/// What is sent again and again, and from which host it claims to be.
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
    let phase = Duration::from_secs(args.next().and_then(|a| a.parse().ok()).unwrap_or(10));
    // One host more than there are honest ones.
    let files = Files::new(ENDPOINTS + 1);
    let process = Process::start(&files, env!("CARGO_BIN_EXE_subak-allocator"));
    let mut crowd = Crowd::new(ENDPOINTS, &process);
    crowd.run(Duration::from_secs(2), EVERY);
    println!("{:<24}{:>12}{:>12}{:>12}{:>12}", "flood", "honest/s", "flood/s", "p50 us", "p99 us");
    let mut worst: f64 = 0.0;
    for (what, bytes) in misuses(ENDPOINTS) {
        let quiet = measure(&mut crowd, phase);
        row("none", &quiet, 0.0);
        let bytes = if bytes.is_empty() { crowd.last_word_of(ENDPOINTS) } else { bytes };
        let flood = Flood::start(bytes, process.address, TIMES * quiet.sent_per_s);
        let loud = measure(&mut crowd, phase);
        row(what, &loud, flood.end() as f64 / phase.as_secs_f64());
        worst = worst.max(loud.p99_us / quiet.p99_us);
    }
    println!("p99 beside a flood over p99 without: {worst:.2} at most");
}

struct Waits {
    sent_per_s: f64,
    p50_us: f64,
    p99_us: f64,
}

fn measure(crowd: &mut Crowd, phase: Duration) -> Waits {
    let sent = crowd.sent;
    let mut waits = crowd.run(phase, EVERY);
    waits.sort_unstable();
    let quantile = |q: f64| waits[((waits.len() - 1) as f64 * q) as usize] as f64 * 1e-3;
    Waits {
        sent_per_s: (crowd.sent - sent) as f64 / phase.as_secs_f64(),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
    }
}

fn row(what: &str, waits: &Waits, flood_per_s: f64) {
    let Waits { sent_per_s, p50_us, p99_us } = waits;
    println!("{what:<24}{sent_per_s:>12.0}{flood_per_s:>12.0}{p50_us:>12.0}{p99_us:>12.0}");
}

/// The same datagram again and again, at a rate.
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
