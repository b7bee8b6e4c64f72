//! The keys and values of the positions seen so far, in a buffer of the caller's.
//!
//! ```text
//! keys     [layer][n_head_kv][position][head_dim]   in their type, filled up to whole words
//! values   [layer][n_head_kv][position][head_dim]   likewise
//! ```
//!
//! Attention reads one head of many positions: they lie side by side, so that a processor foresees what comes next.
//!
//! A buffer is counted in words of four bytes whatever the types: it is a slice of `f32`, and for types other than
//! [`KvType::F32`] its bytes are used as they are.
#![forbid(unsafe_code)]

use super::dims::Config;
use crate::error::{Code, Error, Place, Result};
use crate::kernel::generic::cache::{self, BLOCK, Codec, Rows};
use core::fmt;
use zerocopy::IntoBytes;

/// The type of cached keys or values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum KvType {
    /// As computed: 4 bytes an element.
    #[default]
    F32,
    /// Rounded to 11 bits: 2 bytes an element.
    F16,
    /// 8-bit integers with a step for each 32: 34 bytes for them. Heads have to be whole blocks.
    Q8_0,
}

impl KvType {
    /// Every type.
    pub const ALL: &'static [Self] = &[Self::F32, Self::F16, Self::Q8_0];

    /// What people call the type: `f32`, `f16`, `q8_0`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }

    /// The type of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Elements that share a block.
    #[must_use]
    pub const fn block(self) -> usize {
        match self {
            Self::F32 | Self::F16 => 1,
            Self::Q8_0 => BLOCK,
        }
    }

    const fn codec(self) -> &'static dyn Codec {
        match self {
            Self::F32 => cache::F32,
            Self::F16 => cache::F16,
            Self::Q8_0 => cache::Q8_0,
        }
    }

    /// Words of four bytes for so many elements, which are whole blocks. Never more than the elements, so that what does
    /// not fit stays what does not fit.
    const fn words(self, elements: usize) -> usize {
        match self {
            Self::F32 => elements,
            _ if elements == usize::MAX => elements,
            Self::F16 => elements.div_ceil(2),
            // 34 bytes are eight words and a half.
            Self::Q8_0 => (elements / BLOCK) * 8 + (elements / BLOCK).div_ceil(2),
        }
    }
}

impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The types of a cache. Keys decide where a position looks and are the more sensitive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct KvTypes {
    /// Of the keys.
    pub keys: KvType,
    /// Of the values.
    pub values: KvType,
}

impl From<KvType> for KvTypes {
    /// The same for both.
    fn from(kind: KvType) -> Self {
        Self { keys: kind, values: kind }
    }
}

/// Keys and values of up to `capacity` positions. `S` is the storage: a borrowed slice, an array, a `Vec`.
#[derive(Clone, Debug)]
pub struct KvCache<S> {
    storage: S,
    types: KvTypes,
    /// Those of keys and values. [`KvCache::new`] names one only, so that firmware links no other.
    codecs: (&'static dyn Codec, &'static dyn Codec),
    n_layer: usize,
    kv_len: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
}

/// Words (`f32` values) that a cache of `capacity` positions takes with keys and values in `f32`; `usize::MAX` when that
/// does not fit.
#[must_use]
pub const fn required_len(config: &Config, capacity: usize) -> usize {
    required_len_of(config, KvTypes { keys: KvType::F32, values: KvType::F32 }, capacity)
}

/// Words of four bytes that a cache of `capacity` positions takes in these types; `usize::MAX` when that does not fit.
#[must_use]
pub const fn required_len_of(config: &Config, types: KvTypes, capacity: usize) -> usize {
    let elements = config.kv_len().saturating_mul(capacity).saturating_mul(config.n_layer);
    types.keys.words(elements).saturating_add(types.values.words(elements))
}

impl<S: AsRef<[f32]> + AsMut<[f32]>> KvCache<S> {
    /// An empty cache of `capacity` positions in `f32`. What `storage` holds does not matter.
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`] when `storage` is shorter than [`required_len`].
    pub fn new(config: &Config, capacity: usize, storage: S) -> Result<Self> {
        Self::with(config, KvTypes::default(), (cache::F32, cache::F32), capacity, storage)
    }

    /// An empty cache of `capacity` positions in these types. What `storage` holds does not matter.
    ///
    /// # Errors
    /// [`Code::PartialBlock`] when a head is no whole number of blocks (of 32 elements in [`KvType::Q8_0`]),
    /// [`Code::BufferTooSmall`] when `storage` is shorter than [`required_len_of`].
    pub fn of(config: &Config, types: KvTypes, capacity: usize, storage: S) -> Result<Self> {
        for block in [types.keys.block(), types.values.block()] {
            if !config.head_dim.is_multiple_of(block) {
                return Err(Error::new(Code::PartialBlock, Place::File).values(block as u64, config.head_dim as u64));
            }
        }
        Self::with(config, types, (types.keys.codec(), types.values.codec()), capacity, storage)
    }

    fn with(
        config: &Config,
        types: KvTypes,
        codecs: (&'static dyn Codec, &'static dyn Codec),
        capacity: usize,
        storage: S,
    ) -> Result<Self> {
        let (need, have) = (required_len_of(config, types, capacity), storage.as_ref().len());
        if have < need {
            return Err(Error::buffer_too_small(need, have));
        }
        let (n_layer, kv_len, head_dim) = (config.n_layer, config.kv_len(), config.head_dim);
        Ok(Self { storage, types, codecs, n_layer, kv_len, head_dim, capacity, len: 0 })
    }

    /// Keeps the keys and values of the positions from `start` on.
    pub(super) fn store(&mut self, layer: usize, start: usize, keys: &[f32], values: &[f32]) {
        let Self { codecs, kv_len, head_dim, capacity, .. } = *self;
        let layer = kv_len.saturating_mul(capacity).saturating_mul(layer);
        let (key_half, value_half) = self.halves();
        for (codec, half, rows) in [(codecs.0, key_half, keys), (codecs.1, value_half, values)] {
            for (position, row) in (start..capacity).zip(rows.chunks_exact(kv_len.max(1))) {
                for (head, elements) in row.chunks_exact(head_dim.max(1)).enumerate() {
                    let row = head.saturating_mul(capacity).saturating_add(position);
                    codec.write(half.as_mut_bytes(), row.saturating_mul(head_dim).saturating_add(layer), elements);
                }
            }
        }
    }

    /// Keys and values of one layer, of all `capacity` positions. Empty past the last layer.
    pub(super) fn layer(&mut self, index: usize) -> (Rows<'_>, Rows<'_>) {
        let each = self.kv_len.saturating_mul(self.capacity);
        let (first, codecs) = (each.saturating_mul(index), self.codecs);
        let (keys, values) = self.halves();
        (codecs.0.read(keys.as_bytes(), first, each), codecs.1.read(values.as_bytes(), first, each))
    }

    /// The words of all keys and of all values.
    fn halves(&mut self) -> (&mut [f32], &mut [f32]) {
        let elements = self.kv_len.saturating_mul(self.capacity).saturating_mul(self.n_layer);
        let (keys, values) = (self.types.keys.words(elements), self.types.values.words(elements));
        let storage = self.storage.as_mut();
        // A storage may answer with another slice than it showed `of`.
        let (key_half, rest) = storage.split_at_mut(keys.min(storage.len()));
        let len = values.min(rest.len());
        (key_half, rest.split_at_mut(len).0)
    }
}

impl<S> KvCache<S> {
    /// The types of the keys and values.
    #[must_use]
    pub const fn types(&self) -> KvTypes {
        self.types
    }

    /// Positions held.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Positions there is room for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all positions from `len` on; what came before stays valid, because no position sees a later one.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Forgets everything.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Checks that the cache was made for these dimensions and has room for `n` more positions.
    pub(super) fn check(&self, config: &Config, n: usize) -> Result<()> {
        if (self.n_layer, self.kv_len) != (config.n_layer, config.kv_len()) {
            let (need, have) = (required_len(config, 1), self.n_layer.saturating_mul(self.kv_len).saturating_mul(2));
            return Err(Error::new(Code::LengthMismatch, Place::File).values(need as u64, have as u64));
        }
        match self.len.checked_add(n) {
            Some(len) if len <= self.capacity => Ok(()),
            len => {
                let last = len.unwrap_or(usize::MAX).saturating_sub(1);
                Err(Error::new(Code::ContextFull, Place::File).values(self.capacity as u64, last as u64))
            }
        }
    }

    /// Counts `n` positions as held; [`KvCache::check`] said that they fit.
    pub(super) fn advance(&mut self, n: usize) {
        self.len = self.len.saturating_add(n).min(self.capacity);
    }
}
