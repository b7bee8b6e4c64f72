//! Every unit once, whatever the threads do; panics arrive, and nothing waits for ever.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Adds its number plus one to each value of a unit.
#[expect(clippy::cast_precision_loss, reason = "small")]
fn number(unit: usize) -> impl Fn(usize, &mut [f32]) + Sync {
    move |first, chunk| {
        for (index, values) in (first..).zip(chunk.chunks_mut(unit)) {
            values.iter_mut().for_each(|value| *value += index as f32 + 1.0);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "small")]
fn numbered(units: usize, unit: usize) -> Vec<f32> {
    (0..units).flat_map(|i| vec![i as f32 + 1.0; unit]).collect()
}

#[test]
fn more_threads_than_a_machine_can_start_are_refused_at_once() {
    for threads in [MAX_THREADS + 1, usize::MAX] {
        let error = Pool::new(threads).expect_err("too many");
        assert!(error.to_string().contains("at most 1024"), "{error}");
    }
}

#[test]
fn every_unit_is_done_once_and_knows_its_place() {
    for threads in [1, 2, 3, 32] {
        let pool = Pool::new(threads).expect("threads");
        for (units, unit) in [(0, 1), (1, 1), (7, 3), (3, 192), (128, 1), (1000, 4), (129, 7), (576, 1), (5, 1000)] {
            for each_unit in [false, true] {
                let mut out = vec![0.0; units * unit];
                if each_unit {
                    pool.for_each_unit(&mut out, unit, &number(unit));
                } else {
                    pool.for_each_chunk(&mut out, unit, &number(unit));
                }
                assert_eq!(out, numbered(units, unit), "{threads} threads, {units} units of {unit}");
            }
        }
    }
}

#[test]
fn pieces_are_whole_rows_of_sixteen_and_cover_the_output() {
    for (units, threads) in [(576, 2), (192, 2), (192, 16), (1537, 3), (15, 2), (49152, 32)] {
        let mut out = vec![0.0; units];
        let shares = Shares::new(&mut out, 1, TOGETHER, threads);
        let begun = std::sync::Mutex::new(Vec::new());
        // One thread alone does all of it.
        shares.work(threads - 1, &|first, piece| begun.lock().expect("no panic").push((first, piece.len())));
        let mut begun = begun.into_inner().expect("no panic");
        begun.sort_unstable();
        let mut end = 0;
        for (first, len) in begun {
            assert_eq!((first, first % TOGETHER), (end, 0), "{units} units, {threads} threads");
            end = first + len;
        }
        assert_eq!(end, units);
    }
}

#[test]
fn a_hundred_thousand_small_jobs() {
    for threads in [2, 5] {
        let pool = Pool::new(threads).expect("threads");
        let mut out = vec![0.0f32; 128];
        for _ in 0..100_000 {
            pool.for_each_chunk(&mut out, 1, &|_, chunk| chunk.iter_mut().for_each(|value| *value += 1.0));
        }
        assert!(out.iter().all(|value| *value == 100_000.0));
    }
}

/// More threads than cores, some of them late, and pauses in which they fall asleep.
#[test]
fn many_threads_on_few_cores_get_done() {
    let pool = Pool::new(32).expect("threads");
    for round in 0..300 {
        let mut out = vec![0.0; 512];
        pool.for_each_unit(&mut out, 4, &|first, chunk| {
            if first.is_multiple_of(37) {
                std::thread::yield_now();
            }
            number(4)(first, chunk);
        });
        assert_eq!(out, numbered(128, 4), "round {round}");
        if round % 50 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_job_inside_a_job_and_two_callers_at_once() {
    let pool = Pool::new(3).expect("threads");
    let mut out = vec![0.0; 256];
    pool.for_each_unit(&mut out, 64, &|first, chunk| {
        let mut inner = vec![0.0; 640];
        pool.for_each_chunk(&mut inner, 5, &number(5));
        assert_eq!(inner, numbered(128, 5));
        number(64)(first, chunk);
    });
    assert_eq!(out, numbered(4, 64));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let mut out = vec![0.0; 300];
                    pool.for_each_chunk(&mut out, 3, &number(3));
                    assert_eq!(out, numbered(100, 3));
                }
            });
        }
    });
}

/// Whoever panics, the caller learns of it with what was said, and the pool works on.
#[test]
fn a_panic_reaches_the_caller() {
    let pool = Pool::new(4).expect("threads");
    for bad in (0..256).step_by(16) {
        let mut out = vec![0.0; 256];
        let calls = AtomicUsize::new(0);
        let run = catch_unwind(AssertUnwindSafe(|| {
            pool.for_each_chunk(&mut out, 1, &|first, _| {
                calls.fetch_add(1, Ordering::Relaxed);
                assert!(first != bad, "unit {first} is bad");
            });
        }));
        let said = run.expect_err("a panic");
        assert_eq!(said.downcast_ref::<String>().map(String::as_str), Some(&*format!("unit {bad} is bad")));
        assert!(calls.load(Ordering::Relaxed) <= 16);
        let mut out = vec![0.0; 256];
        pool.for_each_chunk(&mut out, 1, &number(1));
        assert_eq!(out, numbered(256, 1));
    }
}

/// All of them at once: one panic arrives, the others are dropped.
#[test]
fn panics_everywhere_end_in_one() {
    let pool = Pool::new(4).expect("threads");
    for _ in 0..20 {
        let mut out = vec![0.0; 256];
        let run = catch_unwind(AssertUnwindSafe(|| pool.for_each_chunk(&mut out, 1, &|_, _| panic!("everywhere"))));
        assert_eq!(run.expect_err("a panic").downcast_ref::<&str>(), Some(&"everywhere"));
    }
}

#[test]
fn pools_come_and_go() {
    for round in 0..200 {
        let pool = Pool::new(2 + round % 3).expect("threads");
        if round % 2 == 0 {
            let mut out = vec![0.0; 200];
            pool.for_each_chunk(&mut out, 1, &number(1));
            assert_eq!(out, numbered(200, 1));
        }
    }
}
