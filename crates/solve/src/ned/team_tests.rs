//! Threads that share the parts of a loop.

use super::team::Team;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn each_part_runs_once() {
    for threads in [1, 2, 3, 7] {
        let team = Team::new(threads);
        for parts in (0..40).chain([1000]) {
            let mut seen = vec![0u32; parts];
            team.each(seen.iter_mut().enumerate(), |(i, seen)| *seen += i as u32 + 1);
            assert!(seen.iter().zip(1..).all(|(&seen, i)| seen == i), "{threads} threads, {parts} parts");
        }
    }
}

#[test]
fn loops_follow_each_other_and_pauses() {
    let team = Team::new(3);
    let sum = AtomicUsize::new(0);
    for k in 0..20_000 {
        team.each(0..5, |part| {
            sum.fetch_add(part, Ordering::Relaxed);
        });
        if k % 5000 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    assert_eq!(sum.into_inner(), 200_000);
}

#[test]
fn a_panic_reaches_the_caller_and_the_team_goes_on() {
    let team = Team::new(2);
    for bad in 0..8 {
        let run = || team.each(0..8, |part| assert!(part != bad, "part {part}"));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
    let count = AtomicUsize::new(0);
    team.each(0..8, |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(count.into_inner(), 8);
}

#[test]
fn several_callers_take_turns() {
    let (team, sum) = (Team::new(2), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..500 {
                    team.each(0..4, |part| {
                        sum.fetch_add(part, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 3 * 500 * 6);
}

#[test]
fn parts_are_long_enough() {
    let lengths = |threads| [0, 10, 99, 100, 1000].map(|length| Team::new(threads).part(length, 50));
    assert_eq!(lengths(1), [1, 10, 99, 100, 1000]);
    assert_eq!(lengths(2), [1, 10, 99, 13, 125]);
}
