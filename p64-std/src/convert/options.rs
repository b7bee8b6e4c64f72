//! How a container is to be made.

use crate::quantize::{Imatrix, Rules};
use crate::split::Cut;
use crate::write::LayoutOptions;

/// What becomes of the payloads where no rule says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// Every payload as it is.
    #[default]
    Verbatim,
    /// Q4_K becomes Q4_K_SOA (spec §7.2.1).
    Soa,
    /// Every matrix that is not F16 becomes F16.
    F16,
    /// Sixteen rows of a matrix side by side, where its type can have them and it has a multiple of sixteen: the same values, and
    /// what products read fastest. Every way out gives the source's bytes.
    Tuned,
}

/// Options of [`convert`](super::convert()).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProduceOptions {
    /// How the blobs are laid out.
    pub layout: LayoutOptions,
    /// What becomes of the payloads that no rule is about.
    pub weights: Layout,
    /// The types that tensors are to have.
    pub rules: Rules,
    /// How much each column of a tensor counts when it is encoded.
    pub imatrix: Option<Imatrix>,
    /// Whether a Hugging Face folder's tensors are taken as they are, although its other files would make a complete model.
    pub raw: bool,
    /// How the container is cut into files that are a set; `None` for one file.
    pub split: Option<Cut>,
    /// Threads that compute payloads; 0 for one per core.
    pub threads: usize,
}

impl ProduceOptions {
    /// Every payload as it is, laid out so.
    #[must_use]
    pub fn preserving(layout: LayoutOptions) -> Self {
        Self { layout, ..Self::default() }
    }
}
