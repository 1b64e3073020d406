"""A student and a teacher that act sensibly without any training: what follows a token is written into them.

Each model is a Qwen3 of two small layers whose output layer is an associative memory: after token x come the
tokens that `Chain` lists, with the listed weights, whatever stood before. So replies have the right format,
actions differ, some are invalid and some replies have no action, and everything still trains.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from had.envs.alfworld.simulator import NativeEnv
from had.envs.household.source import HouseholdTasks
from had.models.student import save_hf
from had.models.tiny import make_qwen3
from had.pretraining.tokenizer import END, build_tokenizer
from had.prompts.views import NO_COMMAND_OBSERVATION, SYSTEM

Chain = Mapping[str, Mapping[str, float]]  # token -> {next token: probability}

HIDDEN, STRENGTH = 128, 14.0
REASONS = (" I look for it.", " I go on.")
NUM_SPECIAL, NUM_BYTES = 5, 256
PHRASES = (
    SYSTEM, "\n\nYour task is to:", "\nAdmissible commands:", NO_COMMAND_OBSERVATION,
    "Nothing happens.", "You are in the middle of a room. Looking quickly around you, you see",
    "You arrive at", "You are carrying:", ", and a", ", a", "\ngo to", "\ntake", "\nopen", "\nclose",
    "\nexamine", "\nhelp\ninventory\nlook", "Location:", "the middle of the room", "Held: nothing.",
    "Places visited:", "Places not yet visited:", "Not yet visited:", "Visited:",
    " turns are left: finish the task.", "Current turn:", "Turn", " of 5.", "Thought:", "\nAction:",
    " go to", " look", " inventory",
)  # fmt: skip
PLACES = (" countertop 1", " drawer 1", " cabinet 1", " fridge 1", " shelf 1", " bed 1", " desk 1")

TEACHER: Chain = {
    "<|assistant|>": {"Thought:": 1.0},
    "Thought:": {REASONS[0]: 0.7, REASONS[1]: 0.3},
    REASONS[0]: {"\nAction:": 1.0},
    REASONS[1]: {"\nAction:": 1.0},
    "\nAction:": {" go to": 0.4, " inventory": 0.3, " look": 0.3},
    " go to": dict.fromkeys(PLACES, 1 / len(PLACES)),
    **{word: {END: 1.0} for word in (" inventory", " look", *PLACES)},
}
STUDENT: Chain = {
    **TEACHER,
    REASONS[0]: {"\nAction:": 0.8, END: 0.2},
    "\nAction:": {" look": 0.6, " inventory": 0.3, " go to": 0.1},
}


def make_pair(folder: Path) -> tuple[Path, Path]:
    """Write both models as Hugging Face folders; the same bytes wherever torch draws the same numbers.

    Returns:
        The folders of student and teacher.
    """
    tokenizer = _tokenizer(folder / "games")
    student, teacher = folder / "student", folder / "teacher"
    _write(STUDENT, 1, tokenizer, student)
    _write(TEACHER, 2, tokenizer, teacher)
    return student, teacher


def _write(chain: Chain, seed: int, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    model = make_qwen3(
        len(tokenizer), HIDDEN, layers=2, heads=2, kv_heads=1, intermediate=64, rope_theta=1e4,
        tie_embeddings=False, seed=seed, eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        keys = torch.randn(len(tokenizer), HIDDEN, generator=generator)
        for dimension, token in enumerate(chain):  # orthogonal keys: what one token is followed by is its own
            keys[_id(tokenizer, token)] = HIDDEN**0.5 * torch.eye(HIDDEN)[dimension]
        model.get_input_embeddings().weight.copy_(keys)
        memory = 0.01 * torch.randn(len(tokenizer), HIDDEN, generator=generator)
        for token, successors in chain.items():
            for successor, probability in successors.items():
                strength = STRENGTH + torch.tensor(probability).log()
                memory[_id(tokenizer, successor)] += strength * keys[_id(tokenizer, token)] / HIDDEN
        model.get_output_embeddings().weight.copy_(memory)
    save_hf(model, tokenizer, folder)


def _id(tokenizer: PreTrainedTokenizerBase, text: str) -> int:
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert len(ids) == 1, f"{text!r} is not one token"
    return ids[0]


def _tokenizer(games: Path) -> PreTrainedTokenizerBase:
    """Names, phrases and bytes; nothing is learnt from a text, so nothing depends on a trainer."""
    names: dict[str, None] = dict.fromkeys(place.strip() for place in PLACES)
    env = NativeEnv()
    for task in HouseholdTasks(num_train=100, cache_dir=games).tasks("train")[:20]:
        names |= dict.fromkeys(env.reset(task).state.places)
    env.close()
    fixed = [*PHRASES, *REASONS]
    num_added = len({*fixed, *(f" {name}" for name in names)})
    return build_tokenizer([], sorted(names), fixed, num_added + NUM_BYTES + NUM_SPECIAL)
