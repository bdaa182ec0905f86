//! NED across processes: the test starts itself as the other processes, which communicate over loopback sockets.

use super::parallel::parallel;
use super::random_datacenter;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use subak_core::Case;
use subak_solve::ned::NewFlow;
use subak_solve::ned::parallel::{Parallel, Partition, ProcessIndex};

/// Environment variable with a child process's index in the test: "index count port,port,... seed".
const WHO: &str = "SUBAK_TEST_ACROSS";
/// Longest time that a process waits for another.
const PATIENCE: Duration = Duration::from_secs(20);
const STEPS: usize = 30;

fn member(case: &Case, share: ProcessIndex) -> Parallel<f32> {
    let (alpha, flows) = NewFlow::all_of(case).unwrap();
    let capacity_bps: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
    let partition = Partition::of(&case.network, 4).unwrap();
    Parallel::share_of(share, &capacity_bps, alpha, &flows, &partition, None, 1).unwrap()
}

fn bits(ned: &Parallel<f32>) -> Vec<u64> {
    ned.prices().into_iter().chain(ned.rates_bps(true)).map(f64::to_bits).collect()
}

fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Accepts the next connection. An error if none arrives in time, since a process may have ended early.
fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return patient(stream);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(e) => return Err(e),
        }
    }
}

/// Streams to the processes of lower index, which listen, and from those of higher index, which send their index.
fn meet(share: ProcessIndex, listener: &TcpListener, ports: &[u16]) -> io::Result<Vec<Option<TcpStream>>> {
    let mut peers: Vec<Option<TcpStream>> = (0..share.count).map(|_| None).collect();
    for q in 0..share.index {
        let mut stream = patient(TcpStream::connect(("127.0.0.1", ports[q]))?)?;
        stream.write_all(&[share.index as u8])?;
        peers[q] = Some(stream);
    }
    for _ in share.index + 1..share.count {
        let mut stream = accept(listener)?;
        let mut who = [0];
        stream.read_exact(&mut who)?;
        peers[usize::from(who[0])] = Some(stream);
    }
    Ok(peers)
}

/// Body of the child processes; returns at once in the test itself.
#[test]
fn another_process() {
    let Ok(told) = std::env::var(WHO) else { return };
    let words: Vec<&str> = told.split(' ').collect();
    let share = ProcessIndex { index: words[0].parse().unwrap(), count: words[1].parse().unwrap() };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // The first process listens at a known port; it collects the other processes' ports.
    let mut first = patient(TcpStream::connect(("127.0.0.1", words[2].parse::<u16>().unwrap())).unwrap()).unwrap();
    first.write_all(&[share.index as u8]).unwrap();
    first.write_all(&listener.local_addr().unwrap().port().to_le_bytes()).unwrap();
    let mut bytes = vec![0; 2 * share.count];
    first.read_exact(&mut bytes).unwrap();
    let ports: Vec<u16> = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    let mut peers = meet(share, &listener, &ports).unwrap();
    let case = random_datacenter(words[3].parse().unwrap(), 1.0);
    let mut ned = member(&case, share);
    ned.run_across(STEPS, &mut peers).unwrap();
    let own = bits(&ned);
    first.write_all(&own.iter().flat_map(|b| b.to_le_bytes()).collect::<Vec<_>>()).unwrap();
}

/// A child process, which is killed when the test ends in any way.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(share: ProcessIndex, port: u16, seed: u64) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "ned::across::another_process", "--nocapture"]).stdout(Stdio::null());
    command.env(WHO, format!("{} {} {port} {seed}", share.index, share.count));
    Ended(command.spawn().unwrap())
}

/// Rates and prices of all processes together. The process of a flow's FlowBlock has the flow's rate; prices are the
/// same in each process.
fn together(count: usize, seed: u64, case: &Case) -> Vec<Vec<u64>> {
    let desk = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = desk.local_addr().unwrap().port();
    let _others: Vec<Ended> = (1..count).map(|index| start(ProcessIndex { index, count }, port, seed)).collect();
    let mut known: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    let mut ports = vec![listener.local_addr().unwrap().port(); count];
    for _ in 1..count {
        let mut stream = accept(&desk).unwrap();
        let mut who = [0; 3];
        stream.read_exact(&mut who).unwrap();
        ports[usize::from(who[0])] = u16::from_le_bytes([who[1], who[2]]);
        known[usize::from(who[0])] = Some(stream);
    }
    let all: Vec<u8> = ports.iter().flat_map(|p| p.to_le_bytes()).collect();
    known.iter_mut().flatten().for_each(|stream| stream.write_all(&all).unwrap());
    let share = ProcessIndex { index: 0, count };
    let mut peers = meet(share, &listener, &ports).unwrap();
    let mut ned = member(case, share);
    ned.run_across(STEPS, &mut peers).unwrap();
    let mut answers = vec![bits(&ned)];
    for stream in known.iter_mut().flatten() {
        let mut bytes = vec![0; 8 * answers[0].len()];
        stream.read_exact(&mut bytes).unwrap();
        answers.push(bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect());
    }
    answers
}

#[test]
fn processes_give_the_bits_of_one() {
    for (seed, count) in [(2, 2), (3, 3), (4, 3)] {
        let case = random_datacenter(seed, 1.0);
        let links = case.network.links().len();
        let mut whole = parallel::<f32>(&case, 4, 1);
        whole.run(STEPS);
        let want = bits(&whole);
        let answers = together(count, seed, &case);
        for (place, want) in want.iter().enumerate().skip(links) {
            let told: Vec<u64> = answers.iter().map(|a| a[place]).filter(|rate| *rate != 0).collect();
            assert_eq!(told, [*want], "network {seed}: one process has the rate of flow {}", place - links);
        }
        for (l, want) in want.iter().enumerate().take(links) {
            let told: Vec<u64> = answers.iter().map(|a| a[l]).collect();
            // A process without a flow over a link does not receive the link's price.
            assert!(told.contains(want), "network {seed}: link {l}");
        }
    }
}

#[test]
fn another_problem_is_refused_and_so_is_a_missing_stream() {
    let (case, other) = (random_datacenter(2, 1.0), random_datacenter(4, 1.0));
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let kinds = std::thread::scope(|scope| {
        let run = |case, index, stream| {
            let mut ned = member(case, ProcessIndex { index, count: 2 });
            let mut peers = if index == 0 { [None, Some(stream)] } else { [Some(stream), None] };
            ned.run_across(3, &mut peers).unwrap_err().kind()
        };
        let (case, other) = (&case, &other);
        let first = scope.spawn(move || run(case, 0, a));
        let second = run(other, 1, b);
        [first.join().unwrap(), second]
    });
    assert_eq!(kinds, [io::ErrorKind::InvalidData; 2]);
    let mut alone = member(&case, ProcessIndex { index: 0, count: 2 });
    assert_eq!(alone.run_across::<TcpStream>(1, &mut [None, None]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
