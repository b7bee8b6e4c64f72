#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| p64_fuzz::safetensors::run(data));
