//! Throughput of one core of the daemon: 1000 authenticated endpoints over loopback start and end flowlets at full
//! speed. Also prints the shares of the daemon's processor time: kernel calls, authentication, iterations, and the
//! rest. Times are the thread's processor time, which other load of the machine hardly changes.
//!
//! `cargo bench -p subak-allocator -- [SECONDS [ENDPOINTS]]`

#[path = "../tests/support/mod.rs"]
mod support;

use nix::sys::resource::{UsageWho, getrusage};
use std::hint::black_box;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use subak_allocator::Server;
use subak_allocator::config::Config;
use subak_allocator::plan::NetworkPlan;
use subak_allocator::request::{DaemonCommand, Line};
use subak_control::AuthenticatedEndpoint;
use subak_wire::{Direction, Seal, Secret, claimed_endpoint};
use support::{Files, KEY, address};

/// Connections of each endpoint.
const CONNECTIONS: u64 = 10;

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let seconds = args.next().and_then(|a| a.parse().ok()).unwrap_or(5);
    let endpoints: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(1000);
    let mut files = Files::new(endpoints);
    files.tenant = "datagrams_per_s = 1000000".to_string();
    let path = files.write();
    let config = Config::read(&path).expect("a good file");
    let settings = config.settings().expect("good settings");
    let plan = NetworkPlan::read(&config).expect("a good network");
    let (requests, receiver) = channel();
    let line = Line::new(requests);
    let (told, heard) = channel();
    let times = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let published = Arc::clone(&times);
    let daemon = std::thread::spawn(move || {
        let mut server = Server::new(config, plan, receiver).expect("it listens");
        told.send(server.address().expect("an address")).expect("somebody waits");
        server
            .run(|| {
                let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("of this thread");
                let ns = |time: nix::sys::time::TimeVal| (time.tv_sec() * 1_000_000_000 + time.tv_usec() * 1000) as u64;
                published[0].store(ns(usage.user_time()), Ordering::Relaxed);
                published[1].store(ns(usage.system_time()), Ordering::Relaxed);
            })
            .expect("a good end");
    });
    let to = heard.recv().expect("it listens");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_nonblocking(true).expect("a socket");
    let secret = Secret::new(KEY);
    let mut hosts: Vec<AuthenticatedEndpoint> =
        (0..endpoints).map(|h| AuthenticatedEndpoint::new(address(h), 1, settings, &secret)).collect();
    let begun = Instant::now();
    let now_ns = || begun.elapsed().as_nanos() as u64 + 1;
    let mut rng = subak_core::rng::Stream::new(1, "bench");
    for (h, host) in hosts.iter_mut().enumerate() {
        for connection in 0..CONNECTIONS {
            host.endpoint.begin(connection, address((h + 1 + rng.below(endpoints - 1)) % endpoints), 0, 1.0);
        }
    }
    let mut room = Vec::new();
    let mut bytes = [0; 2048];
    let mut turn = |hosts: &mut Vec<AuthenticatedEndpoint>, churn: bool| {
        for h in 0..hosts.len() {
            let host = &mut hosts[h];
            if churn {
                let connection = rng.below(CONNECTIONS as usize) as u64;
                host.endpoint.finish(connection);
                host.endpoint.begin(connection, address((h + 1 + rng.below(endpoints - 1)) % endpoints), 0, 1.0);
            }
            while host.poll(now_ns(), &mut room) {
                let _ = socket.send_to(&room, to);
            }
            while let Ok(count) = socket.recv(&mut bytes) {
                let of = claimed_endpoint(&bytes[..count]).map(|wire| (wire - address(0)) as usize);
                if let Some(host) = of.and_then(|of| hosts.get_mut(of)) {
                    host.take(now_ns(), &bytes[..count]);
                }
            }
        }
    };
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        turn(&mut hosts, false);
    }
    let look = || line.tell(DaemonCommand::Look).expect("it answers");
    let cpu = || [times[0].load(Ordering::Relaxed), times[1].load(Ordering::Relaxed)];
    let (before, cpu_before, at) = (look(), cpu(), Instant::now());
    while at.elapsed() < Duration::from_secs(seconds) {
        turn(&mut hosts, true);
    }
    let (after, cpu_after, took_s) = (look(), cpu(), at.elapsed().as_secs_f64());
    let [user_s, system_s] = [0, 1].map(|k| (cpu_after[k] - cpu_before[k]) as f64 * 1e-9);
    let received = after.counts.received - before.counts.received;
    let sent = after.counts.sent - before.counts.sent;
    let datagrams = (received + sent) as f64;
    let iterations_s = after.iterations.sum_s() - before.iterations.sum_s();
    let seal_s = datagrams * seal_s();
    let cpu_s = user_s + system_s;
    println!("{endpoints} endpoints, {} flowlets, {took_s:.1} s", after.flows.len());
    println!("datagrams      {received} in, {sent} out: {:.0} a second", datagrams / took_s);
    println!(
        "one core       {:.0} a second, {:.2} us each; busy for {:.0}%",
        datagrams / cpu_s,
        1e6 * cpu_s / datagrams,
        100.0 * cpu_s / took_s
    );
    for (what, s) in [
        ("system calls", system_s),
        ("seals", seal_s),
        ("iterations", iterations_s),
        ("the rest", user_s - seal_s - iterations_s),
    ] {
        println!("{what:<14} {:.0}%", 100.0 * s / cpu_s);
    }
    println!(
        "iteration      p50 at most {:.0} us, p99 at most {:.0} us",
        after.iterations.quantile_ns(0.5) / 1e3,
        after.iterations.quantile_ns(0.99) / 1e3
    );
    println!("calls          {:.1} datagrams each", datagrams / (after.counts.calls - before.counts.calls) as f64);
    let _ = line.tell(DaemonCommand::End);
    daemon.join().expect("no panic");
}

/// Time to authenticate a datagram of 60 bytes, s.
fn seal_s() -> f64 {
    let seal = Seal::new(&Secret::new(KEY), 7, Direction::Up);
    let mut bytes = vec![7; 60];
    let begun = Instant::now();
    const TIMES: u32 = 200_000;
    for _ in 0..TIMES {
        bytes.truncate(60);
        seal.seal(black_box(&mut bytes));
    }
    begun.elapsed().as_secs_f64() / f64::from(TIMES)
}
