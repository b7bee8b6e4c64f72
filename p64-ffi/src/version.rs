//! Which library this is.

/// Version of this header as `major << 16 | minor << 8 | patch`. `p64_version()` gives the library's.
pub const P64_VERSION: u32 = 3 << 8;

/// Counts incompatible changes of the binary interface. A program whose `P64_ABI_VERSION` differs from what
/// `p64_abi_version()` returns must not call anything else.
pub const P64_ABI_VERSION: u32 = 1;

/// The library's version as `major << 16 | minor << 8 | patch`.
///
/// Threads: any. Errors: none. Cost: constant.
#[unsafe(no_mangle)]
pub extern "C" fn p64_version() -> u32 {
    P64_VERSION
}

/// The version of the binary interface that the library speaks; compare with `P64_ABI_VERSION`.
///
/// Threads: any. Errors: none. Cost: constant.
#[unsafe(no_mangle)]
pub extern "C" fn p64_abi_version() -> u32 {
    P64_ABI_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_packages() {
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let package = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
            | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
            | number(env!("CARGO_PKG_VERSION_PATCH"));
        assert_eq!(p64_version(), package);
    }
}
