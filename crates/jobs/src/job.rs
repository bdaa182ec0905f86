//! Structure of a job: transfers and computations with dependencies, and longest paths through them.

use subak_core::Ns;

/// The work of a piece of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// A transfer over a path whose slowest link has `line_bps`.
    Transfer {
        /// Payload, at least 1.
        bytes: u64,
        /// Largest payload rate of the path, bit/s.
        line_bps: f64,
        /// Numbers of the hosts that send and receive.
        ends: [u32; 2],
    },
    /// A computation.
    Compute {
        /// Duration, ns.
        ns: Ns,
    },
}

impl Work {
    /// Shortest time that the work takes, s.
    pub fn least_s(&self) -> f64 {
        match *self {
            Work::Transfer { bytes, line_bps, .. } => bytes as f64 * 8.0 / line_bps,
            Work::Compute { ns } => ns as f64 * 1e-9,
        }
    }

    /// Payload bytes to send; 0 for a computation.
    pub fn bytes(&self) -> u64 {
        match *self {
            Work::Transfer { bytes, .. } => bytes,
            Work::Compute { .. } => 0,
        }
    }
}

/// A transfer or a computation of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The work.
    pub work: Work,
    /// Numbers of the pieces that must end before this piece starts.
    pub after: Vec<usize>,
}

/// A directed acyclic graph of transfers and computations.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pieces: Vec<Piece>,
    /// Numbers of the pieces in topological order.
    order: Vec<usize>,
}

impl Job {
    /// Builds a job. If dependencies form a cycle, the error is that cycle, as numbers in order.
    pub fn new(pieces: Vec<Piece>) -> Result<Self, Vec<usize>> {
        let mut left: Vec<usize> = pieces.iter().map(|p| p.after.len()).collect();
        let mut dependents = vec![Vec::new(); pieces.len()];
        for (i, piece) in pieces.iter().enumerate() {
            piece.after.iter().for_each(|&b| dependents[b].push(i));
        }
        let mut order: Vec<usize> = (0..pieces.len()).filter(|&i| left[i] == 0).collect();
        let mut next = 0;
        while let Some(&i) = order.get(next) {
            next += 1;
            for &d in &dependents[i] {
                left[d] -= 1;
                if left[d] == 0 {
                    order.push(d);
                }
            }
        }
        match circle(&pieces, &left) {
            Some(circle) => Err(circle),
            None => Ok(Job { pieces, order }),
        }
    }

    /// Transfers and computations of the job.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Numbers of the pieces in topological order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// For each piece the length of the longest path from its start to the end of the job, the piece included;
    /// `length(i)` is the length of piece `i`.
    pub fn to_end(&self, length: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut far = vec![0.0f64; self.pieces.len()];
        for &i in self.order.iter().rev() {
            far[i] += length(i);
            for &b in &self.pieces[i].after {
                far[b] = far[b].max(far[i]);
            }
        }
        far
    }

    /// Length of the longest path through the job.
    pub fn longest(&self, length: impl Fn(usize) -> f64) -> f64 {
        self.to_end(length).into_iter().fold(0.0, f64::max)
    }
}

/// A cycle among the pieces whose entry in `left` is above 0. Each of them depends on another one.
fn circle(pieces: &[Piece], left: &[usize]) -> Option<Vec<usize>> {
    let mut path = vec![left.iter().position(|&n| n > 0)?];
    loop {
        let last = *path.last()?;
        let next = *pieces[last].after.iter().find(|&&b| left[b] > 0)?;
        if let Some(at) = path.iter().position(|&p| p == next) {
            path.drain(..at);
            return Some(path);
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: u64, after: &[usize]) -> Piece {
        Piece { work: Work::Transfer { bytes, line_bps: 8.0, ends: [0, 1] }, after: after.to_vec() }
    }

    #[test]
    fn distances_are_those_of_the_longest_way() {
        // The job of figure 5 of the Soze paper: 20, 10 and 10 in a row, 20 beside them.
        let job = Job::new(vec![piece(20, &[]), piece(10, &[0]), piece(10, &[1]), piece(20, &[])]).unwrap();
        let least = |i: usize| job.pieces()[i].work.least_s();
        assert_eq!(job.to_end(least), [40.0, 20.0, 10.0, 20.0]);
        assert_eq!(job.longest(least), 40.0);
    }

    #[test]
    fn a_circle_is_named() {
        let pieces = vec![piece(1, &[]), piece(1, &[0, 3]), piece(1, &[1]), piece(1, &[2])];
        let mut circle = Job::new(pieces).unwrap_err();
        circle.sort_unstable();
        assert_eq!(circle, [1, 2, 3]);
        assert_eq!(Job::new(vec![piece(1, &[0])]).unwrap_err(), [0]);
    }
}
