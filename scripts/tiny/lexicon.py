"""The words of the stories: who, where, and with what. Only facts about words; how they combine is in plots.py."""

from dataclasses import dataclass

GIRLS = "Mia Lily Anna Rosa Emma Nina Ella Zoe Ruby Maya Clara Lucy".split()
BOYS = "Tom Ben Max Sam Leo Jack Finn Omar Hugo Noah Adam Peter".split()
SHE_ANIMALS = "Bella Coco Daisy Hazel Dot Penny Luna Poppy".split()
HE_ANIMALS = "Pip Bruno Rusty Biscuit Milo Toby Oscar Gus".split()

ANIMALS = "rabbit fox bear mouse squirrel duck cat dog frog hedgehog owl turtle".split()
CLIMBERS = {"squirrel", "cat", "bear", "girl", "boy"}
FLIERS = {"owl", "duck"}
SWIMMERS = {"duck", "frog", "turtle", "dog"}

TRAITS = "little small young kind brave curious cheerful clever gentle happy".split()

HOMES = [
    "in a small house near the forest",
    "in a quiet village by the sea",
    "in a cozy cottage on a green hill",
    "next to a wide river",
    "at the edge of the forest",
    "on a farm with many flowers",
    "in a little town under the mountains",
    "beside a blue lake",
]

COLORS = "red blue green yellow purple orange pink white silver golden".split()

MORNINGS = ["One sunny morning", "One day", "One bright morning", "One afternoon", "One quiet day", "One warm day"]


@dataclass(frozen=True)
class Thing:
    """A belonging: its noun, what its owner does with it, and which troubles can befall it."""

    noun: str
    use: str  # after "to": "fly it in the wind"
    used: str  # the same, past: "flew it in the wind"
    troubles: frozenset


def _thing(noun, use, used, troubles):
    return Thing(noun, use, used, frozenset(troubles.split()))


THINGS = [
    _thing("kite", "fly it on the hill", "flew it on the hill", "stuck broken share lost"),
    _thing("ball", "kick it across the grass", "kicked it across the grass", "stuck water share lost"),
    _thing("boat", "sail it on the pond", "sailed it on the pond", "water broken share lost"),
    _thing("hat", "wear it in the sun", "wore it in the sun", "stuck water cold lost"),
    _thing("drum", "play it in the garden", "played it in the garden", "broken share lost"),
    _thing("scarf", "wear it on long walks", "wore it on long walks", "stuck cold lost"),
    _thing("lantern", "carry it in the evening", "carried it in the evening", "dark broken lost"),
    _thing("wagon", "pull it along the path", "pulled it along the path", "broken share"),
    _thing("book", "read it under a tree", "read it under a tree", "share lost"),
    _thing("bell", "ring it at breakfast", "rang it at breakfast", "lost share"),
    _thing("balloon", "run with it in the park", "ran with it in the park", "stuck share"),
    _thing("blanket", "sleep under it", "slept under it", "cold lost"),
    _thing("bucket", "fill it with sand", "filled it with sand", "water broken share lost"),
    _thing("train", "push it over the floor", "pushed it over the floor", "broken share lost"),
    _thing("lamp", "read beside it at night", "read beside it at night", "dark broken"),
    _thing("cup", "drink warm milk from it", "drank warm milk from it", "broken lost"),
    _thing("coat", "wear it in the snow", "wore it in the snow", "cold lost"),
    _thing("whistle", "blow it on the way home", "blew it on the way home", "lost share"),
]

HIDING_PLACES = [
    "under the bed", "behind the door", "in the tall grass", "under a big leaf", "behind a rock",
    "near the old well", "beside the fence", "under the table", "in the garden", "near the pond",
]

# What mends a broken belonging, as (means, what was done with it).
REPAIRS = [
    ("some glue", "put glue on the broken part"),
    ("a piece of string", "tied the string around the broken part"),
    ("a roll of tape", "put tape over the broken part"),
    ("a small hammer", "fixed the broken part with the hammer"),
]

# Dishes and what may be missing for them.
DISHES = [
    ("soup", "carrots"), ("soup", "salt"), ("cake", "eggs"), ("cake", "honey"), ("pie", "apples"),
    ("pie", "berries"), ("bread", "flour"), ("pancakes", "milk"), ("cookies", "butter"), ("cookies", "sugar"),
]

# Seeds, and what they become.
PLANTS = [
    ("seed", "flower", "yellow petals"), ("seed", "tree", "sweet red apples"), ("seed", "pumpkin", "a big orange belly"),
    ("seed", "sunflower", "a face like the sun"), ("seed", "rose", "soft pink petals"),
]

BABIES = [("duckling", "duck"), ("kitten", "cat"), ("puppy", "dog"), ("chick", "hen"), ("lamb", "sheep"), ("foal", "horse")]

# Skills: after "to", past, and how it goes wrong at first.
SKILLS = [
    ("swim", "swam across the pond", "sank and swallowed some water"),
    ("ride a bike", "rode the bike down the street", "fell on the grass"),
    ("paint", "painted a beautiful picture of the sea", "spilled the paint on the floor"),
    ("dance", "danced in front of everyone", "tripped over a chair"),
    ("jump over the stream", "jumped over the stream", "landed in the water with a splash"),
    ("bake bread", "baked a warm loaf of bread", "burned the bread"),
    ("climb the big rock", "climbed to the top of the big rock", "slid back down"),
    ("sing", "sang a lovely song", "forgot all the words"),
]

GAMES = ["hide and seek", "tag", "catch", "a game with stones", "a jumping game"]

NOISES = [
    ("an owl", "in the tree"), ("the wind", "at the window"), ("a branch", "on the roof"), ("a little mouse", "under the floor"),
]
