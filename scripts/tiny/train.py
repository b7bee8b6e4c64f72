"""Trains the small model from nothing: tokenizer, weights, both into one folder.

    python train.py OUT_DIR [--vocabulary N]

Writes OUT_DIR/merges.json and OUT_DIR/weights.npz, which export.py turns into a GGUF. All randomness is seeded; two
runs on the same machine and package versions give the same weights.
"""

import argparse
import functools
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import bpe
import corpus
import model
import optimizer

TOKENS_PER_STEP = 2048
WIDTH_STEP = 64  # documents of a batch are padded to a multiple of this
WARMUP = 40

# (tokens kept of a document, documents). Learning to repeat a name from earlier in the text starts within a few hundred
# steps on short beginnings, where there is little else to attend to, and hardly at all on whole stories.
STAGES = [(64, 11000), (128, 4500), (corpus.CONTEXT, 5500)]


def batches(documents, rng):
    """Batches of documents of like length, in random order, as (ids, lengths)."""
    groups = {}
    for ids in documents:
        groups.setdefault(-(-len(ids) // WIDTH_STEP) * WIDTH_STEP, []).append(ids)
    out = []
    for width, group in sorted(groups.items()):
        rows = TOKENS_PER_STEP // width
        order = rng.permutation(len(group))
        for start in range(0, len(group) - rows + 1, rows):
            block = np.zeros((rows, width), np.int32)
            for row, n in enumerate(order[start : start + rows]):
                block[row, : len(group[n])] = group[n]
            out.append((block, np.array([len(group[n]) for n in order[start : start + rows]], np.int32)))
    return [out[n] for n in rng.permutation(len(out))]


def schedule(step, steps):
    """Share of the peak rates: linear warm-up, constant, linear decay over the second half."""
    return min(1.0, (step + 1) / WARMUP, 2 * (steps - step) / steps + 0.01)


@functools.partial(jax.jit, static_argnames="dims", donate_argnums=(0, 1))
def update(weights, state, number, share, ids, lengths, dims):
    value, grads = jax.value_and_grad(model.loss)(weights, ids, lengths, dims)
    weights, state = optimizer.step(weights, grads, state, number, share)
    return weights, state, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=1024)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()

    merges = bpe.train([corpus.plain(d) for d in corpus.texts(8000, seed=1)], args.vocabulary)
    (args.out / "merges.json").write_text(json.dumps(merges, ensure_ascii=True))
    tokenizer = bpe.Tokenizer(merges)
    held_out = [corpus.encode(tokenizer, d) for d in corpus.texts(300, seed=3)]
    longest = max(map(len, held_out))
    if longest > corpus.CONTEXT:
        raise SystemExit(f"a document has {longest} tokens, the context is {corpus.CONTEXT}")
    plan = []
    for stage, (width, count) in enumerate(STAGES):
        documents = [corpus.encode(tokenizer, d)[:width] for d in corpus.texts(count, seed=10 + stage)]
        plan += batches(documents, np.random.default_rng(20 + stage))
        print(f"{count} documents of up to {width} tokens, {sum(map(len, documents))} in all", flush=True)
    dims = model.Dims(n_vocab=len(tokenizer.tokens), n_ctx=corpus.CONTEXT)

    weights = {name: jnp.asarray(w) for name, w in model.init(dims, seed=4).items()}
    print(f"{dims}, {sum(w.size for w in weights.values())} parameters, {len(plan)} steps", flush=True)
    state = optimizer.start(weights)
    evaluate = jax.jit(model.loss, static_argnames="dims")
    checks = batches(held_out, np.random.default_rng(5))
    for step, (ids, lengths) in enumerate(plan):
        share = schedule(step, len(plan))
        weights, state, value = update(weights, state, step + 1.0, share, ids, lengths, dims)
        if step % 25 == 0 or step + 1 == len(plan):
            print(f"step {step}/{len(plan)} loss {value:.4f} {time.monotonic() - started:.0f} s", flush=True)
        if (step + 1) % 100 == 0 or step + 1 == len(plan):
            np.savez(args.out / "weights.npz", **{name: np.asarray(w) for name, w in weights.items()})
            held = np.mean([float(evaluate(weights, i, n, dims)) for i, n in checks])
            print(f"held out: {held:.4f}", flush=True)


if __name__ == "__main__":
    main()
