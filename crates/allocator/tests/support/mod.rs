//! A daemon in a thread, and hosts that exchange datagrams with it over loopback.
#![allow(dead_code, missing_docs)]

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use subak_allocator::Server;
use subak_allocator::config::Config;
use subak_allocator::plan::NetworkPlan;
use subak_allocator::request::{DaemonCommand, Line};
use subak_allocator::state::Look;
use subak_control::{AuthenticatedEndpoint, ControlSettings};
use subak_wire::Secret;

static NUMBER: AtomicU64 = AtomicU64::new(0);

pub const KEY: [u8; 32] = [7; 32];
pub const GBPS: f64 = 1e9;

/// A folder with a daemon's files: hosts h0, h1, ... at one switch, with links of 10 Gb/s.
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
        write_key(&files.folder.join("key"), &Secret::new(KEY).hex());
        files
    }

    /// Writes the network with these link capacities of the hosts, Gb/s.
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

/// Number of a host in datagrams.
pub fn address(host: usize) -> u32 {
    u32::from(std::net::Ipv4Addr::new(10, 0, 0, 1)) + host as u32
}

pub struct Daemon {
    pub address: SocketAddr,
    pub line: Line,
    pub settings: ControlSettings,
    thread: Option<std::thread::JoinHandle<Result<(), String>>>,
}

impl Daemon {
    pub fn start(config: &Path) -> Daemon {
        let config = Config::read(config).unwrap();
        let plan = NetworkPlan::read(&config).unwrap();
        let (requests, receiver) = channel();
        let settings = config.settings().unwrap();
        let (told, address) = channel();
        let thread = std::thread::spawn(move || {
            let mut server = Server::new(config, plan, receiver)?;
            told.send(server.address().unwrap()).unwrap();
            server.run(|| {})
        });
        let address = address.recv().expect("it listens");
        Daemon { address, line: Line::new(requests), settings, thread: Some(thread) }
    }

    pub fn look(&self) -> Look {
        self.line.tell(DaemonCommand::Look).unwrap()
    }

    /// Waits until `is_so` is true of a snapshot of the daemon.
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
        let _ = self.line.tell(DaemonCommand::End);
        if let Some(thread) = self.thread.take() {
            let done = thread.join();
            if !std::thread::panicking() {
                done.expect("no panic").expect("a good end");
            }
        }
    }
}

/// A host: its endpoint, its socket and its clock.
pub struct TestHost {
    pub authenticated: AuthenticatedEndpoint,
    pub socket: UdpSocket,
    pub to: SocketAddr,
    begun: Instant,
    /// All datagrams that the host sent.
    pub sent: Vec<Vec<u8>>,
}

impl TestHost {
    pub fn new(host: usize, daemon: &Daemon) -> TestHost {
        TestHost::with_key(host, daemon, KEY)
    }

    pub fn with_key(host: usize, daemon: &Daemon, key: [u8; 32]) -> TestHost {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let authenticated = AuthenticatedEndpoint::new(address(host), epoch, daemon.settings, &Secret::new(key));
        TestHost { authenticated, socket, to: daemon.address, begun: Instant::now(), sent: Vec::new() }
    }

    pub fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64 + 1
    }

    /// Sends the datagrams that are due and handles those that have arrived.
    pub fn turn(&mut self) {
        let mut room = Vec::new();
        while self.authenticated.poll(self.now_ns(), &mut room) {
            self.socket.send_to(&room, self.to).unwrap();
            self.sent.push(room.clone());
        }
        let mut bytes = [0; 2048];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            let now_ns = self.now_ns();
            self.authenticated.take(now_ns, &bytes[..count]);
        }
    }

    pub fn gbps(&self, connection: u64) -> Option<f64> {
        self.authenticated.endpoint.rate_bps(self.now_ns(), connection).map(|bps| bps / GBPS)
    }
}

/// Runs hosts until `is_so` is true.
pub fn until(what: &str, hosts: &mut [&mut TestHost], is_so: impl Fn(&[&mut TestHost]) -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so(hosts) {
        assert!(Instant::now() < until, "not within 20 s: {what}");
        hosts.iter_mut().for_each(|host| host.turn());
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Runs hosts for `time`.
pub fn run_for(time: Duration, hosts: &mut [&mut TestHost]) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        hosts.iter_mut().for_each(|host| host.turn());
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// The daemon as a separate process.
pub struct Process {
    pub address: SocketAddr,
    pub settings: ControlSettings,
    child: std::process::Child,
}

impl Process {
    /// Starts the daemon at a port that was free just before.
    pub fn start(files: &Files, program: &str) -> Process {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let path = files.write();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("127.0.0.1:0", &address.to_string())).unwrap();
        let mut command = std::process::Command::new(program);
        command.arg("serve").arg(&path).stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        let settings = Config::read(&path).unwrap().settings().unwrap();
        Process { address, settings, child: command.spawn().unwrap() }
    }

    pub fn resident_kib(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hosts on one socket. Each has one connection that starts and ends repeatedly.
pub struct Crowd {
    hosts: Vec<AuthenticatedEndpoint>,
    socket: UdpSocket,
    to: SocketAddr,
    settings: ControlSettings,
    since: Instant,
    epoch: u64,
    rng: subak_core::rng::Stream,
    pub sent: u64,
    /// Number of flowlets started.
    pub begun: u64,
    /// For each host, the start time of its newest flowlet; `None` once that flowlet has a rate.
    waiting: Vec<Option<Instant>>,
    connections: Vec<u64>,
}

impl Crowd {
    pub fn new(hosts: usize, daemon: &Process) -> Crowd {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut crowd = Crowd {
            hosts: Vec::new(),
            socket,
            to: daemon.address,
            settings: daemon.settings,
            since: Instant::now(),
            epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
            rng: subak_core::rng::Stream::new(1, "crowd"),
            sent: 0,
            begun: 0,
            waiting: vec![None; hosts],
            connections: vec![0; hosts],
        };
        crowd.hosts = (0..hosts).map(|host| crowd.host(host)).collect();
        crowd
    }

    fn host(&mut self, host: usize) -> AuthenticatedEndpoint {
        self.epoch += 1;
        AuthenticatedEndpoint::new(address(host), self.epoch, self.settings, &Secret::new(KEY))
    }

    /// Restarts a host without its state, as after a crash.
    pub fn start_anew(&mut self, host: usize) {
        self.hosts[host] = self.host(host);
        self.waiting[host] = None;
    }

    fn now_ns(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64 + 1
    }

    /// For `time`, starts a flowlet once per `every`, at one host after another, in place of the host's previous one.
    /// Returns for each flowlet how long it waited for its first rate, ns; for one that ended without a rate, its
    /// duration.
    pub fn run(&mut self, time: Duration, every: Duration) -> Vec<u64> {
        let mut waits = Vec::new();
        let mut next = Instant::now();
        let until = next + time;
        while Instant::now() < until {
            if Instant::now() >= next {
                next += every;
                waits.extend(self.begin());
            }
            self.turn();
            let now_ns = self.now_ns();
            for host in 0..self.hosts.len() {
                let Some(since) = self.waiting[host] else { continue };
                if self.hosts[host].endpoint.rate_bps(now_ns, self.connections[host]).is_some() {
                    waits.push(since.elapsed().as_nanos() as u64);
                    self.waiting[host] = None;
                }
            }
        }
        waits
    }

    /// Starts a flowlet. Returns how long the host's previous one waited without getting a rate, ns.
    fn begin(&mut self) -> Option<u64> {
        let hosts = self.hosts.len();
        let host = self.rng.below(hosts);
        let to = (host + 1 + self.rng.below(hosts - 1)) % hosts;
        let endpoint = &mut self.hosts[host].endpoint;
        endpoint.finish(self.connections[host]);
        self.begun += 1;
        self.connections[host] = self.begun;
        endpoint.begin(self.begun, address(to), 0, 1.0);
        self.waiting[host].replace(Instant::now()).map(|since| since.elapsed().as_nanos() as u64)
    }

    fn turn(&mut self) {
        let mut room = Vec::new();
        for host in 0..self.hosts.len() {
            let now_ns = self.now_ns();
            while self.hosts[host].poll(now_ns, &mut room) {
                let _ = self.socket.send_to(&room, self.to);
                self.sent += 1;
            }
        }
        let mut bytes = [0; 2048];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            let now_ns = self.now_ns();
            let of = subak_wire::claimed_endpoint(&bytes[..count]).map(|wire| wire.wrapping_sub(address(0)) as usize);
            if let Some(host) = of.and_then(|of| self.hosts.get_mut(of)) {
                host.take(now_ns, &bytes[..count]);
            }
        }
    }

    /// First datagram, with a flowlet's start, that another instance of this host would send.
    pub fn last_word_of(&mut self, host: usize) -> Vec<u8> {
        let mut room = Vec::new();
        let mut other = self.host(host);
        other.endpoint.begin(1, address(0), 0, 1.0);
        let _ = other.poll(self.now_ns(), &mut room);
        room
    }
}

/// Writes a key to a file that only its owner can read.
pub fn write_key(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
