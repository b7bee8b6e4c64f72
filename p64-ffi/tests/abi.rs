//! The binary interface as Rust lays it out, pinned to the numbers that `tests/c/abi.c` pins from the header's side.

use p64::{
    container, crc, decoder, error, kernel, layer, metadata, names, status, stream, tensor, tokenizer, version,
    vocabulary,
};

macro_rules! pin {
    ($($type:ty: $size:literal, $align:literal;)*) => {
        $(assert_eq!((size_of::<$type>(), align_of::<$type>()), ($size, $align), stringify!($type));)*
    };
}

#[test]
fn sizes_on_every_machine() {
    pin! {
        error::p64_error: 40, 8;
        container::p64_container: 512, 8;
        container::p64_name_slot: 8, 4;
        container::p64_info: 64, 8;
        container::p64_hparams: 56, 4;
        layer::p64_layer: 32, 8;
        layer::p64_manifold: 40, 4;
        metadata::p64_metadata: 128, 8;
        decoder::p64_decoder: 1024, 8;
        stream::p64_stream: 1024, 8;
        vocabulary::p64_vocabulary: 512, 8;
        vocabulary::p64_slot: 16, 4;
        status::p64_status: 4, 4;
        names::p64_dtype: 4, 4;
        names::p64_role: 4, 4;
        kernel::p64_activations: 4, 4;
    }
    assert_eq!(version::p64_abi_version(), 1);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn sizes_where_pointers_have_64_bits() {
    pin! {
        crc::p64_crc32c: 16, 8;
        container::p64_open_options: 72, 8;
        stream::p64_reader: 24, 8;
        tensor::p64_tensor: 88, 8;
        metadata::p64_value: 40, 8;
        tokenizer::p64_strings: 16, 8;
        tokenizer::p64_tokenizer: 112, 8;
        decoder::p64_decode_memory: 24, 8;
    }
}

#[cfg(all(feature = "std", target_pointer_width = "64"))]
#[test]
fn sizes_of_tier_1_where_pointers_have_64_bits() {
    use p64::tier1::{convert, file, model, session};
    pin! {
        file::p64_map_options: 32, 8;
        model::p64_model_info: 56, 8;
        model::p64_text: 16, 8;
        model::p64_message: 32, 8;
        session::p64_session_options: 64, 8;
        session::p64_generate_options: 32, 8;
        session::p64_generation: 40, 8;
        convert::p64_convert_options: 24, 4;
        convert::p64_written: 48, 8;
    }
}

/// `tests/c/abi.c` pins the same sizes: a change here without one there does not pass.
#[test]
fn the_c_test_pins_the_same_sizes() {
    let (rust, c) = (include_str!("abi.rs"), include_str!("../../tests/c/abi.c"));
    let pinned = rust.lines().filter_map(|line| line.trim().split_once("::p64_")?.1.strip_suffix(';'));
    let mut count = 0;
    for line in pinned.filter(|line| line.contains(": ")) {
        let (name, numbers) = line.split_once(": ").expect("just seen");
        let enumeration = matches!(name, "dtype" | "role" | "activations");
        assert!(enumeration || c.contains(&format!("SIZE(p64_{name}, {numbers});")), "p64_{name} {numbers}");
        count += 1;
    }
    assert_eq!(count, 33);
}
