//! Attention of a batch: every position and every group of heads a unit of work of its own. Of a single position that sees many,
//! the positions that it sees.
#![forbid(unsafe_code)]

use super::At;
use super::arch::Softcap;
use super::dims::Config;
use crate::kernel::Workers;
use crate::kernel::generic::attention::{Attention, at_once};
use crate::kernel::generic::cache::Rows;
use crate::kernel::generic::spread;

/// Positions whose scores are in memory at the same time.
const TILE: usize = 16;

/// Positions from which on a single one's attention is spread: below, it takes a few microseconds.
const SPREAD: usize = 128;

/// Values that the attention of a batch of `n` positions over a cache of `context` takes.
///
/// A unit is what one key-value head's queries give, followed by their scores:
/// `[min(n, TILE)][n_head_kv][group * head_dim + at_once * context]`. A single position may be spread.
pub(super) const fn tile_len(config: &Config, n: usize, context: usize) -> usize {
    let tile = if n < TILE { n } else { TILE };
    let units = unit_len(config, context).saturating_mul(config.n_head_kv).saturating_mul(tile);
    let spread = spread::buffer_len(config.n_head, config.head_dim, context);
    if cfg!(target_arch = "x86_64") && units < spread { spread } else { units }
}

const fn unit_len(config: &Config, context: usize) -> usize {
    group_len(config).saturating_add(at_once(config.n_head / config.n_head_kv).saturating_mul(context))
}

/// Length of the queries that share a key-value head.
const fn group_len(config: &Config) -> usize {
    (config.n_head / config.n_head_kv).saturating_mul(config.head_dim)
}

/// What the queries of a pass see in the cache, of which the newest is their own.
///
/// `query` and `out` are n x `n_head * head_dim`, `keys` and `values` positions x `n_head_kv * head_dim`, `tile` at least
/// [`tile_len`] of the cache's positions.
pub(super) fn attend(
    at: &At<'_>,
    window: Option<usize>,
    query: &[f32],
    (keys, values): (Rows<'_>, Rows<'_>),
    tile: &mut [f32],
    out: &mut [f32],
    workers: &dyn Workers,
) {
    let config = at.config;
    let heads = Attention {
        n_head: config.n_head,
        n_kv_head: config.n_head_kv,
        head_dim: config.head_dim,
        scale: config.attention_scale,
        softcap: config.attention_softcap.filter(|_| config.family().attention_softcap != Softcap::Never),
    };
    let (query_len, group_len) = (config.query_len(), group_len(config));
    let mut first = at.start;
    for (query, out) in query.chunks(TILE * query_len).zip(out.chunks_mut(TILE * query_len)) {
        let n = out.len() / query_len;
        if n == 1 && first >= SPREAD && heads.by_parts() {
            let (end, begin) = (first + 1, window.map_or(0, |window| (first + 1).saturating_sub(window)));
            if spread::attend(&heads, query, keys, values, begin..end, tile, out, workers).is_err() {
                out.fill(f32::NAN);
            }
            first += 1;
            continue;
        }
        // Scores get the room that the last position of the tile needs.
        let unit_len = unit_len(config, first + n);
        let tile = &mut tile[..n * config.n_head_kv * unit_len];
        workers.for_each_chunk(tile, unit_len, &|unit, chunk| {
            for (unit, buffer) in (unit..).zip(chunk.chunks_exact_mut(unit_len)) {
                let (out, scores) = buffer.split_at_mut(group_len);
                let (position, kv_head) = (unit / config.n_head_kv, unit % config.n_head_kv);
                let query = &query[position * query_len + kv_head * group_len..][..group_len];
                let end = first + position + 1;
                let begin = window.map_or(0, |window| end.saturating_sub(window));
                if heads.attend_group(kv_head, query, keys, values, begin..end, scores, out).is_err() {
                    // The lengths follow from those checked at the start of the pass. Should one not, the logits show it.
                    out.fill(f32::NAN);
                }
            }
        });
        for (out, buffer) in out.chunks_exact_mut(group_len).zip(tile.chunks_exact(unit_len)) {
            out.copy_from_slice(&buffer[..group_len]);
        }
        first += n;
    }
}
