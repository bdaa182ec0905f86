//! Reloads files that change while the daemon runs.

use crate::config::Config;
use crate::plan::NetworkPlan;
use crate::request::{DaemonCommand, Line};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Interval between checks of the files.
const EVERY: Duration = Duration::from_millis(500);

/// Watches the configuration and the files that it names, in a thread of its own. An invalid file is logged and
/// changes nothing.
pub fn watch(path: PathBuf, config: &Config, line: Line) {
    let mut seen = times(&path, config);
    let mut files = config.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(EVERY);
            let now = times(&path, &files);
            if now == seen {
                continue;
            }
            // The writer may not have finished.
            std::thread::sleep(EVERY);
            seen = times(&path, &files);
            match reload(&path, &line) {
                Ok(config) => {
                    files = config;
                    seen = times(&path, &files);
                }
                Err(what) => tracing::error!(what, "not reloaded; what was before goes on"),
            }
        }
    });
}

fn reload(path: &Path, line: &Line) -> Result<Config, String> {
    let config = Config::read(path)?;
    let plan = NetworkPlan::read(&config)?;
    line.tell(DaemonCommand::Plan(Box::new(config.clone()), Box::new(plan)))?;
    Ok(config)
}

fn times(path: &Path, config: &Config) -> Vec<Option<SystemTime>> {
    let keys = config.tenants.iter().map(|tenant| tenant.key.as_path());
    let files = [path, &config.network].into_iter().chain(config.routes.as_deref()).chain(keys);
    files.map(|file| std::fs::metadata(file).and_then(|found| found.modified()).ok()).collect()
}
