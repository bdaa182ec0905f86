//! `subak-allocator`: allocates rates to the hosts of a network.

use clap::{CommandFactory, Parser, Subcommand};
use nix::sys::signal::{SigSet, Signal};
use sd_notify::NotifyState;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use subak_allocator::config::{Config, Page, secret};
use subak_allocator::plan::NetworkPlan;
use subak_allocator::request::{DaemonCommand, Line};
use subak_allocator::{Server, control, http, watch};
use subak_wire::Secret;

/// Allocate rates to the hosts of a network.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or SIGINT. Changed files are reloaded.
    Serve {
        /// Configuration file, TOML.
        config: PathBuf,
        /// Write log lines as JSON.
        #[arg(long)]
        json: bool,
        /// End when standard input ends; print one JSON line to standard output once ready.
        #[arg(long)]
        attached: bool,
        /// Remove the configuration's folder at the end: it was made for this run.
        #[arg(long)]
        scratch: bool,
    },
    /// Check a configuration, its network and its keys.
    Check {
        /// Configuration file, TOML.
        config: PathBuf,
    },
    /// Make a key.
    Key {
        /// File that the key is written to, which is new, with the permissions 0600 [default: standard output].
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// Print the completion script of a shell.
    Completion {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder.
    Man {
        /// Existing folder for the manual pages.
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve { config, json, attached, scratch } => {
            let done = serve(&config, json, attached);
            if let Some(folder) = config.parent().filter(|_| scratch) {
                // The folder may have been removed already.
                let _ = std::fs::remove_dir_all(folder);
            }
            done
        }
        Command::Check { config } => check(&config),
        Command::Key { output } => key(output.as_deref()),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "subak-allocator", &mut std::io::stdout());
            Ok(())
        }
        Command::Man { folder } => {
            clap_mangen::generate_to(Cli::command(), &folder).map_err(|e| format!("{}: {e}", folder.display()))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("subak-allocator: {what}");
            ExitCode::from(2)
        }
    }
}

fn check(path: &Path) -> Result<(), String> {
    let config = Config::read(path)?;
    let plan = NetworkPlan::read(&config)?;
    config.page.as_ref().map_or(Ok(None), Page::token)?;
    config.standby.as_ref().map(|standby| secret(&standby.key)).transpose()?;
    println!("{} hosts, {} tenants, {} links", plan.hosts.len(), plan.tenants.len(), plan.network.links().len());
    Ok(())
}

fn key(output: Option<&Path>) -> Result<(), String> {
    let mut bytes = [0; 32];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|e| format!("/dev/urandom: {e}"))?;
    let key = Secret::new(bytes).hex();
    let Some(path) = output else {
        println!("{key}");
        return Ok(());
    };
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{key}"));
    written.map_err(|e| format!("{}: {e}; name a new file in a folder that is there", path.display()))
}

fn serve(path: &Path, json: bool, attached: bool) -> Result<(), String> {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    match json {
        true => log.json().init(),
        false => log.init(),
    }
    let config = Config::read(path)?;
    let plan = NetworkPlan::read(&config)?;
    // Blocked before any thread starts: every thread inherits the mask, and one thread waits for the signals.
    let mut signals = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT].into_iter().for_each(|signal| signals.add(signal));
    signals.thread_block().map_err(|e| format!("signals: {e}"))?;
    let (requests, receiver) = channel();
    let line = Line::new(requests);
    let mut server = Server::new(config.clone(), plan, receiver)?;
    if let Some(socket) = &config.control {
        control::listen(socket, line.clone())?;
    }
    let mut page_at = None;
    if let Some(page) = &config.page {
        let token = page.token()?;
        let listener = TcpListener::bind(page.listen).map_err(|e| format!("page: {}: {e}", page.listen))?;
        page_at = listener.local_addr().ok();
        http::serve(listener, token, line.clone()).map_err(|e| format!("page: {}: {e}", page.listen))?;
    }
    watch::watch(path.to_path_buf(), &config, line.clone());
    let address = server.address().map_err(|e| e.to_string())?;
    tracing::info!(%address, "listens");
    if attached {
        println!("{}", serde_json::json!({"ready": true, "listen": address, "page": page_at}));
        let line = line.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = line.tell(DaemonCommand::End);
        });
    }
    std::thread::spawn(move || {
        let _ = signals.wait();
        let _ = line.tell(DaemonCommand::End);
    });
    // Without systemd there is nothing to notify.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let every = sd_notify::watchdog_enabled().map_or(Duration::MAX, |limit| limit / 3);
    let mut told = Instant::now();
    server.run(|| {
        if told.elapsed() >= every {
            told = Instant::now();
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
    })?;
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    if let Some(socket) = &config.control {
        // Removes the socket, since connections would be refused.
        let _ = std::fs::remove_file(socket);
    }
    Ok(())
}
