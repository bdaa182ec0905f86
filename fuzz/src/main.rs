//! `cargo run --release -p subak-fuzz -- [all | ENTRY [SECONDS]]`: fuzzes each entry point (or the named one) for
//! some seconds (60 by default), and keeps new inputs in `fuzz/corpus`. An input that causes a panic is printed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use subak_fuzz::entries::ENTRIES;
use subak_fuzz::search::Search;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().filter(|name| name != "all");
    let seconds = arguments.next().map_or(Ok(60), |s| s.parse::<u64>());
    let (Ok(seconds), true) = (seconds, only.as_ref().is_none_or(|o| ENTRIES.iter().any(|(name, _)| name == o))) else {
        let names = ENTRIES.map(|(name, _)| name).join(", ");
        eprintln!("give an entry ({names}) and a number of seconds, or nothing");
        return ExitCode::from(2);
    };
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, entry) in ENTRIES.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|o| o == *name)) {
        let folder = corpus.join(name);
        let done = Search::new(entry, &folder, std::process::id().into()).and_then(|mut search| {
            search.run(Duration::from_secs(seconds));
            std::fs::create_dir_all(&folder)?;
            for (k, input) in search.found.iter().enumerate() {
                std::fs::write(folder.join(format!("{}-{k}", std::process::id())), input)?;
            }
            println!("{name}: {} inputs tried in {seconds} s, {} kept", search.tried, search.found.len());
            Ok(())
        });
        if let Err(error) = done {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
