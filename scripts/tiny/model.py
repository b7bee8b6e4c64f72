"""The model: a llama transformer in JAX, written so that its weights are GGUF's weights without reordering.

Matrices are (out, in) as GGUF stores them. RMSNorm before attention and feed-forward, rotary positions on neighbouring
pairs (2i, 2i+1), grouped-query attention, SwiGLU, no biases, the output tied to the embedding.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Dims:
    n_vocab: int = 1024
    n_embd: int = 128
    n_layer: int = 4
    n_head: int = 4
    n_head_kv: int = 2
    n_ff: int = 256
    n_ctx: int = 512
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.n_embd // self.n_head


def init(dims, seed):
    """Starting weights; keys are GGUF tensor names.

    Every block starts as a no-op (outputs zero) and the embeddings are large beside what a step adds, so that a token
    stays recognisable through the layers: copying a name from earlier in a story depends on it. The small final norm
    keeps the tied output from predicting its own input at first.
    """
    rng = np.random.default_rng(seed)
    kv = dims.n_head_kv * dims.head_dim

    def matrix(rows, cols, deviation):
        return (rng.standard_normal((rows, cols)) * deviation).astype(np.float32)

    unit = 1 / np.sqrt(dims.n_embd)
    weights = {"token_embd.weight": matrix(dims.n_vocab, dims.n_embd, 0.1)}
    for i in range(dims.n_layer):
        weights[f"blk.{i}.attn_norm.weight"] = np.ones(dims.n_embd, np.float32)
        weights[f"blk.{i}.attn_q.weight"] = matrix(dims.n_embd, dims.n_embd, unit)
        weights[f"blk.{i}.attn_k.weight"] = matrix(kv, dims.n_embd, unit)
        weights[f"blk.{i}.attn_v.weight"] = matrix(kv, dims.n_embd, unit)
        weights[f"blk.{i}.attn_output.weight"] = np.zeros((dims.n_embd, dims.n_embd), np.float32)
        weights[f"blk.{i}.ffn_norm.weight"] = np.ones(dims.n_embd, np.float32)
        weights[f"blk.{i}.ffn_gate.weight"] = matrix(dims.n_ff, dims.n_embd, unit)
        weights[f"blk.{i}.ffn_up.weight"] = matrix(dims.n_ff, dims.n_embd, unit)
        weights[f"blk.{i}.ffn_down.weight"] = np.zeros((dims.n_embd, dims.n_ff), np.float32)
    weights["output_norm.weight"] = np.full(dims.n_embd, 0.5, np.float32)
    return weights


def rmsnorm(x, weight, eps):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def rope(x, base):
    """Rotates (batch, position, head, head_dim) by position."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * base ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)


def attention(w, i, x, dims):
    batch, length, _ = x.shape
    group = dims.n_head // dims.n_head_kv
    q = rope((x @ w[f"blk.{i}.attn_q.weight"].T).reshape(batch, length, dims.n_head, dims.head_dim), dims.rope_base)
    k = rope((x @ w[f"blk.{i}.attn_k.weight"].T).reshape(batch, length, dims.n_head_kv, dims.head_dim), dims.rope_base)
    v = (x @ w[f"blk.{i}.attn_v.weight"].T).reshape(batch, length, dims.n_head_kv, dims.head_dim)
    q = q.reshape(batch, length, dims.n_head_kv, group, dims.head_dim)
    scores = jnp.einsum("bqkgd,bskd->bkgqs", q, k) / np.sqrt(dims.head_dim)
    causal = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bkgqs,bskd->bqkgd", weights, v).reshape(batch, length, dims.n_embd)
    return mixed @ w[f"blk.{i}.attn_output.weight"].T


def feed_forward(w, i, x):
    gate = jax.nn.silu(x @ w[f"blk.{i}.ffn_gate.weight"].T)
    return (gate * (x @ w[f"blk.{i}.ffn_up.weight"].T)) @ w[f"blk.{i}.ffn_down.weight"].T


def logits(w, ids, dims):
    """(batch, position) ids to (batch, position, n_vocab) logits."""
    x = w["token_embd.weight"][ids]
    for i in range(dims.n_layer):
        x = x + attention(w, i, rmsnorm(x, w[f"blk.{i}.attn_norm.weight"], dims.eps), dims)
        x = x + feed_forward(w, i, rmsnorm(x, w[f"blk.{i}.ffn_norm.weight"], dims.eps))
    return rmsnorm(x, w["output_norm.weight"], dims.eps) @ w["token_embd.weight"].T


def loss(w, ids, lengths, dims):
    """Mean cross entropy of every next token inside the documents' lengths."""
    scores = logits(w, ids[:, :-1], dims)
    target = ids[:, 1:]
    picked = jnp.take_along_axis(scores, target[..., None], axis=-1)[..., 0]
    inside = jnp.arange(target.shape[1])[None, :] < lengths[:, None] - 1
    return jnp.sum((jax.nn.logsumexp(scores, axis=-1) - picked) * inside) / jnp.sum(inside)
