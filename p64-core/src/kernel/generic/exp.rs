//! The exponential function in operations that vectors have.
#![forbid(unsafe_code)]

/// `e^x` with an error of at most 1.5 units in the last place, where that is no subnormal number: those become 0. Infinite from
/// 88.73 up, NaN for NaN.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`; the polynomial of degree 6 has the smallest relative error for `e^r`, 2^-28.
// Vectors need it inlined; where there are none, code is what is scarce.
#[cfg_attr(target_arch = "x86_64", inline(always))]
#[must_use]
pub(crate) fn exp(x: f32) -> f32 {
    /// Adding it leaves no fraction bits, so that the addition itself rounds, and the integer is in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    /// ln 2 in two parts; products of the first with integers up to 2^8 are exact.
    const LN2: f32 = 0.693_145_75;
    const LN2_REST: f32 = 1.428_606_8e-6;
    let clamped = x.clamp(-88.0, 89.0);
    let shifted = clamped * core::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let integer = shifted.to_bits().wrapping_sub(SHIFT.to_bits()).cast_signed();
    let r = clamped - n * LN2 - n * LN2_REST;
    let p = 1.381_453_9e-3;
    let p = p * r + 8.368_745e-3;
    let p = p * r + 4.166_839e-2;
    let p = p * r + 1.666_652_1e-1;
    let p = p * r + 0.499_999_94;
    let e = (p * r) * r + r + 1.0;
    // Two factors, for 2^128 is no number of its own.
    let half = integer >> 1;
    let scaled = e * power_of_two(half) * power_of_two(integer.wrapping_sub(half));
    if x < -87.336_54 { 0.0 } else { scaled }
}

/// `2^n` for `n` from -126 to 127.
#[inline(always)]
const fn power_of_two(n: i32) -> f32 {
    f32::from_bits(n.wrapping_add(127).cast_unsigned() << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_exact_value_everywhere() {
        let mut worst = 0.0f64;
        let mut x = -87.3f32;
        while x < 88.7 {
            let exact = libm::exp(f64::from(x));
            #[expect(clippy::cast_possible_truncation, reason = "the nearest number")]
            let nearest = exact as f32;
            let ulp = f64::from(f32::from_bits(nearest.to_bits() + 1)) - f64::from(nearest);
            worst = worst.max((f64::from(exp(x)) - exact).abs() / ulp);
            x += 0.000_917;
        }
        assert!(worst <= 1.5, "{worst}");
    }

    #[test]
    fn the_ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert!(exp(88.7) < f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }
}
