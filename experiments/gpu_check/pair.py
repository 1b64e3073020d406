"""A student, a teacher and a small model with random weights: nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from setting import Setting
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from had.envs.alfworld.simulator import NativeEnv
from had.envs.household.source import HouseholdTasks
from had.models.student import save_hf, torch_dtype
from had.pretraining.tokenizer import build_tokenizer
from had.prompts.views import SYSTEM
from had.runtime.instantiate import as_plain

FULL_SIZE = {"student": "Qwen/Qwen3-1.7B", "teacher": "Qwen/Qwen3-8B"}
QWEN_VOCABULARY, SMALL_VOCABULARY = 151_936, 4096
NUM_WORDS = 3000
# Trained on a CPU, too; large enough that activations outweigh what else a process allocates.
SMALL = {
    "model_type": "qwen3",
    "vocab_size": SMALL_VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "tie_word_embeddings": True,
}
TINY = {
    "student": {**SMALL, "hidden_size": 512, "num_hidden_layers": 6, "head_dim": 64},
    "teacher": {**SMALL, "num_hidden_layers": 6, "tie_word_embeddings": False},
}
# Random logits are so flat that rounding decides which is the largest; a larger output layer spreads them.
SHARPNESS = 3.0


def architectures(setting: Setting) -> dict[str, dict[str, Any]]:
    """By role the numbers of `config.json`."""
    if setting.is_tiny:
        return {"small": SMALL, **TINY}
    published = as_plain(setting.config(engine="hf").planning.architectures)
    return {"small": SMALL, **{role: dict(published[name]) for role, name in FULL_SIZE.items()}}


def make_model(
    numbers: Mapping[str, Any], device: str, dtype: str, eos_id: int, pad_id: int, seed: int
) -> PreTrainedModel:
    """A model with random weights, drawn where it shall be."""
    options = dict(numbers)
    config = AutoConfig.for_model(
        str(options.pop("model_type")),
        **options,
        max_position_embeddings=40960,
        bos_token_id=None,
        eos_token_id=eos_id,
        pad_token_id=pad_id,
    )
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch_dtype(dtype))
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(SHARPNESS)
    return model


def make_tokenizer(games: Path, size: int) -> PreTrainedTokenizerFast:
    """Words of the games, bytes for the rest, and entries that no text uses up to the size."""
    texts, env = [SYSTEM], NativeEnv()
    for task in HouseholdTasks(num_train=100, cache_dir=games).tasks("train")[:20]:
        step = env.reset(task)
        texts += [step.observation, "\n".join(step.commands), task.goal]
    env.close()
    small = build_tokenizer(texts, [], ["Thought:", "\nAction:"], min(NUM_WORDS, size))
    state = json.loads(small.backend_tokenizer.to_str())
    known, num_fillers = state["model"]["vocab"], size - len(small)
    first = len(known)
    known |= {f"<unused{number}>": first + number for number in range(num_fillers)}
    for token in state["added_tokens"]:
        token["id"] += num_fillers if token["id"] >= first else 0
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        pad_token=small.pad_token,
        eos_token=small.eos_token,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = small.chat_template
    assert len(tokenizer) == size, f"tokenizer has {len(tokenizer)} entries, expected {size}"
    return tokenizer


def write_models(setting: Setting) -> dict[str, int]:
    """Write all models as Hugging Face folders; the parameters of each."""
    sizes, tokenizers = {}, {}
    folders = {"student": setting.student, "teacher": setting.teacher, "small": setting.small}
    for seed, (role, numbers) in enumerate(architectures(setting).items()):
        size = numbers["vocab_size"]
        if size not in tokenizers:
            tokenizers[size] = make_tokenizer(setting.folder / "games", size)
        tokenizer = tokenizers[size]
        dtype = "float32" if role == "small" else setting.dtype
        ids = tokenizer.eos_token_id, tokenizer.pad_token_id
        model = make_model(numbers, setting.device, dtype, *ids, seed)
        sizes[role] = sum(parameter.numel() for parameter in model.parameters())
        save_hf(model, tokenizer, folders[role])
        del model
        if setting.is_gpu:
            torch.cuda.empty_cache()
    return sizes
