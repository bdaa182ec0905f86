//! The file of a log of weights. Rows wait in memory while it cannot be written, the latest of each connection.

use super::{Change, Ends, Present, WeightSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The first line of a log.
pub(super) const COLUMNS: &str = "time_ns,src,dst,sport,dport,protocol,weight";
/// Interval between retries, and between updates of the file's modification time, ns.
pub(super) const LOOK_NS: u64 = 1_000_000_000;
/// Longest line of a log that is continued, bytes.
const LONGEST: u64 = 4096;

/// A row of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    wall_ns: u64,
    ends: Ends,
    weight: f64,
}

impl Row {
    fn append(&self, text: &mut Vec<u8>) {
        let Ends { local: (src, sport), remote: (dst, dport) } = self.ends;
        // The kernel's weights are logarithms; more digits would be their rounding errors.
        let weight: f64 = format!("{:.7e}", self.weight).parse().unwrap_or(self.weight);
        let _ = writeln!(text, "{},{src},{dst},{sport},{dport},tcp,{weight}", self.wall_ns);
    }
}

/// A log that the caller's thread writes.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    /// Device and inode of the file.
    identity: (u64, u64),
    present: Present,
    /// Bytes that are not written yet.
    buffer: Vec<u8>,
    /// The latest row of each connection, while writing fails.
    waiting: BTreeMap<u64, Row>,
    /// Connections that have a weight according to the file.
    open: BTreeSet<u64>,
    /// Whether the last write failed.
    fails: bool,
    /// Numbers of missing weights: all, and those that the file does not count yet.
    missing: u64,
    uncounted: u64,
    rows: u64,
    look_due_ns: u64,
    /// One moment by the monotonic clock and by the wall clock, ns.
    moment: (u64, u64),
    /// Whether no new file could be opened after the file was moved.
    is_moved: bool,
    notes: Vec<String>,
}

/// Time by the wall clock (`CLOCK_REALTIME`), ns since 1970.
pub(super) fn wall_ns() -> u64 {
    since_1970(SystemTime::now())
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl LogFile {
    /// Opens a log, or continues one: flows that have a weight there end at the time at which it was last written to.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let no_room = File::options().append(true).create(true).open(path).is_err_and(|e| has_no_room(&e));
        // The agent starts nevertheless, and opens the file later.
        let opened = if no_room { placeholder() } else { open(path) };
        let opened = opened.and_then(|(file, buffer)| Ok((identity(&file)?, file, buffer)));
        let (identity, file, buffer) = opened.map_err(|e| format!("--log-weights: {}: {e}", path.display()))?;
        let mut log = LogFile {
            path: path.to_path_buf(),
            file,
            identity,
            present: Present::default(),
            buffer,
            waiting: BTreeMap::new(),
            open: BTreeSet::new(),
            fails: false,
            missing: 0,
            uncounted: 0,
            rows: 0,
            look_due_ns: 0,
            moment: (0, wall_ns()),
            is_moved: false,
            notes: Vec::new(),
        };
        log.write();
        Ok(log)
    }

    /// Sets one moment by the monotonic clock and by the wall clock, ns, for the changes that follow.
    pub(super) fn tick(&mut self, moment: (u64, u64)) {
        self.moment = moment;
    }

    /// Logs a weight, unless it is the connection's already.
    pub(super) fn set(&mut self, set: WeightSet) {
        let (now_ns, wall_ns) = self.moment;
        let wall_ns = wall_ns.saturating_add(set.time_ns).saturating_sub(now_ns);
        let row = Row { wall_ns, ends: set.ends, weight: set.weight };
        match self.present.apply(set) {
            Change::Nothing => {}
            Change::Late if self.fails => self.drop_rows(1),
            Change::Late => {
                self.rows += 1;
                row.append(&mut self.buffer);
            }
            Change::Weight => self.put(set.connection, row),
        }
    }

    /// Replaces all weights by those that apply now.
    pub(super) fn replace(&mut self, now: &[WeightSet]) {
        self.present.towards(now, self.moment.0).into_iter().for_each(|set| self.set(set));
    }

    /// Counts weights that are lost.
    pub(super) fn miss(&mut self, count: u64) {
        self.missing += count;
        self.uncounted += count;
        self.notes.push(format!("{count} weights are missing in {}", self.path.display()));
    }

    fn put(&mut self, connection: u64, row: Row) {
        if self.fails {
            let before = self.waiting.insert(connection, row);
            self.drop_rows(before.is_some().into());
            // A connection that the file does not know, and that is over, needs no row for what follows.
            if row.weight == 0.0 && !self.open.contains(&connection) {
                self.waiting.remove(&connection);
                self.drop_rows(1);
            }
            return;
        }
        self.append(connection, &row);
    }

    fn append(&mut self, connection: u64, row: &Row) {
        row.append(&mut self.buffer);
        self.rows += 1;
        if row.weight > 0.0 {
            self.open.insert(connection);
        } else {
            self.open.remove(&connection);
        }
    }

    fn drop_rows(&mut self, count: u64) {
        self.missing += count;
        self.uncounted += count;
    }

    /// Writes what is not written yet. Call it after each change and at least once a second.
    pub(super) fn flush(&mut self) {
        let now_ns = self.moment.0;
        let is_due = now_ns >= self.look_due_ns;
        if is_due {
            self.look_due_ns = now_ns + LOOK_NS;
            self.look();
        }
        if self.fails && !is_due {
            return;
        }
        if self.write() && !self.waiting.is_empty() {
            for (connection, row) in std::mem::take(&mut self.waiting) {
                self.append(connection, &row);
            }
            self.write();
        }
    }

    /// Writes the buffer; returns whether it is empty.
    fn write(&mut self) -> bool {
        if self.uncounted > 0 && !self.fails {
            let count = std::mem::take(&mut self.uncounted);
            let _ = writeln!(self.buffer, "# missing {count}");
        }
        while !self.buffer.is_empty() {
            match self.file.write(&self.buffer) {
                Ok(0) => return self.fail("no bytes are taken"),
                Ok(count) => drop(self.buffer.drain(..count)),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return self.fail(&error.to_string()),
            }
        }
        if std::mem::take(&mut self.fails) {
            let count = self.uncounted;
            self.notes.push(format!("{} is written again; {count} weights are missing in it", self.path.display()));
            return self.write();
        }
        true
    }

    fn fail(&mut self, why: &str) -> bool {
        if !std::mem::replace(&mut self.fails, true) {
            let what = "connections go on; weights that change more than once are missing until it can be written";
            self.notes.push(format!("--log-weights: {}: {why}; {what}", self.path.display()));
        }
        false
    }

    /// Marks the file as current, and opens a new one if it was moved away.
    fn look(&mut self) {
        let found = std::fs::metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity && found.len() > 0) {
            // The next agent ends this one's flows at this time.
            let _ = self.file.set_modified(SystemTime::now());
            return;
        }
        // The file that was moved gets what it lacks.
        self.write();
        match open(&self.path).and_then(|(file, buffer)| Ok((identity(&file)?, file, buffer))) {
            Ok((identity, file, buffer)) => {
                let lines = self.buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
                (self.identity, self.file, self.buffer, self.is_moved) = (identity, file, buffer, false);
                // The present weights follow, so that of those that wait only ends matter.
                let waiting = std::mem::take(&mut self.waiting);
                let (ends, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, row)| row.weight == 0.0);
                self.drop_rows(lines + others.len() as u64);
                ends.iter().for_each(|(connection, row)| self.append(*connection, row));
                let wall_ns = wall_ns();
                self.open.clear();
                for WeightSet { connection, ends, weight, .. } in self.present.0.clone().into_values() {
                    self.append(connection, &Row { wall_ns, ends, weight });
                }
            }
            Err(error) if !std::mem::replace(&mut self.is_moved, true) => {
                let what = "the file that was moved gets the weights meanwhile";
                self.notes.push(format!("--log-weights: {}: {error}; {what}", self.path.display()));
            }
            Err(_) => {}
        }
    }

    /// Warnings since the previous call.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Numbers of rows written, and of weights that are missing.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.rows, self.missing)
    }
}

/// Whether the error may go away without a change of the options.
fn has_no_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), QuotaExceeded | StorageFull)
}

/// A file that takes nothing.
fn placeholder() -> Result<(File, Vec<u8>), String> {
    let file = File::options().write(true).open("/dev/full").map_err(|e| e.to_string())?;
    Ok((file, Vec::new()))
}

fn identity(file: &File) -> Result<(u64, u64), String> {
    let found = file.metadata().map_err(|e| e.to_string())?;
    Ok((found.dev(), found.ino()))
}

/// Opens a log and returns what has to be written first: its first line, or the end of flows that have a weight in it.
fn open(path: &Path) -> Result<(File, Vec<u8>), String> {
    let mut options = File::options();
    let mut file = options.read(true).append(true).create(true).open(path).map_err(|e| e.to_string())?;
    let found = file.metadata().map_err(|e| e.to_string())?;
    if !found.is_file() {
        return Err("it is no file; name a file of a file system".to_string());
    }
    if found.len() == 0 {
        return Ok((file, format!("{COLUMNS}\n").into_bytes()));
    }
    let left = left_open(&file).map_err(|e| e.to_string())?;
    let Some((whole, last_ns, flows)) = left else {
        return Err(format!("it is no log of weights, which begins with {COLUMNS}; name another file"));
    };
    // The agent was killed within a line.
    if whole < found.len() {
        file.set_len(whole).map_err(|e| e.to_string())?;
    }
    file.seek(std::io::SeekFrom::End(0)).map_err(|e| e.to_string())?;
    let end_ns = last_ns.max(found.modified().map_or(0, since_1970));
    let rows = flows.iter().map(|flow| format!("{end_ns},{flow},0\n"));
    let first = if whole == 0 { format!("{COLUMNS}\n") } else { String::new() };
    Ok((file, rows.fold(first, |text, row| text + &row).into_bytes()))
}

/// Length of a log's whole lines, its latest time and the flows that have a weight; `None` if it is no log.
fn left_open(file: &File) -> std::io::Result<Option<(u64, u64, BTreeSet<String>)>> {
    let mut reader = BufReader::new(file);
    let (mut whole, mut last_ns, mut flows, mut line) = (0, 0, BTreeSet::new(), Vec::new());
    loop {
        line.clear();
        let bytes = (&mut reader).take(LONGEST).read_until(b'\n', &mut line)? as u64;
        let text = String::from_utf8_lossy(&line);
        let Some(text) = text.strip_suffix('\n') else {
            let is_cut = whole > 0 || COLUMNS.starts_with(text.as_ref());
            return Ok((is_cut && bytes < LONGEST).then_some((whole, last_ns, flows)));
        };
        if whole == 0 && text != COLUMNS {
            return Ok(None);
        }
        whole += bytes;
        let cells = text.split_once(',').and_then(|(time, rest)| Some((time.parse().ok()?, rest.rsplit_once(',')?)));
        let Some((time_ns, (flow, weight))) = cells else { continue };
        last_ns = last_ns.max(time_ns);
        match weight {
            "0" => flows.remove(flow),
            _ => flows.insert(flow.to_string()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{folder, of, rows};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn change(log: &mut LogFile, connection: u64, weight: f64) {
        let set = log.present.with(connection, weight, log.moment.0);
        set.into_iter().for_each(|set| log.set(set));
    }

    fn flush(log: &mut LogFile, now_ns: u64) {
        log.tick((now_ns, wall_ns()));
        log.flush();
    }

    #[test]
    fn each_change_is_a_row() {
        let folder = folder("change");
        let path = folder.join("log.csv");
        let mut log = LogFile::open(&path).unwrap();
        log.set(of(1, 1.0));
        log.set(of(1, 1.0));
        log.set(of(2, 2.999_999_999_9));
        change(&mut log, 1, 0.001);
        change(&mut log, 1, 0.0);
        change(&mut log, 1, 4.0);
        flush(&mut log, 3);
        let one = "10.0.0.1,10.0.0.9,4001,80,tcp";
        let expected = [format!("{one},1"), "10.0.0.1,10.0.0.9,4002,80,tcp,3".to_string()];
        assert_eq!(rows(&path)[..2], expected);
        assert_eq!(rows(&path)[2..], [format!("{one},0.001"), format!("{one},0")]);
        assert_eq!((log.counts(), log.notes()), ((4, 0), vec![]));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn times_are_those_of_the_wall_clock() {
        let folder = folder("times");
        let path = folder.join("log.csv");
        let mut log = LogFile::open(&path).unwrap();
        let before_ns = wall_ns();
        log.tick((5 * SECOND, wall_ns()));
        log.set(WeightSet { time_ns: 2 * SECOND, ..of(1, 1.0) });
        flush(&mut log, 5 * SECOND);
        let text = std::fs::read_to_string(&path).unwrap();
        let time_ns: u64 = text.lines().nth(1).unwrap().split_once(',').unwrap().0.parse().unwrap();
        assert!((before_ns - 3 * SECOND..before_ns - 2 * SECOND).contains(&time_ns));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_agent_that_starts_again_ends_what_was_open() {
        let folder = folder("again");
        let path = folder.join("log.csv");
        let mut log = LogFile::open(&path).unwrap();
        log.set(of(1, 1.0));
        log.set(of(2, 2.0));
        change(&mut log, 2, 0.0);
        flush(&mut log, 0);
        drop(log);
        // It was killed within a line.
        File::options().append(true).open(&path).unwrap().write_all(b"17,10.0").unwrap();
        let mut log = LogFile::open(&path).unwrap();
        log.set(of(1, 5.0));
        flush(&mut log, 0);
        let ends = ["1", "0", "5"].map(|weight| format!("10.0.0.1,10.0.0.9,4001,80,tcp,{weight}"));
        assert_eq!([&rows(&path)[0], &rows(&path)[3], &rows(&path)[4]], [&ends[0], &ends[1], &ends[2]]);
        let text = std::fs::read_to_string(&path).unwrap();
        let times: Vec<u64> = text.lines().skip(1).map(|row| row.split_once(',').unwrap().0.parse().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let folder = folder("else");
        let path = folder.join("log.csv");
        for wrong in ["time,weight\n", "x", "\n"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(LogFile::open(&path).is_err_and(|e| e.contains("no log of weights")), "{wrong}");
        }
        assert!(LogFile::open(&folder).is_err_and(|e| e.contains("--log-weights")));
        // The agent before was killed as it began.
        std::fs::write(&path, &COLUMNS[..9]).unwrap();
        drop(LogFile::open(&path).unwrap());
        assert_eq!(rows(&path), Vec::<String>::new());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_moved_is_followed_by_a_new_one() {
        let folder = folder("moved");
        let (path, moved) = (folder.join("log.csv"), folder.join("log.csv.1"));
        let mut log = LogFile::open(&path).unwrap();
        log.set(of(1, 1.0));
        log.set(of(2, 2.0));
        flush(&mut log, 0);
        change(&mut log, 2, 0.0);
        std::fs::rename(&path, &moved).unwrap();
        flush(&mut log, 1);
        assert_eq!(rows(&moved).len(), 3);
        flush(&mut log, SECOND);
        assert_eq!(rows(&path), ["10.0.0.1,10.0.0.9,4001,80,tcp,1"]);
        change(&mut log, 1, 0.0);
        flush(&mut log, SECOND);
        assert_eq!(rows(&path).len(), 2);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_disk_costs_rows_that_are_counted() {
        let folder = folder("full");
        let path = folder.join("log.csv");
        let mut log = LogFile::open(&path).unwrap();
        log.set(of(1, 1.0));
        flush(&mut log, 0);
        let whole = std::mem::replace(&mut log.file, File::options().write(true).open("/dev/full").unwrap());
        log.set(of(2, 2.0));
        flush(&mut log, 0);
        for step in 1..=50_u32 {
            change(&mut log, 1, f64::from(step));
            // These begin and end meanwhile.
            log.set(of(100 + u64::from(step), 1.0));
            change(&mut log, 100 + u64::from(step), 0.0);
            flush(&mut log, u64::from(step) * SECOND);
        }
        change(&mut log, 2, 0.0);
        assert_eq!(log.notes().len(), 1, "it is said once");
        assert!(log.waiting.len() <= 2, "as many rows wait as connections are open");
        log.file = whole;
        flush(&mut log, 60 * SECOND);
        let said = log.notes();
        // The first of 50 changes to another weight is none.
        let missing = 48 + 50 * 2;
        assert!(said[0].contains("is written again") && said[0].contains(&format!("{missing} weights")), "{said:?}");
        let one = |connection: u16, weight| format!("10.0.0.1,10.0.0.9,{},80,tcp,{weight}", 4000 + connection);
        let expected = [one(1, 1), one(2, 2), format!("# missing {missing}"), one(1, 50), one(2, 0)];
        assert_eq!(rows(&path), expected);
        assert_eq!(log.counts().1, missing);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_a_full_disk_has_no_room_for_is_opened_later() {
        let folder = folder("later");
        let path = folder.join("log.csv");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        assert!(LogFile::open(&path).is_err_and(|e| e.contains("it is no file")));
        std::fs::remove_file(&path).unwrap();
        let mut log = LogFile::open(&path).unwrap();
        let (file, buffer) = placeholder().unwrap();
        (log.identity, log.file, log.buffer) = (identity(&file).unwrap(), file, buffer);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        [1, 2].into_iter().for_each(|connection| log.set(of(connection, 1.0)));
        flush(&mut log, 0);
        change(&mut log, 2, 0.0);
        flush(&mut log, SECOND);
        assert_eq!(log.notes().len(), 2, "it cannot be written, and it cannot be opened");
        std::fs::remove_dir(&path).unwrap();
        flush(&mut log, 2 * SECOND);
        let one = |connection: u16, weight| format!("10.0.0.1,10.0.0.9,{},80,tcp,{weight}", 4000 + connection);
        assert_eq!(rows(&path), [one(2, 0), one(1, 1), "# missing 2".to_string()]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn after_a_loss_the_weights_of_the_kernel_count() {
        let folder = folder("loss");
        let path = folder.join("log.csv");
        let mut log = LogFile::open(&path).unwrap();
        [of(1, 1.0), of(2, 2.0)].into_iter().for_each(|set| log.set(set));
        log.miss(7);
        log.replace(&[WeightSet { time_ns: 5, ..of(2, 3.0) }, WeightSet { time_ns: 5, ..of(3, 1.0) }]);
        flush(&mut log, 5);
        let one = |connection: u16, weight| format!("10.0.0.1,10.0.0.9,{},80,tcp,{weight}", 4000 + connection);
        let expected = [one(1, 1), one(2, 2), one(1, 0), one(2, 3), one(3, 1), "# missing 7".to_string()];
        assert_eq!(rows(&path), expected);
        // An event that waited meanwhile is a row, and changes nothing.
        log.set(WeightSet { time_ns: 4, ..of(2, 8.0) });
        log.set(WeightSet { time_ns: 6, ..of(2, 3.0) });
        flush(&mut log, 6);
        assert_eq!(rows(&path)[6..], [one(2, 8)]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
