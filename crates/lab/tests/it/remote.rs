//! Trials from another machine: valid results are stored, and invalid ones are reported.

use crate::common::Scratch;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use subak_core::InputError;
use subak_lab::{Error, RemoteTrial, RemoteWorkers, RunOptions, RunOutcome, Spec, ValidSpec, run, run_trial};

const SPEC: &str = r#"
network = {kind = "star", hosts = 3}
workload = {kind = "incast", senders = 2, size = ["10kB", "20kB"]}
scheme = [{name = "dctcp"}]
measure = {packets = true}
run = {duration = "1ms", seeds = 2}
"#;

/// Stands for another machine: runs trials, last first, and passes each result through `change`.
struct Other<'a> {
    spec: &'a ValidSpec,
    dir: &'a Path,
    change: &'a (dyn Fn(RemoteTrial) -> Vec<Option<RemoteTrial>> + Sync),
}

impl RemoteWorkers for Other<'_> {
    fn run(&self, trials: &[usize], take: &mut dyn FnMut(Option<RemoteTrial>) -> bool) -> Result<(), InputError> {
        let cancel = AtomicBool::new(false);
        for &trial in trials.iter().rev() {
            let came = run_trial(self.spec, trial, &self.dir.join("other"), &cancel).unwrap().unwrap();
            if !(self.change)(came).into_iter().all(&mut *take) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn valid() -> ValidSpec {
    Spec::from_toml(SPEC).unwrap().validate().unwrap()
}

fn go(
    dir: &Path,
    change: &(dyn Fn(RemoteTrial) -> Vec<Option<RemoteTrial>> + Sync),
    cancel: &AtomicBool,
) -> Result<RunOutcome, Error> {
    let spec = valid();
    let other = Other { spec: &spec, dir, change };
    let remote: Option<&dyn RemoteWorkers> = Some(&other);
    let options = RunOptions { remote, ..RunOptions::alone(cancel) };
    run(&spec, &dir.join("out"), &options)
}

fn here(dir: &Path) {
    let cancel = AtomicBool::new(false);
    let options = RunOptions { jobs: 2, ..RunOptions::alone(&cancel) };
    run(&valid(), &dir.join("here"), &options).unwrap();
}

#[test]
fn the_bytes_are_those_of_a_run_here_in_whatever_order_and_however_often_they_come() {
    let dir = Scratch::new("elsewhere");
    let twice = |came: RemoteTrial| vec![None, Some(came.clone()), Some(came)];
    let outcome = go(&dir.0, &twice, &AtomicBool::new(false)).unwrap();
    assert_eq!((outcome.ran, outcome.complete, outcome.merged, outcome.failed.len()), (4, 4, true, 0));
    here(&dir.0);
    for name in ["results.parquet", "trials/0.parquet", "trials/3.parquet", "trials/3.packets.parquet"] {
        let read = |run: &str| std::fs::read(dir.0.join(run).join(name)).unwrap();
        assert!(read("out") == read("here"), "{name}");
    }
}

#[test]
fn what_is_no_table_of_the_trial_is_told_and_not_kept() {
    let dir = Scratch::new("foreign");
    let spoil = |mut came: RemoteTrial| {
        let trial = came.trial;
        if let Ok(files) = &mut came.files {
            match trial {
                0 => files.packets = None,
                1 => files.table.truncate(files.table.len() / 2),
                2 => files.packets = Some(b"PAR1".to_vec()),
                // A result that claims to be of another trial.
                _ => came.trial = 0,
            }
        }
        vec![Some(came)]
    };
    let Err(Error::InputError(fault)) = go(&dir.0, &spoil, &AtomicBool::new(false)) else {
        panic!("trial 3 never came")
    };
    assert!(fault.what.contains("trial 3 was sent, and nothing came back"), "{fault}");
    let trials = std::fs::read_dir(dir.0.join("out/trials")).unwrap();
    let mut names: Vec<_> = trials.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["0.error.json", "1.error.json", "2.error.json"]);
}

#[test]
fn why_a_trial_failed_elsewhere_is_kept_and_it_is_tried_again() {
    let dir = Scratch::new("unlucky");
    let fail = |came: RemoteTrial| {
        let files = if came.trial == 2 { Err("out of luck".to_string()) } else { came.files };
        vec![Some(RemoteTrial { files, ..came })]
    };
    let outcome = go(&dir.0, &fail, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome.failed.into_iter().collect::<Vec<_>>(), [(2, "out of luck".to_string())]);
    let outcome = go(&dir.0, &|came| vec![Some(came)], &AtomicBool::new(false)).unwrap();
    assert_eq!((outcome.ran, outcome.merged), (1, true));
}

#[test]
fn who_is_told_to_stop_keeps_what_came() {
    let dir = Scratch::new("stopped");
    let cancel = AtomicBool::new(false);
    let stop = |came: RemoteTrial| {
        cancel.store(came.trial == 2, Ordering::Relaxed);
        vec![Some(came)]
    };
    let outcome = go(&dir.0, &stop, &cancel).unwrap();
    assert_eq!((outcome.ran, outcome.complete, outcome.merged, outcome.cancelled), (2, 2, false, true));
}

#[test]
fn a_spec_goes_with_its_files_and_says_which_is_lacking() {
    let dir = Scratch::new("brought");
    std::fs::create_dir_all(&dir.0).unwrap();
    let sizes = dir.0.join("sizes.csv");
    std::fs::write(&sizes, "size_bytes,probability\n1000,1\n").unwrap();
    let text = SPEC.replace(
        r#"kind = "incast", senders = 2, size = ["10kB", "20kB"]"#,
        r#"kind = "poisson", load = 0.5, sizes = {file = "sizes.csv"}"#,
    );
    std::fs::write(dir.0.join("spec.toml"), &text).unwrap();
    let spec = Spec::load(&dir.0.join("spec.toml")).unwrap().validate().unwrap();
    let files = spec.files().unwrap();
    let tree = || Spec::from_toml(&text).unwrap();
    assert_eq!(tree().with_files(files).validate().unwrap().hash, spec.hash);
    let fault = tree().with_files([].into()).validate().unwrap_err();
    assert_eq!((fault.file.as_deref(), fault.what.as_str()), (Some("sizes.csv"), "did not come with the spec"));
    std::fs::write(&sizes, "size_bytes,probability\n2000,1\n").unwrap();
    let fault = spec.files().unwrap_err();
    assert!(fault.what.contains("has changed") && fault.file == Some(sizes.display().to_string()), "{fault}");
}
