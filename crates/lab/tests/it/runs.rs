//! Runs into a directory: the results are the same bytes on any number of threads and after an interruption.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use subak_lab::{Error, Progress, RunOptions, RunOutcome, Spec, ValidSpec, diff, run, summary};

use crate::common::{Scratch, rows};

const SPEC: &str = r#"
schema = 1
name = "small"

[network]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 3

[workload]
kind = "poisson"
sizes = "web-search"
load = [0.3, 0.6]

[[scheme]]
name = "ideal"

[[scheme]]
name = "dctcp"

[measure]
rates = "500us"
queues = "500us"

[run]
duration = "3ms"
seeds = 2
"#;

fn valid(text: &str) -> ValidSpec {
    Spec::from_toml(text).unwrap().validate().unwrap()
}

fn go(spec: &ValidSpec, dir: &Path, jobs: usize, only: Option<usize>) -> Result<RunOutcome, Error> {
    let cancel = AtomicBool::new(false);
    run(spec, dir, &RunOptions { jobs, only, ..RunOptions::alone(&cancel) })
}

fn results(dir: &Path) -> Vec<u8> {
    std::fs::read(dir.join("results.parquet")).unwrap()
}

#[test]
fn the_same_bytes_on_one_and_on_two_threads_and_trial_by_trial() {
    let spec = valid(SPEC);
    let (one, two, trials) = (Scratch::new("one"), Scratch::new("two"), Scratch::new("trials"));
    let outcome = go(&spec, &one.0, 1, None).unwrap();
    assert_eq!((outcome.trials, outcome.complete, outcome.ran, outcome.merged), (8, 8, 8, true));
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    go(&spec, &two.0, 2, None).unwrap();
    for trial in (0..8).rev() {
        let outcome = go(&spec, &trials.0, 1, Some(trial)).unwrap();
        assert_eq!((outcome.ran, outcome.merged), (1, trial == 0));
    }
    assert!(results(&one.0) == results(&two.0) && results(&one.0) == results(&trials.0));
    let again = go(&spec, &one.0, 2, None).unwrap();
    assert_eq!((again.ran, again.merged), (0, true));
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let spec = valid(SPEC);
    let (whole, cut) = (Scratch::new("whole"), Scratch::new("cut"));
    go(&spec, &whole.0, 2, None).unwrap();
    let (cancel, told) = (AtomicBool::new(false), AtomicUsize::new(0));
    let progress = |p: Progress| {
        told.fetch_add(1, Ordering::Relaxed);
        // Cancels the run in the fourth trial.
        if p.done == 3 && p.fraction < 0.99 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let stopped = run(&spec, &cut.0, &RunOptions { progress: &progress, ..RunOptions::alone(&cancel) }).unwrap();
    assert!(stopped.cancelled && !stopped.merged && stopped.complete == 3, "{stopped:?}");
    assert!(told.load(Ordering::Relaxed) > 3 && !cut.0.join("results.parquet").exists());
    // Files as left by a killed process: a truncated table under its final name, another under a temporary name.
    let table = std::fs::read(cut.0.join("trials/0.parquet")).unwrap();
    std::fs::write(cut.0.join("trials/1.parquet"), &table[..table.len() / 2]).unwrap();
    std::fs::write(cut.0.join("trials/.5.parquet.1.part"), &table[..100]).unwrap();
    let resumed = go(&spec, &cut.0, 2, None).unwrap();
    assert_eq!((resumed.complete, resumed.ran), (8, 6));
    assert!(results(&whole.0) == results(&cut.0));
}

#[test]
fn a_directory_of_another_spec_is_left_alone() {
    let dir = Scratch::new("other");
    go(&valid(SPEC), &dir.0, 2, Some(0)).unwrap();
    let other = valid(&SPEC.replace("0.3, 0.6]", "0.2, 0.5]"));
    let Err(Error::InputError(fault)) = go(&other, &dir.0, 1, None) else { panic!("it ran") };
    assert!(fault.what.contains("another spec") && !fault.hint.is_empty(), "{fault}");
    // Results of another build, which may produce other bytes, are refused.
    let manifest = dir.0.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace(subak_lab::BUILD, "0123456789abcdef")).unwrap();
    let Err(Error::InputError(fault)) = go(&valid(SPEC), &dir.0, 1, None) else { panic!("it ran") };
    assert!(fault.what.contains("another build") && fault.what.contains("0123456789abcdef"), "{fault}");
    assert!(fault.hint.contains("another directory"), "{fault}");
    std::fs::write(&manifest, text).unwrap();
    let foreign = Scratch::new("foreign");
    std::fs::create_dir_all(&foreign.0).unwrap();
    std::fs::write(foreign.0.join("thesis.tex"), "precious").unwrap();
    let Err(Error::InputError(fault)) = go(&other, &foreign.0, 1, None) else { panic!("it ran") };
    assert!(fault.what.contains("other files"), "{fault}");
    let Err(Error::InputError(fault)) = go(&other, &dir.0, 1, Some(99)) else { panic!("it ran") };
    assert_eq!(fault.place, "trial");
}

/// After seeds, loads and a scheme were added, completed trials are reused, and the bytes are those of a new run.
#[test]
fn a_spec_that_grows_keeps_its_trials() {
    let (grown, fresh) = (Scratch::new("grown"), Scratch::new("fresh"));
    go(&valid(SPEC), &grown.0, 2, None).unwrap();
    let wall = |dir: &Path| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(dir.join("manifest.json")).unwrap()).unwrap()
    };
    let before = wall(&grown.0)["trials"][7]["wall_s"].clone();
    let more = SPEC.replace("[0.3, 0.6]", "[0.3, 0.5, 0.6]").replace("seeds = 2", "seeds = [3, 1, 2]").replace(
        "[[scheme]]\nname = \"dctcp\"",
        "[[scheme]]\nname = \"reno\"\n\n[[scheme]]\nname = \"dctcp\"\nlabel = \"DCTCP\"",
    );
    let spec = valid(&more);
    // Only one trial is run, but the results of the other completed trials are kept.
    let outcome = go(&spec, &grown.0, 1, Some(0)).unwrap();
    assert_eq!((outcome.trials, outcome.complete, outcome.ran, outcome.merged), (27, 9, 1, false));
    assert!(!grown.0.join("results.parquet").exists());
    assert_eq!(wall(&grown.0)["trials"][26]["wall_s"], before);
    let outcome = go(&spec, &grown.0, 2, None).unwrap();
    assert_eq!((outcome.complete, outcome.ran, outcome.merged), (27, 18, true));
    go(&spec, &fresh.0, 2, None).unwrap();
    assert!(results(&grown.0) == results(&fresh.0));
    for trial in 0..27 {
        let table = |dir: &Path| std::fs::read(dir.join(format!("trials/{trial}.parquet"))).unwrap();
        assert!(table(&grown.0) == table(&fresh.0), "trial {trial}");
    }
    // The old spec again would lose trials: it is refused, and no file changes.
    let Err(Error::InputError(fault)) = go(&valid(SPEC), &grown.0, 1, None) else { panic!("it ran") };
    assert!(fault.what.contains("19 of its 27 complete trials"), "{fault}");
    assert!(results(&grown.0) == results(&fresh.0));
    assert_eq!(go(&spec, &grown.0, 1, None).unwrap().ran, 0);
}

/// A run that is killed while trials are renamed loses none of them.
#[test]
fn trials_on_their_way_are_found_again() {
    let (grown, fresh) = (Scratch::new("on-their-way"), Scratch::new("from-the-start"));
    go(&valid(SPEC), &grown.0, 2, None).unwrap();
    let spec = valid(&SPEC.replace("seeds = 2", "seeds = 3"));
    go(&spec, &fresh.0, 2, None).unwrap();
    // Trial 2 has become trial 3; its new table has a temporary name, and its old table is removed already.
    std::fs::remove_file(grown.0.join("trials/2.parquet")).unwrap();
    std::fs::copy(fresh.0.join("trials/3.parquet"), grown.0.join("trials/0a.moving.parquet")).unwrap();
    let outcome = go(&spec, &grown.0, 2, None).unwrap();
    assert_eq!((outcome.ran, outcome.merged), (4, true));
    assert!(results(&grown.0) == results(&fresh.0));
}

#[test]
fn trials_are_counted_with_seeds_innermost() {
    let spec = valid(&SPEC.replace("leaves = 2", "leaves = [2, 3]"));
    let trials = spec.trials();
    assert_eq!(trials.len(), 16);
    let of = |i: usize| {
        let c = &trials[i];
        (
            c.axes["network.leaves"].as_u64().unwrap(),
            c.axes["workload.load"].as_f64().unwrap(),
            c.scheme.name.clone(),
            c.seed,
        )
    };
    assert_eq!(of(0), (2, 0.3, "ideal".into(), 1));
    assert_eq!(of(1), (2, 0.3, "ideal".into(), 2));
    assert_eq!(of(2), (2, 0.3, "dctcp".into(), 1));
    assert_eq!(of(4), (2, 0.6, "ideal".into(), 1));
    assert_eq!(of(8), (3, 0.3, "ideal".into(), 1));
    assert!(trials.iter().all(|c| c.cost.seconds > 0.0 && c.cost.flows > 1.0));
    let distinct: BTreeSet<_> = trials.iter().map(|c| format!("{:?}", (&c.axes, &c.scheme, c.seed))).collect();
    assert_eq!(distinct.len(), 16);
}

#[test]
fn what_is_complete_is_kept_whatever_happens_to_the_rest() {
    let text = SPEC.replace("duration = \"3ms\"", "duration = \"1ms\"").replace("load = [0.3, 0.6]", "load = 0.3");
    let spec = valid(&text);
    let dir = Scratch::new("kept");
    // A directory has the name of the table of trial 2: that is an error of the results directory, not of the trial.
    go(&spec, &dir.0, 1, Some(0)).unwrap();
    std::fs::create_dir(dir.0.join("trials/2.parquet")).unwrap();
    assert!(matches!(go(&spec, &dir.0, 1, None), Err(Error::File { .. })));
    std::fs::remove_dir(dir.0.join("trials/2.parquet")).unwrap();
    // Complete trials can be read before all are complete, even if another process has overwritten the manifest with an
    // older status.
    assert_eq!(summary(&dir.0).unwrap().rows.len(), 1);
    let manifest = dir.0.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let older = text.replace("\"complete\"", "\"missing\"");
    assert_ne!(older, text);
    std::fs::write(&manifest, older).unwrap();
    assert_eq!(summary(&dir.0).unwrap().rows.len(), 1);
    assert!(go(&spec, &dir.0, 1, None).unwrap().merged);
    assert_eq!(summary(&dir.0).unwrap().rows.len(), 2);
}

#[test]
fn two_runs_are_held_against_each_other() {
    let text = SPEC.replace("load = [0.3, 0.6]", "load = 0.8").replace("seeds = 2", "seeds = 3");
    let (a, b, c) = (Scratch::new("a"), Scratch::new("b"), Scratch::new("c"));
    go(&valid(&text), &a.0, 2, None).unwrap();
    go(&valid(&text), &b.0, 1, None).unwrap();
    let same = diff(&a.0, &b.0).unwrap();
    assert!(same.identical && same.rows.len() == 2 && same.only_first.is_empty());
    assert!(same.rows.iter().flat_map(|r| &r.metrics).all(|m| m.ratio == Some(1.0) && m.distinct == Some(false)));
    go(&valid(&text.replace("name = \"dctcp\"", "name = \"reno\"")), &c.0, 2, None).unwrap();
    let other = diff(&a.0, &c.0).unwrap();
    assert!(!other.identical && other.rows.len() == 1);
    assert_eq!((other.only_first[0].scheme.as_str(), other.only_second[0].scheme.as_str()), ("dctcp", "reno"));
    let comparison = summary(&a.0).unwrap();
    let slowdown = |i: usize| comparison.rows[i].metrics.iter().find(|m| m.0 == "slowdown_mean").unwrap().1;
    assert!(slowdown(0).mean >= 1.0 && slowdown(1).mean > 1.0, "{:?} {:?}", slowdown(0), slowdown(1));
    assert!(slowdown(0).ci95.unwrap() >= 0.0 && slowdown(1).ci95.unwrap() > 0.0 && slowdown(0).seeds == 3);
    assert!(!comparison.rows[0].sizes.is_empty());
}

/// A spec with two bursts of sixteen simultaneous senders and one flow in between. The bursts are inside or outside the
/// measured time, depending on `warmup` and `duration`.
fn bursts(warmup: &str, duration: &str) -> String {
    let burst = |start: &str| {
        let flow = |h: u32| format!("{{src = \"h{h}\", dst = \"h0\", size = \"300kB\", start = \"{start}\"}}");
        (1..=16).map(flow).collect::<Vec<_>>().join(", ")
    };
    format!(
        r#"network = {{kind = "star", hosts = 20, buffer = "50kB"}}
        workload = {{kind = "steps", flows = [{}, {{src = "h18", dst = "h19", size = "30kB", start = "60ms"}}, {}]}}
        scheme = [{{name = "reno"}}]
        measure = {{queues = "100us"}}
        run = {{duration = "{duration}", warmup = "{warmup}", drain = "60ms"}}"#,
        burst("1us"),
        burst("79999us"),
    )
}

#[test]
fn what_happens_before_the_warm_up_ends_or_after_the_duration_does_not_count() {
    let (quiet, loud) = (Scratch::new("quiet"), Scratch::new("loud"));
    go(&valid(&bursts("50ms", "80ms")), &quiet.0, 1, None).unwrap();
    go(&valid(&bursts("0s", "140ms")), &loud.0, 1, None).unwrap();
    let metrics = |dir: &Path| {
        let metrics = summary(dir).unwrap().rows.remove(0).metrics;
        move |name: &str| metrics.iter().find(|m| m.0 == name).unwrap().1.mean
    };
    let (of_quiet, of_loud) = (metrics(&quiet.0), metrics(&loud.0));
    for name in ["dropped_packets", "retransmissions"] {
        assert!(of_quiet(name) == 0.0 && of_loud(name) > 100.0, "{name}: {} {}", of_quiet(name), of_loud(name));
    }
    for name in ["wait_mean_ns", "wait_p99_ns", "queue_mean_bytes"] {
        assert!(of_quiet(name) < of_loud(name) / 2.0, "{name}: {} {}", of_quiet(name), of_loud(name));
    }
    let peak = |dir: &Path| {
        let peaks = rows(dir, "link").into_iter().map(|r| r["peak_queued_bytes"].parse::<u64>().unwrap());
        peaks.max().unwrap()
    };
    // In the run without bursts in the measured time, the second burst begins just before the end of the duration.
    assert!(peak(&loud.0) >= 48_000, "{}", peak(&loud.0));
    let summed: u64 = rows(&quiet.0, "wait").iter().map(|r| r["packets"].parse::<u64>().unwrap()).sum();
    assert_eq!(summed, 30_000_u64.div_ceil(1446));
}

#[test]
fn links_are_never_busier_than_they_can_be() {
    // The measured time is that of 1.3 packets, and a packet is in transmission at its start and its end.
    let text = r#"network = {kind = "star", hosts = 2, rate = "10Gbps"}
        workload = {kind = "steps", flows = [{src = "h0", dst = "h1", size = "1MB"}]}
        policy = {kind = "alpha-fair", alpha = 1}
        scheme = [{name = "numfabric"}]
        run = {duration = "20.6us", warmup = "19us"}"#;
    let dir = Scratch::new("busy");
    go(&valid(text), &dir.0, 1, None).unwrap();
    let first = rows(&dir.0, "link").into_iter().find(|r| r["link"] == "h0->switch0").unwrap();
    let (bytes, share): (u64, f64) = (first["data_bytes"].parse().unwrap(), first["utilization"].parse().unwrap());
    assert!((1900..=2003).contains(&bytes) && share <= 1.0, "{bytes} bytes in 1601 ns, {share}");
}

#[test]
fn a_long_drain_with_nothing_to_do_ends_at_once() {
    let text = r#"network = {kind = "star", hosts = 2}
        workload = {kind = "steps", flows = [{src = "h0", dst = "h1", size = "1MB"}]}
        scheme = [{name = "ideal"}]
        fault = [{kind = "down", link = "h0->switch0"}]
        run = {duration = "1us", drain = "2h"}"#;
    let dir = Scratch::new("drain");
    assert!(go(&valid(text), &dir.0, 1, None).unwrap().merged);
    assert_eq!(rows(&dir.0, "summary")[0]["time_ns"], "7200000001000");
}

#[test]
fn a_failed_trial_is_reported_and_tried_again() {
    let spec = valid(SPEC);
    let dir = Scratch::new("failed");
    go(&spec, &dir.0, 1, Some(0)).unwrap();
    std::fs::write(dir.0.join("trials/2.error.json"), r#"{"trial": 2, "error": "out of luck"}"#).unwrap();
    let outcome = go(&spec, &dir.0, 1, Some(1)).unwrap();
    assert_eq!(outcome.failed.into_iter().collect::<Vec<_>>(), [(2, "out of luck".to_string())]);
    let manifest = std::fs::read_to_string(dir.0.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let status = |c: usize| manifest["trials"][c]["status"].as_str().unwrap();
    assert_eq!([status(0), status(1), status(2), status(3)], ["complete", "complete", "failed", "missing"]);
    assert_eq!(manifest["trials"][2]["error"], "out of luck");
    assert!(
        manifest["trials"][0]["wall_s"].as_f64().unwrap() > 0.0
            && manifest["spec_sha256"].as_str().unwrap().len() == 64
    );
    let outcome = go(&spec, &dir.0, 2, None).unwrap();
    assert!(outcome.merged && outcome.failed.is_empty() && !dir.0.join("trials/2.error.json").exists());
}
