//! Server for many connections in one thread. Idle clients cannot lock out others: at the limit, the connection that
//! was idle longest is closed.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest number of connections accepted before the others are served.
const AT_A_TIME: usize = 64;
/// Largest number of bytes read from a connection before the others are served.
const ROOM: usize = 1 << 14;
/// Backoff after a failed `accept`.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// Reply to a request.
pub struct Response {
    /// Length of the request, bytes.
    pub asked: usize,
    /// Bytes before the body, such as HTTP headers.
    pub head: Vec<u8>,
    /// Body, shared with replies to other clients.
    pub body: Arc<[u8]>,
    /// Whether the connection is closed after the reply.
    pub is_last: bool,
}

/// Limits of concurrent connections and of their idle time.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Largest number of concurrent connections.
    pub connections: usize,
    /// Time limit for a request and its reply, and for the wait for the next request.
    pub patience: Duration,
}

/// A listening socket.
pub trait Listener: AsFd + Send + 'static {
    /// Type of the accepted connections.
    type Stream: Read + Write + AsFd;

    /// Sets the socket to non-blocking mode.
    fn open(&self) -> io::Result<()>;

    /// Accepts the next connection.
    fn next(&self) -> io::Result<Self::Stream>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn open(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }

    fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn open(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }

    fn next(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// Serves connections in a thread of its own. `response` returns the reply to the bytes received, once a request is
/// complete.
pub fn serve<D: Listener>(
    listener: D,
    bounds: ConnectionLimits,
    mut response: impl FnMut(&[u8]) -> Option<Response> + Send + 'static,
) -> io::Result<()> {
    listener.open()?;
    std::thread::spawn(move || {
        let mut room: Vec<Connection<D::Stream>> = Vec::new();
        loop {
            let mut ready = wait(&listener, &room, bounds).into_iter();
            let is_asked = ready.next().unwrap_or(false);
            let now = Instant::now();
            room.retain_mut(|connection| {
                let is_ready = ready.next().unwrap_or(false);
                now < connection.until && (!is_ready || connection.go_on(bounds, &mut response))
            });
            for _ in 0..if is_asked { AT_A_TIME } else { 0 } {
                let stream = match listener.next() {
                    Ok(stream) => stream,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    // The process has no free file descriptor.
                    Err(_) => {
                        part_with_one(&mut room);
                        std::thread::sleep(ACCEPT_BACKOFF);
                        break;
                    }
                };
                if room.len() >= bounds.connections {
                    part_with_one(&mut room);
                }
                // Most clients have sent their request by now.
                let mut connection = Connection::new(stream, bounds);
                if connection.go_on(bounds, &mut response) {
                    room.push(connection);
                }
            }
        }
    });
    Ok(())
}

/// Waits until the listener or a connection is ready.
fn wait<D: Listener>(listener: &D, room: &[Connection<D::Stream>], bounds: ConnectionLimits) -> Vec<bool> {
    let mut waits = vec![PollFd::new(listener, PollFlags::IN)];
    waits.extend(room.iter().map(|connection| {
        let flags = if connection.is_answering() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&connection.stream, flags)
    }));
    let until = room.iter().map(|connection| connection.until).min();
    let left = until.map_or(bounds.patience, |until| until.saturating_duration_since(Instant::now()));
    // A signal ends the wait with nothing ready.
    let _ = poll(&mut waits, Timespec::try_from(left).ok().as_ref());
    waits.iter().map(|wait| !wait.revents().is_empty()).collect()
}

/// Closes the connection that was idle longest. A connection with a pending reply is closed only if all have one.
fn part_with_one<S>(room: &mut Vec<Connection<S>>) {
    let order = |connection: &Connection<S>| (connection.is_answering(), connection.until);
    if let Some(longest) = (0..room.len()).min_by_key(|&k| order(&room[k])) {
        room.remove(longest);
    }
}

struct Connection<S> {
    stream: S,
    asked: Vec<u8>,
    saying: Option<Response>,
    /// Bytes of the reply that were sent.
    said: usize,
    until: Instant,
}

impl<S> Connection<S> {
    fn is_answering(&self) -> bool {
        self.saying.is_some()
    }
}

impl<S: Read + Write> Connection<S> {
    fn new(stream: S, bounds: ConnectionLimits) -> Self {
        Connection { stream, asked: Vec::new(), saying: None, said: 0, until: Instant::now() + bounds.patience }
    }

    /// Reads and writes as much as is possible without blocking; false once the connection is over.
    fn go_on(&mut self, bounds: ConnectionLimits, response: &mut impl FnMut(&[u8]) -> Option<Response>) -> bool {
        loop {
            match self.say() {
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
                Ok(true) => return false,
                Ok(false) => {}
            }
            self.saying = response(&self.asked);
            if let Some(saying) = &self.saying {
                self.asked.drain(..saying.asked.min(self.asked.len()));
                (self.said, self.until) = (0, Instant::now() + bounds.patience);
                continue;
            }
            let mut room = [0; ROOM];
            match self.stream.read(&mut room) {
                Ok(0) => return false,
                Ok(count) => self.asked.extend(&room[..count]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Writes as much of the reply as is possible; returns whether the connection is over.
    fn say(&mut self) -> io::Result<bool> {
        let Some(saying) = &self.saying else { return Ok(false) };
        let (head, body) = (&saying.head, &saying.body);
        while self.said < head.len() + body.len() {
            let left = if self.said < head.len() { &head[self.said..] } else { &body[self.said - head.len()..] };
            match self.stream.write(left) {
                Ok(0) => return Ok(true),
                Ok(count) => self.said += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let is_last = saying.is_last;
        self.saying = None;
        Ok(is_last)
    }
}
