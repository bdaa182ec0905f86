//! Every experiment at its smoke size, each with its verdict.

use subak_rounds::experiments::{Scale, names, run};

fn passes(name: &str, runs: Option<usize>) {
    let mut seen = (0, 0);
    let mut progress = |done, of| seen = (done, of);
    let answer = run(name, Scale::Smoke, runs, 1, &mut progress).unwrap();
    let checks = answer["checks"].as_array().unwrap();
    assert!(!checks.is_empty());
    for check in checks {
        assert!(check["pass"] == true || check["must_show"] == "", "{name}: {check}");
    }
    assert_eq!(seen.0, seen.1, "{name}: progress ends where it said it would");
    for table in answer["tables"].as_object().unwrap().values() {
        let columns = table["columns"].as_array().unwrap().len();
        assert!(table["rows"].as_array().unwrap().iter().all(|row| row.as_array().unwrap().len() == columns));
    }
}

#[test]
fn worked_examples() {
    for name in ["perc-fig1.3", "perc-fig2.3", "perc-fig3.2", "perc-fig3.4", "perc-wfk"] {
        passes(name, None);
    }
}

#[test]
fn random_setups() {
    passes("perc-fig3.5", Some(24));
    passes("perc-rounds", Some(20));
}

#[test]
fn losses() {
    passes("perc-drops", Some(4));
}

#[test]
fn approximate_division() {
    passes("perc-fig4.5", Some(3));
}

#[test]
fn xwi_over_the_ideal_fabric() {
    passes("numfabric-xwi-ideal", Some(4));
}

#[test]
fn unknown_names_are_refused_and_the_known_ones_listed() {
    let fault = run("perc-fig9", Scale::Smoke, None, 1, &mut |_, _| {}).unwrap_err();
    assert!(names().iter().all(|name| fault.mend.contains(name)));
}
