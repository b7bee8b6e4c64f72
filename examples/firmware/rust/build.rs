//! Tells the linker about the machine's memory and the compiler about the model.

use std::env;
use std::path::PathBuf;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rerun-if-env-changed=P64_MODEL");
    let model = env::var("P64_MODEL").expect("P64_MODEL names the .p64 that goes into the image");
    println!("cargo:rerun-if-changed={model}");
    println!("cargo:rustc-env=P64_MODEL={model}");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-search={}", here.display());
        println!("cargo:rustc-link-arg-bins=-Tlink.x");
    }
}
