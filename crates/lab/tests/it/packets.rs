//! Recorded packets: the packet table, the capture as read by tshark, congestion windows and pacing rates.

use crate::common::{Scratch, rows};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use subak_lab::{Captured, Error, RunOptions, Spec, capture, run};

const INCAST: &str = r#"
[network]
kind = "star"
hosts = 17
rate = "10Gbps"
link_delay = "2us"

[workload]
kind = "incast"
senders = 16
size = "100kB"
receiver = "h0"

[[scheme]]
name = "SCHEME"

[measure]
packets = PACKETS
paces = "20us"

[run]
duration = "5ms"
"#;

fn incast(scheme: &str, packets: &str) -> String {
    INCAST.replace("SCHEME", scheme).replace("PACKETS", packets)
}

fn go(name: &str, text: &str) -> Scratch {
    let dir = Scratch::new(name);
    let spec = Spec::from_toml(text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    dir
}

type Row = BTreeMap<String, String>;

/// The packet table of a trial, as text.
fn packets(dir: &Path, trial: usize) -> Vec<Row> {
    let all = rows(dir, "packet");
    all.into_iter().filter(|r| r["trial"] == trial.to_string()).collect()
}

fn count(rows: &[Row], test: impl Fn(&Row) -> bool) -> u64 {
    rows.iter().filter(|r| test(r)).count() as u64
}

#[test]
fn every_packet_that_comes_leaves_or_is_dropped() {
    let dir = go("packets-all", &incast("reno", "true"));
    let rows_of = packets(&dir.0, 0);
    let of = |event: &str| count(&rows_of, |r| r["event"] == event);
    assert_eq!(of("enqueue"), of("dequeue") + of("drop"));
    assert!(of("drop") > 0, "an incast of 16 overflows the queue");
    let summary = &rows(&dir.0, "summary")[0];
    assert_eq!(summary["dropped_packets"], of("drop").to_string());
    assert_eq!(summary["packet_hops"], of("dequeue").to_string());
    // Each direction has two links, so that each packet that left the switch is delivered.
    let last = count(&rows_of, |r| r["event"] == "dequeue" && r["hop"] == "1");
    assert_eq!(of("deliver"), last);
    let sent = |f: &str| {
        count(&rows_of, |r| r["flow"] == f && r["packet"] == "data" && r["hop"] == "0" && r["event"] == "dequeue")
    };
    for flow in rows(&dir.0, "flow") {
        let again: u64 = flow["retransmissions"].parse().unwrap();
        assert_eq!(sent(&flow["flow"]), 100_000u64.div_ceil(1446) + again, "flow {}", flow["flow"]);
    }
    let times: Vec<u64> = rows_of.iter().map(|r| r["time_ns"].parse().unwrap()).collect();
    assert!(times.is_sorted());
}

#[test]
fn a_recording_changes_nothing_else_and_takes_only_what_it_names() {
    let all = go("packets-bytes-a", &incast("dctcp", "true"));
    let none = go("packets-bytes-n", &incast("dctcp", "false"));
    let again = go("packets-bytes-b", &incast("dctcp", "true"));
    let bytes = |dir: &Scratch, file: &str| std::fs::read(dir.0.join(file)).unwrap();
    assert!(bytes(&all, "trials/0.packets.parquet") == bytes(&again, "trials/0.packets.parquet"));
    assert!(!none.0.join("trials/0.packets.parquet").exists());
    assert_eq!(rows(&all.0, "flow"), rows(&none.0, "flow"));
    let some = incast("dctcp", r#"{flows = [3, 5], links = ["switch0->h0"], from = "20us", until = "60us"}"#);
    let (some, all) = (go("packets-some", &some), packets(&all.0, 0));
    let wanted = |r: &&Row| {
        ["3", "5"].contains(&r["flow"].as_str())
            && r["link"] == "switch0->h0"
            && (20_000..60_000).contains(&r["time_ns"].parse::<u64>().unwrap())
    };
    let expected: Vec<&Row> = all.iter().filter(wanted).collect();
    assert!(!expected.is_empty());
    assert_eq!(packets(&some.0, 0).iter().collect::<Vec<_>>(), expected);
}

#[test]
fn headers_are_those_of_the_scheme() {
    let dir = go("packets-header", &incast("s-perc", r#"{flows = [0]}"#));
    let rows = packets(&dir.0, 0);
    let controls = count(&rows, |r| r["packet"] == "ctl" && r["event"] == "dequeue" && !r["header"].is_empty());
    assert!(controls > 0, "s-perc lives on control packets");
    assert_eq!(controls, count(&rows, |r| r["packet"] == "ctl" && r["event"] == "dequeue"));
    let dir = go("packets-swift", &incast("rcp", r#"{flows = [0]}"#));
    let rated = |r: &Row| r["packet"] == "data" && r["header"].contains("rate_bps");
    assert!(count(&packets(&dir.0, 0), rated) > 0);
}

#[test]
fn windows_and_paces_are_series_of_whoever_has_them() {
    let dir = go("paces-dctcp", &incast("dctcp", "false"));
    let series = rows(&dir.0, "pace");
    assert!(series.len() > 16 * 5);
    assert!(series.iter().all(|r| !r["window_bytes"].is_empty() && r["pace_bps"].is_empty()));
    let windows: Vec<u64> = series.iter().map(|r| r["window_bytes"].parse().unwrap()).collect();
    assert!(windows.iter().max() > windows.iter().min(), "windows move");
    let dir = go("paces-s-perc", &incast("s-perc", "false"));
    let series = rows(&dir.0, "pace");
    assert!(series.iter().all(|r| r["window_bytes"].is_empty() && !r["pace_bps"].is_empty()));
    let last: f64 = series.last().unwrap()["pace_bps"].parse().unwrap();
    assert!(last > 1e8, "{last}");
}

#[test]
fn what_is_not_there_is_refused_with_place_and_mend() {
    let refusal = |packets: &str| match Spec::from_toml(&incast("reno", packets)).unwrap().validate() {
        Ok(_) => panic!("{packets} was taken"),
        Err(fault) => fault.to_string(),
    };
    for (packets, place, hint) in [
        (r#"{flows = [16]}"#, "measure.packets.flows[0]", "flows 0 to 15"),
        (r#"{flows = ["one"]}"#, "measure.packets.flows[0]", "numbers"),
        (r#"{flows = []}"#, "measure.packets.flows", "name at least one"),
        (r#"{flows = [1.5]}"#, "measure.packets.flows[0]", "a whole number from 0"),
        (r#"{links = ["switch0->h0", "switch0->h99"]}"#, "measure.packets.links[1]", "did you mean"),
        (r#"{from = "2us", until = "1us"}"#, "measure.packets.until", "later"),
        (r#"{nodes = ["h0"]}"#, "measure.packets", "flows"),
        ("3", "measure.packets", "table"),
    ] {
        let said = refusal(packets);
        assert!(said.contains(place) && said.contains(hint), "{packets}: {said}");
    }
}

fn captured(dir: &Path, links: &[&str]) -> (PathBuf, Captured) {
    let file = dir.join("capture.pcapng");
    let links: Vec<String> = links.iter().map(|l| (*l).to_string()).collect();
    let out = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    let captured = capture(dir, None, &links, out).unwrap_or_else(|e| panic!("{e}"));
    (file, captured)
}

#[test]
fn a_capture_wants_packets_and_links_that_are_there() {
    let dir = go("capture-none", &incast("reno", "false"));
    let said = |e: Error| e.to_string();
    assert!(said(capture(&dir.0, None, &[], Vec::new()).unwrap_err()).contains("recorded no packets"));
    let dir = go("capture-links", &incast("reno", r#"{flows = [0]}"#));
    let wrong = capture(&dir.0, None, &["switch0->h99".into()], Vec::new()).unwrap_err();
    assert!(said(wrong).contains("switch0->h99"));
    assert!(said(capture(&dir.0, Some(7), &[], Vec::new()).unwrap_err()).contains("trial 7"));
    // A truncated table is an error.
    let path = dir.0.join("trials/0.packets.parquet");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(said(capture(&dir.0, None, &[], Vec::new()).unwrap_err()).contains("0.packets.parquet"));
}

/// Fields of each frame according to tshark; `None` if tshark is not installed.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-Y", filter, "-T", "fields", "-E", "separator=;"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let Ok(output) = command.output() else {
        eprintln!("no tshark on this machine: skipped; as root, `make tshark` installs it");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().map(|line| line.split(';').map(str::to_string).collect()).collect())
}

#[test]
fn tshark_reads_the_capture_of_an_incast_as_the_table_has_it() {
    let dir = go("capture-reno", &incast("reno", "true"));
    let table = packets(&dir.0, 0);
    // At a sender: the flow's data on the outgoing link, ACKs on the incoming link.
    let flows = rows(&dir.0, "flow");
    let flow = flows.iter().find(|f| f["retransmissions"] != "0").expect("some flow lost a packet");
    let host = &flow["src"];
    let (out, back) = (format!("{host}->switch0"), format!("switch0->{host}"));
    let (file, told) = captured(&dir.0, &[&out, &back]);
    let at = |r: &Row| (r["link"] == out || r["link"] == back) && r["event"] == "dequeue";
    let seen: Vec<&Row> = table.iter().filter(|r| at(r)).collect();
    assert_eq!((told.frames, told.interfaces), (seen.len() as u64, 2));
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "ip.src",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "tcp.options.sack_le",
    ];
    let Some(frames) = tshark(&file, "tcp", &fields) else { return };
    assert_eq!(frames.len(), seen.len());
    for (frame, row) in frames.iter().zip(&seen) {
        let (seconds, nanoseconds) = frame[0].split_once('.').unwrap();
        let time_ns = seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanoseconds.parse::<u64>().unwrap();
        assert_eq!((time_ns.to_string(), &frame[1]), (row["time_ns"].clone(), &row["link"]));
        let whole = |key: &str| row[key].parse::<u64>().unwrap();
        // Blocks after a loss are in a SACK option, which does not fit into the simulator's 64 bytes.
        let told = row["packet"] == "ack" && whole("segment") >= whole("cumulative");
        let blocks = if !told { 0 } else { 1 + u64::from(whole("earlier_start") < whole("earlier_end")) };
        assert_eq!(frame[2].parse(), Ok(if told { 58 + 8 * blocks } else { whole("bytes") }));
        assert_eq!(frame[7].split(',').filter(|edge| !edge.is_empty()).count() as u64, blocks);
        if row["packet"] == "data" {
            assert_eq!((frame[4].parse(), &frame[6]), (Ok(1 + whole("segment") * 1446), &row["payload_bytes"]));
        } else {
            assert_eq!(frame[5].parse(), Ok(1 + (whole("cumulative") * 1446).min(100_000)));
        }
    }
    let hits = |filter: &str| tshark(&file, filter, &["frame.number"]).unwrap().len();
    assert_eq!(hits("_ws.malformed || _ws.expert.group == 0x7000000"), 0, "malformed");
    assert_eq!(hits("ip.checksum.status == \"Bad\""), 0);
    let again = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    assert_eq!(hits(again).to_string(), flow["retransmissions"]);
    assert_eq!(hits("tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment"), 0);
    assert!(hits("tcp.options.sack_le") > 0, "what arrived beyond a loss is told");
}

#[test]
fn tshark_reads_marks_drops_and_headers() {
    let dir = go("capture-marks", &incast("dctcp", r#"{links = ["switch0->h0"]}"#));
    let table = packets(&dir.0, 0);
    let (file, told) = captured(&dir.0, &[]);
    let at = |event: &str, test: &dyn Fn(&Row) -> bool| count(&table, |r| r["event"] == event && test(r));
    let (left, dropped) = (at("dequeue", &|_| true), at("drop", &|_| true));
    assert_eq!(told.frames, left + dropped);
    let Some(marked) = tshark(&file, "ip.dsfield.ecn == 3", &["frame.number"]) else { return };
    let marks = |r: &Row| r["ecn"] == "true" && r["packet"] == "data";
    assert_eq!(marked.len() as u64, at("dequeue", &marks) + at("drop", &marks));
    assert!(!marked.is_empty(), "an incast is marked");
    let hits = |file: &Path, filter: &str| tshark(file, filter, &["frame.number"]).unwrap().len() as u64;
    assert_eq!(hits(&file, "frame.interface_name == \"switch0->h0 (dropped)\""), dropped);
    let dir = go("capture-rcp", &incast("rcp", r#"{links = ["switch0->h0"]}"#));
    let (file, told) = captured(&dir.0, &[]);
    assert_eq!(hits(&file, "frame.comment contains \"rate_bps\""), told.frames);
    assert!(hits(&file, "udp") > 0, "requests for a rate are messages");
    assert_eq!(hits(&file, "_ws.malformed"), 0);
}
