//! Flows from files: a table, HPCC's flow files, and htsim's connection matrices.

use crate::common::{Scratch, ran, rows};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use subak_lab::{RunOptions, Spec, run};

fn spec(keys: &str) -> String {
    format!(
        r#"
[network]
kind = "star"
hosts = 4
rate = "10Gbps"

[workload]
kind = "trace"
{keys}

[[scheme]]
name = "ideal"

[run]
duration = "20ms"
"#
    )
}

/// `(id, src, dst, size, start, weight)` of every flow of the file.
fn flows_of(dir: &Path, keys: &str) -> Result<Vec<[String; 6]>, String> {
    flows_over(dir, &spec(keys))
}

fn flows_over(dir: &Path, spec: &str) -> Result<Vec<[String; 6]>, String> {
    let file = dir.join("spec.toml");
    std::fs::write(&file, spec).unwrap();
    let spec = Spec::load(&file).unwrap().validate().map_err(|e| e.to_string())?;
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &out, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    let columns = ["flow_id", "src", "dst", "size_bytes", "start_ns", "weight"];
    Ok(rows(&out, "flow").iter().map(|row| columns.map(|c| row[c].clone())).collect())
}

/// Texts of the warnings about the workload of the file.
fn notes_of(dir: &Path, keys: &str) -> Vec<String> {
    let file = dir.join("spec.toml");
    std::fs::write(&file, spec(keys)).unwrap();
    let spec = Spec::load(&file).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let warnings = ran("notes", &spec).1.warnings.into_iter();
    warnings.filter(|warning| warning.kind == "workload").map(|warning| warning.text).collect()
}

fn written(name: &str, files: &[(&str, &str)]) -> Scratch {
    let dir = Scratch::new(name);
    std::fs::create_dir_all(&dir.0).unwrap();
    files.iter().for_each(|(file, text)| std::fs::write(dir.0.join(file), text).unwrap());
    dir
}

fn row(trials: [&str; 6]) -> [String; 6] {
    trials.map(str::to_string)
}

#[test]
fn a_table_gives_the_flows_one_expects() {
    let csv = "start,src,dst,size,weight,id\n1ms,h0,h1,64KiB,2,a\n0.002,2,3,1000,,\n";
    let dir = written("csv", &[("flows.csv", csv)]);
    let flows = flows_of(&dir.0, r#"file = "flows.csv""#).unwrap();
    let want = [row(["a", "h0", "h1", "65536", "1000000", "2"]), row(["", "h2", "h3", "1000", "2000000", "1"])];
    assert_eq!(flows, want);
}

#[test]
fn flow_files_of_hpcc_are_read_as_they_are() {
    let text = "2\n0 1 3 100 5000 2.001000000\n3 2 3 100 70000 2.003500000\n";
    let dir = written("hpcc", &[("flow.txt", text)]);
    let flows = flows_of(&dir.0, "file = \"flow.txt\"\nformat = \"hpcc\"").unwrap();
    let want = [row(["", "h0", "h1", "5000", "1000000", "1"]), row(["", "h3", "h2", "70000", "3500000", "1"])];
    assert_eq!(flows, want);
}

#[test]
fn connection_matrices_of_htsim_are_read_with_their_triggers() {
    let text = "Nodes 4\nConnections 3\nTriggers 1\n0->1 id 1 start 5000000 size 100000 send_done_trigger 7\n\
                1->2 id 2 start 0 size 2000\n2->3 id 3 trigger 7 size 3000\ntrigger id 7 oneshot\n";
    let dir = written("htsim", &[("a.cm", text)]);
    let flows = flows_of(&dir.0, r#"file = "a.cm""#).unwrap();
    assert_eq!(flows[0], row(["1", "h0", "h1", "100000", "5000", "1"]));
    assert_eq!(flows[1], row(["2", "h1", "h2", "2000", "0", "1"]));
    assert_eq!(flows[2][..4], row(["3", "h2", "h3", "3000", "", ""])[..4]);
    let after: u64 = flows[2][4].parse().unwrap();
    // 100 kB at 10 Gb/s take 83 us on the wire.
    assert!((88_000..100_000).contains(&after), "{after}");
}

/// 10 KB take 8 us at 10 Gb/s, and 100 KB 83 us.
#[test]
fn a_oneshot_fires_at_the_first_end_a_multishot_at_each_and_a_barrier_at_the_last() {
    let starts = |kind: &str, waiting: usize| {
        let mut text = "Nodes 4\n0->1 id 1 start 0 size 10000 send_done_trigger 7\n".to_string();
        text += "2->3 id 2 start 0 size 100000 recv_done_trigger 7\n";
        (0..waiting).for_each(|k| text += &format!("{}->{} id {} trigger 7 size 3000\n", k, 3 - k, 3 + k));
        text += &format!("trigger id 7 {kind}\n");
        let dir = written("fires", &[("a.cm", &text)]);
        let flows = flows_of(&dir.0, r#"file = "a.cm""#).unwrap();
        let starts: Vec<u64> = flows[2..].iter().map(|flow| flow[4].parse().unwrap_or(u64::MAX)).collect();
        (starts, notes_of(&dir.0, r#"file = "a.cm""#))
    };
    let (first, last, never) = (8_000..14_000, 84_000..100_000, u64::MAX..=u64::MAX);
    let (oneshot, said) = starts("oneshot", 2);
    assert!(oneshot.iter().all(|start| first.contains(start)), "{oneshot:?}");
    assert_eq!(said, ["trigger 7 is a oneshot, and 2 connections fire it: it fires when the first of them ends"]);
    let (multishot, said) = starts("multishot", 3);
    assert!(first.contains(&multishot[0]) && last.contains(&multishot[1]) && never.contains(&multishot[2]));
    assert!(said.len() == 1 && said[0].ends_with("2 fire it and 3 wait for it, so that 1 never start"), "{said:?}");
    assert_eq!(starts("multishot", 2).1, [""; 0]);
    let (barrier, said) = starts("barrier count 2", 2);
    assert!(barrier.iter().all(|start| last.contains(start)), "{barrier:?}");
    assert_eq!(said, [""; 0]);
    let dir = written(
        "split",
        &[(
            "a.cm",
            "0->1 id 1 start 0 size 10000 send_done_trigger 7\n2->3 id 2 start 0 size 9 \
        send_done_trigger 7\n1->2 id 3 trigger 7 size 9\ntrigger id 7 oneshot\n",
        )],
    );
    let fault = flows_of(&dir.0, "file = \"a.cm\"\nconnections = 2").unwrap_err();
    assert!(fault.contains("workload.connections"), "{fault}");
}

/// A flow that starts after the run is left out, also beside flows that wait for others; those that wait for it never
/// start.
#[test]
fn late_flows_beside_waiting_ones_are_left_out() {
    let text = "0->1 id 1 start 0 size 1000 send_done_trigger 7\n1->2 id 2 start 30000000000 size 9 send_done_trigger 8\n\
                0->2 id 3 trigger 7 size 9\n2->3 id 4 trigger 8 size 9\ntrigger id 7 oneshot\ntrigger id 8 oneshot\n";
    let dir = written("late", &[("a.cm", text)]);
    let flows = flows_of(&dir.0, r#"file = "a.cm""#).unwrap();
    let ids: Vec<(&str, bool)> = flows.iter().map(|flow| (flow[0].as_str(), flow[4].is_empty())).collect();
    assert_eq!(ids, [("1", false), ("3", false), ("4", true)]);
    assert_eq!(notes_of(&dir.0, r#"file = "a.cm""#), ["1 of 4 flows start at run.duration or later, and are left out"]);
    let steps = "kind = \"steps\"\nflows = [{id = \"a\", src = \"h0\", dst = \"h1\", size = 9, start = \"30ms\"}, \
                 {id = \"b\", src = \"h0\", dst = \"h1\", size = 9}, {id = \"c\", src = \"h0\", dst = \"h1\", size = 9, \
                 after = [\"b\"]}]";
    let spec = spec("").replace("kind = \"trace\"", steps);
    let flows = flows_over(&dir.0, &spec).unwrap();
    let ids: Vec<&str> = flows.iter().map(|flow| flow[0].as_str()).collect();
    assert_eq!(ids, ["b", "c"]);
}

/// Numbers of a file that its run does not use.
#[test]
fn priorities_and_counts_of_triggers_are_said() {
    let matrix = |triggers: u64, last: &str| {
        let flows = "0->1 id 1 start 0 size 100 send_done_trigger 7\n1->2 id 2 trigger 7 size 200\n";
        format!("Nodes 4\nTriggers {triggers}\n{flows}trigger id 7 {last}\n")
    };
    for (file, text, notes) in [
        ("a.txt", "2\n0 1 3 100 5000 2\n3 2 3 100 70000 2\n".to_string(), &[][..]),
        ("a.txt", "2\n0 1 3 100 5000 2\n3 2 1 100 70000 2\n".to_string(), &["the flows have 2 priorities, which"][..]),
        ("a.txt", "2\n0 1 3 100 5000 2\n3 2 3 101 70000 2\n".to_string(), &["the flows have 2 ports, which"]),
        ("a.cm", matrix(1, "oneshot"), &[]),
        (
            "a.cm",
            matrix(1, "oneshot") + "0->2 id 3 start 0 size 9 recv_done_trigger 5\n",
            &["no connection waits for trigger 5"],
        ),
        ("a.cm", matrix(1, "barrier count 1"), &[]),
        (
            "a.cm",
            format!("{}trigger id 8 barrier count 3\n", matrix(2, "barrier count 2")),
            &["connections, and 1 fire it: it waits for these; more such triggers: 1"],
        ),
        ("a.cm", matrix(1, "barrier count 2"), &["trigger 7 counts 2 connections, and 1 fire it"]),
        ("a.cm", matrix(3, "oneshot"), &["3 triggers are announced, and 1 follow"]),
        (
            "a.cm",
            "0->1 id 1 start 0 size 100 send_done_trigger 7\n1->2 id 2 trigger 7 size 200\n".to_string(),
            &["trigger 7 has no line that says its kind"],
        ),
    ] {
        let dir = written("counts", &[(file, &text)]);
        let format = if file.ends_with("txt") { "format = \"hpcc\"" } else { "" };
        let said = notes_of(&dir.0, &format!("file = \"{file}\"\n{format}"));
        assert_eq!(said.len(), notes.len(), "{text}: {said:?}");
        assert!(said.iter().zip(notes).all(|(said, note)| said.contains(note)), "{text}: {said:?}");
    }
}

/// Lines after the announced number of flows are ignored. ConWeave's files have no port column. Comments are skipped.
#[test]
fn flow_files_of_simulators_made_from_hpcc() {
    let want = [row(["", "h0", "h1", "5000", "1000000", "1"]), row(["", "h3", "h2", "70000", "3500000", "1"])];
    for text in [
        "2\n0 1 3 100 5000 2.001\n3 2 3 100 70000 2.0035\n0 2 3 100 1 2.002\n\nfirst line: number of flows\n",
        "2\n0 1 3 5000 2.001000000\n3 2 3 70000.0 2.003500000\n",
        "# two flows\n2\n\n0 1 3 100 5000 2.001 # short\n3 2 3 100 70000 2.0035 // long\n",
    ] {
        let dir = written("like-hpcc", &[("flow.txt", text)]);
        assert_eq!(flows_of(&dir.0, "file = \"flow.txt\"\nformat = \"hpcc\"").unwrap(), want, "{text}");
    }
}

/// Node 0 is the switch, as in topology files of HPCC's simulator, so that node numbers differ from host numbers.
#[test]
fn a_number_is_a_name_where_nodes_are_called_by_numbers() {
    const TOPOLOGY: &str = "4 1 3\n0\n0 1 10Gbps 1us 0\n0 2 10Gbps 1us 0\n0 3 10Gbps 1us 0\n";
    let files = [
        ("topology.txt", TOPOLOGY),
        ("flow.txt", "2\n3 1 3 100 1000 2\n1 2 3 100 2000 2\n"),
        ("five.txt", "1\n2 3 3 1000 2\n"),
        ("flows.csv", "start,src,dst,size\n0,3,1,1000\n"),
        ("switch.txt", "1\n0 1 3 100 1000 2\n"),
        ("none.txt", "1\n1 4 3 100 1000 2\n"),
        ("packets.txt", "1\n3 1 3 10000000 2.0 9.5\n"),
        ("few.txt", "1\n3 1 3 100 2.0 9.5\n"),
    ];
    let dir = written("numbers", &files);
    let over = |file: &str| {
        let keys = format!("file = \"{file}\"\n{}", if file.ends_with("txt") { "format = \"hpcc\"" } else { "" });
        let star = "kind = \"star\"\nhosts = 4\nrate = \"10Gbps\"";
        flows_over(&dir.0, &spec(&keys).replace(star, "file = \"topology.txt\""))
    };
    let ends = |file: &str| over(file).unwrap().iter().map(|f| format!("{} {}", f[1], f[2])).collect::<Vec<_>>();
    assert_eq!(ends("flow.txt"), ["3 1", "1 2"]);
    assert_eq!(ends("five.txt"), ["2 3"]);
    assert_eq!(ends("flows.csv"), ["3 1"]);
    for (file, words) in [
        ("switch.txt", ["line 2", "node \"0\" is no host"]),
        ("none.txt", ["unknown host \"4\"", "known: 1, 2, 3"]),
        ("packets.txt", ["line 2", "10000000 packets"]),
        ("few.txt", ["line 2", "100 packets"]),
    ] {
        let fault = over(file).unwrap_err();
        assert!(words.iter().all(|w| fault.contains(w)), "{file}: {fault}");
    }
}

#[test]
fn a_connection_of_htsim_without_a_size_has_no_end() {
    let dir = written(
        "endless",
        &[("a.cm", "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 0\n2->3 id 2 start 0 size 2000\n")],
    );
    let flows = flows_of(&dir.0, r#"file = "a.cm""#).unwrap();
    assert_eq!(flows, [row(["1", "h0", "h1", "", "0", "1"]), row(["2", "h2", "h3", "2000", "0", "1"])]);
}

#[test]
fn whole_floats_are_whole_numbers() {
    let csv = "start_ns,src,dst,size_bytes\n2000.0,h0,h1,64000.0\n3e3,h1,h2,1000\n";
    let dir = written("floats", &[("flows.csv", csv), ("half.csv", "start_ns,src,dst,size\n1.5,h0,h1,1\n")]);
    let flows = flows_of(&dir.0, r#"file = "flows.csv""#).unwrap();
    assert_eq!(
        flows.iter().map(|f| (f[3].as_str(), f[4].as_str())).collect::<Vec<_>>(),
        [("64000", "2000"), ("1000", "3000")]
    );
    assert!(flows_of(&dir.0, r#"file = "half.csv""#).unwrap_err().contains("start_ns is no whole number"));
}

#[test]
fn nothing_in_a_trace_is_ignored() {
    let files = [
        ("weigth.csv", "start,src,dst,size,weigth\n0,h0,h1,1000,3\n"),
        ("deadline.csv", "start,src,dst,size,Deadline\n0,h0,h1,1000,1ms\n"),
        ("both.csv", "start,start_ns,src,dst,size\n0,5,h0,h1,1000\n"),
        ("twice.csv", "start,src,dst,size,size\n0,h0,h1,1000,2000\n"),
        ("ids.csv", "start,src,dst,size,id\n0,h0,h1,1000,a\n0,h1,h2,1000,b\n0,h2,h3,1000,a\n"),
        ("semicolon.csv", "start;src;dst;size\n0;h0;h1;1000\n"),
        ("blanks.csv", "start src dst size\n0 h0 h1 1000\n"),
        ("comment.csv", "# a trace of May\nstart,src,dst,size\n0,h0,h1,1000\n"),
        ("fail.cm", "Nodes 4\nConnections 1\nFailures 1\n0->1 id 1 start 0 size 9\n"),
        ("prio.cm", "0->1 id 1 start 0 size 9 priority 3\n"),
        ("ids.cm", "0->1 id 1 start 0 size 9\n1->2 id 1 start 0 size 9\n"),
        ("endless.cm", "0->1 id 1 start 0 size 0 send_done_trigger 4\n1->2 id 2 trigger 4 size 9\n"),
        ("both.cm", "0->1 id 1 start 0 size 9 send_done_trigger 4\n1->2 id 2 start 5 trigger 4 size 9\n"),
        ("kind.cm", "0->1 id 1 start 0 size 9\ntrigger id 4 onshot\n"),
        ("count.cm", "0->1 id 1 start 0 size 9\ntrigger id 4 oneshot count 2\n"),
        ("lines.cm", "0->1 id 1 start 0 size 9\ntrigger id 4 oneshot\ntrigger id 4 oneshot\n"),
    ];
    let dir = written("ignored", &files);
    for (file, words) in [
        ("weigth.csv", ["unknown column \"weigth\"", "did you mean \"weight\""]),
        ("deadline.csv", ["line 1", "unknown column \"Deadline\""]),
        ("both.csv", ["\"start\" and \"start_ns\"", "leave one"]),
        ("twice.csv", ["\"size\" and \"size\"", "leave one"]),
        ("ids.csv", ["line 4", "line 2 has the id \"a\" already"]),
        ("semicolon.csv", ["separated by a semicolon", "commas"]),
        ("blanks.csv", ["separated by blanks", "commas"]),
        ("comment.csv", ["the first line is a comment", "names of the columns"]),
        ("fail.cm", ["line 3", "failures"]),
        ("prio.cm", ["line 1", "\"priority\""]),
        ("ids.cm", ["line 2", "line 1 has the id \"1\" already"]),
        ("endless.cm", ["line 2", "no end"]),
        ("both.cm", ["line 2", "a start and a trigger"]),
        ("kind.cm", ["line 2", "did you mean \"oneshot\""]),
        ("count.cm", ["line 2", "only a barrier has a count"]),
        ("lines.cm", ["line 3", "trigger 4 is there twice"]),
    ] {
        let fault = flows_of(&dir.0, &format!("file = \"{file}\"")).unwrap_err();
        assert!(words.iter().all(|w| fault.contains(w)), "{file}: {fault}");
    }
}

#[test]
fn bad_lines_are_named_by_their_number() {
    let files = [
        ("column.csv", "start,src,dst\n0,h0,h1\n"),
        ("host.csv", "start,src,dst,size\n0,h0,h1,1000\n0,h0,h9,1000\n"),
        ("size.csv", "start,src,dst,size\n0,h0,h1,1000\n0,h0,h2,lots\n"),
        ("short.csv", "start,src,dst,size\n0,h0,h1,1000\n0,h0\n"),
        ("same.csv", "start,src,dst,size\n0,h0,h0,1000\n"),
        ("short.txt", "3\n0 1 3 100 5000 2.0\n"),
        ("early.txt", "1\n0 1 3 100 5000 1.0\n"),
        ("words.txt", "1\n0 1 3 100\n"),
        ("start.cm", "0->1 id 1 size 1000\n"),
        ("trigger.cm", "0->1 id 1 trigger 3 size 1000\n"),
        ("word.cm", "0->1 id 1 start 0 size 1000\nhello 1\n"),
        ("circle.cm", "0->1 trigger 1 send_done_trigger 2 size 9\n1->2 trigger 2 send_done_trigger 1 size 9\n"),
        ("unknown.bin", ""),
    ];
    let dir = written("bad", &files);
    let said = |file: &str| {
        let format = if file.ends_with(".txt") { "\nformat = \"hpcc\"" } else { "" };
        flows_of(&dir.0, &format!("file = \"{file}\"{format}")).unwrap_err()
    };
    for (file, words) in [
        ("column.csv", ["line 1", "\"size\""]),
        ("host.csv", ["line 3", "h9"]),
        ("size.csv", ["line 3", "lots"]),
        ("short.csv", ["line 3", "columns"]),
        ("same.csv", ["line 2", "same host"]),
        ("short.txt", ["line 1", "3 flows are announced"]),
        ("early.txt", ["line 2", "origin"]),
        ("words.txt", ["line 2", "4 words"]),
        ("start.cm", ["line 1", "no start"]),
        ("trigger.cm", ["line 1", "trigger 3"]),
        ("word.cm", ["line 2", "hello"]),
        ("circle.cm", ["line 1", "circle"]),
        ("unknown.bin", ["format", "csv, parquet"]),
        ("missing.csv", ["missing.csv", "cannot be read"]),
    ] {
        let fault = said(file);
        assert!(words.iter().all(|w| fault.contains(w)), "{file}: {fault}");
    }
}

/// All errors of a file are reported at once: each error with the first line that has it.
#[test]
fn all_faults_of_all_rows_are_told_at_once() {
    let mut many = "start,src,dst,size\n".to_string();
    many += "0,h0,h1,lots\n0,h0,h9,1000\n-1,h8,h9,1000\n0,h0,h0,1000\n0,h0\n";
    (0..300).for_each(|_| many += "0,h0,h1,0\n");
    let dir = written("all", &[("many.csv", many.as_str()), ("columns.csv", "from,to\n1,2\n")]);
    let said = |file: &str| flows_of(&dir.0, &format!("file = \"{file}\"")).unwrap_err();
    let fault = said("many.csv");
    let lines: Vec<&str> = fault.lines().collect();
    for words in [
        ["line 2", "lots"],
        ["line 3", "h9"],
        ["line 4", "h8"],
        ["line 4", "-1"],
        ["line 5", "same host"],
        ["line 6", "columns of the first line"],
        ["line 7", "the size is 0 (and 299 more like it)"],
    ] {
        assert!(lines.iter().any(|line| words.iter().all(|word| line.contains(word))), "{words:?}: {fault}");
    }
    assert_eq!(lines.len(), 7, "{fault}");
    assert!(lines.iter().all(|line| line.contains("many.csv")), "{fault}");
    let missing = said("columns.csv");
    assert!(["\"src\"", "\"dst\"", "\"start\"", "\"size\""].iter().all(|name| missing.contains(name)), "{missing}");
}

/// A Parquet file with one row per flow.
fn parquet(path: &Path, starts: &[f64], dsts: &[&str]) {
    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let n = starts.len();
    let columns: [(&str, ArrayRef); 5] = [
        ("start", Arc::new(Float64Array::from(starts.to_vec()))),
        ("src", Arc::new(StringArray::from(vec!["h0"; n]))),
        ("dst", Arc::new(StringArray::from(dsts.to_vec()))),
        ("size_bytes", Arc::new(Int64Array::from((0..n as i64).map(|k| 1000 * (k + 1)).collect::<Vec<_>>()))),
        ("weight", Arc::new(Float64Array::from((0..n).map(|k| (k > 0).then_some(4.0)).collect::<Vec<_>>()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_parquet_file_gives_the_flows_one_expects() {
    let dir = written("parquet", &[]);
    parquet(&dir.0.join("flows.parquet"), &[0.001, 0.0025], &["h1", "h3"]);
    let flows = flows_of(&dir.0, r#"file = "flows.parquet""#).unwrap();
    let want = [row(["", "h0", "h1", "1000", "1000000", "1"]), row(["", "h0", "h3", "2000", "2500000", "4"])];
    assert_eq!(flows, want);
}

#[test]
fn durations_in_parquet_keep_their_unit_and_no_rows_are_no_lack_of_columns() {
    use arrow_array::{ArrayRef, DurationMicrosecondArray, RecordBatch, StringArray, UInt16Array};
    use std::sync::Arc;
    let dir = written("durations", &[]);
    for (name, key, rows) in [("micro", "start", 1), ("ns", "start_ns", 1), ("empty", "start", 0)] {
        let columns: [(&str, ArrayRef); 4] = [
            (key, Arc::new(DurationMicrosecondArray::from(vec![5; rows]))),
            ("src", Arc::new(StringArray::from(vec!["h0"; rows]))),
            ("dst", Arc::new(StringArray::from(vec!["h1"; rows]))),
            ("size", Arc::new(UInt16Array::from(vec![900; rows]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = std::fs::File::create(dir.0.join(format!("{name}.parquet"))).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    for name in ["micro", "ns"] {
        let flows = flows_of(&dir.0, &format!("file = \"{name}.parquet\"")).unwrap();
        assert_eq!(flows, [row(["", "h0", "h1", "900", "5000", "1"])], "{name}");
    }
    assert_eq!(flows_of(&dir.0, r#"file = "empty.parquet""#).unwrap(), [] as [[String; 6]; 0]);
}

#[test]
fn bad_parquet_files_are_refused_with_the_row() {
    let dir = written("bad-parquet", &[("text.parquet", "start,src,dst,size\n")]);
    let said = |file: &str| flows_of(&dir.0, &format!("file = \"{file}\"")).unwrap_err();
    assert!(said("text.parquet").contains("cannot be read as Parquet"), "{}", said("text.parquet"));
    parquet(&dir.0.join("negative.parquet"), &[0.001, -1.0], &["h1", "h2"]);
    let fault = said("negative.parquet");
    assert!(fault.contains("negative.parquet") && fault.contains("row 2"), "{fault}");
    parquet(&dir.0.join("unknown.parquet"), &[0.001, 0.002], &["h1", "h9"]);
    let fault = said("unknown.parquet");
    assert!(fault.contains("h9") && fault.contains("row 2"), "{fault}");
    // A truncated file, as after an interrupted copy.
    let whole = std::fs::read(dir.0.join("negative.parquet")).unwrap();
    std::fs::write(dir.0.join("cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    assert!(said("cut.parquet").contains("cannot be read as Parquet"), "{}", said("cut.parquet"));
}

#[test]
fn a_damaged_parquet_file_is_read_or_refused() {
    let dir = written("damaged-parquet", &[("spec.toml", &spec(r#"file = "flows.parquet""#))]);
    let file = dir.0.join("flows.parquet");
    parquet(&file, &[0.001, 0.0025], &["h1", "h3"]);
    let whole = std::fs::read(&file).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&file, &damaged).unwrap();
        refused += usize::from(Spec::load(&dir.0.join("spec.toml")).unwrap().validate().is_err());
    }
    assert!(refused > 50, "{refused} of {} were refused", whole.len() / 3);
}
