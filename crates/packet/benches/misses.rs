//! The permutation under DCTCP, for a simulator of caches to count: it prints the packet-hops that it made. `benches/misses.sh`
//! runs it twice for each size, and takes what the longer run has more.
//!
//! `cargo bench -p subak-packet --bench misses -- LEAVES MICROSECONDS`

mod permutation;

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let [leaves, micros] = numbers[..] else {
        // As `cargo bench` runs it, among all the others.
        return println!("misses: say how many leaves, and how many microseconds");
    };
    let figures = permutation::measure_on(1, "dctcp", leaves as usize, micros * 1000, || 0.0);
    println!("{}", figures.hops);
}
