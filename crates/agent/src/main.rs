//! `subak-agent`: Subak's agent on a Linux host.

use clap::{Args, CommandFactory, Parser, Subcommand};
use std::io::{Read, Write};
use std::process::ExitCode;
use subak_agent::shares::WeightRule;
use subak_agent::traffic;
use subak_testbed::Schedule;

/// Run Subak's transports on a Linux host.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send the flows of a schedule between network namespaces and record their arrivals.
    ///
    /// Reads the schedule as JSON from standard input. Writes the recording as JSON to standard output, and progress as
    /// JSON lines to standard error. Ends early when the parent process ends.
    Traffic,
    /// Carry packets between the two ends of a testbed's links, with delay, loss and reordering, until standard input ends.
    ///
    /// The links' ends are TAP devices whose files the parent process hands over. Reads the links as one JSON line from standard
    /// input, and then commands that change links, one a line. Writes the state of the links to standard output, a file whose content
    /// each answer replaces.
    Relay,
    /// Run Soze and its queues on the hosts and switches of a testbed, until standard input ends.
    ///
    /// Reads the configuration (hosts, queues and scheme) as one JSON line from standard input. Prints {"ready": true} once everything is in place. The kernel
    /// removes the programs when this process ends, however it ends.
    Hosts,
    /// Run Soze for the connections of this network namespace, until it is stopped.
    ///
    /// Programs select it by name (`TCP_CONGESTION`), unless --all is set. Prints one JSON line once it is in place. Connections
    /// whose path carries no telemetry use the fallback congestion control.
    Soze(Host),
    /// Send at the rates of an allocator, for the connections of this network namespace, until it is stopped.
    ///
    /// The allocator is `subak-allocator`. Connections use the kernel's cubic while no rate is valid: before the first rate, for
    /// short transfers, and after a lease expires. Prints one JSON line once it is in place.
    Flowtune(Endpoint),
    /// Set the weight of new connections to a destination or of a control group.
    Weigh {
        /// Number of the map of destinations or of control groups, as `hosts` and `soze` print it.
        #[arg(long)]
        map: u32,
        /// Address prefix, such as 10.1.0.0/16, or folder of a control group.
        whose: String,
        /// Weight, from 0.001 to 1000000.
        weight: f64,
    },
    /// Print the counters of the first queues as JSON.
    Counters {
        /// Number of the queues' map, as `hosts` prints it.
        #[arg(long)]
        map: u32,
        /// Number of queues.
        #[arg(long)]
        queues: u32,
    },
    /// Print as JSON which kernel features are available, and how many of Subak's objects are in the kernel.
    Doctor {
        /// Only count Subak's objects in the kernel; test no features.
        #[arg(long)]
        present: bool,
    },
    /// Print the completion script of a shell.
    Completion {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder.
    Man {
        /// Existing folder for the manual pages.
        folder: std::path::PathBuf,
    },
}

/// Options of Soze on a host.
#[derive(Args)]
struct Host {
    /// Rate of the host's link, such as 10Gbps.
    #[arg(long)]
    rate: String,
    /// Scheme: soze or soze-virtual. The network's queues must run the same one.
    #[arg(long, default_value = "soze-virtual")]
    scheme: String,
    /// Parameter of the scheme, such as p=8ms; `subak schemes soze` lists all.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Largest base RTT of the network.
    #[arg(long, default_value = "1ms")]
    rtt: String,
    /// Name of the congestion control in the kernel.
    #[arg(long, default_value = "soze")]
    name: String,
    /// Use it for every connection, not only for those that select it by name.
    #[arg(long)]
    all: bool,
    /// Congestion control of connections whose path carries no telemetry.
    #[arg(long, default_value = "cubic")]
    fallback: String,
    /// Weight of a destination or control group, such as 10.1.0.0/16=3 or /sys/fs/cgroup/web=3.
    #[arg(long = "weight", value_name = "WHOSE=W")]
    weights: Vec<String>,
    /// Rule for weights. free: a program's request is the connection's weight. fixed: requests are refused.
    #[arg(long = "weights", value_enum, default_value = "fixed", value_name = "WHO")]
    weight_rule: WeightRule,
    /// Smallest weight that a program may request.
    #[arg(long, default_value_t = 0.001)]
    least_weight: f64,
    /// Largest weight that a program may request.
    #[arg(long, default_value_t = 1000.0)]
    most_weight: f64,
    /// Log the weights of connections to this file (CSV), for `subak policy check`. An existing log is continued; a file
    /// that was moved away is followed by a new one.
    #[arg(long, value_name = "FILE")]
    log_weights: Option<std::path::PathBuf>,
}

/// Options of an allocator's endpoint.
#[derive(Args)]
struct Endpoint {
    /// Address of this host at the allocator; with @FILE, in the network namespace of that file. Repeat for a testbed.
    #[arg(long = "host", value_name = "ADDRESS[@NETNS]", required = true)]
    hosts: Vec<String>,
    /// Address of an allocator, such as 10.0.0.9:4712; repeat for the standby.
    #[arg(long = "allocator", value_name = "ADDRESS:PORT", required = true, value_parser = address_and_port)]
    allocators: Vec<std::net::SocketAddr>,
    /// File with the key shared with the allocator: 64 hexadecimal digits.
    #[arg(long)]
    key: std::path::PathBuf,
    /// Lease: validity of a rate without renewal, as in the allocator's configuration.
    #[arg(long, default_value = "200ms")]
    lease: String,
    /// Smallest transfer that gets an allocated rate; smaller ones use cubic.
    #[arg(long, default_value = "15KB")]
    shortest: String,
    /// Open the sockets to allocators in this process's own namespace, not in that of each host.
    #[arg(long)]
    sockets_here: bool,
    /// End when standard input ends, and print the counters.
    #[arg(long)]
    attached: bool,
    /// Name of the congestion control in the kernel.
    #[arg(long, default_value = "flowtune")]
    name: String,
    /// Weight of a destination or control group, such as 10.1.0.0/16=3 or /sys/fs/cgroup/web=3.
    #[arg(long = "weight", value_name = "WHOSE=W")]
    weights: Vec<String>,
    /// Rule for weights. within: a program's request is relative to the connections of its control group or host.
    /// free: the request is the connection's weight. fixed: requests are refused.
    #[arg(long = "weights", value_enum, default_value = "within", value_name = "WHO")]
    weight_rule: WeightRule,
    /// Smallest weight that a program may request.
    #[arg(long, default_value_t = 0.001)]
    least_weight: f64,
    /// Largest weight that a program may request.
    #[arg(long, default_value_t = 1000.0)]
    most_weight: f64,
    /// Total weight of this host's connections, without those of control groups that have a weight.
    #[arg(long, default_value_t = 1.0)]
    host_weight: f64,
    /// Device whose unscheduled traffic is measured and reported. Default: that of the host's address or route.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Addresses whose hosts have agents, such as 10.0.0.0/16; TCP from others is not scheduled. Default: all.
    #[arg(long = "partners", value_name = "ADDRESS/BITS")]
    partners: Vec<String>,
    /// IPv6 addresses of a host and its address at the allocator, such as fd00:0:0:7::/64=10.0.0.7. Repeat for each
    /// host. TCP over IPv6 to other addresses is not scheduled.
    #[arg(long = "ipv6", value_name = "PREFIX=ADDRESS")]
    known: Vec<String>,
    /// Schedule also the connections of this machine's other network namespaces, such as containers', including those
    /// that appear later. They belong to the only host.
    #[arg(long)]
    containers: bool,
    /// Log the weights of connections to this file (CSV), for `subak policy check`. An existing log is continued; a file
    /// that was moved away is followed by a new one.
    #[arg(long, value_name = "FILE")]
    log_weights: Option<std::path::PathBuf>,
}

fn address_and_port(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| "not an address and a port; give numbers, such as 10.0.0.9:4712".to_string())
}

/// Largest size of a schedule, bytes.
const MOST_INPUT: u64 = 1 << 30;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Traffic => carry(),
        Command::Relay => subak_agent::relay::carry(),
        Command::Hosts => programs::serve(),
        Command::Soze(host) => programs::soze(&host),
        Command::Flowtune(endpoint) => programs::flowtune(&endpoint),
        Command::Weigh { map, whose, weight } => programs::weigh(map, &whose, weight),
        Command::Counters { map, queues } => programs::counters(map, queues),
        Command::Doctor { present } => doctor(present),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "subak-agent", &mut std::io::stdout());
            Ok(())
        }
        Command::Man { folder } => {
            clap_mangen::generate_to(Cli::command(), &folder).map_err(|e| format!("{}: {e}", folder.display()))
        }
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
    let mut begun = |begun_ns| eprintln!("{{\"share\": 0, \"begun_ns\": {begun_ns}}}");
    let recording = traffic::carry(&schedule, &mut begun, &mut |share| eprintln!("{{\"share\": {share:.4}}}"))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut out, &recording).map_err(|e| format!("standard output: {e}"))?;
    out.flush().map_err(|e| format!("standard output: {e}"))
}

#[cfg(feature = "bpf")]
mod programs {
    use super::{Endpoint, Host, MOST_INPUT};
    use serde_json::{Map, Value, json};
    use std::io::{BufRead, Read, Write};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use subak_agent::flowtune;
    use subak_agent::hosts::{HostsConfig, RunningHosts};
    use subak_agent::kernel::{queues, weights};
    use subak_agent::shares::{Weighing, WeightRule};
    use subak_control::ControlSettings;
    use subak_core::quantity;
    use subak_wire::Secret;

    /// Largest size of a key file, bytes.
    const MOST_KEY: u64 = 4096;
    /// Shortest lease that allocators accept, ns.
    const LEAST_LEASE_NS: u64 = 10_000_000;

    pub fn serve() -> Result<(), String> {
        let mut input = std::io::stdin().lock();
        let mut line = String::new();
        input.by_ref().take(MOST_INPUT).read_line(&mut line).map_err(|e| format!("standard input: {e}"))?;
        let order: HostsConfig = serde_json::from_str(&line).map_err(|e| format!("the configuration: {e}"))?;
        let running = start(&order, None)?;
        match order.with {
            Some(process) => subak_agent::wait::for_end_of(process)?,
            // Runs until the parent closes standard input.
            None => drop(std::io::copy(&mut input, &mut std::io::sink()).map_err(|e| format!("standard input: {e}"))?),
        }
        drop(running);
        Ok(())
    }

    pub fn soze(host: &Host) -> Result<(), String> {
        let rate_bps = quantity::rate_bps(&host.rate).map_err(|e| format!("--rate: {e}"))?;
        let rtt_ns = quantity::ns(&host.rtt).map_err(|e| format!("--rtt: {e}"))?;
        let mut params = Map::new();
        for text in &host.set {
            let (name, value) = pair(text, "--set")?;
            params.insert(name, serde_json::from_str(&value).unwrap_or(Value::String(value)));
        }
        let weights = weights_of(&host.weights)?;
        if host.weight_rule == WeightRule::Within {
            return Err("--weights: within is a rule of flowtune; give free or fixed".to_string());
        }
        let requests = weighing(host.weight_rule, host.least_weight, host.most_weight, 1.0)?.bounds();
        let order = json!({
            "schema": 1, "scheme": host.scheme, "name": host.name, "params": params, "rtt_ns": rtt_ns, "all": host.all,
            "fallback": host.fallback, "hosts": [{"netns": "/proc/self/ns/net", "rate_bps": rate_bps}], "weights": weights,
            "requests": requests,
        });
        let order = serde_json::from_value(order).map_err(|e| e.to_string())?;
        let mut running = start(&order, host.log_weights.as_deref())?;
        while let Some(notes) = running.turn()? {
            notes.iter().for_each(|note| eprintln!("subak-agent: {note}"));
        }
        loop {
            std::thread::park();
            let _ = &running;
        }
    }

    fn pair(text: &str, option: &str) -> Result<(String, String), String> {
        match text.rsplit_once('=') {
            Some((name, value)) => Ok((name.to_string(), value.to_string())),
            None => Err(format!("{option}: \"{text}\" has no \"=\"; see --help for its form")),
        }
    }

    /// A value of `all` that is equal to an earlier one.
    fn twice<T: Ord>(all: impl Iterator<Item = T>) -> Option<T> {
        let mut sorted: Vec<T> = all.collect();
        sorted.sort_unstable();
        let at = sorted.windows(2).position(|pair| pair[0] == pair[1])?;
        Some(sorted.swap_remove(at))
    }

    fn weights_of(texts: &[String]) -> Result<Vec<(String, f64)>, String> {
        let read = texts.iter().map(|text| {
            let (whose, weight) = pair(text, "--weight")?;
            let number = weight.parse::<f64>();
            Ok((whose, number.map_err(|e| format!("--weight: \"{weight}\": {e}; give a number, such as 3"))?))
        });
        read.collect()
    }

    pub fn flowtune(endpoint: &Endpoint) -> Result<(), String> {
        let lease_ns = quantity::ns(&endpoint.lease).map_err(|e| format!("--lease: {e}"))?;
        if lease_ns < LEAST_LEASE_NS {
            return Err(format!("--lease: {} is too short; give that of the allocator, 10ms at least", endpoint.lease));
        }
        let shortest = quantity::bytes(&endpoint.shortest).map_err(|e| format!("--shortest: {e}"))?;
        let unusable = |why: &dyn std::fmt::Display| {
            let hint = "`subak-allocator key --output FILE` makes a key";
            format!("--key: {}: {why}; {hint}", endpoint.key.display())
        };
        let mut text = String::new();
        let open = std::fs::File::open(&endpoint.key);
        if let Ok(found) = open.as_ref().map_or_else(|_| std::fs::metadata(&endpoint.key), std::fs::File::metadata) {
            if found.is_dir() {
                return Err(unusable(&"it is a folder"));
            }
            let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
            Secret::check_mode(mode).map_err(|e| format!("--key: {}: {e}", endpoint.key.display()))?;
        }
        let read = open.and_then(|key| key.take(MOST_KEY).read_to_string(&mut text));
        read.map_err(|e| unusable(&e))?;
        let hosts = endpoint.hosts.iter().map(|text| {
            let (address, netns) = text.split_once('@').unwrap_or((text, "/proc/self/ns/net"));
            let hint = "give 10.0.0.1 or 10.0.0.1@/run/netns/NAME, for example";
            let address: std::net::Ipv4Addr =
                address.parse().map_err(|e| format!("--host: \"{address}\": {e}; {hint}"))?;
            if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
                return Err(format!("--host: {address} is the address of no host; {hint}"));
            }
            Ok((address, netns.to_string()))
        });
        let hosts = hosts.collect::<Result<Vec<_>, String>>()?;
        if let Some(twice) = twice(hosts.iter().map(|(address, _)| address)) {
            return Err(format!("--host: {twice} is given twice; name each host once"));
        }
        if let Some(nowhere) = endpoint.allocators.iter().find(|one| one.ip().is_unspecified() || one.port() == 0) {
            return Err(format!("--allocator: nobody has {nowhere}; give the address and port on which it listens"));
        }
        if let Some(twice) = twice(endpoint.allocators.iter()) {
            return Err(format!("--allocator: {twice} is given twice; name each allocator once"));
        }
        let partners = endpoint.partners.iter().map(|text| match text.parse() {
            Ok(weights::Whose::To(address, bits)) => Ok((address, bits)),
            _ => Err(format!("--partners: \"{text}\" is no address, such as 10.0.0.0/16")),
        });
        let mut partners = partners.collect::<Result<Vec<_>, String>>()?;
        if partners.is_empty() {
            partners.push((std::net::Ipv4Addr::UNSPECIFIED, 0));
        }
        let known = endpoint.known.iter().map(|text| flowtune::known_of(text).map_err(|e| format!("--ipv6: {e}")));
        let order = flowtune::FlowtuneConfig {
            name: endpoint.name.clone(),
            hosts,
            allocators: endpoint.allocators.clone(),
            secret: Secret::from_hex(&text).map_err(|e| unusable(&e))?,
            sockets_here: endpoint.sockets_here,
            settings: ControlSettings::for_hosts(lease_ns),
            shortest_bytes: u32::try_from(shortest).map_err(|_| "--shortest: give less than 4GB".to_string())?.max(1),
            weights: weights_of(&endpoint.weights)?,
            weighing: weighing(
                endpoint.weight_rule,
                endpoint.least_weight,
                endpoint.most_weight,
                endpoint.host_weight,
            )?,
            device: endpoint.device.clone(),
            partners,
            known: known.collect::<Result<_, _>>()?,
            containers: endpoint.containers,
            log: endpoint.log_weights.clone(),
        };
        let mut running = flowtune::RunningFlowtune::new(&order)?;
        say(&json!({"ready": true, "weights": running.weights()?}))?;
        let ended = Arc::new(AtomicBool::new(false));
        if endpoint.attached {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                ended.store(true, Ordering::Relaxed);
            });
        }
        while !ended.load(Ordering::Relaxed) {
            running.turn()?;
            running.notes().iter().for_each(|note| eprintln!("subak-agent: {note}"));
        }
        say(&running.report())
    }

    fn weighing(
        weight_rule: WeightRule,
        least_weight: f64,
        most_weight: f64,
        host_weight: f64,
    ) -> Result<Weighing, String> {
        for (name, weight) in
            [("--least-weight", least_weight), ("--most-weight", most_weight), ("--host-weight", host_weight)]
        {
            if !(0.001..=65_535.0).contains(&weight) {
                return Err(format!("{name}: it is {weight}; give a weight from 0.001 to 65535"));
            }
        }
        if least_weight > most_weight {
            return Err(format!("--least-weight: {least_weight} is above --most-weight, {most_weight}; give less"));
        }
        Ok(Weighing { rule: weight_rule, least: least_weight, most: most_weight, host: host_weight })
    }

    fn say(what: &Value) -> Result<(), String> {
        let mut out = std::io::stdout();
        writeln!(out, "{what}").and_then(|()| out.flush()).map_err(|e| format!("standard output: {e}"))
    }

    fn start(order: &HostsConfig, log: Option<&Path>) -> Result<RunningHosts, String> {
        let running = RunningHosts::new(order, log)?;
        say(&serde_json::to_value(running.ready()?).map_err(|e| e.to_string())?)?;
        Ok(running)
    }

    pub fn weigh(map: u32, whose: &str, weight: f64) -> Result<(), String> {
        weights::WeightMaps { destinations: map, groups: map }.set(&whose.parse()?, weight)
    }

    pub fn counters(map: u32, of: u32) -> Result<(), String> {
        let counters = queues::counters(map, of)?;
        println!("{}", json!({"schema": 1, "queues": counters}));
        Ok(())
    }
}

#[cfg(not(feature = "bpf"))]
mod programs {
    use super::{Endpoint, Host};

    const WITHOUT: &str =
        "it was built without eBPF: install clang, libelf-dev and zlib1g-dev, and build with --features bpf";

    pub fn serve() -> Result<(), String> {
        Err(WITHOUT.to_string())
    }
    pub fn soze(_host: &Host) -> Result<(), String> {
        Err(WITHOUT.to_string())
    }
    pub fn flowtune(_endpoint: &Endpoint) -> Result<(), String> {
        Err(WITHOUT.to_string())
    }
    pub fn weigh(_map: u32, _whose: &str, _weight: f64) -> Result<(), String> {
        Err(WITHOUT.to_string())
    }
    pub fn counters(_map: u32, _of: u32) -> Result<(), String> {
        Err(WITHOUT.to_string())
    }
}

/// Prints available kernel features, each missing one with its reason.
fn doctor(present: bool) -> Result<(), String> {
    let told = subak_agent::doctor::look(!present);
    println!("{}", serde_json::to_string(&told).map_err(|e| e.to_string())?);
    Ok(())
}
