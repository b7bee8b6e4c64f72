//! A safetensors file, or an index: what is accepted fills the file without overlap, and written again it reads the same.

use p64_std::safetensors::{Described, Header, Index, encode_header};

/// The target's body.
pub fn run(data: &[u8]) {
    if data.first() == Some(&b'{') {
        index(data);
        return;
    }
    let Some((len, rest)) = data.split_first_chunk() else { return };
    let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX);
    // A length past the end is refused by whoever opens the file; the text is then all there is.
    let (text, payload) = rest.split_at_checked(len).unwrap_or((rest, &[]));
    let header = match Header::parse(text, payload.len() as u64) {
        Ok(header) => header,
        Err(error) => return check_text(&error.to_string()),
    };
    let mut end = 0;
    for info in &header.tensors {
        assert_eq!(header.find(&info.name), Some(info));
        assert_eq!(info.begin, end, "a hole or an overlap");
        assert_eq!(info.elements().and_then(|elements| info.dtype.byte_len(elements)), Some(info.len()));
        end = info.end;
    }
    assert_eq!(end, payload.len() as u64, "bytes of no tensor");

    let described = header.tensors.iter().map(|info| Described {
        name: &info.name,
        dtype: info.dtype,
        shape: &info.shape,
        len: info.len(),
    });
    let again = encode_header(described, header.metadata.as_deref());
    assert!(again.len().is_multiple_of(8));
    let read = Header::parse(again.get(8..).expect("a length"), payload.len() as u64);
    assert_eq!(read.as_ref(), Ok(&header));
}

fn index(data: &[u8]) {
    match Index::parse(data) {
        Ok(index) => {
            for (tensor, file) in &index.map {
                assert_eq!(index.shard_of(tensor), Some(file.as_str()));
                assert!(!file.contains(['/', '\\']) && file != "..", "{file:?} leads elsewhere");
                assert!(index.shards().binary_search(&file.as_str()).is_ok());
            }
        }
        Err(error) => check_text(&error.to_string()),
    }
}

fn check_text(text: &str) {
    assert!(!text.contains('\n') && text.len() < 1000, "a person reads one line: {text:?}");
}
