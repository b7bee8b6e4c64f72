//! Names of element types and roles.

use crate::boundary::{Caller, Status};
use crate::error::p64_error;
use core::ffi::c_char;
use p64_core::{Code, DType, Error, Place, Role};

/// Element types: GGML's numbers, and the two that P64 adds. Files may hold other numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_dtype {
    /// 32-bit IEEE float.
    P64_DTYPE_F32 = 0,
    /// 16-bit IEEE float.
    P64_DTYPE_F16 = 1,
    /// 4-bit, f16 scale per 32.
    P64_DTYPE_Q4_0 = 2,
    /// 4-bit, f16 scale and minimum per 32.
    P64_DTYPE_Q4_1 = 3,
    /// 5-bit, f16 scale per 32.
    P64_DTYPE_Q5_0 = 6,
    /// 5-bit, f16 scale and minimum per 32.
    P64_DTYPE_Q5_1 = 7,
    /// 8-bit, f16 scale per 32.
    P64_DTYPE_Q8_0 = 8,
    /// 8-bit activations with their sum; not a weight type.
    P64_DTYPE_Q8_1 = 9,
    /// 2-bit super-blocks of 256.
    P64_DTYPE_Q2_K = 10,
    /// 3-bit super-blocks of 256.
    P64_DTYPE_Q3_K = 11,
    /// 4-bit super-blocks of 256.
    P64_DTYPE_Q4_K = 12,
    /// 5-bit super-blocks of 256.
    P64_DTYPE_Q5_K = 13,
    /// 6-bit super-blocks of 256.
    P64_DTYPE_Q6_K = 14,
    /// 8-bit activations of the K types; not a weight type.
    P64_DTYPE_Q8_K = 15,
    /// 2.06-bit codebook.
    P64_DTYPE_IQ2_XXS = 16,
    /// 2.31-bit codebook.
    P64_DTYPE_IQ2_XS = 17,
    /// 3.06-bit codebook.
    P64_DTYPE_IQ3_XXS = 18,
    /// 1.56-bit codebook.
    P64_DTYPE_IQ1_S = 19,
    /// 4-bit non-linear, f16 scale per 32.
    P64_DTYPE_IQ4_NL = 20,
    /// 3.44-bit codebook.
    P64_DTYPE_IQ3_S = 21,
    /// 2.5-bit codebook.
    P64_DTYPE_IQ2_S = 22,
    /// 4.25-bit non-linear.
    P64_DTYPE_IQ4_XS = 23,
    /// 8-bit integer.
    P64_DTYPE_I8 = 24,
    /// 16-bit integer.
    P64_DTYPE_I16 = 25,
    /// 32-bit integer.
    P64_DTYPE_I32 = 26,
    /// 64-bit integer.
    P64_DTYPE_I64 = 27,
    /// 64-bit IEEE float.
    P64_DTYPE_F64 = 28,
    /// 1.75-bit codebook.
    P64_DTYPE_IQ1_M = 29,
    /// The upper half of a 32-bit float.
    P64_DTYPE_BF16 = 30,
    /// Ternary, 1.69 bits.
    P64_DTYPE_TQ1_0 = 34,
    /// Ternary, 2.06 bits.
    P64_DTYPE_TQ2_0 = 35,
    /// 4-bit float with a shared exponent per 32.
    P64_DTYPE_MXFP4 = 39,
    /// 4-bit float with four 8-bit scales per 64.
    P64_DTYPE_NVFP4 = 40,
    /// 1-bit, f16 scale per 128.
    P64_DTYPE_Q1_0 = 41,
    /// 2-bit, f16 scale per 64.
    P64_DTYPE_Q2_0 = 42,
    /// Q4_K with its scales expanded at conversion (spec §7.2.1).
    P64_DTYPE_Q4_K_SOA = 112,
    /// Sixteen rows of Q4_0 side by side.
    P64_DTYPE_Q4_0_R16 = 113,
    /// Sixteen rows of Q4_1 side by side.
    P64_DTYPE_Q4_1_R16 = 114,
    /// Sixteen rows of Q5_0 side by side.
    P64_DTYPE_Q5_0_R16 = 115,
    /// Sixteen rows of Q5_1 side by side.
    P64_DTYPE_Q5_1_R16 = 116,
    /// Sixteen rows of Q8_0 side by side.
    P64_DTYPE_Q8_0_R16 = 117,
    /// Sixteen rows of Q2_K side by side.
    P64_DTYPE_Q2_K_R16 = 118,
    /// Sixteen rows of Q3_K side by side.
    P64_DTYPE_Q3_K_R16 = 119,
    /// Sixteen rows of Q4_K side by side.
    P64_DTYPE_Q4_K_R16 = 120,
    /// Sixteen rows of Q5_K side by side.
    P64_DTYPE_Q5_K_R16 = 121,
    /// Sixteen rows of Q6_K side by side.
    P64_DTYPE_Q6_K_R16 = 122,
    /// Sixteen rows of IQ4_NL side by side.
    P64_DTYPE_IQ4_NL_R16 = 123,
    /// Sixteen rows of IQ4_XS side by side.
    P64_DTYPE_IQ4_XS_R16 = 124,
    /// Sixteen rows of F16 side by side.
    P64_DTYPE_F16_R16 = 125,
    /// Sixteen rows of BF16 side by side.
    P64_DTYPE_BF16_R16 = 126,
    /// Sixteen rows of F32 side by side.
    P64_DTYPE_F32_R16 = 127,
    /// BitNet-1.58b: one scale, then base-3 digits, five to a byte. Not a block type.
    P64_DTYPE_TERNARY = 1158,
}

/// What a tensor is for. Files may hold other numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_role {
    /// Attention key projection.
    P64_ROLE_ATTN_K = 0,
    /// Attention value projection.
    P64_ROLE_ATTN_V = 1,
    /// Attention query projection.
    P64_ROLE_ATTN_Q = 2,
    /// Attention output projection.
    P64_ROLE_ATTN_OUTPUT = 3,
    /// Feed-forward gate projection.
    P64_ROLE_FFN_GATE = 4,
    /// Feed-forward up projection.
    P64_ROLE_FFN_UP = 5,
    /// Feed-forward down projection.
    P64_ROLE_FFN_DOWN = 6,
    /// Norm before attention.
    P64_ROLE_ATTN_NORM = 7,
    /// Norm before the feed-forward network.
    P64_ROLE_FFN_NORM = 8,
    /// Token embedding (global).
    P64_ROLE_TOKEN_EMBD = 9,
    /// Output head (global).
    P64_ROLE_OUTPUT = 10,
    /// Final norm (global).
    P64_ROLE_OUTPUT_NORM = 11,
    /// Norm inside attention (BitNet).
    P64_ROLE_ATTN_SUB_NORM = 12,
    /// Norm inside the feed-forward network (BitNet).
    P64_ROLE_FFN_SUB_NORM = 13,
    /// Expert router.
    P64_ROLE_ROUTER = 0x20,
    /// Experts' gate projections, stacked.
    P64_ROLE_GATE_EXPERTS = 0x21,
    /// Experts' up projections, stacked.
    P64_ROLE_UP_EXPERTS = 0x22,
    /// Experts' down projections, stacked.
    P64_ROLE_DOWN_EXPERTS = 0x23,
    /// Shared experts' gate projection.
    P64_ROLE_SHARED_GATE = 0x24,
    /// Shared experts' up projection.
    P64_ROLE_SHARED_UP = 0x25,
    /// Shared experts' down projection.
    P64_ROLE_SHARED_DOWN = 0x26,
    /// Vision convolution.
    P64_ROLE_VISION_CONV = 0x80,
    /// Vision batch norm.
    P64_ROLE_VISION_BN = 0x81,
    /// Vision fully connected.
    P64_ROLE_VISION_FC = 0x82,
    /// No role.
    P64_ROLE_NONE = 0xfffe,
}

/// `name` with NULs up to the array's end: a C string at compile time. Too long a name does not compile.
pub(crate) const fn padded<const N: usize>(name: &str) -> [u8; N] {
    assert!(name.len() < N);
    let mut padded = [0; N];
    let (to, _) = padded.split_at_mut(name.len());
    to.copy_from_slice(name.as_bytes());
    padded
}

static DTYPES: [[u8; 16]; DType::ALL.len()] = {
    let mut names = [[0; 16]; DType::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = padded(DType::ALL[at].name());
        at += 1;
    }
    names
};

static ROLES: [[u8; 16]; Role::ALL.len()] = {
    let mut names = [[0; 16]; Role::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = padded(Role::ALL[at].name());
        at += 1;
    }
    names
};

/// The element type of a number; `None` for numbers that no tensor can have.
pub(crate) fn dtype(id: u32) -> Option<DType> {
    u16::try_from(id).ok().map(DType::from_id)
}

/// GGML's name of an element type, `Q4_K`; `unknown` for a number outside the registry.
///
/// Owner: a static string, never freed. Threads: any. Errors: none. Cost: one pass over the registry.
#[unsafe(no_mangle)]
pub extern "C" fn p64_dtype_name(dtype: u32) -> *const c_char {
    let known = DType::ALL.iter().zip(&DTYPES).find(|(known, _)| u32::from(known.id()) == dtype);
    known.map_or(c"unknown".as_ptr(), |(_, name)| name.as_ptr().cast())
}

/// How an element type packs a row: `elements` consecutive values share `bytes` bytes.
///
/// Threads: any. Errors: `P64_STATUS_UNSUPPORTED_DTYPE` for types that are no blocks (ternary) and for unknown ones.
/// Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_dtype_block(
    dtype: u32,
    elements: *mut u32,
    bytes: *mut u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (elements, bytes) = (c.out(elements)?, c.out(bytes)?);
        let unsupported = Error::new(Code::UnsupportedDType, Place::File).values(0, u64::from(dtype));
        let block = self::dtype(dtype).and_then(DType::block).ok_or(unsupported)?;
        elements.set(block.elements);
        bytes.set(block.bytes);
        Ok(())
    })
}

/// The name of a role, `attn_q`; `unknown` for a number without a meaning.
///
/// Owner: a static string, never freed. Threads: any. Errors: none. Cost: one pass over the roles.
#[unsafe(no_mangle)]
pub extern "C" fn p64_role_name(role: u32) -> *const c_char {
    let known = Role::ALL.iter().zip(&ROLES).find(|(known, _)| u32::from(known.id()) == role);
    known.map_or(c"unknown".as_ptr(), |(_, name)| name.as_ptr().cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    /// The enumerations are written out for cbindgen; this reads them back from the source.
    fn written(prefix: &str) -> Vec<(String, u32)> {
        let pairs =
            include_str!("names.rs").lines().filter_map(|line| line.trim().strip_prefix(prefix)?.split_once(" = "));
        let number = |text: &str| match text.trim_end_matches(',').strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => text.trim_end_matches(',').parse(),
        };
        pairs.map(|(name, value)| (name.to_lowercase(), number(value).expect("a number"))).collect()
    }

    fn text(name: *const c_char) -> String {
        // SAFETY: the functions return static C strings.
        unsafe { CStr::from_ptr(name) }.to_str().expect("UTF-8").to_lowercase()
    }

    #[test]
    fn the_enumerations_are_cores() {
        let dtypes: Vec<_> = DType::ALL.iter().map(|dtype| (dtype.name().to_lowercase(), dtype.id().into())).collect();
        assert_eq!(written("P64_DTYPE_"), dtypes);
        let mut roles: Vec<_> = Role::ALL.iter().map(|role| (role.name().to_owned(), role.id().into())).collect();
        roles.push(("none".to_owned(), Role::UNKNOWN.id().into()));
        assert_eq!(written("P64_ROLE_"), roles);
        for (name, number) in dtypes {
            assert_eq!(text(p64_dtype_name(number)), name);
        }
        for (name, number) in roles.iter().filter(|(name, _)| name != "none") {
            assert_eq!(text(p64_role_name(*number)), *name);
        }
        for number in [3, 0xfffe, 0x1_0000, u32::MAX] {
            let known = DType::ALL.iter().any(|dtype| u32::from(dtype.id()) == number);
            assert!(known || text(p64_dtype_name(number)) == "unknown");
        }
        assert_eq!(text(p64_role_name(u32::MAX)), "unknown");
    }
}
