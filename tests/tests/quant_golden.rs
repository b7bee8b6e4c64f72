//! Every weight format against golden values (scripts/make_quant_goldens.py), bit for bit.
//!
//! NaN is the one exception: where a scale is NaN, or infinite and multiplied with zero, both must be NaN, but IEEE 754
//! leaves sign and payload open and they do differ between machines.

use p64_core::kernel::{dequantize, is_supported};
use p64_core::quant::{q4_k, q4_k_soa};
use p64_core::{Code, DType};
use std::path::PathBuf;

fn golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/quant").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden_pair(dtype: DType) -> (Vec<u8>, Vec<f32>) {
    let name = dtype.name().to_lowercase();
    let values = golden(&format!("{name}.f32"));
    let values = values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    (golden(&format!("{name}.blocks")), values)
}

#[track_caller]
fn assert_same_bits(dtype: DType, ours: &[f32], golden: &[f32]) {
    assert_eq!(ours.len(), golden.len());
    for (i, (ours, golden)) in ours.iter().zip(golden).enumerate() {
        let same = ours.to_bits() == golden.to_bits() || (ours.is_nan() && golden.is_nan());
        assert!(
            same,
            "{dtype} element {i}: {ours:e} ({:08x}), golden {golden:e} ({:08x})",
            ours.to_bits(),
            golden.to_bits()
        );
    }
}

#[test]
fn every_supported_type_decodes_to_the_golden_bits() {
    // Types with rows side by side have the blocks of others (`p64_core::quant::tile`).
    let stock = DType::ALL.iter().copied().filter(|dtype| !dtype.is_tiled());
    let supported: Vec<_> = stock.filter(|dtype| is_supported(*dtype)).collect();
    assert_eq!(supported.len(), 30);
    for dtype in supported {
        let (blocks, values) = golden_pair(dtype);
        assert!(values.len() > 500, "{dtype}: a golden file that proves little");
        let mut out = vec![0.0; values.len()];
        dequantize(dtype, &blocks, &mut out).unwrap_or_else(|error| panic!("{dtype}: {error}"));
        assert_same_bits(dtype, &out, &values);
    }
}

#[test]
fn the_goldens_reach_the_edges() {
    for dtype in [DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q8_0, DType::Q2_K, DType::Q4_K, DType::Q6_K] {
        let (_, values) = golden_pair(dtype);
        assert!(values.iter().any(|v| v.is_nan()) && values.iter().any(|v| v.is_infinite()), "{dtype}");
        assert!(
            values.iter().any(|v| *v != 0.0 && v.abs() < 1e-4) && values.iter().any(|v| v.abs() > 60000.0),
            "{dtype}"
        );
    }
    for dtype in [DType::IQ2_XXS, DType::IQ2_S, DType::IQ3_S, DType::IQ1_S, DType::IQ1_M, DType::IQ4_XS, DType::TQ1_0] {
        let (_, values) = golden_pair(dtype);
        assert!(values.iter().any(|v| v.is_nan()) && values.iter().any(|v| v.is_infinite()), "{dtype}");
        assert!(values.iter().any(|v| *v != 0.0 && v.abs() < 1e-5), "{dtype}");
    }
    let (_, values) = golden_pair(DType::MXFP4);
    assert!(values.iter().any(|v| v.is_subnormal()) && values.iter().any(|v| v.is_infinite()));
    let scale = |block: &[u8; 210]| block[192..208].contains(&0x80);
    assert!(golden_pair(DType::Q6_K).0.as_chunks::<210>().0.iter().any(scale), "no Q6_K scale of -128");
    let lowest = |block: &[u8; 34]| block[2..].contains(&0x80);
    assert!(golden_pair(DType::Q8_0).0.as_chunks::<34>().0.iter().any(lowest), "no Q8_0 quant of -128");
}

/// An entry of a codebook that no golden takes could be wrong.
#[test]
fn the_goldens_take_every_codebook_entry() {
    // Type, entries of the codebook and of a block, first bit and width of each part of entry k's index.
    type Parts = fn(usize) -> [(usize, usize); 2];
    let formats: [(DType, usize, usize, Parts); 7] = [
        (DType::IQ2_XXS, 256, 32, |k| [(16 + 64 * (k / 4) + 8 * (k % 4), 8), (0, 0)]),
        (DType::IQ2_XS, 512, 32, |k| [(16 + 16 * k, 9), (0, 0)]),
        (DType::IQ2_S, 1024, 32, |k| [(16 + 8 * k, 8), (8 * 66 + 2 * k, 2)]),
        (DType::IQ3_XXS, 256, 64, |k| [(16 + 8 * k, 8), (0, 0)]),
        (DType::IQ3_S, 512, 64, |k| [(16 + 8 * k, 8), (8 * 66 + k, 1)]),
        (DType::IQ1_S, 2048, 32, |k| [(16 + 8 * k, 8), (8 * 34 + 16 * (k / 4) + 3 * (k % 4), 3)]),
        (DType::IQ1_M, 2048, 32, |k| [(8 * k, 8), (8 * 32 + 4 * k, 3)]),
    ];
    for (dtype, entries, per_block, parts) in formats {
        let (blocks, _) = golden_pair(dtype);
        let mut met = vec![false; entries];
        for block in blocks.chunks_exact(dtype.block().expect("a block type").bytes as usize) {
            let bit = |at: usize| usize::from(block[at / 8] >> (at % 8) & 1);
            for k in 0..per_block {
                let [(low, width), (high, more)] = parts(k);
                let positions = (low..low + width).chain(high..high + more);
                met[positions.enumerate().map(|(i, at)| bit(at) << i).sum::<usize>()] = true;
            }
        }
        assert_eq!(met.iter().filter(|met| **met).count(), entries, "{dtype}");
    }
}

#[test]
fn q4_k_becomes_the_golden_soa_blocks() {
    let (stock, _) = golden_pair(DType::Q4_K);
    let (soa, _) = golden_pair(DType::Q4KSoa);
    let (stock, soa) = (stock.as_chunks::<{ q4_k::BYTES }>().0, soa.as_chunks::<{ q4_k_soa::BYTES }>().0);
    assert_eq!(stock.len(), soa.len());
    for (i, (stock, soa)) in stock.iter().zip(soa).enumerate() {
        let (ours, halves) = (q4_k_soa::from_q4_k(stock), |bytes: &[u8]| -> Vec<u16> {
            bytes.as_chunks::<2>().0.iter().map(|half| u16::from_le_bytes(*half)).collect()
        });
        assert_eq!(ours[..128], soa[..128], "block {i}");
        for (ours, golden) in halves(&ours[128..]).into_iter().zip(halves(&soa[128..])) {
            let nan = |half: u16| half & 0x7fff > 0x7c00;
            assert!(ours == golden || (nan(ours) && nan(golden)), "block {i}: {ours:04x}, golden {golden:04x}");
        }
    }
}

/// The worked block of docs/spec §7.2.1.
#[test]
fn the_worked_q4_k_block() {
    let mut stock = [0u8; q4_k::BYTES];
    let head = [0x4c, 0x22, 0xd6, 0x29, 0xc1, 0x82, 0x43, 0x3f, 0xff, 0x40, 0x85, 0xc6, 0x21, 0x43, 0x65, 0x87];
    stock[..16].copy_from_slice(&head);
    for (i, byte) in stock[16..].iter_mut().enumerate() {
        *byte = u8::try_from((7 * i + 1) & 255).expect("masked");
    }
    let soa = q4_k_soa::from_q4_k(&stock);
    let hex: String = soa[128..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex[..32], *"4c224c26b928333ad238e3362234822d");
    assert_eq!(hex[32..], *"bf4100004c3360348f404c3bee3e1b41");
    let mut values = [0.0; 256];
    q4_k::dequantize_block(&stock, &mut values);
    assert_eq!(values[0], -2.860_077);
    q4_k_soa::dequantize_block(&soa, &mut values);
    assert_eq!(values[0], -2.860_748_3);
}

#[test]
fn a_ternary_byte_above_242_is_an_error() {
    let (mut bytes, values) = golden_pair(DType::Ternary);
    *bytes.last_mut().expect("a payload") = 243;
    let error = dequantize(DType::Ternary, &bytes, &mut vec![0.0; values.len()]).expect_err("a digit of 3");
    assert_eq!(error.code, Code::TernaryDigit);
}
