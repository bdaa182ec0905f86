//! A daemon in a thread, and hosts that speak to it over loopback.
#![allow(dead_code, missing_docs)]

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use subak_allocator::Server;
use subak_allocator::config::Config;
use subak_allocator::plan::Plan;
use subak_allocator::state::Look;
use subak_allocator::tell::{Line, Told};
use subak_control::{SealedEndpoint, Settings};
use subak_wire::Secret;

static NUMBER: AtomicU64 = AtomicU64::new(0);

pub const KEY: [u8; 32] = [7; 32];
pub const GBPS: f64 = 1e9;

/// A folder with the files of a daemon: hosts h0, h1, ... at one switch, of 10 Gb/s each.
pub struct Files {
    pub folder: PathBuf,
    pub hosts: usize,
    pub more: String,
    pub tenant: String,
}

impl Files {
    pub fn new(hosts: usize) -> Files {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("subak-allocator-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = Files { folder, hosts, more: "lease = \"200ms\"".to_string(), tenant: String::new() };
        files.write_network(&vec![10.0; hosts]);
        std::fs::write(files.folder.join("key"), Secret::new(KEY).hex()).unwrap();
        files
    }

    /// Each host's link has so many Gb/s.
    pub fn write_network(&self, gbps: &[f64]) {
        let mut nodes = vec![r#"{"id": "hub", "kind": "switch"}"#.to_string()];
        let mut links = Vec::new();
        for (host, gbps) in gbps.iter().enumerate() {
            nodes.push(format!(r#"{{"id": "h{host}", "kind": "host"}}"#));
            let rate = gbps * GBPS;
            links.push(format!(r#"{{"source": "h{host}", "target": "hub", "capacity": {rate}, "delay": "1us"}}"#));
        }
        let text = format!(r#"{{"nodes": [{}], "links": [{}]}}"#, nodes.join(", "), links.join(", "));
        std::fs::write(self.folder.join("network.json"), text).unwrap();
    }

    pub fn write(&self) -> PathBuf {
        let names: Vec<String> = (0..self.hosts).map(|host| format!("\"h{host}\"")).collect();
        let addresses: Vec<String> =
            (0..self.hosts).map(|host| format!("h{host} = \"{}\"", Ipv4(address(host)))).collect();
        let Files { more, tenant, .. } = self;
        let (names, addresses) = (names.join(", "), addresses.join("\n"));
        let text = format!(
            "listen = \"127.0.0.1:0\"\nnetwork = \"network.json\"\n{more}\n[hosts]\n{addresses}\n\
             [[tenant]]\nname = \"all\"\nkey = \"key\"\nhosts = [{names}]\n{tenant}\n"
        );
        let path = self.folder.join("allocator.toml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Ipv4(u32);

impl std::fmt::Display for Ipv4 {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", std::net::Ipv4Addr::from(self.0))
    }
}

/// The number of a host in datagrams.
pub fn address(host: usize) -> u32 {
    u32::from(std::net::Ipv4Addr::new(10, 0, 0, 1)) + host as u32
}

pub struct Daemon {
    pub address: SocketAddr,
    pub line: Line,
    pub settings: Settings,
    thread: Option<std::thread::JoinHandle<Result<(), String>>>,
}

impl Daemon {
    pub fn start(config: &Path) -> Daemon {
        let config = Config::read(config).unwrap();
        let plan = Plan::read(&config).unwrap();
        let (asks, receiver) = channel();
        let settings = config.settings().unwrap();
        let (told, address) = channel();
        let thread = std::thread::spawn(move || {
            let mut server = Server::new(config, plan, receiver)?;
            told.send(server.address().unwrap()).unwrap();
            server.run(|| {})
        });
        let address = address.recv().expect("it listens");
        Daemon { address, line: Line::new(asks), settings, thread: Some(thread) }
    }

    pub fn look(&self) -> Look {
        self.line.tell(Told::Look).unwrap()
    }

    /// Waits until it is so.
    pub fn until(&self, what: &str, is_so: impl Fn(&Look) -> bool) -> Look {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let look = self.look();
            if is_so(&look) {
                return look;
            }
            assert!(Instant::now() < until, "not within 20 s: {what}; {:?} {:?}", look.counts, look.core);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.line.tell(Told::End);
        if let Some(thread) = self.thread.take() {
            let done = thread.join();
            if !std::thread::panicking() {
                done.expect("no panic").expect("a good end");
            }
        }
    }
}

/// A host: its endpoint, its socket and the time.
pub struct Host {
    pub sealed: SealedEndpoint,
    pub socket: UdpSocket,
    pub to: SocketAddr,
    begun: Instant,
    /// All that it sent.
    pub sent: Vec<Vec<u8>>,
}

impl Host {
    pub fn new(host: usize, daemon: &Daemon) -> Host {
        Host::with_key(host, daemon, KEY)
    }

    pub fn with_key(host: usize, daemon: &Daemon, key: [u8; 32]) -> Host {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let sealed = SealedEndpoint::new(address(host), epoch, daemon.settings, &Secret::new(key));
        Host { sealed, socket, to: daemon.address, begun: Instant::now(), sent: Vec::new() }
    }

    pub fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64 + 1
    }

    /// Sends and takes what there is.
    pub fn turn(&mut self) {
        let mut room = Vec::new();
        while self.sealed.poll(self.now_ns(), &mut room) {
            self.socket.send_to(&room, self.to).unwrap();
            self.sent.push(room.clone());
        }
        let mut bytes = [0; 2048];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            let now_ns = self.now_ns();
            self.sealed.take(now_ns, &bytes[..count]);
        }
    }

    pub fn gbps(&self, connection: u64) -> Option<f64> {
        self.sealed.endpoint.rate_bps(self.now_ns(), connection).map(|bps| bps / GBPS)
    }
}

/// Lets hosts run until it is so.
pub fn until(what: &str, hosts: &mut [&mut Host], is_so: impl Fn(&[&mut Host]) -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so(hosts) {
        assert!(Instant::now() < until, "not within 20 s: {what}");
        hosts.iter_mut().for_each(|host| host.turn());
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Lets hosts run for so long.
pub fn run_for(time: Duration, hosts: &mut [&mut Host]) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        hosts.iter_mut().for_each(|host| host.turn());
        std::thread::sleep(Duration::from_micros(300));
    }
}
