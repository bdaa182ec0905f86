//! Runs the permutation workload under DCTCP or another scheme, for a cache simulator, and prints the number of
//! packet-hops. `benches/misses.sh` runs this program with two durations for each size and takes the difference.
//!
//! `cargo bench -p subak-packet --bench misses -- LEAVES MICROSECONDS [SCHEME]`

mod permutation;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let [leaves, micros] = numbers[..] else {
        // `cargo bench` without a name runs this program without arguments.
        return println!("misses: say how many leaves, and how many microseconds");
    };
    let scheme = words.get(2).map_or("dctcp", String::as_str);
    let figures = permutation::measure_on(1, scheme, leaves as usize, micros * 1000, || 0.0);
    println!("{}", figures.hops);
}
