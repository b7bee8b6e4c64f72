"""Plots about a belonging: what happens to it and how it comes right. A plot takes a Teller, returns paragraphs.

A form is a sentence with slots in braces; `t.say(a, b, c)` tells one of the forms. Slots: {N} hero, {he} {him} {his}
{He} {His} the hero's pronouns, {F} friend, {fhe} {fhim} {fhis} {Fhe}, {friend} the friend introduced ("a fox named
Pip"), {T} the belonging with its colour, {t} without, {use} and {used} what is done with it. Hero and friend never
share a pronoun, so every "he" and "she" has one reading.
"""

import lexicon as lx


def own(t):
    """The hero gets a belonging and likes it."""
    had = t.say(
        "{N} had a {T}.", "{He} had a beautiful {T}.", "{His} favorite thing was a {T}.",
        "For {his} birthday, {N} got a {T}.", "{His} grandma gave {him} a {T}.", "More than anything, {N} loved {his} {T}.",
    )
    loved = t.say(
        "{He} loved to {use}.", "Every day, {he} {used}.", "It made {him} happy to {use}.", "{He} {used} and smiled.",
        "{N} liked to {use}.",
    )
    return f"{had} {loved}"


def ask(t, trouble):
    """A friend comes by and hears of the trouble, told in the hero's words."""
    meets = t.say(
        "Then {friend} came by.", "Just then, {N} met {friend}.", "{friend_cap} heard {him} and came to look.",
        "Soon {friend} came along the path.", "{N} went to find help and met {friend}.",
    )
    asks = t.say(
        '"What is wrong?" asked {F}.', '"Why are you sad?" asked {F}.', '"Can I help you?" asked {F}.',
        '"Oh no, what happened?" said {F}.', '"Are you all right, {N}?" asked {F}.',
    )
    tells = t.say(f'"{trouble}," said {{N}}.', f'"{trouble}," {{he}} said.', f'"{trouble}," {{N}} said softly.')
    offers = t.say(
        '"Do not worry," said {F}. "I will help you."', '"I have an idea," said {F}.', '"Let us try together," {F} said.',
        '"I think I can help," said {F} with a smile.', '"Do not cry," {F} said. "We can do it together."',
    )
    return f"{meets} {asks} {tells} {offers}"


def thanks(t):
    return t.say(
        '"Thank you, {F}!" said {N}.', '"Thank you so much!" said {N}. {He} gave {F} a big hug.',
        '{N} was so happy that {he} danced around {F}.', '"You are a good friend," {N} told {F}.',
        '{N} laughed and thanked {F}.', '"You saved the day, {F}!" {N} said.',
    )


def friends_end(t):
    """Endings that bring the friend and the belonging back."""
    if t.playable and t.rng.random() < 0.4:
        return t.say(
            "After that, {N} and {F} {used} together every day.", "Then they {used} until the sun went down.",
            "All afternoon, they {used} and laughed.",
        )
    return t.say(
        "From that day on, {N} and {F} were best friends.", "{N} and {F} went home with the {T}, tired and happy.",
        "That night, {N} put the {T} next to {his} bed and dreamed of {F}.",
        "{N} never forgot how {F} had helped {him} with the {T}.", "And {N} always took good care of the {T}.",
    )


def sorrow(t):
    return t.say(
        "{N} was very sad.", "{He} started to cry.", "{N} felt worried.", "{N} sat down and sighed.",
        "A tear ran down {his} face.", "{N} did not know what to do.",
    )


def stuck(t):
    where = t.pick("in a tall tree", "on a high branch", "on the roof")
    t.set(where=where)
    trouble = t.say(
        "{When}, a strong wind came and took the {T} away. It got stuck {where}.",
        "{When}, {N} went outside with the {T}. Suddenly the wind lifted it up, and it got stuck {where}.",
        "{When}, the wind blew very hard. The {T} flew up and landed {where}.",
    )
    tries = t.say(
        "{N} jumped and jumped, but {he} could not reach it.", "{He} was too small to reach it.",
        "{He} shook and pulled, but the {t} did not come down.", "{N} threw a stick at it, but it did not move.",
    )
    if t.fkind in lx.FLIERS:
        way = t.say("{F} flew up and brought the {t} down.", "{F} spread {fhis} wings, flew up and pushed the {t} down.")
    elif t.fkind in lx.CLIMBERS:
        way = t.say("{F} climbed up and brought the {t} down.", "{F} climbed very carefully and threw the {t} down to {N}.")
    else:
        way = t.say(
            "{F} found a long stick. With the stick, {fhe} pushed the {t} down.",
            "{N} stood on {F} and reached up high. At last {he} got the {t}.",
            "{F} brought a ladder, and {N} climbed up and got the {t}.",
        )
    help_ = ask(t, t.say("My {T} is stuck {where}", "The wind took my {T}, and I cannot reach it"))
    return [own(t), f"{trouble} {tries} {sorrow(t)}", f"{help_} {way}", f"{thanks(t)} {friends_end(t)}"]


def lost(t):
    t.set(first=t.pick(*lx.HIDING_PLACES))
    t.set(found=t.pick(*[p for p in lx.HIDING_PLACES if p != t["first"]]))
    trouble = t.say(
        "{When}, {N} could not find the {T}.", "{When}, {N} woke up and the {T} was gone.",
        "{When}, {N} wanted to {use_T}, but it was not there.",
    )
    looks = t.say(
        "{He} looked {first}, but it was not there.", "{N} looked {first}. It was not there.",
        "First {he} looked {first}, but {he} found nothing.",
    )
    help_ = ask(t, t.say("I lost my {T}", "I cannot find my {T}", "My {T} is gone"))
    finds = t.say(
        'They looked and looked. At last, {F} found the {T} {found}.', '"Look!" said {F}. The {T} was {found}.',
        'Together they looked {found}. There was the {T}!', '{F} looked {found}. "Here it is!" {fhe} called.',
    )
    return [own(t), f"{trouble} {looks} {sorrow(t)}", f"{help_} {finds}", f"{thanks(t)} {friends_end(t)}"]


def broken(t):
    means, deed = t.pick(*lx.REPAIRS)
    t.set(means=means, deed=deed)
    trouble = t.say(
        "{When}, {N} fell down, and the {T} broke.", "{When}, the {T} fell on the ground and broke.",
        "{When}, {N} heard a loud crack. The {T} was broken.",
    )
    tries = t.say(
        "{He} tried to fix it, but {he} did not know how.", "{N} tried to put it together, but it fell apart again.",
        "{N} held the two parts in {his} hands." if t.kind in ("girl", "boy") else "{N} looked at the two parts.",
    )
    help_ = ask(t, t.say("My {T} is broken", "I broke my {T}", "The {T} fell down, and now it is broken"))
    fix = t.say(
        "{F} went home and came back with {means}. {Fhe} {deed}.", "{F} had {means}. Together they {deed}.",
        "They found {means}. {N} held the {t}, and {F} {deed}.",
    )
    good = t.say(
        "Soon the {t} was as good as new.", "Now the {t} was strong again.", "After a while, the {T} was whole again.",
    )
    return [own(t), f"{trouble} {tries} {sorrow(t)}", f"{help_} {fix} {good}", f"{thanks(t)} {friends_end(t)}"]


def water(t):
    t.set(pool=t.pick("pond", "river", "lake", "stream"))
    trouble = t.say(
        "{When}, {N} was playing near the {pool}. The {T} fell into the water and floated away.",
        "{When}, {N} walked to the {pool}. Splash! The {T} fell into the water.",
        "{When}, {N} dropped the {T} into the {pool}.",
    )
    tries = t.say(
        "{He} reached out, but it was too far away.", "The water was too deep and too cold for {him}.",
        "{N} tried to get it with a stick, but the stick was too short.",
    )
    help_ = ask(t, t.say("My {T} fell into the {pool}", "My {T} is in the water, and I cannot get it"))
    if t.fkind in lx.SWIMMERS:
        way = t.say(
            "{F} jumped into the {pool} and swam to the {t}. {Fhe} pushed it back to {N}.",
            "{F} was a good swimmer. {Fhe} swam out and brought the {t} back.",
        )
    else:
        way = t.say(
            "{F} ran home and got a net. With the net, {fhe} pulled the {t} out of the water.",
            "{F} found a very long branch. They held it together and pulled the {t} to the shore.",
        )
    return [own(t), f"{trouble} {tries} {sorrow(t)}", f"{help_} {way} The {{t}} was wet, but it was safe.",
            f"{thanks(t)} {friends_end(t)}"]


def share(t):
    meets = t.say(
        "{When}, {N} saw {friend}. {F} was sitting all alone and looked sad.",
        "{When}, {N} met {friend}. {F} had nothing to play with.", "{When}, {friend} watched {N} from behind a tree.",
    )
    asks = t.say('"Why are you sad?" asked {N}.', '"Hello, what is your name?" asked {N}.', '"Do you want to play?" asked {N}.')
    answer = t.say(
        '"I am {F}," {fhe} said. "I have no friends and no toys."', '"I wish I had a {t} like yours," said {F}.',
        '"I have nothing to play with," said {F}.',
    )
    thinks = t.say(
        "{N} looked at the {T}. At first, {he} did not want to share it.", "{N} thought for a moment. The {T} was very special to {him}.",
        "{N} held the {T} close. What should {he} do?",
    )
    shares = t.say(
        'Then {he} smiled. "We can share it," {he} said.', 'But {N} was kind. "Come and play with me," {he} said.',
        'Then {N} gave the {t} to {F}. "You can try it first," {he} said.',
    )
    play = t.say(
        "They {used}, first {N} and then {F}.", "{F} {used} and laughed.", "{F} was so happy! They {used} together.",
    )
    end = t.say(
        "{N} learned that sharing makes everything more fun.", "From that day on, {N} and {F} were best friends.",
        "After that, {N} always shared the {T} with {F}.", '"Sharing is better than playing alone," {N} said, and {F} agreed.',
    )
    return [own(t), f"{meets} {asks} {answer}", f"{thinks} {shares}", f"{play} {end}"]


def dark(t):
    noise, spot = t.pick(*[n for n in lx.NOISES if n[0].split()[-1] not in (t.kind, t.fkind)])
    t.set(noise=noise, spot=spot, Noise=noise[0].upper() + noise[1:])
    night = t.say(
        "One night, it was very dark. {N} heard a strange noise {spot}.", "One night, there was a big storm. Then {N} heard something {spot}.",
        "Late one night, {N} woke up. Something was moving {spot}.",
    )
    fear = t.say("{He} was very scared.", "{N} hid and did not move.", "{His} heart was beating fast.")
    friend = t.say(
        "{He} called for {F}, {friend_short} who lived next door.", "{N} ran to {F}, {friend_short} who was not afraid of the dark.",
    )
    says = t.say(
        '"I heard a noise {spot}," said {N}. "I am scared."', '"There is something {spot}!" said {N}.',
    )
    plan = t.say(
        '"Bring your {T}," said {F}. "Then we can see what it is."', '"Let us take your {T} and look," {F} said.',
        '"The {T} will give us light," said {F}. "I will go with you."',
    )
    look = t.say(
        "{N} held up the {t}, and they looked {spot}.", "Slowly, they went closer. The {t} was shining.",
    )
    finds = t.say('It was only {noise}!', '{Noise} was making the noise. That was all!', 'They saw {noise} {spot}, and nothing else.')
    end = t.say(
        "{N} and {F} laughed and laughed. {N} was not afraid of the dark anymore.",
        '"Now I am not scared," said {N}. {He} thanked {F} and went to sleep beside the {T}.',
        "After that night, {N} was brave, and the {T} always stood next to {his} bed.",
    )
    return [own(t), f"{night} {fear}", f"{friend} {says} {plan}", f"{look} {finds} {end}"]


def cold(t):
    weather = t.say(
        "{When}, it was very cold. Snow was falling everywhere.", "Winter came, and it was cold outside.",
        "{When}, the wind was icy and the ground was white.",
    )
    meets = t.say(
        "On the way home, {N} saw {friend}. {F} was shaking in the cold.", "Under a tree, {N} found {friend}. {Fhe} was very cold.",
    )
    talk = t.say(
        '"You look cold," said {N}. "Where is your home?" "It is far away," said {F}.',
        '"Why are you shaking?" asked {N}. "I have nothing warm," said {F}.',
    )
    gives = t.say(
        '{N} took off {his} {t} and gave it to {F}.', '"You can have my {T}," said {N}, and {he} gave it to {F}.',
        '{N} wanted to keep the {T}, but {F} needed it more. {He} gave it to {fhim}.',
    )
    warm = t.say("Soon {F} felt warm again.", '"Now I am warm," said {F}. "Thank you, {N}!"', "{F} stopped shaking and smiled.")
    end = t.say(
        "They walked home together and drank hot tea.", "The next day, {F} brought the {T} back with a basket of nuts. They became good friends.",
        "{N} was cold without the {T}, but {his} heart was warm.", "From that day on, {N} and {F} played in the snow every day.",
    )
    return [own(t), f"{weather} {meets}", f"{talk} {gives} {warm}", end]


# By the trouble that the belonging must be able to meet.
WITH_THING = {"stuck": stuck, "lost": lost, "broken": broken, "water": water, "share": share, "dark": dark, "cold": cold}
