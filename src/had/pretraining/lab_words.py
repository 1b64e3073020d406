"""The words of ScienceWorld's short tasks for the tokenizer, and other names of things in every episode.

The tokenizer is made of this list alone, without a simulator: the teacher and the student of a pair get the
same one, though the simulator never says quite the same twice.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from had.pretraining.lab_plans import ANIMALS, FURNITURE, LONG_LIVED, MIDDLING, SHORT_LIVED
from had.pretraining.notebook import ROOMS
from had.pretraining.world import Words
from had.prompts.views import Shown, ShownTurn
from had.records import Task

COLOURS = ("blue", "green", "orange", "purple", "red", "yellow")
PLANTS = (
    "apple tree", "apricot tree", "avocado tree", "banana tree", "cherry tree", "lemon tree", "orange tree",
    "peach tree", "pea plant",
)  # fmt: skip
THINGS = ("thermometer", "unknown substance B", "sodium chloride", "metal fork", *FURNITURE)
LIMITS = (-50.0, 0.0, 50.0, 100.0, 150.0, 200.0)  # degrees Celsius
KINDS = ("living thing", "non-living thing", "plant", "animal")
# lines of a look around that never decide anything: one token each
SCENERY = (
    "the agent", "the ground", "a substance called air", "a substance called wood",
    "a substance called soap", "an axe", "a shovel", "a lighter", "a picture", "a painting", "a drawing",
    "a finger painting", "a fire pit (containing nothing)",
    "a fountain (containing a substance called water)", "a bee hive. The bee hive door is closed. ",
    "a jug (containing nothing)", "a sink, which is turned off. In the sink is: nothing.",
    "a stove, which is turned off. On the stove is: nothing.",
    "a oven, which is turned off. The oven door is closed. ", "a stopwatch, which is deactivated. ",
    "a counter. On the counter is: a bowl (containing a red apple, a banana, an orange, a potato), "
    "a drawer.",
    "a cupboard. The cupboard door is closed. ", "a freezer. The freezer door is closed. ",
    "a fridge. The fridge door is closed. ", "a glass jar (containing a substance called sodium chloride)",
    "a bathtub, which is turned off. In the bathtub is: nothing.",
    "a toilet. In the toilet is: A drain, which is closed, a substance called water.",
    "a bed. On the bed is: a mattress. On the mattress is: a white pillow..",
    "a closet. The closet door is closed. ", "a couch. On the couch is: a white pillow.",
    "a desk. On the desk is: a drawer.", "a book shelf (containing nothing)",
    "a ultra low temperature freezer. The ultra low temperature freezer door is closed. ",
    "a large cupboard. The large cupboard door is closed. ",
    "a blast furnace, which is turned off. The blast furnace door is closed. ",
    "a wood cup (containing blue paint)", "a wood cup (containing red paint)",
    "a wood cup (containing yellow paint)",
)  # fmt: skip
BOOKS = (
    "Beowulf) titled Beowulf by Beowulf poet",
    "Frankenstein) titled Frankenstein by Mary Wollstonecraft Shelley",
    "Moby Dick) titled Moby Dick by Herman Melville",
    "Pride and Prejudice) titled Pride and Prejudice by Jane Austen",
    "Sherlock Holmes) titled Sherlock Holmes by Arthur Conan Doyle",
    "The Foundations of the Origin of Species) titled The Foundations of the Origin of Species by "
    "Charles Darwin",
)  # fmt: skip
PHRASES = (
    "This room is called the", "This outside location is called the", ". In it, you see: ",
    ". Here you see: ", "\n\ta", "\n\tan", "\n\tA", "\nYou also see:", "\n\tA door to the",
    " (that is closed)", " (that is open)", " (containing nothing)", " (containing a", " (containing",
    ". On the", " is: nothing.", " is: a", ", soil)", ", which is off", " light bulb", " wire",
    " in the adult stage", " in the reproducing stage", " in the seedling stage", " with a tall height",
    " with a short height", ", currently reading a temperature of", " a book shelf (containing A book (",
    ", A book (", "You teleport to the", "You focus on the", "You move the", " to the inventory.",
    " to the", "the thermometer measures a temperature of", " degrees celsius",
    "You decide to wait for 1 iterations.", "No known action matches that input.",
    "In your inventory, you see:", "The door is already open.", "find a(n)",
    ". First, focus on the thing.", " in the", "measure the temperature of",
    ", which is located around the", ". First, focus on the thermometer.",
    " temperature is above", " temperature is below", " degrees celsius, place it in the",
    ". If the",
    "find the animal with the longest life span.  The animals are in the 'outside' location.  Focus "
    "on the animal with the longest life span.",
    "find the animal with the shortest life span.  The animals are in the 'outside' location.  "
    "Focus on the animal with the shortest life span.",
    "find the animal with the longest life span, then the shortest life span. First, focus on the "
    "animal with the longest life span.  Then, focus on the animal with the shortest life span. The "
    "animals are in the 'outside' location.",
    "Thought:", "Action:", "\nAction:", " I want a(n)", " is a(n)", " is in focus.",
    " Then, move it to the", " The animals are in the 'outside' location.",
    " The animal with the longest life span:", " The animal with the shortest life span:",
    " All is in focus.", " First, the", " Next, the", " First, focus on the", " Next, focus on the",
    " Then the temperature of", " The boxes are located around the", " is above", " is below",
    " The first one.", " That did nothing.", " I look again.", " I go to the", " teleport", " focus on",
    " pick up", " move", " to", " use thermometer on", " look around", " inventory", " wait1",
    " open door to", " go to", " commands", " command", " turns", " turn", " times", " once", " none",
    " nothing",
)  # fmt: skip
WORDS = (
    "baby", "juvenile", "adult", "egg", "dead", "hatchling", "caterpillar", "tadpole", "blue", "green",
    "orange", "purple", "red", "yellow", "black", "violet", "battery", "switch", "bowl", "table", "chair",
    "glass", "jug", "substance", "called", "water", "soil", "flower", "self", "watering", "stage", "closed",
    "open", "it", "The", "A", "which", "is", "apple", "banana",
)  # fmt: skip
_BOX = re.compile(rf"\b({'|'.join(COLOURS)})(?= box\b)")
_ANIMAL = re.compile(rf"\b(?:baby )?({'|'.join(ANIMALS)})(?: egg)?\b")
_PLANT = re.compile(rf"\b({'|'.join(PLANTS)})\b")
_FORMS = ("baby {}", "{} egg", "{}")  # of an animal, as the simulator names it


class LabLexicon:
    """A `Lexicon`: rooms, animals, plants, pots and boxes are names."""

    def words(self, tasks: Sequence[Task]) -> Words:
        pots = [f"flower pot {number}" for number in range(1, 10)]
        boxes = [f"{colour} box" for colour in COLOURS]
        kinds = [kind for kind in KINDS if kind not in ANIMALS]
        names = [*ROOMS, *ANIMALS, *PLANTS, *pots, *boxes, *kinds, *THINGS]
        lines = [f"\n\t{line}" for line in SCENERY]
        numbers = [f" {number}" for number in [*range(10), *LIMITS]]
        texts = [*numbers, *(f" {word}" for word in WORDS), *SCENERY, *BOOKS, *PHRASES]
        return Words(sorted(set(names)), (*PHRASES, *lines, *BOOKS), texts * 20)


class BoxDisguise:
    """The `Disguise` of the laboratory: boxes exchange their colours."""

    def draw(
        self, goal: str, places: Sequence[str], known: Sequence[str], rng: random.Random
    ) -> dict[str, str]:
        return dict(zip(COLOURS, rng.sample(COLOURS, len(COLOURS)), strict=True))

    def text(self, text: str, names: Mapping[str, str]) -> str:
        return _BOX.sub(lambda match: names[match[1]], text)

    def turn(self, turn: ShownTurn, names: Mapping[str, str], reply: str = "") -> Shown:
        return Shown(
            self.text(turn.observation, names),
            tuple(self.text(command, names) for command in turn.commands),
            self.text(turn.harness_text, names),
            self.text(reply, names),
        )


class SpeciesDisguise(BoxDisguise):
    """Boxes exchange their colours, animals and plants their names, and animals are young or not at random.

    The training variations show four animals outside, all of them eggs, the validation variations others:
    without this the four are known by heart and none is read off the page. Where life spans are asked for,
    animals exchange names with those of their own group only, so that the answer stays right.
    """

    def draw(
        self, goal: str, places: Sequence[str], known: Sequence[str], rng: random.Random
    ) -> dict[str, str]:
        ranked = (LONG_LIVED, MIDDLING, SHORT_LIVED)
        names = super().draw(goal, places, known, rng)
        for group in ranked if "life span" in goal else (ANIMALS,):
            drawn = rng.sample(group, len(group))
            names |= {name: rng.choice(_FORMS).format(new) for name, new in zip(group, drawn, strict=True)}
        return names | dict(zip(PLANTS, rng.sample(PLANTS, len(PLANTS)), strict=True))

    def text(self, text: str, names: Mapping[str, str]) -> str:
        text = super().text(text, names)
        for pattern in (_ANIMAL, _PLANT):
            text = pattern.sub(lambda match: names.get(match[1], match[0]), text)
        return text
