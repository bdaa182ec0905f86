//! Sends the flows of a schedule over TCP between network namespaces and records when their bytes arrive.
//!
//! One thread with one clock serves all hosts, so that times are comparable. A flow's connection is established
//! before the flow starts. The measured time is therefore the transfer's: from the moment at which its first byte may
//! be written until its last byte is read.

mod control;
mod ends;
mod looks;
mod timers;

use crate::namespace::Namespace;
use crate::sys;
use control::{At, Control};
use ends::{Ends, SocketProgress, Token};
use looks::Looks;
use rustix::event::epoll;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::time::{ClockId, Timespec, clock_gettime};
use subak_testbed::{Carried, Recording, SCHEMA, Schedule};
use timers::{Due, Timers};

/// Largest number of connections that are established before their flows start; bounds memory.
const AHEAD: usize = 10_000;
/// Largest number of connections that are being established.
const AT_ONCE: usize = 64;
/// Time limit for establishing connections, ns.
const PATIENCE_NS: u64 = 30_000_000_000;
/// Interval between progress reports, ns.
const TELL_NS: u64 = 500_000_000;

/// Runs `schedule`. `begun` is called with the start of the schedule's time, ns by the monotonic clock, and `progress` with
/// the fraction of it that has passed. An error says what the machine lacks.
pub fn carry(
    schedule: &Schedule,
    begun: &mut dyn FnMut(u64),
    progress: &mut dyn FnMut(f64),
) -> Result<Recording, String> {
    schedule.check()?;
    // If the process is killed, its traffic ends.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("the parent cannot be watched: {e}"))?;
    allow_files(schedule);
    let mut run = TrafficRun::new(schedule)?;
    run.connect_first()?;
    run.start();
    begun(run.begun_ns);
    while !run.is_over() {
        run.turn(progress)?;
    }
    run.finish()
}

/// Raises the limit of open files as far as needed and permitted.
fn allow_files(schedule: &Schedule) {
    let wanted = 2 * schedule.flows.len().min(AHEAD) as u64 + 2 * schedule.hosts.len() as u64 + 4096;
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum.map_or(wanted, |most| most.min(wanted)).max(limit.current.unwrap_or(wanted));
    // A limit that is too low shows when a socket cannot be opened.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
}

/// Monotonic clock, ns.
pub(crate) fn clock_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

fn busy_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

struct TrafficRun<'a> {
    schedule: &'a Schedule,
    ends: Ends<'a>,
    control: Option<Control<'a>>,
    looks: Looks,
    timers: Timers,
    carried: Vec<Carried>,
    samples: Vec<subak_testbed::LinkSample>,
    /// Start of the run, ns by the monotonic clock.
    begun_ns: u64,
    /// Number of flows that have neither ended nor failed.
    open: usize,
    /// Time of the last start or stop of a flow, ns: the end for reports of progress.
    horizon_ns: u64,
    latest_ns: u64,
    end_ns: u64,
    told_ns: u64,
    events: Vec<epoll::Event>,
    /// Sockets with data left after they reached the limit of bytes at a time.
    ready: Vec<Token>,
    room: Vec<u8>,
}

impl<'a> TrafficRun<'a> {
    fn new(schedule: &'a Schedule) -> Result<Self, String> {
        let places: Vec<Namespace> =
            schedule.hosts.iter().map(|h| Namespace::open(&h.netns)).collect::<Result<_, _>>()?;
        let ends = Ends::new(schedule, places)?;
        Ok(TrafficRun {
            schedule,
            control: Control::new(schedule, &ends)?,
            ends,
            looks: Looks::new(&schedule.ports)?,
            timers: Timers::new(schedule),
            carried: vec![Carried::default(); schedule.flows.len()],
            samples: Vec::new(),
            begun_ns: 0,
            open: schedule.flows.len(),
            horizon_ns: schedule.flows.iter().map(|f| f.stop_ns.unwrap_or(f.start_ns)).max().unwrap_or(0),
            latest_ns: 0,
            end_ns: 0,
            told_ns: 0,
            events: Vec::with_capacity(256),
            ready: Vec::new(),
            room: vec![0; 1 << 16],
        })
    }

    /// Establishes the connections of the first flows.
    fn connect_first(&mut self) -> Result<(), String> {
        let until_ns = clock_ns() + PATIENCE_NS;
        while self.ends.connected < self.schedule.flows.len().min(AHEAD) {
            while self.ends.asked < self.schedule.flows.len().min(AHEAD) && self.ends.connecting() < AT_ONCE {
                self.ends.connect_next()?;
            }
            self.wait(100_000_000)?;
            for (token, flags) in self.take_events() {
                self.ends.hear_connecting(token, flags)?;
            }
            if clock_ns() > until_ns {
                let (made, of) = (self.ends.connected, self.schedule.flows.len());
                return Err(format!("{made} of {of} connections could be made in {} s", PATIENCE_NS / 1_000_000_000));
            }
        }
        Ok(())
    }

    fn start(&mut self) {
        self.begun_ns = clock_ns();
    }

    fn now_ns(&self) -> u64 {
        clock_ns() - self.begun_ns
    }

    fn is_over(&self) -> bool {
        self.open == 0 || self.now_ns() >= self.schedule.until_ns
    }

    fn wait(&mut self, most_ns: u64) -> Result<(), String> {
        let timeout = Timespec { tv_sec: (most_ns / 1_000_000_000) as i64, tv_nsec: (most_ns % 1_000_000_000) as i64 };
        self.events.clear();
        match epoll::wait(&self.ends.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(format!("sockets cannot be waited for: {e}")),
        }
    }

    fn take_events(&mut self) -> Vec<(Token, epoll::EventFlags)> {
        self.events.drain(..).map(|event| (Token::of(event.data.u64()), event.flags)).collect()
    }

    /// Runs the timers that are due and handles socket events.
    fn turn(&mut self, progress: &mut dyn FnMut(f64)) -> Result<(), String> {
        let now_ns = self.now_ns();
        while let Some((at_ns, due)) = self.timers.take(now_ns) {
            self.latest_ns = self.latest_ns.max(now_ns - at_ns);
            match due {
                Due::Start(f) => self.start_flow(f),
                Due::Stop(f) => self.stop_flow(f),
                Due::Weight(f, k) => {
                    let weight = self.schedule.flows[f].weights[k].weight;
                    self.ends.weigh(f, weight)?;
                    self.control(|control, now_ns, at| control.weigh(f, weight, now_ns, at));
                }
                Due::Note => self.ends.note_arrivals(at_ns, &mut self.carried),
                Due::Look | Due::LookOnce => {
                    let links = self.looks.all()?;
                    self.samples.push(subak_testbed::LinkSample { time_ns: now_ns, links });
                }
            }
        }
        self.control(Control::wake);
        if now_ns >= self.told_ns + TELL_NS {
            self.told_ns = now_ns;
            progress((now_ns as f64 / self.horizon_ns.max(1) as f64).min(1.0));
        }
        let wakes_ns = self.control.as_ref().and_then(Control::next_ns);
        let next_ns = [self.timers.next_ns(), wakes_ns].into_iter().flatten().fold(self.schedule.until_ns, u64::min);
        let ready = std::mem::take(&mut self.ready);
        let most_ns = if ready.is_empty() { TELL_NS } else { 0 };
        self.wait(next_ns.saturating_sub(self.now_ns()).min(most_ns))?;
        for token in ready {
            match token {
                Token::Sender(f) => self.send(f),
                Token::Receiver(f) => self.receive(f),
                Token::Listener(_) | Token::Control(_) => {}
            }
        }
        for (token, flags) in self.take_events() {
            match token {
                Token::Sender(f) => {
                    self.ends.hear_connecting(token, flags)?;
                    self.send(f);
                }
                Token::Receiver(f) => self.receive(f),
                Token::Listener(_) => self.ends.hear_connecting(token, flags)?,
                Token::Control(number) => self.control(|control, now_ns, at| control.hear(number, now_ns, at)),
            }
        }
        Ok(())
    }

    fn start_flow(&mut self, f: usize) {
        self.carried[f].started_ns = Some(self.now_ns());
        if self.control.is_some() {
            // The flow waits for its first rate.
            return self.control(|control, now_ns, at| control.start(f, now_ns, at));
        }
        self.ends.allow(f);
        self.send(f);
    }

    /// Runs the sources' state machines by `act`, and sets the resulting pacing rates.
    fn control(&mut self, act: impl FnOnce(&mut Control<'a>, u64, &mut At<'_, 'a>)) {
        let now_ns = self.now_ns();
        let Some(control) = &mut self.control else { return };
        let mut at = At { ends: &self.ends, carried: &mut self.carried, paced: Vec::new() };
        act(control, now_ns, &mut at);
        for (f, bps) in at.paced {
            if self.ends.pace(f, bps) && self.ends.allow(f) {
                self.send(f);
            }
        }
    }

    /// Stops a flow: it sends nothing new; bytes in flight still arrive.
    fn stop_flow(&mut self, f: usize) {
        self.ends.stop(f);
        self.close(f);
    }

    fn send(&mut self, f: usize) {
        match self.ends.send(f) {
            Ok(SocketProgress::Waits) => {}
            Ok(SocketProgress::Ready) => self.ready.push(Token::Sender(f)),
            // The receiver has read everything and closed, so that all data has been ACKed.
            Ok(SocketProgress::Over) => {
                self.carried[f].acknowledged_ns.get_or_insert(clock_ns() - self.begun_ns);
                self.close(f);
            }
            Err(what) => self.fail(f, what),
        }
    }

    fn receive(&mut self, f: usize) {
        match self.ends.receive(f, &mut self.room) {
            Ok(SocketProgress::Waits) => {}
            Ok(SocketProgress::Ready) => self.ready.push(Token::Receiver(f)),
            Ok(SocketProgress::Over) => {
                let now_ns = self.now_ns();
                let whole = self.schedule.flows[f].size_bytes.is_some_and(|size| self.ends.received(f) >= size);
                self.carried[f].finished_ns = whole.then_some(now_ns);
                self.ends.close_receiver(f, now_ns, &mut self.carried[f]);
            }
            Err(what) => self.fail(f, what),
        }
    }

    fn fail(&mut self, f: usize, what: String) {
        self.carried[f].error.get_or_insert(what);
        self.ends.close_receiver(f, self.now_ns(), &mut self.carried[f]);
        self.close(f);
    }

    /// Closes the sender's end; another flow may then be connected.
    fn close(&mut self, f: usize) {
        let Some(socket) = self.ends.close_sender(f) else { return };
        self.carried[f].retransmissions = sys::retransmissions(&socket);
        self.open -= 1;
        self.end_ns = self.now_ns();
        self.control(|control, now_ns, at| control.finish(f, now_ns, at));
        if self.ends.asked < self.schedule.flows.len() {
            // The error is reported when the flow starts.
            let _ = self.ends.connect_next();
        }
    }

    fn finish(mut self) -> Result<Recording, String> {
        let now_ns = self.now_ns();
        let links = self.looks.all()?;
        self.samples.push(subak_testbed::LinkSample { time_ns: now_ns, links });
        for f in 0..self.carried.len() {
            self.ends.close_receiver(f, now_ns, &mut self.carried[f]);
            if let Some(socket) = self.ends.close_sender(f) {
                self.carried[f].retransmissions = sys::retransmissions(&socket);
            }
        }
        Ok(Recording {
            schema: SCHEMA,
            flows: self.carried,
            links: self.samples,
            latest_ns: self.latest_ns,
            end_ns: if self.open == 0 { self.end_ns } else { now_ns },
            busy_ns: busy_ns(),
            ended: Vec::new(),
        })
    }
}
