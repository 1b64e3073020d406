"""Length of prompts in tokens, turn by turn, for a player who tries commands at random: what a plan assumes.

python experiments/plans/prompt_lengths.py had_alfworld TOKENIZER [NUM_TASKS] [KEY=VALUE …]
"""

from __future__ import annotations

import os
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir

from had.acting import ActingHalf
from had.models.student import load_tokenizer
from had.prompts.render import Renderer, end_of_turn_id
from had.records import Turn
from had.rollout.actor import Answer, Request
from had.rollout.player import Player
from had.runtime.instantiate import build

ROOT = Path(__file__).resolve().parents[2]
HEADER = "Admissible commands:"
# where the environment lists no commands (ScienceWorld)
COMMANDS = ("look around", "inventory", "teleport to kitchen", "teleport to workshop", "open cupboard",
            "look in cupboard", "teleport to greenhouse", "pick up thermometer", "wait1", "task")  # fmt: skip
THOUGHT = "I have not looked there yet, and what I need for the task may be in that place."
NUM_TASKS = 40


class RandomActor:
    """Takes a random command of the list at the end of the prompt."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer

    def act(self, requests: Sequence[Request]) -> list[Answer]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Answer:
        tokenizer = self.renderer.tokenizer
        text = tokenizer.decode(request.prompt_ids)
        listed = text.rsplit(HEADER, 1)[1].split("<|im_end|>")[0] if HEADER in text else ""
        commands = [line.removeprefix("- ") for line in listed.strip().splitlines()] or list(COMMANDS)
        command = random.Random(request.seed).choice(commands).replace("<query>", "red leather shoes for men")
        ids = tokenizer.encode(f"Thought: {THOUGHT}\nAction: {command}", add_special_tokens=False)
        ids.append(end_of_turn_id(tokenizer))
        return Answer(self.renderer.response(ids, [0.0] * len(ids), True))


def main(experiment: str, tokenizer_path: str, num_tasks: str = str(NUM_TASKS), *overrides: str) -> None:
    """Play and print means."""
    os.environ.setdefault("HAD_ROOT", str(ROOT))
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("train", [f"experiment={experiment}", *overrides])
    acting, env = ActingHalf(config), config.env
    tokenizer = load_tokenizer(tokenizer_path)
    room = env.max_context_tokens - env.max_reply_tokens
    renderer = Renderer(tokenizer, build(config.prompt), room, frozenset([end_of_turn_id(tokenizer)]))
    pool = build(env.pool, make_env=build(env.make_env))
    player = Player(pool, acting.grammar, acting.harness, renderer, env.max_turns)
    episodes = player.play(acting.tasks(env.train_split, int(num_tasks)), RandomActor(renderer), seed=0)
    by_turn: defaultdict[int, list[Turn]] = defaultdict(list)
    for episode in episodes:
        for turn in episode.turns:
            by_turn[turn.index].append(turn)
    print(f"{experiment}: {len(episodes)} episodes, {sum(map(len, by_turn.values()))} turns")
    print("turn  prompt  harness  observation  commands")
    for index in sorted({0, 1, 2, 3, 5, 10, 14, 20, 29} & set(by_turn)):
        turns = by_turn[index]
        texts = [
            (turn.harness_text or "", turn.observation, "\n".join(turn.commands)) for turn in turns
        ]
        means = [_mean(len(tokenizer.encode(text)) for text in column) for column in zip(*texts, strict=True)]
        print(f"{index:4}  {_mean(len(turn.prompt_ids) for turn in turns):6.0f}  "
              f"{means[0]:7.0f}  {means[1]:11.0f}  {means[2]:8.0f}")  # fmt: skip


def _mean(values: Sequence[int]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
