//! Log of the weights of a host's connections, for `subak policy check` (Soze, section 3.4).
//!
//! A row is written when a connection's weight applies first, when it changes, and, with weight 0, when it applies no more.
//! A thread writes the file, so that a slow disk delays nothing else. Errors of the file never stop the agent: what is missing is
//! counted in the file.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

mod file;

use crate::traffic::clock_ns;
use file::{LOOK_NS, LogFile, wall_ns};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Largest number of batches that wait for the disk.
const BATCHES: usize = 1024;

/// Both ends of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    /// Address and port on this host.
    pub local: (IpAddr, u16),
    /// Address and port of the other host.
    pub remote: (IpAddr, u16),
}

impl Ends {
    /// The ends whose IPv6 addresses have these words, in network byte order. IPv4-mapped addresses become IPv4 ones.
    pub fn new(local: [u32; 4], remote: [u32; 4], ports: [u16; 2]) -> Self {
        let address = |words: [u32; 4]| {
            let mut octets = [0; 16];
            octets.chunks_exact_mut(4).zip(words).for_each(|(four, word)| four.copy_from_slice(&word.to_ne_bytes()));
            Ipv6Addr::from(octets).to_canonical()
        };
        Ends { local: (address(local), ports[0]), remote: (address(remote), ports[1]) }
    }
}

/// A weight from a time on; a weight of 0 means that the connection has none any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightSet {
    /// Time by the monotonic clock, ns.
    pub time_ns: u64,
    /// Number of the connection, never reused.
    pub connection: u64,
    /// Both ends of the connection.
    pub ends: Ends,
    /// The weight.
    pub weight: f64,
}

/// The connections that have a weight.
#[derive(Debug, Default)]
struct Present(BTreeMap<u64, WeightSet>);

/// Effect of a weight that is set.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// It is the connection's already.
    Nothing,
    /// It applied before the connection's present weight: the kernel told it before a list of weights that was read first.
    Late,
    /// It is the connection's new weight.
    Weight,
}

impl Present {
    fn apply(&mut self, set: WeightSet) -> Change {
        let before = self.0.get(&set.connection);
        if before.is_some_and(|before| before.time_ns > set.time_ns) {
            return Change::Late;
        }
        if before.map_or(0.0, |before| before.weight) == set.weight {
            return Change::Nothing;
        }
        if set.weight > 0.0 {
            self.0.insert(set.connection, set);
        } else {
            self.0.remove(&set.connection);
        }
        Change::Weight
    }

    /// Another weight of a connection, if it has one.
    fn with(&self, connection: u64, weight: f64, now_ns: u64) -> Option<WeightSet> {
        self.0.get(&connection).map(|before| WeightSet { time_ns: now_ns, weight, ..*before })
    }

    /// The weights to set so that those of `now` apply, and no others.
    fn towards(&self, now: &[WeightSet], now_ns: u64) -> Vec<WeightSet> {
        let there: BTreeSet<u64> = now.iter().map(|set| set.connection).collect();
        let gone = self.0.keys().filter(|connection| !there.contains(connection));
        gone.filter_map(|connection| self.with(*connection, 0.0, now_ns)).chain(now.iter().copied()).collect()
    }

    /// All weights, as of this time.
    fn at(&self, now_ns: u64) -> Vec<WeightSet> {
        self.0.values().map(|set| WeightSet { time_ns: now_ns, ..*set }).collect()
    }
}

/// A step of a batch.
#[derive(Debug)]
enum Step {
    Set(WeightSet),
    Replace(Vec<WeightSet>),
    Miss(u64),
}

/// Changes that happen together, and one moment by the monotonic clock and by the wall clock, ns.
type Batch = ((u64, u64), Vec<Step>);

/// A log of weights.
#[derive(Debug)]
pub struct WeightLog {
    present: Present,
    moment: (u64, u64),
    steps: Vec<Step>,
    /// `None` after the end.
    to: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Mutex<Shared>>,
    /// Number of changes that found no room since the thread last took some.
    missing: u64,
    retry_due_ns: u64,
}

/// State that the thread shares: warnings, and numbers of rows and of missing weights.
#[derive(Debug, Default)]
struct Shared {
    notes: Vec<String>,
    counts: (u64, u64),
}

impl WeightLog {
    /// Opens a log, or continues one: flows that have a weight there end at the time at which it was last written to.
    pub fn open(path: &Path) -> Result<Self, String> {
        let mut log = LogFile::open(path)?;
        let (to, from) = sync_channel::<Batch>(BATCHES);
        let shared = Arc::new(Mutex::new(Shared::default()));
        let threads = Arc::clone(&shared);
        let run = move || {
            loop {
                match from.recv_timeout(Duration::from_nanos(LOOK_NS / 2)) {
                    Ok((moment, steps)) => {
                        log.tick(moment);
                        for step in steps {
                            match step {
                                Step::Set(set) => log.set(set),
                                Step::Replace(now) => log.replace(&now),
                                Step::Miss(count) => log.miss(count),
                            }
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => log.tick((clock_ns(), wall_ns())),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                log.flush();
                let mut shared = threads.lock().unwrap_or_else(PoisonError::into_inner);
                shared.notes.append(&mut log.notes());
                shared.counts = log.counts();
            }
        };
        let thread = std::thread::Builder::new().name("weights".to_string()).spawn(run);
        let thread = thread.map_err(|e| format!("--log-weights: no thread can be started: {e}"))?;
        Ok(WeightLog {
            present: Present::default(),
            moment: (0, 0),
            steps: Vec::new(),
            to: Some(to),
            thread: Some(thread),
            shared,
            missing: 0,
            retry_due_ns: 0,
        })
    }

    /// Sets the time by the monotonic clock, ns, once for all changes that happen together.
    pub fn tick(&mut self, now_ns: u64) {
        self.moment = (now_ns, wall_ns());
    }

    /// Logs a weight, unless it is the connection's already.
    pub fn set(&mut self, set: WeightSet) {
        if self.present.apply(set) != Change::Nothing {
            self.steps.push(Step::Set(set));
        }
    }

    /// Logs another weight of a connection that has one.
    pub fn change(&mut self, connection: u64, weight: f64) {
        if let Some(set) = self.present.with(connection, weight, self.moment.0) {
            self.set(set);
        }
    }

    /// Replaces all weights by those that the kernel has: events were lost.
    pub fn replace(&mut self, now: &[WeightSet]) {
        self.present.towards(now, self.moment.0).into_iter().for_each(|set| self.set(set));
    }

    /// Counts weights that are lost.
    pub fn miss(&mut self, count: u64) {
        self.steps.push(Step::Miss(count));
    }

    /// Hands changes to the thread. If it has too many already, they are missing, and it gets all weights later.
    pub fn flush(&mut self) {
        let Some(to) = self.to.as_ref().filter(|_| !self.steps.is_empty() || self.missing > 0) else { return };
        let (now_ns, _) = self.moment;
        let steps = std::mem::take(&mut self.steps);
        let (count, steps) = match self.missing {
            0 => (lost_with(&steps), steps),
            missing => {
                let missing = missing + lost_with(&steps);
                self.missing = missing;
                if now_ns < self.retry_due_ns {
                    return;
                }
                (missing, vec![Step::Miss(missing), Step::Replace(self.present.at(now_ns))])
            }
        };
        self.missing = match to.try_send((self.moment, steps)) {
            Ok(()) => 0,
            Err(_) => count,
        };
        self.retry_due_ns = now_ns + LOOK_NS / 10;
    }

    /// Adds a warning.
    pub fn note(&self, note: String) {
        self.shared().notes.push(note);
    }

    /// Warnings since the previous call.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.shared().notes)
    }

    /// Writes everything, ends the thread, and returns the numbers of rows written and of weights that are missing.
    pub fn end(&mut self) -> (u64, u64) {
        self.flush();
        self.to = None;
        self.thread.take().map(JoinHandle::join);
        self.shared().counts
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WeightLog {
    fn drop(&mut self) {
        self.end();
    }
}

/// Number of weights that are missing if these steps are not taken.
fn lost_with(steps: &[Step]) -> u64 {
    let count = |step: &Step| match step {
        Step::Set(_) => 1,
        Step::Replace(_) => 0,
        Step::Miss(count) => *count,
    };
    steps.iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    pub(super) fn of(connection: u64, weight: f64) -> WeightSet {
        let mapped = |last| [0, 0, 0xffff_u32.to_be(), u32::from_be_bytes([10, 0, 0, last]).to_be()];
        let ends = Ends::new(mapped(1), mapped(9), [4000 + connection as u16, 80]);
        WeightSet { time_ns: 0, connection, ends, weight }
    }

    /// A folder of the test with this name, empty.
    pub(super) fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("subak-weights-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    /// Rows without their times.
    pub(super) fn rows(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(file::COLUMNS));
        let cut = |line: &str| line.split_once(',').map_or(line, |(_, rest)| rest).to_string();
        lines.map(cut).collect()
    }

    #[test]
    fn ends_have_ipv4_or_ipv6_addresses() {
        assert_eq!(of(1, 1.0).ends.local, ("10.0.0.1".parse().unwrap(), 4001));
        assert_eq!(of(1, 1.0).ends.remote, ("10.0.0.9".parse().unwrap(), 80));
        let six = Ends::new([0xfd00_0000_u32.to_be(), 0, 0, 1_u32.to_be()], [0; 4], [1, 2]);
        assert_eq!(six.local, ("fd00::1".parse().unwrap(), 1));
    }

    #[test]
    fn a_disk_that_hangs_delays_nobody_and_costs_rows_that_are_counted() {
        let folder = folder("hangs");
        let path = folder.join("log.csv");
        let mut log = WeightLog::open(&path).unwrap();
        log.tick(clock_ns());
        [1, 2].into_iter().for_each(|connection| log.set(of(connection, 1.0)));
        log.flush();
        // The thread waits for this lock as for a disk.
        let shared = Arc::clone(&log.shared);
        let hangs = shared.lock().unwrap();
        for step in 2..=5000_u32 {
            log.tick(clock_ns());
            log.change(1, f64::from(step));
            log.flush();
        }
        assert!(log.missing > 3000, "{}", log.missing);
        log.change(2, 0.0);
        log.change(1, 0.5);
        drop(hangs);
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while log.missing > 0 {
            assert!(std::time::Instant::now() < until);
            std::thread::sleep(Duration::from_millis(10));
            log.tick(clock_ns());
            log.flush();
        }
        let (written, missing) = log.end();
        let rows = rows(&path);
        let one = |connection: u16, weight| format!("10.0.0.1,10.0.0.9,{},80,tcp,{weight}", 4000 + connection);
        let (comment, weights): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.starts_with('#'));
        assert_eq!(comment, [&format!("# missing {missing}")]);
        assert_eq!(weights.len() as u64, written);
        // Two of the last three changes are written as present weights.
        assert_eq!(written + missing, 2 + 4999 + 2 + 2);
        assert_eq!(weights[weights.len() - 2..], [&one(2, "0"), &one(1, "0.5")]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_set_before_the_end_is_in_the_file() {
        let folder = folder("end");
        let path = folder.join("log.csv");
        let mut log = WeightLog::open(&path).unwrap();
        log.tick(5);
        log.set(WeightSet { time_ns: 5, ..of(1, 1.0) });
        log.replace(&[WeightSet { time_ns: 5, ..of(2, 3.0) }]);
        // An event that waited meanwhile is a row, and changes nothing.
        log.set(WeightSet { time_ns: 4, ..of(2, 8.0) });
        log.flush();
        drop(log);
        let one = |connection: u16, weight| format!("10.0.0.1,10.0.0.9,{},80,tcp,{weight}", 4000 + connection);
        assert_eq!(rows(&path), [one(1, 1), one(1, 0), one(2, 3), one(2, 8)]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
