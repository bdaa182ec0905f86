//! Memory of the daemon while hosts join, leave and restart, flowlets begin and end, files change, and
//! unauthenticated datagrams arrive.
//!
//! `cargo bench -p subak-allocator --bench soak -- [SECONDS]` (default 600). Fails if memory grows by more than a
//! tenth after the first sixth of that time.

#[path = "../tests/support/mod.rs"]
mod support;

use std::net::UdpSocket;
use std::time::{Duration, Instant};
use support::{Crowd, Files, Process};

const ENDPOINTS: usize = 200;

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let seconds = args.next().and_then(|a| a.parse().ok()).unwrap_or(600);
    let files = Files::new(ENDPOINTS);
    let process = Process::start(&files, env!("CARGO_BIN_EXE_subak-allocator"));
    let mut crowd = Crowd::new(ENDPOINTS, &process);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut rng = subak_core::rng::Stream::new(2, "strangers");
    let begun = Instant::now();
    let step = Duration::from_secs_f64((seconds as f64 / 60.0).min(10.0));
    let mut first_kib = None;
    let mut turn = 0;
    println!("{:>8}{:>14}{:>12}", "s", "resident KiB", "flowlets");
    while begun.elapsed() < Duration::from_secs(seconds) {
        let until = Instant::now() + step;
        while Instant::now() < until {
            crowd.run(Duration::from_millis(100), Duration::from_micros(500));
            crowd.start_anew(rng.below(ENDPOINTS));
            for _ in 0..100 {
                let bytes: Vec<u8> = (0..rng.below(1500)).map(|_| rng.below(256) as u8).collect();
                let _ = stranger.send_to(&bytes, process.address);
            }
        }
        turn += 1;
        // The network file changes, and the daemon reloads it.
        files.write_network(&vec![if turn % 2 == 0 { 10.0 } else { 9.0 }; ENDPOINTS]);
        let kib = process.resident_kib();
        println!("{:>8.0}{kib:>14}{:>12}", begun.elapsed().as_secs_f64(), crowd.begun);
        if begun.elapsed() > Duration::from_secs(seconds / 6) {
            first_kib.get_or_insert(kib);
        }
    }
    let (first_kib, last_kib) = (first_kib.unwrap_or_default(), process.resident_kib());
    println!("{first_kib} KiB after a sixth of the time, {last_kib} KiB at the end");
    assert!(last_kib as f64 <= 1.1 * first_kib as f64, "the daemon grew");
}
