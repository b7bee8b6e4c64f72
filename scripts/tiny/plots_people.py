"""Plots without a belonging: cooking, growing, helping, learning. Slots as in plots_things.py."""

import lexicon as lx


def cook(t):
    dish, lack = t.pick(*lx.DISHES)
    plain = dish in ("soup", "bread", "pancakes", "cookies")
    t.set(dish=dish, lack=lack, a_dish=dish if plain else f"a {dish}")
    wants = t.say(
        "{When}, {N} wanted to make {a_dish}.", "{When}, {N} was hungry and wanted to make {a_dish}.",
        "{When}, {N} wanted to make {a_dish} for {his} mom.",
    )
    trouble = t.say(
        "{He} looked in the kitchen, but there was no {lack} left." if lack in ("salt", "honey", "flour", "milk", "butter", "sugar")
        else "{He} looked in the kitchen, but there were no {lack} left.",
        "But {he} could not find any {lack}.", "{He} had everything, but {he} did not have any {lack}.",
    )
    goes = t.say(
        "So {N} went to {F}, {friend_short} who lived next door.", "{N} walked down the road to {F}, {friend_short} who was always kind.",
    )
    asks = t.say(
        '"Do you have any {lack}?" asked {N}.', '"May I have some {lack}, please?" asked {N}. "I want to make {a_dish}."',
    )
    gives = t.say(
        '"Of course," said {F}, and {fhe} gave {him} some {lack}.', '"Yes, I have plenty of {lack}," said {F}. "Can I help you?"',
        '"Here you are," said {F}. "I love {dish}!"',
    )
    makes = t.say(
        "Together they mixed and stirred. Soon the kitchen smelled wonderful.", "{N} and {F} worked together, and soon the {dish} was ready.",
        "They worked side by side and made the {dish} together.",
    )
    end = t.say(
        "{N} gave {F} the first piece. It was the best {dish} ever." if dish not in ("soup", "pancakes", "cookies")
        else "{N} gave {F} a big plate. It was the best {dish} ever." if dish == "soup"
        else "{N} gave {F} a big plate. They were the best {dish} ever.",
        '"This {dish} is delicious!" said {F}.' if dish not in ("pancakes", "cookies") else '"These {dish} are delicious!" said {F}.',
        "They ate all the {dish} and laughed until bedtime.", "They shared the {dish} with everyone in the street.",
    )
    return [f"{wants} {trouble}", f"{goes} {asks} {gives}", f"{makes} {end}"]


def grow(t):
    _, plant, looks = t.pick(*lx.PLANTS)
    t.set(plant=plant, looks=looks, spot=t.pick("in the garden", "behind the house", "near the fence", "in a big pot"))
    finds = t.say(
        "{When}, {N} found a tiny seed on the path.", "{When}, {his} grandpa gave {him} a tiny seed.", "{When}, a bird dropped a tiny seed in front of {N}.",
    )
    plants = t.say("{He} put the seed in the ground {spot}.", "{N} dug a hole {spot} and put the seed into it.")
    waits = t.say(
        "Every day, {he} gave it water, but nothing happened.", "{N} waited and waited, but nothing came out of the ground.",
        "Day after day, {he} looked at the ground, but it stayed brown.",
    )
    doubt = t.say(
        '"It will never grow," {N} said to {F}, {friend_short} who lived nearby.', '{N} was sad and told {F}, {friend_short} from the village.',
    )
    says = t.say(
        '"Be patient," said {F}. "A seed needs water, sun and time."', '"Do not give up," said {F}. "Good things take time."',
        '"It is sleeping," said {F}. "Sing to it, and it will wake up."',
    )
    grows = t.say(
        "So {N} kept trying. One morning, there was a little green leaf.", "{N} gave it water for many more days. Then a small green leaf came out.",
    )
    end = t.say(
        "The leaf grew and grew until it was a big {plant} with {looks}.", "In the summer, it was a tall {plant} with {looks}.",
    )
    last = t.say(
        "{N} and {F} sat beside the {plant} and smiled.", '"You were right, {F}," said {N}.', "{N} was proud of the {plant}, and {F} was proud of {N}.",
    )
    return [f"{finds} {plants}", f"{waits} {doubt} {says}", f"{grows} {end} {last}"]


def baby(t):
    young, mother = t.pick(*[b for b in lx.BABIES if b[1] not in (t.kind, t.fkind)])
    t.set(young=young, mother=mother, spot=t.pick("by the road", "in the tall grass", "near the river", "behind a bush"))
    finds = t.say(
        "{When}, {N} heard a small cry {spot}. It was a lost {young}.", "{When}, {N} found a little {young} {spot}. It was all alone.",
    )
    says = t.say(
        '"Where is your mother?" asked {N}. The {young} only cried.', '"Do not be afraid," said {N}. "I will find your mother."',
    )
    helps = t.say(
        "{N} asked {F}, {friend_short} who knew every path.", "{He} went to {F}, {friend_short} who lived close by.",
    )
    knows = t.say(
        '"I saw a {mother} near the old bridge," said {F}.', '"There is a {mother} on the other side of the hill," said {F}.',
        '"I heard a {mother} calling by the mill," said {F}.',
    )
    walk = t.say(
        "{N} carried the {young}, and {F} showed the way.", "They walked slowly, because the {young} was very tired.",
        "They walked and walked, and {N} sang to the {young}.",
    )
    meets = t.say(
        "At last they saw the {mother}. The {young} ran to its mother.", "There was the {mother}! She was so happy to see her {young}.",
        "The {mother} came running and kissed her {young}.",
    )
    end = t.say(
        '"We did it, {F}!" said {N}. They went home with a happy heart.', "{N} and {F} waved goodbye to the {young} and went home.",
        "From that day on, the {young} visited {N} and {F} every morning.",
    )
    return [f"{finds} {says}", f"{helps} {knows} {walk}", f"{meets} {end}"]


def learn(t):
    skill, done, fails = t.pick(*lx.SKILLS)
    t.set(skill=skill, done=done, fails=fails)
    wants = t.say(
        "{N} wanted to learn to {skill}.", "{N} had one big wish. {He} wanted to {skill}.", "All {his} friends could {skill}, but {N} could not.",
    )
    first = t.say("{When}, {he} tried for the first time, but {he} {fails}.", "{When}, {N} tried very hard, but {he} {fails}.")
    sad = t.say('"I will never learn it," said {N}.', '"This is too hard," {he} said and sat down.', "{N} wanted to give up.")
    friend = t.say(
        "{F}, {friend_short} who lived nearby, saw it.", "{F}, {friend_short} with a big heart, sat down next to {him}.",
    )
    says = t.say(
        '"You can do it," said {F}. "Try again, and I will stay with you."', '"I could not {skill} at first," said {F}. "You must practice."',
        '"Everyone falls at first," said {F}. "Let us practice together."',
    )
    works = t.say(
        "So {N} practiced every day, and {F} helped {him}.", "They practiced in the morning and in the evening.", "{N} tried again and again, and each time it went a little better.",
    )
    end = t.say(
        "At last, {N} {done}. {F} clapped and cheered.", "Then one day, {he} did it! {N} {done}, and {F} was proud of {him}.",
    )
    last = t.say(
        "{N} was proud that {he} did not give up.", '"Thank you for helping me, {F}," said {N}.', "Now {N} could {skill}, and it was so much fun.",
    )
    return [f"{wants} {first} {sad}", f"{friend} {says} {works}", f"{end} {last}"]


def rain(t):
    t.set(food=t.pick("apples and cheese", "bread and jam", "cookies and milk", "berries and nuts"), game=t.pick(*lx.GAMES))
    t.set(shelter=t.pick("in the old barn", "under the bridge", "in a dry cave", "under the big oak tree"))
    plan = t.say(
        "{When}, {N} and {F}, {friend_short} from next door, went on a picnic. They took {food}.",
        "{When}, {N} packed {food} and asked {F}, {friend_short} who loved picnics, to come along.",
    )
    trouble = t.say(
        "They sat down on the grass. Then dark clouds came, and it began to rain.", "They had just started to eat when it began to rain.",
    )
    sad = t.say(
        '"Our picnic is ruined," said {N}.', '"Oh no, everything is getting wet!" cried {N}.', "{N} looked at the wet grass and was sad.",
    )
    idea = t.say(
        '"Come with me," said {F}. "It is dry {shelter}."', '"I know a place," said {F}. "Let us go and sit {shelter}."',
    )
    runs = t.say("They took the basket and ran as fast as they could.", "{N} grabbed the basket, and they ran through the rain.")
    fun = t.say(
        "It was warm and dry {shelter}. They ate the {food} and played {game}.", "They sat {shelter}, ate {food} and told funny stories.",
    )
    end = t.say(
        "When the rain stopped, there was a rainbow in the sky.", '"This is the best picnic ever," said {N}, and {F} laughed.',
        "{N} learned that a rainy day can be a good day with a friend.",
    )
    return [f"{plan} {trouble}", f"{sad} {idea} {runs}", f"{fun} {end}"]


WITHOUT_THING = [cook, grow, baby, learn, rain]
