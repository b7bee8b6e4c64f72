//! Writes the machine's memory map for the linker, and tells the compiler which file the images carry.

use std::env;
use std::fs;
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let (flash, ram) = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("arm") => (0u32, 0x2000_0000u32),
        _ => (0x8000_0000, 0x8020_0000),
    };
    let model = flash + 0x10_0000;
    let regions = [("FLASH", flash, "1M"), ("MODEL", model, "1M"), ("RAM", ram, "64K")]
        .map(|(name, origin, length)| format!("  {name} : ORIGIN = {origin:#010x}, LENGTH = {length}\n"));
    fs::write(out.join("memory.x"), format!("MEMORY\n{{\n{}}}\n", regions.concat())).expect("OUT_DIR can be written");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=-T{}", here.join("image.x").display());
    println!("cargo:rerun-if-changed=image.x");

    let file = env::var("P64_MODEL").expect("P64_MODEL names the .p64 that goes into the images");
    println!("cargo:rerun-if-env-changed=P64_MODEL");
    println!("cargo:rerun-if-changed={file}");
    println!("cargo:rustc-env=P64_MODEL={file}");
}
