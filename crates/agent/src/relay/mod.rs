//! Carries packets between the TAP devices at both ends of links, with the links' delays and faults.
//!
//! The process that starts the relay opens the devices; the relay inherits their files. Each command on standard input
//! is answered by a document that replaces the content of standard output, a file.

mod line;

use crate::sys;
use crate::traffic::clock_ns;
use line::DelayLine;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, ftruncate};
use rustix::io::{Errno, pwrite, read, write};
use rustix::process::{Signal, set_parent_process_death_signal, setpriority_process};
use rustix::time::Timespec;
use std::collections::VecDeque;
use subak_core::rng::mix;
use subak_testbed::{RelayAnswer, RelayCommand, RelayOrder, SCHEMA, TimedChange};

/// Packets that are read from a device before those of others are.
const TURN: usize = 64;
/// Largest packet, bytes.
const ROOM: usize = 1 << 16;
/// Longest line of standard input, bytes.
const MOST_LINE: usize = 1 << 28;
/// Number of standard input among the events.
const INPUT: u64 = u64::MAX;
const PRIORITY: i32 = -15;
const HOUR_NS: u64 = 3_600_000_000_000;

/// Carries packets until standard input ends. The first line there is a [`RelayOrder`], each other one a
/// [`RelayCommand`].
pub fn carry() -> Result<(), String> {
    // If the process that has the namespaces is killed, the relay ends.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("the parent cannot be watched: {e}"))?;
    // Delays are as precise as the relay is woken in time; without the right to do so it carries on.
    let _ = setpriority_process(None, PRIORITY);
    sys::wake_in_time();
    let input = std::io::stdin();
    let mut relay = Relay::new(&input)?;
    while relay.turn(&input)? {}
    Ok(())
}

struct Link {
    from: OwnedFd,
    to: OwnedFd,
    line: DelayLine,
}

struct Relay {
    epoll: OwnedFd,
    links: Vec<Link>,
    /// Changes that are not due yet, in time order.
    changes: VecDeque<TimedChange>,
    latest_ns: u64,
    typed: Vec<u8>,
    events: Vec<epoll::Event>,
    room: Vec<u8>,
}

impl Relay {
    fn new(input: &impl AsFd) -> Result<Self, String> {
        let system = |what: &'static str| move |e: Errno| format!("{what}: {e}");
        let mut relay = Relay {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll"))?,
            links: Vec::new(),
            changes: VecDeque::new(),
            latest_ns: 0,
            typed: Vec::new(),
            events: Vec::with_capacity(256),
            room: vec![0; ROOM],
        };
        let first = loop {
            if let Some(line) = relay.take_line() {
                break line;
            }
            if !relay.type_in(input)? {
                return Err("the order: standard input ended".to_string());
            }
        };
        let order: RelayOrder = serde_json::from_slice(&first).map_err(|e| format!("the order: {e}"))?;
        order.check().map_err(|e| format!("the order: {e}"))?;
        for (l, link) in order.links.iter().enumerate() {
            let open = |file| sys::inherited(file).map_err(|e| format!("the order: links[{l}]: {e}"));
            let (from, to) = (open(link.from)?, open(link.to)?);
            unblocking(&from)?;
            let data = EventData::new_u64(l as u64);
            epoll::add(&relay.epoll, &from, data, EventFlags::IN).map_err(system("a device cannot be waited for"))?;
            let line = DelayLine::new(link.rate_bps, link.delay_ns, mix(order.seed ^ mix(l as u64)));
            relay.links.push(Link { from, to, line });
        }
        unblocking(input)?;
        epoll::add(&relay.epoll, input, EventData::new_u64(INPUT), EventFlags::IN)
            .map_err(system("standard input cannot be waited for"))?;
        relay.answer(0, None)?;
        Ok(relay)
    }

    /// Moves the packets that are due, and waits for others; `false` once standard input has ended.
    fn turn(&mut self, input: &impl AsFd) -> Result<bool, String> {
        let now_ns = clock_ns();
        while self.changes.front().is_some_and(|first| first.at_ns <= now_ns)
            && let Some(timed) = self.changes.pop_front()
        {
            self.links[timed.link as usize].line.change(timed.change);
        }
        let mut next_ns = self.changes.front().map_or(now_ns + HOUR_NS, |first| first.at_ns);
        for link in &mut self.links {
            while let Some((due_ns, packet)) = link.line.pop(now_ns) {
                self.latest_ns = self.latest_ns.max(now_ns - due_ns);
                // A device that is down or full drops the packet, as it does with any other sender.
                let _ = write(&link.to, &packet);
            }
            next_ns = link.line.next_ns().map_or(next_ns, |ns| next_ns.min(ns));
        }
        let wait_ns = next_ns.saturating_sub(clock_ns());
        let timeout = Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(format!("devices cannot be waited for: {e}")),
        }
        for number in 0..self.events.len() {
            match self.events[number].data.u64() {
                INPUT => {
                    if !self.type_in(input)? {
                        return Ok(false);
                    }
                    while let Some(line) = self.take_line() {
                        self.obey(&line)?;
                    }
                }
                link => self.take_packets(link as usize),
            }
        }
        Ok(true)
    }

    fn take_packets(&mut self, link: usize) {
        let Link { from, line, .. } = &mut self.links[link];
        for _ in 0..TURN {
            match read(&*from, &mut self.room) {
                Ok(bytes) => line.push(clock_ns(), &self.room[..bytes]),
                Err(_) => return,
            }
        }
    }

    /// Reads from standard input; `false` at its end.
    fn type_in(&mut self, input: &impl AsFd) -> Result<bool, String> {
        match read(input, &mut self.room) {
            Ok(0) => Ok(false),
            Ok(bytes) if self.typed.len() + bytes <= MOST_LINE => {
                self.typed.extend(&self.room[..bytes]);
                Ok(true)
            }
            Ok(_) => Err(format!("standard input: a line has more than {MOST_LINE} bytes")),
            Err(Errno::AGAIN | Errno::INTR) => Ok(true),
            Err(e) => Err(format!("standard input: {e}")),
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.typed.iter().position(|&byte| byte == b'\n')?;
        let rest = self.typed.split_off(end + 1);
        Some(std::mem::replace(&mut self.typed, rest))
    }

    fn obey(&mut self, line: &[u8]) -> Result<(), String> {
        let command = match serde_json::from_slice::<RelayCommand>(line) {
            Ok(command) => command,
            Err(e) => return self.answer(0, Some(format!("the command: {e}"))),
        };
        if let Err(what) = command.check(self.links.len()) {
            return self.answer(command.id, Some(what));
        }
        let now_ns = clock_ns();
        for timed in command.changes {
            match timed.at_ns <= now_ns {
                true => self.links[timed.link as usize].line.change(timed.change),
                false => {
                    let at = self.changes.partition_point(|other| other.at_ns <= timed.at_ns);
                    self.changes.insert(at, timed);
                }
            }
        }
        self.answer(command.id, None)
    }

    /// Replaces the content of standard output by the state of all links.
    fn answer(&mut self, id: u64, error: Option<String>) -> Result<(), String> {
        let latest_ns = std::mem::take(&mut self.latest_ns);
        let links = self.links.iter().map(|link| link.line.counts()).collect();
        let answer = RelayAnswer { schema: SCHEMA, id, error, latest_ns, links };
        let text = serde_json::to_vec(&answer).map_err(|e| e.to_string())?;
        let out = std::io::stdout();
        let fault = |e: Errno| format!("standard output: {e}");
        // Readers that find half of a document read again.
        ftruncate(&out, 0).map_err(fault)?;
        let mut done = 0;
        while done < text.len() {
            done += pwrite(&out, &text[done..], done as u64).map_err(fault)?;
        }
        Ok(())
    }
}

fn unblocking(file: &impl AsFd) -> Result<(), String> {
    let set = fcntl_getfl(file).and_then(|flags| fcntl_setfl(file, flags | OFlags::NONBLOCK));
    set.map_err(|e| format!("a file cannot be read without waiting: {e}"))
}
