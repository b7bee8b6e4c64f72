//! How opening a container grows with the number of its tensors: `cargo bench -p p64-tests --bench open`.
//!
//! The figure to look at is items a second: it stays the same from 1,000 to 100,000 tensors when opening is linear.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use p64_core::Container;
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use p64_tests::assemble::{Assembly, TensorSpec};

fn main() {
    divan::main();
}

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];

/// A container of `count` small tensors without roles.
fn container(count: usize) -> Vec<u8> {
    let mut assembly = Assembly::small();
    // Little-endian, layer-major, packed; no schedule, since the tensors belong to no layer.
    assembly.flags = 0b011_0001;
    assembly.tensors = (0..count)
        .map(|i| TensorSpec::new(&format!("model.layers.{}.tensor.{i}.weight", i / 10), 0xfffe, 0, 2, &[8], 32))
        .collect();
    assembly.build()
}

fn open<'a>(file: &'a [u8], names: &'a mut [NameSlot], integrity: Integrity) -> Container<'a> {
    let options = OpenOptions { policy: Policy::Strict, integrity, ..OpenOptions::default() };
    Container::open_with(file, &options, Storage { names, verified: &mut [] }, &mut |_| ()).expect("valid")
}

#[divan::bench(args = COUNTS)]
fn open_full(bencher: Bencher<'_, '_>, count: usize) {
    let file = container(count);
    let mut names = vec![NameSlot::default(); count];
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| open(black_box(&file), &mut names, Integrity::Full).tensor_count());
}

#[divan::bench(args = COUNTS)]
fn open_lazy(bencher: Bencher<'_, '_>, count: usize) {
    let file = container(count);
    let mut names = vec![NameSlot::default(); count];
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| open(black_box(&file), &mut names, Integrity::Lazy).tensor_count());
}

#[divan::bench(args = COUNTS)]
fn find_every_name(bencher: Bencher<'_, '_>, count: usize) {
    let file = container(count);
    let mut names = vec![NameSlot::default(); count];
    let container = open(&file, &mut names, Integrity::Lazy);
    let wanted: Vec<&str> = container.tensors().map(|info| info.name()).collect();
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| wanted.iter().filter(|name| container.find(name).is_some()).count());
}
