"""Tells stories: chooses hero, friend, place and belonging, lets a plot arrange them, and writes requests for them.

    python stories.py [COUNT] [SEED]      prints stories to read
"""

import random
import re
import sys

import lexicon as lx
from plots_people import WITHOUT_THING
from plots_things import WITH_THING

PRONOUNS = {"f": ("she", "her", "her"), "m": ("he", "him", "his")}
OPENINGS = [
    "Once upon a time, there was a {trait} {kind} named {N}. {He} lived {home}.",
    "Once upon a time, a {trait} {kind} named {N} lived {home}.",
    "There once was a {trait} {kind} named {N} who lived {home}.",
    "{N} was a {trait} {kind} who lived {home}.",
    "Once there was a {kind} named {N}. {N} was very {trait} and lived {home}.",
    "A {trait} {kind} named {N} lived {home}.",
]
CLOSINGS = ["", "", "", " The end.", " And they lived happily ever after."]
REQUESTS = [
    "Tell me a story about a {kind} named {N}.",
    "Tell me a story about {N} and {F}.",
    "Write a story about {N} the {kind}.",
    "Please tell me a story about {subject}.",
    "Tell me a story about {subject}.",
]
THING_REQUESTS = ["I want to hear a story about {N} and {subject}.", "Write a story about {subject} and {F} the {fkind}."]


def character(rng, gender, taken):
    """(kind, name) of a child or an animal."""
    if rng.random() < 0.45:
        kind, names = ("girl", lx.GIRLS) if gender == "f" else ("boy", lx.BOYS)
    else:
        kind, names = rng.choice(lx.ANIMALS), lx.SHE_ANIMALS if gender == "f" else lx.HE_ANIMALS
    return (kind, rng.choice(names)) if kind != taken else character(rng, gender, taken)


class Teller:
    """The choices of one story, and the random source that words it."""

    def __init__(self, rng):
        self.rng = rng
        self.playable = False
        gender = rng.choice("fm")
        self.kind, name = character(rng, gender, None)
        self.fkind, friend = character(rng, "m" if gender == "f" else "f", self.kind)
        he, him, his = PRONOUNS[gender]
        fhe, fhim, fhis = PRONOUNS["m" if gender == "f" else "f"]
        self.slots = dict(
            N=name, kind=self.kind, he=he, him=him, his=his, He=he.capitalize(), His=his.capitalize(),
            F=friend, fkind=self.fkind, fhe=fhe, fhim=fhim, fhis=fhis, Fhe=fhe.capitalize(),
            trait=rng.choice(lx.TRAITS), home=rng.choice(lx.HOMES), When=rng.choice(lx.MORNINGS),
            friend=f"a {self.fkind} named {friend}", friend_cap=f"A {self.fkind} named {friend}", friend_short=f"a {self.fkind}",
        )

    def __getitem__(self, slot):
        return self.slots[slot]

    def set(self, **slots):
        self.slots.update(slots)

    def pick(self, *options):
        return self.rng.choice(options)

    def say(self, *forms):
        return self.rng.choice(forms).format_map(self.slots)


def tell(rng):
    """One story and one request that asks for it."""
    t = Teller(rng)
    if rng.random() < 0.66:
        trouble = rng.choice(list(WITH_THING))
        thing = rng.choice([x for x in lx.THINGS if trouble in x.troubles])
        colored = f"{rng.choice(lx.COLORS)} {thing.noun}"
        t.set(T=colored, t=thing.noun, use=thing.use, used=thing.used, subject=f"a {colored}")
        t.set(use_T=thing.use.replace("it", f"the {colored}", 1))
        t.playable = "share" in thing.troubles
        plot = WITH_THING[trouble]
    else:
        plot = rng.choice(WITHOUT_THING)
        t.set(subject=f"a {t['trait']} {t.kind}")
    paragraphs = [p.format_map(t.slots) for p in plot(t)]
    paragraphs[0] = f"{t.say(*OPENINGS)} {paragraphs[0]}"
    text = "\n\n".join(paragraphs) + rng.choice(CLOSINGS)
    return articles(text), articles(t.say(*REQUESTS, *(THING_REQUESTS if "T" in t.slots else [])))


def articles(text):
    return re.sub(r"\b([Aa]) (?=[aeiouAEIOU])", r"\1n ", text)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    source = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for _ in range(count):
        story, request = tell(source)
        print(f"[{request}]\n{story}\n")
