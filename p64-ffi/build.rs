//! Gives the shared library its SONAME, which cargo does not: programs must find the library they were linked with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let soname = format!("libp64.so.{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    }
}
