//! A look at the intermediates, by the names that llama.cpp's graph has, to find the first one that is wrong.
#![forbid(unsafe_code)]

/// One intermediate of a forward pass.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Node<'n> {
    /// Name in ggml's graph, without the layer.
    pub name: &'static str,
    /// Operation of ggml's that gives it: a name such as `Qcur` stands for several results.
    pub op: &'static str,
    /// Layer; `None` before the first and after the last.
    pub layer: Option<usize>,
    /// Length of a row.
    pub row_len: usize,
    /// The rows, one for each position (for each head of each position after norm and rotation of heads).
    pub values: &'n [f32],
}

/// Something that is shown every intermediate.
pub type Probe<'p> = &'p mut dyn FnMut(Node<'_>);
