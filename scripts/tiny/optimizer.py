"""The optimiser: Muon for the matrices inside the blocks, AdamW for the embedding and the norms.

Muon moves a matrix along its momentum with all singular values made (nearly) equal, by five Newton-Schulz steps of a
quintic; with few tokens to learn from it gets further per token than AdamW alone (K. Jordan et al., 2024).
"""

import jax.numpy as jnp

ADAM_RATE, BETA1, BETA2 = 3e-3, 0.9, 0.98
MUON_RATE, MOMENTUM = 2e-2, 0.95
DECAY, CLIP = 0.02, 1.0
QUINTIC = (3.4445, -4.7750, 2.0315)


def uses_muon(name):
    return name.startswith("blk.") and "norm" not in name


def start(weights):
    """Optimiser state: first and second moments by name."""
    first = {name: jnp.zeros_like(w) for name, w in weights.items()}
    second = {name: jnp.zeros_like(w) for name, w in weights.items() if not uses_muon(name)}
    return first, second


def equalised(matrix):
    """`matrix` with singular values close to 1."""
    a, b, c = QUINTIC
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (jnp.linalg.norm(x) + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def step(weights, grads, state, number, schedule):
    """One step: `number` counts from 1, `schedule` is the share of the peak rates."""
    first, second = dict(state[0]), dict(state[1])
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads.values()))
    scale = jnp.minimum(1.0, CLIP / norm)
    new = {}
    for name, weight in weights.items():
        grad = grads[name] * scale
        if uses_muon(name):
            first[name] = MOMENTUM * first[name] + grad
            rows, cols = weight.shape
            move = equalised(grad + MOMENTUM * first[name]) * max(1.0, rows / cols) ** 0.5
            new[name] = weight - schedule * MUON_RATE * (move + DECAY * weight)
        else:
            first[name] = BETA1 * first[name] + (1 - BETA1) * grad
            second[name] = BETA2 * second[name] + (1 - BETA2) * grad * grad
            spread = jnp.sqrt(second[name] / (1 - BETA2**number)) + 1e-8
            new[name] = weight - schedule * ADAM_RATE * first[name] / (1 - BETA1**number) / spread
    return new, (first, second)
