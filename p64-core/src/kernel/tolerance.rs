//! How far a product may be from the `f64` dot product of the dequantised weights: one table by type, used by the
//! tests of every language and device.
#![forbid(unsafe_code)]
