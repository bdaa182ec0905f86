//! The daemon over loopback: rates, restarts, changing networks, hostile datagrams, and its replies.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use subak_allocator::request::DaemonCommand;
use subak_allocator::{config::Config, control, http, plan::NetworkPlan, watch};
use subak_wire::{Datagram, Direction, Seal, Secret};
use support::{Daemon, Files, KEY, TestHost, address, run_for, until, write_key};

/// Rate, Gb/s, that the daemon allocates on a link of 10 Gb/s.
fn share(daemon: &Daemon) -> f64 {
    10.0 * daemon.settings.share()
}

fn near(rate: Option<f64>, goal: f64) -> bool {
    rate.is_some_and(|rate| (rate / goal - 1.0).abs() < 0.03)
}

#[test]
fn two_to_one_share_by_their_weights() {
    let files = Files::new(3);
    let daemon = Daemon::start(&files.write());
    let [mut a, mut b] = [0, 1].map(|host| TestHost::new(host, &daemon));
    a.authenticated.endpoint.begin(1, address(2), 0, 3.0);
    b.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    let goal = share(&daemon) / 4.0;
    until("3 to 1", &mut [&mut a, &mut b], |h| near(h[0].gbps(1), 3.0 * goal) && near(h[1].gbps(1), goal));
    let begun = Instant::now();
    b.authenticated.endpoint.finish(1);
    until("the other has all", &mut [&mut a, &mut b], |h| near(h[0].gbps(1), 4.0 * goal));
    assert!(begun.elapsed() < Duration::from_secs(1));
    let look = daemon.look();
    assert_eq!((look.flows.len(), look.counts.forged, look.counts.malformed, look.core.stale), (1, 0, 0, 0));
    assert!(near(look.promised_bps.iter().copied().reduce(f64::max).map(|bps| bps / 1e9), 4.0 * goal));
}

#[test]
fn a_tenant_has_what_its_quota_allows() {
    let mut files = Files::new(3);
    files.tenant = "weight = 1\n[[tenant]]\nname = \"other\"\nkey = \"key\"\nhosts = []".to_string();
    let config = files.write();
    // h1 is another tenant's.
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("\"h0\", \"h1\", \"h2\"", "\"h0\", \"h2\"").replace("hosts = []", "hosts = [\"h1\"]");
    std::fs::write(&config, text).unwrap();
    let daemon = Daemon::start(&config);
    let [mut a, mut b] = [0, 1].map(|host| TestHost::new(host, &daemon));
    (0..8).for_each(|k| a.authenticated.endpoint.begin(k, address(2), 0, 4.0));
    b.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    let half = share(&daemon) / 2.0;
    let sum = |host: &TestHost| (0..8).map(|k| host.gbps(k)).sum::<Option<f64>>();
    until("half each", &mut [&mut a, &mut b], |h| near(sum(h[0]), half) && near(h[1].gbps(1), half));
    daemon.line.tell(DaemonCommand::Quota { tenant: "all".to_string(), weight: 3.0 }).unwrap();
    until("3 to 1", &mut [&mut a, &mut b], |h| near(sum(h[0]), 1.5 * half) && near(h[1].gbps(1), 0.5 * half));
    assert!(daemon.line.tell(DaemonCommand::Quota { tenant: "nobody".to_string(), weight: 3.0 }).is_err());
}

#[test]
fn hosts_and_allocator_start_anew() {
    let files = Files::new(3);
    let config = files.write();
    let daemon = Daemon::start(&config);
    let [mut a, mut b] = [0, 1].map(|host| TestHost::new(host, &daemon));
    a.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    b.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    let half = share(&daemon) / 2.0;
    until("half each", &mut [&mut a, &mut b], |h| near(h[0].gbps(1), half) && near(h[1].gbps(1), half));
    // The host restarts without state, at another port: its earlier flowlet is removed.
    let mut anew = TestHost::new(1, &daemon);
    until("the other has all", &mut [&mut a, &mut anew], |h| near(h[0].gbps(1), 2.0 * half));
    drop(daemon);
    run_for(Duration::from_millis(300), &mut [&mut a]);
    assert_eq!(a.gbps(1), None, "the lease is over");
    let daemon = Daemon::start(&config);
    a.to = daemon.address;
    until("all again", &mut [&mut a], |h| near(h[0].gbps(1), 2.0 * half));
}

#[test]
fn links_and_networks_change_while_it_runs() {
    let files = Files::new(3);
    let config = files.write();
    let daemon = Daemon::start(&config);
    watch::watch(config.clone(), &Config::read(&config).unwrap(), daemon.line.clone());
    let mut a = TestHost::new(0, &daemon);
    a.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    let all = share(&daemon);
    until("all", &mut [&mut a], |h| near(h[0].gbps(1), all));
    let link = daemon.look().plan.network.links().iter().find(|l| l.id.contains("h2")).unwrap().id.clone();
    let told = |capacity_bps| DaemonCommand::Link { link: link.clone(), capacity_bps };
    // Both directions of the link, as in the file.
    daemon.look().plan.network.links().iter().filter(|l| l.id.contains("h2")).for_each(|l| {
        daemon.line.tell(DaemonCommand::Link { link: l.id.clone(), capacity_bps: Some(4e9) }).unwrap();
    });
    until("as the link has", &mut [&mut a], |h| near(h[0].gbps(1), 0.4 * all));
    assert!(daemon.line.tell(told(Some(-1.0))).is_err());
    assert!(daemon.line.tell(DaemonCommand::Link { link: "nothing".to_string(), capacity_bps: None }).is_err());
    daemon.look().plan.network.links().iter().filter(|l| l.id.contains("h2")).for_each(|l| {
        daemon.line.tell(DaemonCommand::Link { link: l.id.clone(), capacity_bps: None }).unwrap();
    });
    until("all again", &mut [&mut a], |h| near(h[0].gbps(1), all));
    // An invalid file changes nothing.
    std::fs::write(files.folder.join("network.json"), "{\"nodes\": 3}").unwrap();
    run_for(Duration::from_millis(1500), &mut [&mut a]);
    assert!(near(a.gbps(1), all));
    files.write_network(&[10.0, 10.0, 2.0]);
    until("the file's", &mut [&mut a], |h| near(h[0].gbps(1), 0.2 * all));
    // The destination host is removed.
    let mut files = files;
    files.hosts = 2;
    files.write_network(&[10.0, 10.0]);
    files.write();
    daemon.until("two hosts", |look| look.hosts.len() == 2);
    files.hosts = 3;
    files.write_network(&[10.0, 10.0, 5.0]);
    files.write();
    until("it is back", &mut [&mut a], |h| near(h[0].gbps(1), 0.5 * all));
}

#[test]
fn what_an_enemy_sends_is_counted_and_changes_nothing() {
    let mut files = Files::new(4);
    files.tenant = "datagrams_per_s = 2000".to_string();
    let daemon = Daemon::start(&files.write());
    let [mut a, mut b] = [0, 1].map(|host| TestHost::new(host, &daemon));
    a.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    b.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    let half = share(&daemon) / 2.0;
    until("half each", &mut [&mut a, &mut b], |h| near(h[0].gbps(1), half) && near(h[1].gbps(1), half));
    let enemy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let say = |bytes: &[u8]| drop(enemy.send_to(bytes, daemon.address));
    // Datagrams without a key, with a wrong key, truncated and corrupted.
    say(&[]);
    say(&[1, 2, 3]);
    say(&[0xff; 2048]);
    let stranger = daemon.until("strangers", |look| look.counts.unknown >= 3).counts;
    let mut false_b = TestHost::with_key(1, &daemon, [8; 32]);
    false_b.authenticated.endpoint.begin(9, address(2), 0, 1000.0);
    run_for(Duration::from_millis(50), &mut [&mut a, &mut b, &mut false_b]);
    let last = a.sent.last().unwrap().clone();
    (0..last.len()).for_each(|length| say(&last[..length]));
    (0..8 * last.len()).for_each(|bit| {
        let mut spoilt = last.clone();
        spoilt[bit / 8] ^= 1 << (bit % 8);
        say(&spoilt);
    });
    let counts = daemon.until("forged", |look| look.counts.forged >= 400).counts;
    assert!(counts.unknown > stranger.unknown, "other endpoints' names");
    // Replays all datagrams of both hosts in another order: they are stale, and do not change the host's address.
    let before = daemon.look();
    let heard = |host: &TestHost| {
        before.hosts.iter().find(|h| h.name == "h0").unwrap().address == host.socket.local_addr().ok().map(v4)
    };
    assert!(heard(&a));
    a.sent.iter().rev().chain(&b.sent).for_each(|bytes| say(bytes));
    daemon.until("stale", |look| look.core.stale > before.core.stale);
    run_for(Duration::from_millis(50), &mut [&mut a, &mut b]);
    let look = daemon.look();
    let place = look.hosts.iter().find(|h| h.name == "h0").unwrap().address;
    assert_eq!(place, a.socket.local_addr().ok().map(v4), "it is spoken to where it is");
    // Replays one datagram of a host, also from another address: it is stale, and not counted in the host's rate limit.
    let mut loud = TestHost::new(3, &daemon);
    until("it has joined", &mut [&mut loud], |h| h[0].authenticated.endpoint.is_joined());
    let word = loud.sent.last().unwrap().clone();
    let before = daemon.look();
    (0..5000).for_each(|k| drop(if k % 2 == 0 { &loud.socket } else { &enemy }.send_to(&word, daemon.address)));
    let look = daemon.until("stale", |look| look.core.stale >= before.core.stale + 2000);
    assert_eq!(look.counts.limited, before.counts.limited, "a replay uses nothing up");
    // A host with a key sends more new datagrams than its rate limit allows: the excess is dropped.
    let (seal, mut opened) = (Seal::new(&Secret::new(KEY), address(3), Direction::Up), None);
    if let Some(bytes) = seal.open(&word) {
        opened = Datagram::decode(bytes).ok();
    }
    let mut datagram = opened.unwrap();
    for _ in 0..5000 {
        datagram.number += 1;
        let mut room = Vec::new();
        datagram.encode(&mut room).unwrap();
        seal.seal(&mut room);
        drop(loud.socket.send_to(&room, daemon.address));
    }
    daemon.until("limited", |look| look.counts.limited > 1000);
    run_for(Duration::from_millis(100), &mut [&mut a, &mut b]);
    assert!(near(a.gbps(1), half) && near(b.gbps(1), half), "{:?} {:?}", a.gbps(1), b.gbps(1));
    assert_eq!(daemon.look().flows.len(), 2);
    // A datagram forged in the allocator's name is refused too.
    let mut forged = last.clone();
    forged[1] = 1;
    enemy.send_to(&forged, a.socket.local_addr().unwrap()).unwrap();
    let refused = a.authenticated.refused;
    until("refused", &mut [&mut a], |h| h[0].authenticated.refused > refused);
}

fn v4(address: std::net::SocketAddr) -> std::net::SocketAddrV4 {
    match address {
        std::net::SocketAddr::V4(address) => address,
        std::net::SocketAddr::V6(_) => panic!("an address of version 4"),
    }
}

#[test]
fn the_other_allocator_takes_over() {
    let key = subak_wire::Secret::new([9; 32]).hex();
    let [first, second] =
        [UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0")].map(|s| s.unwrap().local_addr().unwrap());
    let started = |own: std::net::SocketAddr, other: std::net::SocketAddr, is_first: bool| {
        let mut files = Files::new(3);
        write_key(&files.folder.join("between"), &key);
        files.more =
            format!("lease = \"400ms\"\nstandby = {{ peer = \"{other}\", key = \"between\", first = {is_first} }}");
        let path = files.write();
        let text = std::fs::read_to_string(&path).unwrap().replace("127.0.0.1:0", &own.to_string());
        std::fs::write(&path, text).unwrap();
        (Daemon::start(&path), files)
    };
    let (one, _files) = started(first, second, true);
    let (two, _more) = started(second, first, false);
    one.until("the first serves", |look| look.is_serving);
    let mut a = TestHost::new(0, &one);
    a.authenticated.endpoint.begin(1, address(2), 0, 1.0);
    let all = share(&one);
    until("all", &mut [&mut a], |h| near(h[0].gbps(1), all));
    run_for(Duration::from_millis(500), &mut [&mut a]);
    assert!(!two.look().is_serving);
    drop(one);
    let begun = Instant::now();
    a.to = second;
    two.until("the second serves", |look| look.is_serving);
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    until("all from the second", &mut [&mut a], |h| near(h[0].gbps(1), all));
    // The first allocator restarts, and the second continues to serve.
    let (one, _again) = started(first, second, true);
    run_for(Duration::from_millis(600), &mut [&mut a]);
    assert!(two.look().is_serving && !one.look().is_serving);
    two.line.tell(DaemonCommand::Drain).unwrap();
    a.to = first;
    until("all from the first", &mut [&mut a], |h| near(h[0].gbps(1), all));
    assert!(!two.look().is_serving);
}

fn get(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn pages_and_metrics_are_read_with_the_token_alone() {
    let files = Files::new(3);
    let daemon = Daemon::start(&files.write());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    http::serve(listener, Some("open sesame".to_string()), daemon.line.clone()).unwrap();
    let simple = |path: &str| get(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(simple("/healthz").starts_with("HTTP/1.1 200"));
    for path in ["/", "/state.json", "/metrics", "/state.json?token=open", "/readyz?token=open%20sesame"] {
        assert!(simple(path).starts_with("HTTP/1.1 401"), "{path}");
    }
    let known = |path: &str| get(address, &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer open sesame\r\n\r\n"));
    let metrics = known("/metrics");
    assert!(metrics.contains("\nsubak_hosts 3\n") && metrics.contains("subak_iteration_seconds_count"), "{metrics}");
    let state = known("/state.json?network=1");
    let body: serde_json::Value = serde_json::from_str(state.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((body["nodes"].as_array().unwrap().len(), body["links"].as_array().unwrap().len()), (4, 6));
    assert!(known("/").contains("<title>") && known("/nothing").starts_with("HTTP/1.1 404"));
    assert!(known("/readyz").starts_with("HTTP/1.1 200"));
    let posted = get(address, "POST / HTTP/1.1\r\nAuthorization: Bearer open sesame\r\n\r\n");
    assert!(posted.starts_with("HTTP/1.1 405"));
    assert!(get(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(get(address, &format!("GET /{} HTTP/1.1\r\n", "a".repeat(9000))).starts_with("HTTP/1.1 400"));
}

#[test]
fn it_is_told_things_by_its_socket() {
    let files = Files::new(3);
    let daemon = Daemon::start(&files.write());
    let socket = files.folder.join("socket");
    control::listen(&socket, daemon.line.clone()).unwrap();
    assert!(control::listen(&socket, daemon.line.clone()).unwrap_err().contains("another daemon"));
    let mut stream = UnixStream::connect(&socket).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut ask = |question: &str| -> serde_json::Value {
        writeln!(stream, "{question}").unwrap();
        let mut answer = String::new();
        reader.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    assert_eq!(ask(r#"{"ask": "status"}"#)["ok"]["hosts"], 3);
    assert_eq!(ask(r#"{"ask": "peers"}"#)["ok"][2]["host"], "h2");
    let link = ask(r#"{"ask": "links"}"#)["ok"][0]["link"].as_str().unwrap().to_string();
    let down = format!(r#"{{"ask": "link", "link": "{link}", "capacity": "down"}}"#);
    assert_eq!(ask(&down)["ok"]["down"], 1);
    assert_eq!(ask(&down.replace("\"down\"}", "\"up\"}"))["ok"]["down"], 0);
    assert_eq!(ask(r#"{"ask": "drain"}"#)["ok"]["serving"], false);
    assert_eq!(ask(r#"{"ask": "serve"}"#)["ok"]["serving"], true);
    for wrong in ["{}", "nonsense", r#"{"ask": "link"}"#, r#"{"ask": "link", "link": "x", "capacity": "1 parsec"}"#] {
        assert!(ask(wrong)["error"].is_string(), "{wrong}");
    }
}

#[test]
fn iterations_longer_than_half_of_the_interval_get_more_threads() {
    let mut files = Files::new(2);
    files.more = "lease = \"200ms\"\ninterval = \"100ns\"\nthreads = 3".to_string();
    let daemon = Daemon::start(&files.write());
    let look = daemon.until("it runs on three threads", |look| look.threads == 3);
    assert_eq!(look.status()["threads"], 3);
    assert!(look.metrics().contains("\nsubak_threads 3\n"));
    let events = format!("{:?}", look.events);
    assert!(events.contains("1 -> 2: an iteration took ") && events.contains("2 -> 3: "), "{events}");
}

#[test]
fn wrong_files_are_refused_with_place_and_mend() {
    let files = Files::new(2);
    let path = files.write();
    let good = std::fs::read_to_string(&path).unwrap();
    let with = |from: &str, to: &str| {
        std::fs::write(&path, good.replace(from, to)).unwrap();
        Config::read(&path).and_then(|config| NetworkPlan::read(&config)).map(drop).unwrap_err()
    };
    assert!(with("10.0.0.2", "10.0.0.1").contains("h0's, too"));
    for nobody in ["0.0.0.0", "224.0.0.1", "255.255.255.255"] {
        assert!(with("10.0.0.2", nobody).contains("is not the address of one host"), "{nobody}");
    }
    assert!(with("\"200ms\"", "\"1ms\"").contains("lease: give 10ms at least"));
    assert!(with("\"200ms\"", "\"2 parsecs\"").contains("lease"));
    assert!(with("lease =", "threads = 0\nlease =").contains("threads: 0 is not from 1 to 64"));
    assert!(with("lease", "leash").contains("unknown field `leash`"));
    assert!(with("[\"h0\", \"h1\"]", "[\"h0\", \"h7\"]").contains("host h7 has no address"));
    assert!(with("h1 =", "h9 =").contains("host h1 has no address"));
    assert!(with("network.json", "nowhere.json").contains("nowhere.json"));
    assert!(with("name = \"all\"", "name = \"all\"\nweight = 0").contains("positive numbers"));
    assert!(with("listen =", "page = { listen = \"0.0.0.0:1\" }\nlisten =").contains("give the file of a token"));
    std::fs::write(files.folder.join("key"), "short").unwrap();
    assert!(with("\n", "\n").contains("64 hexadecimal digits"));
}
