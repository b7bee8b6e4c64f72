//! The 64-byte 10-D manifold coordinate of a layer (spec §9).
#![forbid(unsafe_code)]

use zerocopy::little_endian::F32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One coordinate as it stands on disk: ten `f32`, then 24 zero bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawManifold {
    /// Bytes 0..39, in the order of [`RawManifold::NAMES`].
    pub values: [F32; 10],
    /// Bytes 40..63: zero.
    pub reserved: [u8; 24],
}

const _: () = assert!(size_of::<RawManifold>() == super::RECORD);

impl RawManifold {
    /// The ten dimensions in file order.
    pub const NAMES: [&'static str; 10] = [
        "scale",
        "attention_depth",
        "epistemic_weight",
        "topological_spin",
        "temporal_decay",
        "entropy_bias",
        "spatial_phase",
        "recurrence_frequency",
        "density_threshold",
        "manifold_curvature",
    ];

    /// The canonical projection of `layer` among `n_layer` layers; `layer == n_layer` is the record of the globals.
    ///
    /// `sin` and `cos` differ by one unit in the last place between mathematics libraries, so compare with a tolerance.
    #[must_use]
    pub fn project(layer: u32, n_layer: u32) -> Self {
        use core::f32::consts::{PI, TAU};
        #[expect(clippy::cast_precision_loss, reason = "the spec computes the depth in f32")]
        let depth = layer as f32 / n_layer.max(1) as f32;
        let values =
            [depth, 1.0 - depth, 1.0, libm::sinf(depth * PI), 0.1, 0.5, libm::cosf(depth * TAU), 1.0, 0.8, 0.0];
        Self { values: values.map(F32::new), reserved: [0; 24] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: RawManifold, bits: [u32; 10]) {
        for (name, (a, b)) in RawManifold::NAMES.iter().zip(found.values.iter().zip(bits)) {
            assert!((a.get() - f32::from_bits(b)).abs() < 1e-6, "{name}: {} and {}", a.get(), f32::from_bits(b));
        }
    }

    /// Spec §9, worked examples.
    #[test]
    fn worked_examples() {
        close(
            RawManifold::project(3, 12),
            [
                0x3e80_0000,
                0x3f40_0000,
                0x3f80_0000,
                0x3f35_04f3,
                0x3dcc_cccd,
                0x3f00_0000,
                0xb33b_bd2e,
                0x3f80_0000,
                0x3f4c_cccd,
                0,
            ],
        );
        close(
            RawManifold::project(30, 30),
            [
                0x3f80_0000,
                0,
                0x3f80_0000,
                0xb3bb_bd2e,
                0x3dcc_cccd,
                0x3f00_0000,
                0x3f80_0000,
                0x3f80_0000,
                0x3f4c_cccd,
                0,
            ],
        );
    }
}
