//! Runs all kept inputs, and a search from them with a fixed number of new inputs, the same in each run.

use std::path::PathBuf;
use subak_fuzz::entries::{ENTRIES, EntryPoint};
use subak_fuzz::search::Search;

fn searched(name: &str, inputs: u64) {
    let (_, entry): (_, EntryPoint) = ENTRIES.into_iter().find(|(n, _)| *n == name).unwrap();
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut search = Search::new(entry, &corpus, 1).unwrap();
    for _ in 0..inputs {
        search.try_one();
    }
    assert_eq!(search.tried, inputs);
    println!("{name}: {} found beside the corpus", search.found.len());
}

#[test]
fn datagrams() {
    searched("datagram", 3_000_000);
}

#[test]
fn bundles() {
    searched("bundle", 1_500_000);
}

#[test]
fn exchanges() {
    searched("exchange", 30_000);
}

#[test]
fn cases() {
    searched("case-json", 300_000);
    searched("case-toml", 100_000);
}

#[test]
fn what_hosts_hear() {
    searched("sealed", 300_000);
    searched("control", 1_000_000);
    searched("netlink", 1_000_000);
}
