//! Jobs: transfers and computations that depend on each other, and weight policies.

use crate::common::{Scratch, rows};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use subak_jobs::policies::NAMES;
use subak_lab::{RunOptions, Spec, run, summary};

type Rows = Vec<BTreeMap<String, String>>;

/// Runs the spec `text`; returns the rows of jobs, of flows and of weights.
fn results(name: &str, text: &str) -> [Rows; 3] {
    let spec = Spec::from_toml(text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    ["job", "flow", "weight"].map(|kind| rows(&dir.0, kind))
}

fn refusal(text: &str) -> String {
    match Spec::from_toml(text).and_then(|spec| spec.validate()) {
        Ok(_) => panic!("it was taken"),
        Err(fault) => fault.to_string(),
    }
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// Figure 6 of the Soze paper at a thousandth of its sizes: f1 and f4 share a link, f2 and f3 depend on f1.
const CRITICAL: &str = r#"
[network]
kind = "star"
hosts = 4
rate = "4.25Gbps"

[workload]
kind = "jobs"
policy = ["even", "critical-path"]

[[workload.jobs]]
id = "job"
budget = 2
flows = [
  {id = "f1", src = "h0", dst = "h2", size = "20MB"},
  {id = "f2", src = "h2", dst = "h3", size = "10MB", after = ["f1"]},
  {id = "f3", src = "h3", dst = "h0", size = "10MB", after = ["f2"]},
  {id = "f4", src = "h1", dst = "h2", size = "20MB"},
]

[[scheme]]
name = "ideal"
[[scheme]]
name = "soze-virtual"
[[scheme]]
name = "soze-virtual"
backend = "fluid"

[run]
duration = "200ms"
"#;

#[test]
fn the_critical_path_first_in_the_fluid_and_in_packets() {
    let [jobs, _, weights] = results("critical", CRITICAL);
    let took = |scheme: &str, policy: &str| {
        let row = jobs.iter().find(|r| r["scheme"] == scheme && r["workload.policy"] == policy).unwrap();
        number(row, "fct_ns") / 1e6
    };
    // Expected times in ms, from the payload's fraction of the rate: first with equal weights, then with f1 at two
    // thirds of the link.
    let byte_ms = 8e-9 / 4.25 / (1446.0 / 1500.0) * 1e3;
    let fair = 60e6 * byte_ms;
    let first = 50e6 * byte_ms;
    assert!((took("ideal", "even") / fair - 1.0).abs() < 1e-3, "{}", took("ideal", "even"));
    assert!((took("ideal", "critical-path") / first - 1.0).abs() < 1e-3, "{}", took("ideal", "critical-path"));
    for policy in ["even", "critical-path"] {
        let ratio = took("soze-virtual", policy) / took("soze-virtual fluid", policy);
        assert!((0.95..1.05).contains(&ratio), "{policy}: packets take {ratio} of the fluid");
    }
    let of_f1: Vec<f64> = weights
        .iter()
        .filter(|r| r["flow_id"] == "job/f1" && r["scheme"] == "ideal" && r["workload.policy"] == "critical-path")
        .map(|r| number(r, "weight"))
        .collect();
    assert!((of_f1[0] - 4.0 / 3.0).abs() < 1e-12 && *of_f1.last().unwrap() == 0.0, "{of_f1:?}");
}

/// The summary includes each job. An unfinished job counts with the time since its start.
#[test]
fn a_summary_has_the_times_of_jobs() {
    let text = CRITICAL.replace("duration = \"200ms\"", "duration = \"105ms\"\ndrain = \"0s\"");
    let spec = Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let dir = Scratch::new("job-times");
    let cancel = AtomicBool::new(false);
    run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    let summary = summary(&dir.0).unwrap();
    for row in summary.rows.iter().filter(|row| row.scheme == "ideal") {
        let value = |name: &str| row.metrics.iter().find(|m| m.0 == name).unwrap_or_else(|| panic!("{name}")).1.mean;
        // The job takes 117 ms with equal weights, and 98 ms with priority for the critical path.
        let ends = row.axes["workload.policy"] == "critical-path";
        assert_eq!((value("jobs"), value("jobs_completed")), (1.0, f64::from(u8::from(ends))));
        assert_eq!(value("jobs_unfinished"), f64::from(u8::from(!ends)));
        let took_ms = value("job_time_mean_ns") / 1e6;
        assert!(if ends { (97.0..99.0).contains(&took_ms) } else { took_ms >= 105.0 }, "{took_ms}");
        assert_eq!(row.jobs.len(), 1);
        assert_eq!(row.jobs[0].id, "job");
        assert!(row.jobs[0].metrics.iter().any(|m| m.0 == "job_time_mean_ns" && m.1.mean / 1e6 == took_ms));
    }
}

/// Tasks on hosts, with computations between transfers and one transfer within a host.
const TASKS: &str = r#"
[network]
kind = "star"
hosts = 4
rate = "10Gbps"

[workload]
kind = "jobs"
[[workload.jobs]]
id = "job"
start = "1ms"
tasks = [
  {id = "scan", host = "h0", time = "2ms"},
  {id = "other", host = "h1", time = "5ms"},
  {id = "join", host = "h2", time = "3ms"},
  {id = "same", host = "h2", time = "1ms"},
]
flows = [
  {id = "a", src = "scan", dst = "join", size = "1MB"},
  {id = "b", src = "other", dst = "join", size = "1MB"},
  {id = "c", src = "join", dst = "same", size = "1GB"},
  {id = "d", src = "same", dst = "h3", size = "1MB", start = "500us"},
]

[[scheme]]
name = "ideal"

[run]
duration = "1s"
"#;

#[test]
fn computations_take_their_time_and_transfers_within_a_host_none() {
    let [jobs, flows, _] = results("tasks", TASKS);
    let one = |id: &str| {
        let row = flows.iter().find(|r| r["flow_id"] == id).unwrap();
        (number(row, "start_ns"), number(row, "start_ns") + number(row, "fct_ns"))
    };
    assert_eq!(flows.len(), 3);
    assert_eq!((one("job/a").0, one("job/b").0), (3e6, 6e6));
    // Once both transfers have arrived, `join` computes, then `same`.
    assert_eq!(one("job/d").0, one("job/b").1 + 4.5e6);
    assert_eq!(number(&jobs[0], "fct_ns"), one("job/d").1 - 1e6);
    let least = number(&jobs[0], "ideal_fct_ns");
    assert!(least <= number(&jobs[0], "fct_ns") && least > 10.6e6, "{least}");
}

#[test]
fn a_job_that_starts_late_is_not_looked_at_before_it_has_progress() {
    // `a` starts at 3 ms, `b` at 6 ms.
    let text = TASKS.replace("kind = \"jobs\"", "kind = \"jobs\"\npolicy = \"constant-sum\"\nevery = \"1ms\"");
    let text = text.replace("size = \"1MB\"},\n  {id = \"b\"", "size = \"90MB\"},\n  {id = \"b\"");
    let [_, _, weights] = results("late", &text);
    let of_b: Vec<(f64, f64)> = weights
        .iter()
        .filter(|r| r["flow_id"] == "job/b")
        .map(|r| (number(r, "time_ns"), number(r, "weight")))
        .collect();
    // When `b` starts, the weights are computed from the remaining bytes of each transfer at the last sample.
    let left_of_a = 90e6 - 3e-3 * 1e10 / 8.0 * 1446.0 / 1500.0;
    assert_eq!(of_b[0].0, 6e6);
    assert!((of_b[0].1 / (2.0 * 1e6 / (1e6 + left_of_a)) - 1.0).abs() < 0.05, "{of_b:?}");
}

#[test]
fn the_queries_of_tpch_run_to_their_end() {
    let text = r#"
        [network]
        kind = "star"
        hosts = 16
        rate = "100Gbps"
        [workload]
        kind = "jobs"
        jobs = "tpch"
        policy = "longest-distance"
        compute = 0
        spacing = "10s"
        [[scheme]]
        name = "ideal"
        [run]
        duration = "220s"
    "#;
    let [jobs, ..] = results("tpch", text);
    assert_eq!(jobs.len(), 22);
    for job in jobs {
        // A transfer starts a link delay after its last dependency has ended, so that no job is as fast as its
        // critical path.
        assert!(number(&job, "slowdown") >= 1.0, "{job:?}");
    }
}

#[test]
fn jobs_that_make_no_sense_are_refused_with_place_and_mend() {
    let bad = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refusal(&text.replacen(from, to, 1))
    };
    let says = |fault: &str, words: &[&str]| {
        for word in words {
            assert!(fault.contains(word), "{word} in: {fault}");
        }
    };
    let first = r#"dst = "h2", size = "20MB"}"#;
    says(&bad(CRITICAL, first, r#"dst = "h2", size = "20MB", after = ["f3"]}"#), &["circle", "jobs[0].flows[", "f1"]);
    says(&bad(CRITICAL, r#"after = ["f2"]"#, r#"after = ["f9"]"#), &["jobs[0].flows[2].after[0]", "f9"]);
    says(&bad(CRITICAL, r#"src = "h3""#, r#"src = "h33""#), &["jobs[0].flows[2].src", "h33"]);
    says(&bad(CRITICAL, r#"src = "h3", dst = "h0""#, r#"src = "h3", dst = "h3""#), &["flows[2].dst", "same"]);
    says(&bad(CRITICAL, "budget = 2", "budget = 0"), &["jobs[0].budget", "above 0"]);
    says(&bad(CRITICAL, "budget = 2", "budget = 2\nstart = \"3s\""), &["jobs[0].start", "after the end"]);
    says(&bad(CRITICAL, r#", "critical-path"]"#, r#", "critical"]"#), &["workload.policy", "critical-path"]);
    says(&bad(CRITICAL, r#"id = "f4""#, r#"id = "f1""#), &["flows[3].id", "f1"]);
    says(&bad(CRITICAL, r#"size = "20MB""#, r#"size = 0"#), &["flows[0].size"]);
    says(&bad(TASKS, r#"time = "2ms""#, r#"time = "-2ms""#), &["tasks[0].time"]);
    says(&bad(TASKS, r#"host = "h1""#, r#"host = "h7""#), &["tasks[1].host", "h7"]);
    says(&bad(TASKS, r#"id = "same", host"#, r#"id = "a/b", host"#), &["tasks[3].id", "slash"]);
    says(&bad(TASKS, r#"time = "5ms""#, r#"time = "5ms", after = ["c"]"#), &["circle"]);
}

#[test]
fn a_callable_that_is_not_given_is_refused() {
    let text = CRITICAL.replace(r#"["even", "critical-path"]"#, r#"{callable = "mine"}"#);
    let spec = Spec::from_toml(&text).unwrap().validate().unwrap();
    let cancel = AtomicBool::new(false);
    let options = RunOptions::alone(&cancel);
    let fault = run(&spec, &Scratch::new("callable").0, &options).unwrap_err().to_string();
    assert!(fault.contains("mine") && fault.contains("policies="), "{fault}");
}

/// A job of random transfers and tasks, each dependent on some of the previous ones.
fn random_job(k: usize, pieces: &[(u64, usize, usize, bool)], policy: &str, budget: f64) -> String {
    let mut text =
        format!("[[workload.jobs]]\nid = \"j{k}\"\nbudget = {budget}\npolicy = \"{policy}\"\nevery = \"1ms\"\n");
    let (mut flows, mut tasks) = (String::new(), String::new());
    for (i, &(size, a, b, waits)) in pieces.iter().enumerate() {
        let after = if waits && i > 0 { format!(", after = [\"p{}\"]", a % i) } else { String::new() };
        if i > 0 && size % 4 == 0 {
            let _ = writeln!(tasks, "{{id = \"p{i}\", time = \"{}us\"{after}}},", size % 3000);
        } else {
            let (src, dst) = (a % 4, (a + 1 + b % 3) % 4);
            let _ = writeln!(flows, "{{id = \"p{i}\", src = \"h{src}\", dst = \"h{dst}\", size = {size}{after}}},");
        }
    }
    let _ = write!(text, "flows = [{flows}]\ntasks = [{tasks}]\n");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Every job ends, none earlier than its critical path at line rate. Weights stay within the budget at all times.
    #[test]
    fn jobs_end_and_keep_their_budgets(
        jobs in prop::collection::vec(
            (prop::collection::vec((1u64..10_000_000, 0usize..20, 0usize..20, any::<bool>()), 1..10), 0usize..NAMES.len(),
             0.5..8.0f64),
            1..4,
        ),
        seed in 0u64..1000,
    ) {
        let jobs: Vec<String> =
            jobs.iter().enumerate().map(|(k, (pieces, p, b))| random_job(k, pieces, NAMES[*p], *b)).collect();
        let text = format!(
            "[network]\nkind = \"star\"\nhosts = 4\nrate = \"10Gbps\"\n[workload]\nkind = \"jobs\"\n{}\n\
             [[scheme]]\nname = \"ideal\"\n[run]\nduration = \"5s\"\nseeds = [{seed}]\n",
            jobs.concat()
        );
        let [jobs, _, weights] = results("random-jobs", &text);
        for job in &jobs {
            prop_assert!(number(job, "fct_ns") >= number(job, "ideal_fct_ns"), "{job:?}");
        }
        let mut now: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
        for (i, row) in weights.iter().enumerate() {
            let job = row["flow_id"].split('/').next().unwrap();
            let of = now.entry(job).or_default();
            match number(row, "weight") {
                0.0 => of.remove(row["flow_id"].as_str()),
                weight => of.insert(&row["flow_id"], weight),
            };
            // Weights that are set at the same time are checked together.
            if weights.get(i + 1).is_none_or(|next| next["time_ns"] != row["time_ns"]) {
                for (job, of) in &now {
                    let budget = number(jobs.iter().find(|r| r["flow_id"] == *job).unwrap(), "weight");
                    prop_assert!(of.values().sum::<f64>() <= budget * (1.0 + 1e-9), "{job}: {of:?}");
                    prop_assert!(of.values().all(|w| w.is_finite() && *w > 0.0), "{job}: {of:?}");
                }
            }
        }
        prop_assert!(now.values().all(BTreeMap::is_empty));
    }
}
