"""The training documents: stories alone, and stories as answers in a chat, as token ids."""

import random

import bpe
import stories

CHAT_SHARE = 0.3
SECOND_TURN_SHARE = 0.35
CONTEXT = 512


def texts(count, seed, middle=0.0):
    """Documents as lists of turns: one string for a bare story, (request, story) pairs for a chat.

    `middle` is the share of bare stories that begin at a later paragraph.
    """
    rng = random.Random(seed)
    for _ in range(count):
        story, request = stories.tell(rng)
        if rng.random() >= CHAT_SHARE:
            paragraphs = story.split("\n\n")
            skipped = rng.randrange(len(paragraphs)) if middle and rng.random() < middle else 0
            yield "\n\n".join(paragraphs[skipped:])
        elif rng.random() >= SECOND_TURN_SHARE:
            yield [(request, story)]
        else:
            again, another = stories.tell(rng)
            yield [(request, story), (another, again)]


def encode(tokenizer, document):
    """Ids of a document, from the start token to the end token."""
    special = tokenizer.ids
    ids = [special[bpe.START]]
    if isinstance(document, str):
        ids += tokenizer.encode(document)
    else:
        newline = tokenizer.encode("\n")
        for request, story in document:
            for role, content in (("user", request), ("assistant", story)):
                ids += [special[bpe.TURN], *tokenizer.encode(f"{role}\n{content}"), special[bpe.TURN_END], *newline]
        ids = ids[: -len(newline)]  # generation stops at the end of the turn
    return ids + [special[bpe.END]]


def plain(document):
    """The words of a document, for the tokenizer trainer."""
    return document if isinstance(document, str) else "\n".join(f"user\n{r}\nassistant\n{s}" for r, s in document)
