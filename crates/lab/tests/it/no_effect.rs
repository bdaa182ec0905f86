//! Warnings about keys that have no effect.

use crate::common::ran;
use subak_lab::Spec;

/// The warnings of kind `no-effect` of a spec of two senders, with `keys` beside the defaults.
fn unused(keys: &[&str]) -> Vec<(Option<String>, String)> {
    let has = |section: &str| keys.iter().any(|key| key.starts_with(section));
    let given = [
        ("network", "network = {kind = \"star\", hosts = 4}"),
        ("workload", "workload = {kind = \"incast\", senders = 2, size = \"10KB\"}"),
        ("scheme", "scheme = [{name = \"dctcp\"}]"),
        ("run", "run = {duration = \"1ms\"}"),
    ];
    let text: Vec<&str> = keys.iter().copied().chain(given.iter().filter(|g| !has(g.0)).map(|g| g.1)).collect();
    let spec = Spec::from_toml(&text.join("\n")).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let (_dir, outcome) = ran("unused", &spec);
    outcome.warnings.into_iter().filter(|w| w.kind == "no-effect").map(|w| (w.scheme, w.text)).collect()
}

/// Each case is a key without effect, the start of its warning, and a change under which the key has an effect.
#[test]
fn keys_without_effect_are_said() {
    let leaf_spine = "network = {kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2";
    let of_steps = |keys: &str| {
        format!("workload = {{kind = \"steps\", flows = [{{src = \"h0\", dst = \"h2\", size = \"10KB\"{keys}}}]}}")
    };
    let (four, two) = (of_steps(", subflows = 4"), of_steps(", subflows = 2"));
    let (late, soon) = (of_steps(", weights = [[\"2ms\", 2]]"), of_steps(", weights = [[\"2us\", 2]]"));
    let own_node = format!("{leaf_spine}, controller_rate = \"10Gbps\"}}");
    let bare = format!("{leaf_spine}}}");
    let scheme = |name: &str, params: &str| format!("scheme = [{{name = \"{name}\", params = {{{params}}}}}]");
    let hpcc = |params: &str| scheme("hpcc", params);
    let (flowtune, alpha_1) = (scheme("flowtune", ""), "policy = {kind = \"alpha-fair\", alpha = 1}");
    let (alpha_0, ideal) = ("policy = {kind = \"alpha-fair\", alpha = 0}", scheme("ideal", ""));
    let fault = |keys: &str| format!("fault = [{{{keys}}}]");
    let ctl = fault("kind = \"loss\", kinds = [\"ctl\"], probability = 0.1");
    let node = fault("kind = \"restart\", node = \"switch0\", at = \"10us\"");
    let link = fault("kind = \"restart\", link = \"switch0->h0\", at = \"10us\"");
    let centre = fault("kind = \"restart\", machine = \"controller\", at = \"10us\"");
    let down = fault("kind = \"down\", node = \"spine1\", down = \"10us\", up = \"20us\"");
    let (reroute, at_h3) = ("routing = {reroute = \"10us\"}", "controller = {at = \"h3\"}");
    let nic = |name: &str| format!("network = {{kind = \"star\", hosts = 4, nic = \"{name}\"}}");
    let measured =
        |every: &str| format!("measure = {{rates = \"{every}\", queues = \"{every}\", paces = \"{every}\"}}");
    let permutation = |keys: &str| format!("workload = {{kind = \"permutation\"{keys}}}");
    let (alone, pooled) = (permutation(", apart = true, hashed = true"), permutation(", apart = true, subflows = 2"));
    let churn = |epoch: &str| {
        format!("workload = {{kind = \"churn\", epoch = \"{epoch}\", flows_per_host = 1, replace = 0.5}}")
    };
    let (never, soon_changed) = (churn("1ms"), churn("999us"));
    let racks = "network = {kind = \"leaf-spine\", leaves = 4, spines = 2, hosts_per_leaf = 1}";
    let (spray, flowlet) = ("routing = {kind = \"spray\"}", "routing = {kind = \"flowlet\"}");
    let incast = |receiver: &str| {
        format!("workload = {{kind = \"incast\", senders = 2, receiver = \"{receiver}\", size = \"10KB\"}}")
    };
    let (far, near) = (incast("h1"), incast("h3"));
    let slowed = fault("kind = \"capacity\", link = \"switch0->h3\", capacity = \"1Gbps\", at = \"10us\"");
    let lossy =
        fault("kind = \"loss\", links = [\"switch0->h3\", \"h3->switch0\"], probability = 0.5, until = \"20us\"");
    let cut = fault("kind = \"down\", node = \"h3\", down = \"10us\", up = \"20us\"");
    let thinks = |transfers: u64| {
        format!(
            "workload = {{kind = \"closed\", sizes = \"fixed\", size = \"1KB\", think = \"5us\", transfers = {transfers}}}"
        )
    };
    let on_path =
        "workload = {kind = \"steps\", flows = [{path = [\"h0->switch0\", \"switch0->h1\"], size = \"1KB\"}]}";
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (
            &[&hpcc("ai = 0.001, w_ai = 80")],
            &["params.ai has no effect: w_ai is set, and replaces it"],
            &[&hpcc("ai = 0.001")],
        ),
        (
            &[&bare, &alone],
            &["workload.apart has no effect: each flow has one subflow", "workload.hashed has no effect"],
            &[racks, &pooled],
        ),
        (&[&never], &["workload.epoch has no effect: it is not shorter than run.duration"], &[&soon_changed]),
        (&[spray], &["routing.kind has no effect: no flow has several shortest paths"], &[spray, &bare]),
        (&[flowlet, &far], &["routing.kind has no effect"], &[flowlet, &bare, &far]),
        (&[&slowed, &far], &["fault[0] has no effect: no flow crosses its links"], &[&slowed, &near]),
        (&[&lossy, &far], &["fault[0] has no effect: no flow crosses its links"], &[&lossy, &near]),
        (&[&cut, &far], &["fault[0] has no effect: no flow crosses its links"], &[&cut, &near]),
        (
            &[&hpcc("pfc_threshold = \"20KB\"")],
            &["params.pfc_threshold has no effect: pfc is \"dynamic\": it is read with pfc = \"static\""],
            &[&hpcc("pfc_threshold = \"20KB\", pfc = \"static\"")],
        ),
        (
            &[&hpcc("pfc = \"off\", pfc_buffer = \"1MB\", pfc_alpha = 1")],
            &["params.pfc_alpha has no effect: pfc is \"off\"", "params.pfc_buffer has no effect"],
            &[&hpcc("pfc = [\"off\", \"dynamic\"], pfc_buffer = \"1MB\", pfc_alpha = 1")],
        ),
        (
            &[&scheme("cubic", "queue = \"fifo\", target = \"1ms\"")],
            &["params.target has no effect: queue is \"fifo\""],
            &[&scheme("cubic", "target = \"1ms\"")],
        ),
        (
            &[&scheme("numfabric", "queues = 8, queue_low = 0.1"), alpha_1],
            &["params.queue_low has no effect: queue is \"stfq\"", "params.queues has no effect: queue is \"stfq\""],
            &[&scheme("numfabric", "queue = \"afq\", queues = 8, queue_low = 0.1"), alpha_1],
        ),
        (
            &[&hpcc(""), &nic("queue")],
            &["network.nic has no effect: the scheme has \"round-robin\" NICs"],
            &[&hpcc(""), &nic("round-robin")],
        ),
        (
            &[&ctl],
            &["fault[0] has no effect on \"dctcp\": it sends no control packets"],
            &[&ctl, &scheme("s-perc-star", "")],
        ),
        (
            &[&ctl, &scheme("numfabric", ""), alpha_1],
            &["fault[0] has no effect on \"numfabric\""],
            &[&ctl, &scheme("dcqcn", "")],
        ),
        (&[&node], &["fault[0] has no effect on \"dctcp\": it has no state at this node"], &[&node, &hpcc("")]),
        (
            &[&link, &scheme("dcqcn", "")],
            &["fault[0] has no effect on \"dcqcn\": it has no state at this link"],
            &[&link, &scheme("xcp", "")],
        ),
        (
            &[&centre],
            &["fault[0] has no effect on \"dctcp\": it has no controller"],
            &[&centre, &flowtune, alpha_1, at_h3],
        ),
        (&[reroute], &["routing.reroute has no effect: no link fails"], &[reroute, &down, &bare]),
        (
            &[&own_node],
            &["network.controller_rate has no effect"],
            &[&own_node, &flowtune, alpha_1, "controller = {at = \"controller\"}"],
        ),
        (
            &[&own_node, &flowtune, alpha_1, at_h3],
            &["network.controller_rate has no effect"],
            &[&bare, &flowtune, alpha_1, at_h3],
        ),
        (&["testbed = {scale = 0.1}"], &["testbed has no effect: no scheme"], &[]),
        (
            &[&measured("1001us")],
            &["measure.paces has no effect: the interval", "measure.queues has", "measure.rates has"],
            &[&measured("1ms")],
        ),
        (
            &["routing = {seed = 3, hash = \"pair\"}", on_path],
            &["routing.hash has no effect: the workload gives the path", "routing.seed has no effect"],
            &["routing = {seed = 3, hash = \"pair\"}"],
        ),
        (
            &["routing = {seed = 3, symmetric = true}", on_path],
            &["routing.seed has no effect"],
            &["routing = {seed = 3, symmetric = false}", on_path],
        ),
        (
            &["measure = {convergence = {of = \"assigned\", filter = \"10us\"}}"],
            &["measure.convergence.filter has no effect: of is \"assigned\""],
            &["measure = {convergence = {of = \"assigned\"}}"],
        ),
        (
            &["measure = {convergence = {hold = \"1001us\"}}"],
            &["measure.convergence.hold is longer than run.duration"],
            &["measure = {convergence = {hold = \"1ms\"}}"],
        ),
        (
            &["routing = {kind = \"flowlet\", gap = \"1ms\"}", &bare],
            &["routing.gap has no effect: it is not shorter than run.duration"],
            &["routing = {kind = \"flowlet\", gap = \"999us\"}", &bare],
        ),
        (
            &[&bare, &four],
            &["1 of 1 flows (seed 1) have fewer paths than subflows, such as 4 subflows where there are 2"],
            &[&bare, &two],
        ),
        (
            &[alpha_1],
            &["policy has no effect: no scheme of the spec follows a policy"],
            &[alpha_1, "scheme = [{name = \"dctcp\"}, {name = \"ideal\"}]"],
        ),
        (&[alpha_1], &["policy has no effect"], &[alpha_1, &permutation(""), "measure = {convergence = {}}"]),
        (
            &["workload = {kind = \"incast\", senders = 1, size = \"10KB\", interval = \"1us\"}"],
            &["workload.interval has no effect: there is one sender"],
            &["workload = {kind = \"incast\", senders = 2, size = \"10KB\", interval = \"1us\"}"],
        ),
        (&[&thinks(1)], &["workload.think has no effect: each client has one transfer"], &[&thinks(2)]),
        (&[&soon, alpha_0, &ideal], &["flows have weights, which alpha = 0 does not use"], &[&soon, alpha_1, &ideal]),
    ];
    for (unread, texts, read) in cases {
        let said = unused(unread);
        assert_eq!(said.len(), texts.len(), "{unread:?}: {said:?}");
        for ((_, said), text) in said.iter().zip(*texts) {
            assert!(said.starts_with(text), "{unread:?}: {said}");
        }
        assert_eq!(unused(read), [], "{read:?}");
    }
    let notes = |workload: &str| {
        let spec = Spec::from_toml(&format!("{bare}\n{workload}\n{ideal}\nrun = {{duration = \"1ms\"}}"))
            .unwrap()
            .validate()
            .unwrap();
        ran("late", &spec).1.warnings.into_iter().filter(|w| w.kind == "workload").map(|w| w.text).collect::<Vec<_>>()
    };
    assert_eq!(
        notes(&late),
        ["1 of 1 changes of weights have no effect: they come at or after run.duration, or the flow's stop"]
    );
    assert_eq!(notes(&soon), [""; 0]);
    let stops = |stop: &str| {
        format!("workload = {{kind = \"steps\", flows = [{{src = \"h0\", dst = \"h2\", stop = \"{stop}\"}}]}}")
    };
    assert!(
        notes(&stops("2ms"))[0].starts_with("1 of 1 flows have a stop after run.duration"),
        "{:?}",
        notes(&stops("2ms"))
    );
    assert_eq!(notes(&stops("1ms")), [""; 0]);
    let closed = |spread: &str| {
        format!(
            "workload = {{kind = \"closed\", sizes = \"fixed\", size = \"10KB\", clients = 4, transfers = 2, spread = \"{spread}\"}}"
        )
    };
    let said = notes(&closed("4ms"));
    assert!(
        said.len() == 1
            && said[0].ends_with("of 16 slots of clients (seed 1) start at run.duration or later, and are left out"),
        "{said:?}"
    );
    let late: usize = said[0].split(' ').next().unwrap().parse().unwrap();
    // Of uniform starts in 4 ms three quarters are beyond the first.
    assert!((8..=15).contains(&late), "{said:?}");
    assert_eq!(notes(&closed("1ms")), [""; 0]);
}

#[test]
fn a_recording_that_begins_after_the_run_is_said() {
    let said = |from: &str| unused(&[&format!("measure = {{packets = {{from = \"{from}\"}}}}")]);
    assert_eq!(
        said("5ms"),
        [(
            Some("dctcp".to_string()),
            "measure.packets.from has no effect in 1 of 1 runs: they end before it; give an earlier time".to_string()
        )]
    );
    assert_eq!(said("5us"), []);
}

/// Keys of jobs: each case is the section's keys, the jobs' keys, and the starts of the warnings.
#[test]
fn keys_of_jobs_without_effect_are_said() {
    let (flow, task) = ("{id = \"a\", src = \"h0\", dst = \"h1\", size = \"10KB\"}", "{id = \"t\", time = \"1us\"}");
    let job = |id: &str, keys: &str| format!("{{id = \"{id}\", flows = [{flow}]{keys}}}");
    let said = |keys: &str, jobs: &[String]| {
        let ideal = "scheme = [{name = \"ideal\"}]";
        let workload = format!("workload = {{kind = \"jobs\"{keys}, jobs = [{}]}}", jobs.join(", "));
        unused(&[&workload, ideal]).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let tasks = |task: &str| format!(", tasks = [{task}]");
    let (plain, computes) = (job("x", ""), job("x", &tasks(task)));
    let idle = job("x", &tasks("{id = \"t\"}"));
    let critical = job("y", ", policy = \"critical-path\"");
    let looked = job("y", ", policy = \"straggler\", every = \"10us\"");
    let late = job("y", ", policy = \"straggler\", every = \"1ms\"");
    let even = job("y", ", every = \"10us\"");
    let blind = job("y", ", policy = \"constant-sum\"");
    let cases: &[(&str, &[&String], &[&str])] = &[
        (", width = 2", &[&plain], &["workload.width has no effect: no job has a task"]),
        (", width = 2", &[&plain, &job("y", &tasks(task))], &[]),
        (", compute = 2", &[&idle], &["workload.compute has no effect: no task takes time"]),
        (", compute = 0", &[&computes], &[]),
        (", spacing = \"1us\"", &[&plain], &["workload.spacing has no effect: there is only one job"]),
        (", spacing = \"1us\"", &[&plain, &critical], &[]),
        (
            ", policy = \"straggler\"",
            &[&critical],
            &["workload.policy has no effect: each job has a policy of its own"],
        ),
        (", policy = \"shortest-first\"", &[&plain, &critical], &[]),
        (", every = \"10us\"", &[&looked], &["workload.every has no effect: each job has its own"]),
        (", every = \"10us\"", &[&plain], &["workload.every has no effect: the policy gives"]),
        (", every = \"10us\"", &[&plain, &critical], &[]),
        (", every = \"1ms\"", &[&critical], &["workload.every has no effect: the first look is not before"]),
        ("", &[&late], &["workload.jobs[0].every has no effect: the first look is not before"]),
        ("", &[&plain, &even], &["workload.jobs[1].every has no effect: the policy gives the same"]),
        ("", &[&looked], &[]),
        ("", &[&blind], &["workload.jobs[0].policy has no effect: the policy acts at looks"]),
        (", every = \"10us\"", &[&blind], &[]),
        (", policy = \"altruistic\"", &[&plain], &["workload.policy has no effect: the policy acts at looks"]),
    ];
    for (keys, jobs, texts) in cases {
        let jobs: Vec<String> = jobs.iter().map(|&job| job.clone()).collect();
        let said = said(keys, &jobs);
        assert_eq!(said.len(), texts.len(), "{keys} {jobs:?}: {said:?}");
        assert!(said.iter().zip(*texts).all(|(said, text)| said.starts_with(text)), "{keys} {jobs:?}: {said:?}");
    }
}
