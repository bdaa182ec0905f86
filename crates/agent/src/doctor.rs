//! Requirements of Subak's host programs, and which of them this machine's kernel meets.

use serde::Serialize;
use std::path::Path;

/// Requirement of the host programs.
#[derive(Debug, Clone, Serialize)]
pub struct Need {
    /// Common name of the requirement.
    pub name: &'static str,
    /// Installed version or variant; `None` if it is missing.
    pub found: Option<String>,
    /// Feature that needs the requirement.
    pub needed_for: &'static str,
    /// Reason why the requirement is not met, and how to install it.
    pub hint: String,
}

/// Result of the checks.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// Version of the document's format.
    pub schema: u32,
    /// Requirements, each with whether it is met.
    pub needs: Vec<Need>,
    /// Number of Subak's kernel objects.
    #[cfg(feature = "bpf")]
    pub present: crate::kernel::present::Present,
}

/// Runs the checks. With `tries`, also loads a program of each kind.
pub fn look(tries: bool) -> Findings {
    // Counted before the trials below: their objects are removed with a delay.
    #[cfg(feature = "bpf")]
    let present = crate::kernel::present::present();
    let mut needs = vec![controls(), btf()];
    if tries {
        needs.extend(programs());
    }
    Findings {
        schema: 1,
        needs,
        #[cfg(feature = "bpf")]
        present,
    }
}

fn controls() -> Need {
    let read = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").ok();
    Need {
        name: "congestion controls",
        found: read.map(|names| names.trim().replace(' ', ", ")),
        needed_for: "schemes of the testbed that the kernel has",
        hint: "modprobe tcp_dctcp, tcp_bbr, ... for more".to_string(),
    }
}

fn btf() -> Need {
    let path = "/sys/kernel/btf/vmlinux";
    Need {
        name: "types of the kernel (BTF)",
        found: Path::new(path).exists().then(|| path.to_string()),
        needed_for: "soze and soze-virtual on the testbed",
        hint: "take a kernel built with CONFIG_DEBUG_INFO_BTF".to_string(),
    }
}

#[cfg(not(feature = "bpf"))]
fn programs() -> Vec<Need> {
    vec![Need {
        name: "programs in the kernel (eBPF)",
        found: None,
        needed_for: "soze, s-perc and flowtune on the testbed",
        hint: "apt-get install clang libelf-dev zlib1g-dev, then build again: make setup".to_string(),
    }]
}

#[cfg(feature = "bpf")]
fn programs() -> Vec<Need> {
    use crate::hosts::{HostsConfig, RunningHosts};
    let tried = |name, needed_for, order: &str| {
        let order: HostsConfig = serde_json::from_str(order).expect("it is written here");
        let (found, hint) = match RunningHosts::new(&order, None) {
            Ok(_) => (Some("loads".to_string()), String::new()),
            Err(why) => (None, why),
        };
        Need { name, found, needed_for, hint }
    };
    vec![
        tried("queues that tell (tc programs)", "soze and soze-virtual on the testbed", r#"{"schema": 1}"#),
        tried(
            "Soze as a congestion control (struct_ops)",
            "soze and soze-virtual on the testbed",
            r#"{"schema": 1, "scheme": "soze-virtual", "name": "soze_doctor", "rtt_ns": 1000000}"#,
        ),
        tried(
            "links of s-PERC (a tc program)",
            "s-perc and s-perc-star on the testbed",
            r#"{"schema": 1, "scheme": "s-perc-star", "rtt_ns": 1000000}"#,
        ),
        flowtune(),
    ]
}

/// Requirement of Flowtune's kernel programs. The check loads them without any host.
#[cfg(feature = "bpf")]
fn flowtune() -> Need {
    use crate::flowtune::{FlowtuneConfig, RunningFlowtune};
    let order = FlowtuneConfig {
        name: "ft_doctor".to_string(),
        hosts: Vec::new(),
        sockets_here: true,
        allocators: vec![([127, 0, 0, 1], 9).into()],
        secret: subak_wire::Secret::new([0; 32]),
        settings: subak_control::ControlSettings::for_hosts(200_000_000),
        shortest_bytes: 1,
        weights: Vec::new(),
        weighing: crate::shares::Weighing::FREE,
        device: None,
        partners: Vec::new(),
        known: Vec::new(),
        containers: false,
        log: None,
    };
    let (found, hint) = match RunningFlowtune::new(&order) {
        Ok(_) => (Some("loads".to_string()), String::new()),
        Err(why) => (None, why),
    };
    let name = "Flowtune as a congestion control (struct_ops over the kernel's cubic)";
    Need { name, found, needed_for: "flowtune on the testbed, and subak-agent flowtune", hint }
}
