//! A GGUF: what is accepted lies inside the file, in place, without overlap, and every part of it can be reached.

use p64_std::gguf::Gguf;

/// The target's body.
pub fn run(data: &[u8]) {
    let gguf = match Gguf::parse(data) {
        Ok(gguf) => gguf,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "a person reads one line: {text:?}");
            return;
        }
    };
    assert!(gguf.alignment().is_power_of_two());
    assert!(gguf.data_offset() >= gguf.info_end());
    for (key, value) in &gguf.metadata() {
        assert!(value.as_bytes().is_none() || value.as_str().is_some(), "{key} is not UTF-8");
    }

    let mut extents = Vec::new();
    for tensor in gguf.tensors() {
        assert_eq!(gguf.find(tensor.name), Some(tensor));
        assert!(tensor.offset.is_multiple_of(u64::from(gguf.alignment())));
        let extent = gguf.extent(tensor);
        if tensor.size > 0 {
            assert!(gguf.data_offset() <= extent.start() && extent.end() <= gguf.file_len());
            extents.push(extent);
        }
    }
    extents.sort_by_key(|extent| extent.start());
    assert!(extents.windows(2).all(|pair| pair[0].end() <= pair[1].start()), "payloads overlap");
}
