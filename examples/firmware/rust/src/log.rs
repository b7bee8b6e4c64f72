//! The same validation with its outcome logged by defmt: the image holds no text, the log-print crate beside this one has
//! it from the image's symbols.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod firmware {
    use board::exit;
    use core::hint::black_box;
    use cortex_m_rt::entry;
    use defmt_semihosting as _;
    use p64_core::Container;
    use story::FLASH;

    #[entry]
    fn main() -> ! {
        let file = black_box(&FLASH.0[..]);
        match Container::open(file) {
            Ok(container) => {
                defmt::info!("validated {=usize} bytes, {=u32} tensors", file.len(), container.tensor_count())
            }
            Err(error) => defmt::error!("{}", error),
        }
        if let Some(tensor) = Container::open(file).ok().and_then(|container| container.tensors().next()) {
            defmt::info!("the first is {}, {}", tensor.role(), tensor.dtype());
        }
        // What a torn write leaves behind.
        match Container::open(&file[..file.len() - 64]) {
            Ok(_) => defmt::error!("half a file passed"),
            Err(error) => defmt::warn!("{}", error),
        }
        exit(true)
    }
}

/// The image is for a machine without an operating system.
#[cfg(not(target_os = "none"))]
fn main() {}
