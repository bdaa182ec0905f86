//! Networks that are not connected: flows without a path have rows with 0 bytes in the results, and a warning has
//! their number.

use crate::common::{ran, rows};
use subak_lab::{Spec, ValidSpec};

/// Two pairs of hosts, and a fifth host whose link has failed.
const ISLANDS: &str = r#"
network = {nodes = [
    {id = "a", kind = "host"}, {id = "b", kind = "host"}, {id = "c", kind = "host"}, {id = "d", kind = "host"},
    {id = "e", kind = "host"}, {id = "s", kind = "switch"}, {id = "t", kind = "switch"}],
  links = [{source = "a", target = "s"}, {source = "b", target = "s"}, {source = "c", target = "t"},
    {source = "d", target = "t"}, {source = "e", target = "t", capacity = 0}],
  capacity = "1Gbps", delay = "1us"}
"#;

fn spec(workload: &str, scheme: &str) -> Result<ValidSpec, String> {
    let text =
        format!("{ISLANDS}workload = {workload}\nscheme = [{{name = \"{scheme}\"}}]\nrun = {{duration = \"20ms\"}}\n");
    Spec::from_toml(&text).unwrap().validate().map_err(|e| e.to_string())
}

#[test]
fn flows_without_a_path_are_there_and_counted() {
    let steps = r#"{kind = "steps", flows = [{id = "no", src = "a", dst = "c", size = "10kB"},
        {id = "yes", src = "a", dst = "b", size = "10kB"}, {id = "down", path = ["c->t", "t->e"]},
        {id = "off", src = "d", dst = "e"}]}"#;
    for scheme in ["dctcp", "ideal"] {
        let (dir, outcome) = ran(&format!("islands-{scheme}"), &spec(steps, scheme).unwrap());
        let flows = rows(&dir.0, "flow");
        let ids: Vec<_> = flows.iter().map(|row| (row["flow_id"].as_str(), row["fct_ns"].is_empty())).collect();
        assert_eq!(ids, [("yes", false), ("no", true), ("down", true), ("off", true)]);
        assert!(flows[1..].iter().all(|row| row["received_bytes"] == "0" && row["path"].is_empty()), "{flows:?}");
        let said: Vec<_> = outcome.warnings.iter().map(|w| w.text.as_str()).collect();
        assert!(said.iter().any(|text| text.contains("3 of 4 flows") && text.contains("no path")), "{said:?}");
    }
}

#[test]
fn random_workloads_run_where_some_hosts_are_connected() {
    for workload in [
        r#"{kind = "poisson", sizes = "web-search", load = 0.6}"#,
        r#"{kind = "permutation"}"#,
        r#"{kind = "permutation", size = "10kB", subflows = 2}"#,
        r#"{kind = "incast", senders = 4, receiver = "b", size = "10kB"}"#,
    ] {
        let (dir, outcome) = ran("islands-random", &spec(workload, "dctcp").unwrap());
        let (with, without): (Vec<_>, Vec<_>) =
            rows(&dir.0, "flow").into_iter().partition(|row| !row["path"].is_empty());
        assert!(!with.is_empty() && !without.is_empty(), "{workload}");
        let said = format!("{} of {} flows", without.len(), with.len() + without.len());
        assert!(outcome.warnings.iter().any(|w| w.text.contains(&said)), "{workload}: {said} {:?}", outcome.warnings);
    }
}

#[test]
fn where_no_flow_has_a_path_the_run_is_refused() {
    let none = r#"{kind = "steps", flows = [{src = "a", dst = "c", size = "10kB"}, {src = "e", dst = "c"}]}"#;
    let fault = spec(none, "dctcp").unwrap_err();
    assert!(fault.contains("none of the 2 flows has a path"), "{fault}");
    // With dependencies, a flow could wait forever for a flow without a path, so that these are errors.
    let waits = r#"{kind = "steps", flows = [{id = "x", src = "a", dst = "c", size = "10kB"},
        {src = "a", dst = "b", size = "10kB", after = ["x"]}]}"#;
    assert!(spec(waits, "dctcp").unwrap_err().contains("no path leads"));
    assert!(spec(r#"{kind = "churn", flows_per_host = 1, replace = 0.5, epoch = "1ms"}"#, "dctcp").is_err());
}
