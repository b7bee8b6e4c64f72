"""Trains the small model from nothing: tokenizer, weights, both into one folder.

    python train.py OUT_DIR [--vocabulary N] [--from-cycle N]

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

# (tokens kept of a document, share that begins in the middle, documents). Learning to repeat a name from earlier in the
# text starts within a few hundred steps on short texts, where there is little else to attend to, and hardly at all on
# whole stories. The beginnings of FIRST teach names, the middles of THIRD the belongings, which are named again later.
FIRST = [(64, 0.0, 11000), (128, 0.0, 4500), (corpus.CONTEXT, 0.0, 5500)]
SECOND = [(corpus.CONTEXT, 0.0, 6500)]
THIRD = [(96, 1.0, 5000), (192, 0.5, 2500), (corpus.CONTEXT, 0.1, 5000)]
# Each cycle is its stages in order, a peak share of the rates and a fresh optimiser.
CYCLES = [(FIRST, 1.0), (SECOND, 0.6), (THIRD, 0.8)]


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
    """Share of the cycle's peak: linear warm-up, constant, linear decay over the second half."""
    return min(1.0, (step + 1) / WARMUP, 2 * (steps - step) / steps + 0.01)


@functools.partial(jax.jit, static_argnames="dims", donate_argnums=(0, 1))
def update(weights, state, number, share, ids, lengths, dims):
    value, grads = jax.value_and_grad(model.loss)(weights, ids, lengths, dims)
    weights, state = optimizer.step(weights, grads, state, number, share)
    return weights, state, value


def steps_of(stages, tokenizer, seed):
    """The batches of a cycle's stages, in order."""
    plan = []
    for width, middle, count in stages:
        documents = [corpus.encode(tokenizer, d)[:width] for d in corpus.texts(count, seed + 10, middle)]
        plan += batches(documents, np.random.default_rng(seed + 20))
        print(f"{count} documents of up to {width} tokens, {sum(map(len, documents))} in all", flush=True)
        seed += 1
    return plan


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--from-cycle", type=int, default=0, help="go on from OUT_DIR/weights.npz at this cycle")
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
    dims = model.Dims(n_vocab=len(tokenizer.tokens), n_ctx=corpus.CONTEXT)

    stored = np.load(args.out / "weights.npz") if args.from_cycle else model.init(dims, seed=4)
    weights = {name: jnp.asarray(w) for name, w in stored.items()}
    print(f"{dims}, {sum(w.size for w in weights.values())} parameters", flush=True)
    evaluate = jax.jit(model.loss, static_argnames="dims")
    checks = batches(held_out, np.random.default_rng(5))
    for cycle, (stages, peak) in list(enumerate(CYCLES))[args.from_cycle :]:
        plan = steps_of(stages, tokenizer, 100 * cycle)
        state = optimizer.start(weights)
        for step, (ids, lengths) in enumerate(plan):
            share = peak * schedule(step, len(plan))
            weights, state, value = update(weights, state, step + 1.0, share, ids, lengths, dims)
            if step % 25 == 0:
                print(f"step {step}/{len(plan)} loss {value:.4f} {time.monotonic() - started:.0f} s", flush=True)
            if (step + 1) % 100 == 0 or step + 1 == len(plan):
                np.savez(args.out / "weights.npz", **{name: np.asarray(w) for name, w in weights.items()})
                held = np.mean([float(evaluate(weights, i, n, dims)) for i, n in checks])
                print(f"held out: {held:.4f}", flush=True)


if __name__ == "__main__":
    main()
