//! The keys and values of the positions seen so far, in a buffer of the caller's.
//!
//! ```text
//! keys     [layer][position][n_head_kv * head_dim]   f32
//! values   [layer][position][n_head_kv * head_dim]   f32
//! ```
#![forbid(unsafe_code)]

use super::dims::Config;
use crate::error::{Code, Error, Place, Result};

/// Keys and values of up to `capacity` positions. `S` is the storage: a borrowed slice, an array, a `Vec`.
#[derive(Clone, Debug)]
pub struct KvCache<S> {
    storage: S,
    n_layer: usize,
    kv_len: usize,
    capacity: usize,
    len: usize,
}

/// Values that a cache of `capacity` positions takes; `usize::MAX` when that does not fit.
#[must_use]
pub const fn required_len(config: &Config, capacity: usize) -> usize {
    config.kv_len().saturating_mul(capacity).saturating_mul(config.n_layer).saturating_mul(2)
}

impl<S: AsRef<[f32]> + AsMut<[f32]>> KvCache<S> {
    /// An empty cache of `capacity` positions. What `storage` holds does not matter.
    ///
    /// # Errors
    /// [`Code::BufferTooSmall`] when `storage` is shorter than [`required_len`].
    pub fn new(config: &Config, capacity: usize, storage: S) -> Result<Self> {
        let (need, have) = (required_len(config, capacity), storage.as_ref().len());
        if have < need {
            return Err(Error::buffer_too_small(need, have));
        }
        Ok(Self { storage, n_layer: config.n_layer, kv_len: config.kv_len(), capacity, len: 0 })
    }

    /// Keys and values of one layer, of all `capacity` positions. Empty past the last layer.
    pub(super) fn layer(&mut self, index: usize) -> (&mut [f32], &mut [f32]) {
        let each = self.kv_len.saturating_mul(self.capacity);
        let half = each.saturating_mul(self.n_layer);
        let storage = self.storage.as_mut();
        // A storage may answer with another slice than it showed `new`.
        let (keys, values) = storage.split_at_mut(half.min(storage.len()));
        let (from, to) = (each.saturating_mul(index), each.saturating_mul(index.saturating_add(1)));
        (keys.get_mut(from..to).unwrap_or_default(), values.get_mut(from..to).unwrap_or_default())
    }
}

impl<S> KvCache<S> {
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
