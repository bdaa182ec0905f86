//! Closed-loop workloads, sizes from a file, random weights, several connections over one path.

use crate::common::{Scratch, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use subak_lab::{RunOptions, Spec, run};

type Rows = Vec<BTreeMap<String, String>>;

fn spec(workload: &str, schemes: &str) -> String {
    format!(
        "network = {{kind = \"star\", hosts = 4, rate = \"10Gbps\", link_delay = \"1us\"}}\n\
         workload = {{{workload}}}\nscheme = [{schemes}]\n[run]\nduration = \"2ms\"\nseeds = 1\n"
    )
}

fn run_in(dir: &Path, text: &str) -> Result<Rows, String> {
    std::fs::create_dir_all(dir).unwrap();
    let file = dir.join("spec.toml");
    std::fs::write(&file, text).unwrap();
    let spec = Spec::load(&file).unwrap().validate().map_err(|e| e.to_string())?;
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &out, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    Ok(rows(&out, "flow"))
}

fn flows_of(name: &str, workload: &str, schemes: &str) -> Rows {
    let dir = Scratch::new(name);
    run_in(&dir.0, &spec(workload, schemes)).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(workload: &str) -> String {
    let text = spec(workload, "{name = \"dctcp\"}");
    match Spec::from_toml(&text).and_then(Spec::validate) {
        Ok(_) => panic!("{workload} was taken"),
        Err(fault) => fault.to_string(),
    }
}

fn num(row: &BTreeMap<String, String>, key: &str) -> u64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key} of {row:?}"))
}

/// Start and end of a flow, ns.
fn span(row: &BTreeMap<String, String>) -> (u64, u64) {
    (num(row, "start_ns"), num(row, "start_ns") + num(row, "fct_ns"))
}

const LOOPS: &str = "kind = \"closed\", sizes = \"uniform\", smallest = \"10kB\", largest = \"200kB\", hosts = [\"h0\", \"h1\"], \
                     to = [\"h2\", \"h3\"], outstanding = 3, think = \"20us\", spread = \"50us\"";

#[test]
fn a_client_starts_its_next_transfer_when_one_has_completed_and_it_has_thought() {
    let all = flows_of("closed", LOOPS, "{name = \"dctcp\"}, {name = \"s-perc\"}, {name = \"ideal\"}");
    for scheme in ["dctcp", "s-perc", "ideal"] {
        let mine: Vec<_> = all.iter().filter(|r| r["scheme"] == scheme).collect();
        assert!(mine.len() > 35, "{scheme}: {} transfers", mine.len());
        assert!(mine.iter().all(|r| num(r, "start_ns") < 2_000_000), "{scheme}");
        for host in ["h0", "h1"] {
            let spans: Vec<_> = mine.iter().filter(|r| r["src"] == host).map(|r| span(r)).collect();
            let mut ends: Vec<u64> = spans.iter().map(|s| s.1).collect();
            let mut starts: Vec<u64> = spans.iter().map(|s| s.0).collect();
            starts.sort_unstable();
            ends.sort_unstable();
            // The first three transfers start independently, each later one 20 us after the end of an earlier one.
            assert!(starts[2] < 50_000, "{scheme}: {starts:?}");
            let next: Vec<u64> = ends.iter().map(|end| end + 20_000).filter(|&at| at < 2_000_000).collect();
            assert_eq!(starts[3..], next, "{scheme} at {host}");
        }
    }
}

#[test]
fn what_a_client_asks_for_does_not_depend_on_how_fast_it_is_served() {
    let all = flows_of("closed-draws", LOOPS, "{name = \"dctcp\"}, {name = \"ideal\"}");
    let asked = |scheme: &str| -> BTreeMap<u64, [String; 3]> {
        let mine = all.iter().filter(|r| r["scheme"] == scheme);
        mine.map(|r| (num(r, "flow"), ["src", "dst", "size_bytes"].map(|k| r[k].clone()))).collect()
    };
    let (slow, fast) = (asked("dctcp"), asked("ideal"));
    let both: Vec<_> = slow.keys().filter(|f| fast.contains_key(f)).collect();
    assert!(both.len() > 35 && both.iter().all(|f| slow[f] == fast[f]));
}

#[test]
fn a_link_that_becomes_faster_does_not_leave_clients_without_work() {
    let text = format!(
        "{}[[fault]]\nkind = \"capacity\"\nlinks = [\"h0->switch0\", \"switch0->h1\"]\ncapacity = \"40Gbps\"\nat = \"100us\"\n",
        spec(
            "kind = \"closed\", sizes = \"fixed\", size = \"100kB\", hosts = [\"h0\"], to = [\"h1\"]",
            "{name = \"ideal\"}"
        )
    );
    let dir = Scratch::new("faster");
    let flows = run_in(&dir.0, &text).unwrap_or_else(|e| panic!("{e}"));
    let last = flows.iter().map(|r| num(r, "start_ns")).max().unwrap();
    assert!(last > 1_950_000, "the last transfer starts at {last}");
}

#[test]
fn transfers_are_sampled_from_their_start_on() {
    let dir = Scratch::new("sampled");
    let text = spec(LOOPS, "{name = \"ideal\"}") + "[measure]\nrates = \"10us\"\n";
    let starts: BTreeMap<String, u64> =
        run_in(&dir.0, &text).unwrap().iter().map(|r| (r["flow"].clone(), num(r, "start_ns"))).collect();
    let samples = rows(&dir.0.join("out"), "rate");
    assert!(samples.len() > 500 && samples.iter().all(|r| num(r, "time_ns") >= starts[&r["flow"]]));
}

#[test]
fn a_client_makes_as_many_transfers_as_it_is_told() {
    let flows = flows_of("counted", &format!("{LOOPS}, transfers = 4"), "{name = \"ideal\"}");
    assert_eq!(flows.len(), 2 * 3 * 4);
}

#[test]
fn loops_that_make_no_sense_are_refused_with_their_place() {
    let fixed = "kind = \"closed\", sizes = \"fixed\", size = \"10kB\"";
    for (keys, words) in [
        ("outstanding = 0", ["workload.outstanding", "out of range"]),
        ("clients = 0", ["workload.clients", "out of range"]),
        ("think = \"soon\"", ["workload.think", "soon"]),
        ("hosts = [\"h0\", \"h9\"]", ["workload.hosts[1]", "h9"]),
        ("to = [\"leaf7\"]", ["workload.to[0]", "leaf7"]),
        ("to = []", ["workload.to", "empty"]),
        ("to = [\"h0\"]", ["workload.to", "clients of h0"]),
        ("transfers = 0", ["workload.transfers", "out of range"]),
        ("clients = 10000, outstanding = 10000", ["workload", "flows would start"]),
    ] {
        let fault = refusal(&format!("{fixed}, {keys}"));
        assert!(words.iter().all(|w| fault.contains(w)), "{keys}: {fault}");
    }
}

#[test]
fn sizes_come_from_a_file_of_points() {
    let dir = Scratch::new("sizes-file");
    std::fs::create_dir_all(&dir.0).unwrap();
    std::fs::write(dir.0.join("sizes.csv"), "size_bytes,probability\n1000,0.5\n2000,0.5\n3000,1\n").unwrap();
    let text = spec("kind = \"poisson\", load = 0.5, sizes = {file = \"sizes.csv\"}", "{name = \"ideal\"}");
    let sizes: Vec<u64> = run_in(&dir.0, &text).unwrap().iter().map(|r| num(r, "size_bytes")).collect();
    let small = sizes.iter().filter(|&&s| s == 1000).count() as f64 / sizes.len() as f64;
    assert!(sizes.len() > 1000 && (0.45..0.55).contains(&small), "{small} of {}", sizes.len());
    assert!(sizes.iter().all(|&s| s == 1000 || (2000..=3000).contains(&s)));
    // The file is part of the spec's hash.
    let hash = || Spec::load(&dir.0.join("spec.toml")).unwrap().validate().unwrap().hash;
    let before = hash();
    std::fs::write(dir.0.join("sizes.csv"), "size_bytes,probability\n1000,0.5\n3000,1\n").unwrap();
    assert_ne!(before, hash());
}

#[test]
fn bad_lines_of_a_file_of_points_are_named() {
    let dir = Scratch::new("bad-sizes");
    std::fs::create_dir_all(&dir.0).unwrap();
    let said = |text: &str| {
        std::fs::write(dir.0.join("sizes.csv"), text).unwrap();
        run_in(&dir.0, &spec("kind = \"poisson\", load = 0.5, sizes = {file = \"sizes.csv\"}", "{name = \"ideal\"}"))
            .unwrap_err()
    };
    for (text, words) in [
        ("", ["line 1", "size_bytes"]),
        ("size,probability\n1,1\n", ["line 1", "\"size_bytes\""]),
        ("size_bytes,probability\n100,0.5\nlots,1\n", ["line 3", "lots"]),
        ("size_bytes,probability\n100,0.5\n200,1.5\n", ["line 3", "0 to 1"]),
        ("size_bytes,probability\n100,0.5\n200,NaN\n", ["line 3", "NaN"]),
        ("size_bytes,probability\n100,0.5\n\n50,1\n", ["line 4", "do not rise"]),
        ("size_bytes,probability\n100,0.5\n200\n", ["line 3", "columns"]),
        ("size_bytes,probability\n0,0.5\n200,1\n", ["line 2", "at least 1"]),
        ("size_bytes,probability\n100,0.5\n200,0.9\n", ["sizes.csv", "last share"]),
    ] {
        let fault = said(text);
        assert!(words.iter().all(|w| fault.contains(w)) && fault.contains("sizes.csv"), "{text:?}: {fault}");
    }
    let fault = refusal("kind = \"poisson\", load = 0.5, sizes = {file = \"none.csv\"}");
    assert!(fault.contains("none.csv") && fault.contains("cannot be read"), "{fault}");
}

#[test]
fn weights_are_drawn_for_each_flow() {
    let flows = |name: &str, weights: &str| -> Vec<f64> {
        let workload = format!("kind = \"churn\", epoch = \"1ms\", flows_per_host = 50, weights = {weights}");
        flows_of(name, &workload, "{name = \"ideal\"}").iter().map(|r| r["weight"].parse().unwrap()).collect()
    };
    let uniform = flows("uniform", "{uniform = [1, 16]}");
    assert!(uniform.iter().all(|w| (1.0..=16.0).contains(w)));
    let mean = uniform.iter().sum::<f64>() / uniform.len() as f64;
    assert!((mean / 8.5 - 1.0).abs() < 0.15, "{mean} over {}", uniform.len());
    let powers = flows("powers", "{powers = [2, 16]}");
    let found: BTreeSet<u64> = powers.iter().map(|&w| w as u64).collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [2, 4, 8, 16]);
    // A larger number of flows does not change the weights of the first ones.
    let more = flows_of(
        "more",
        "kind = \"churn\", epoch = \"1ms\", flows_per_host = 60, weights = {powers = [2, 16]}",
        "{name = \"ideal\"}",
    );
    let more: Vec<f64> = more.iter().map(|r| r["weight"].parse().unwrap()).collect();
    assert_eq!(more[..200], powers[..200]);
}

#[test]
fn weights_that_make_no_sense_are_refused_with_their_place() {
    let said = |weights: &str| refusal(&format!("kind = \"permutation\", weights = {weights}"));
    for (weights, words) in [
        ("{}", ["workload.weights", "uniform"]),
        ("{uniform = [4, 1]}", ["workload.weights.uniform", "above the most"]),
        ("{uniform = [0, 1]}", ["workload.weights.uniform[0]", "above 0"]),
        ("{uniform = 3}", ["workload.weights.uniform", "not a list"]),
        ("{powers = [1, 12]}", ["workload.weights.powers[1]", "no power of two"]),
        ("{powers = [1, 2], uniform = [1, 2]}", ["workload.weights", "which weights"]),
        ("{unifrom = [1, 2]}", ["workload.weights.unifrom", "uniform"]),
    ] {
        let fault = said(weights);
        assert!(words.iter().all(|w| fault.contains(w)), "{weights}: {fault}");
    }
}

#[test]
fn a_transfer_is_split_over_connections_on_one_path() {
    let workload = "kind = \"steps\", flows = [\
        {id = \"a\", src = \"h0\", dst = \"h1\", size = 1000001, connections = 4},\
        {id = \"tiny\", src = \"h2\", dst = \"h1\", size = 2, connections = 4},\
        {id = \"b\", src = \"h1\", dst = \"h2\", size = 1000, after = [\"a\"]}]";
    let flows = flows_of("connections", workload, "{name = \"dctcp\"}");
    let ids: Vec<_> = flows.iter().map(|r| r["flow_id"].as_str()).collect();
    assert_eq!(ids, ["a", "a#1", "a#2", "a#3", "tiny", "tiny#1", "b"]);
    let sizes: Vec<_> = flows.iter().map(|r| num(r, "size_bytes")).collect();
    assert_eq!(sizes, [250_001, 250_000, 250_000, 250_000, 1, 1, 1000]);
    let last = flows[..4].iter().map(|r| span(r).1).max().unwrap();
    assert_eq!(span(&flows[6]).0, last + 1000, "what waits for a transfer waits for all its connections");
}

#[test]
fn connections_take_the_same_path_and_workloads_of_every_kind_have_them() {
    let wide = "network = {kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 2}\n\
                workload = {kind = \"permutation\", one_way = true, connections = 8}\nscheme = [{name = \"ideal\"}]\n\
                [run]\nduration = \"1ms\"\n";
    let dir = Scratch::new("same-path");
    assert_eq!(run_in(&dir.0, wide).unwrap().len(), 2 * 8);
    let loads = rows(&dir.0.join("out"), "link");
    let used = loads.iter().filter(|r| r["link"].starts_with("leaf0->spine") && num(r, "data_bytes") > 0).count();
    assert!(used <= 2, "two transfers have two paths, not {used}");
    let poisson = |keys: &str| {
        let workload = format!("kind = \"poisson\", load = 0.5, sizes = \"fixed\", size = \"10kB\"{keys}");
        flows_of("poisson-connections", &workload, "{name = \"ideal\"}")
    };
    let (one, four) = (poisson(""), poisson(", connections = 4"));
    assert_eq!(one.len() * 4, four.len());
    let bytes = |flows: &Rows| flows.iter().map(|r| num(r, "size_bytes")).sum::<u64>();
    assert_eq!(bytes(&one), bytes(&four), "the size is split");
    let fault = refusal("kind = \"permutation\", connections = 0");
    assert!(fault.contains("workload.connections"), "{fault}");
    let fault = refusal("kind = \"steps\", flows = [{src = \"h0\", dst = \"h1\", connections = 1000}]");
    assert!(fault.contains("workload.flows[0].connections"), "{fault}");
}
