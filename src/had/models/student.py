"""Loading and saving of language models and tokenizers as plain Hugging Face folders."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar


def load_model(
    path_or_name: str | Path,
    dtype: str = "float32",
    revision: str | None = None,
    attn_implementation: str = "sdpa",
) -> PreTrainedModel:
    """A causal language model from a local folder or the model hub.

    Only safetensors weights are read and no code of the model's repository is run.

    Args:
        path_or_name: a folder with `config.json` and safetensors files, or a hub name (`Qwen/Qwen3-1.7B`).
        dtype: name of a torch floating-point type, e.g. `float32` or `bfloat16`.
        revision: commit or tag of a hub model.
        attn_implementation: attention kernel; token trees need one that takes a 4D mask (`sdpa`, `eager`).

    Raises:
        FileNotFoundError: there is no such folder or hub model, or the hub cannot be reached.
        ValueError: unknown `dtype`.
    """
    _hide_bars_in_logs()
    try:
        return AutoModelForCausalLM.from_pretrained(
            path_or_name,
            dtype=torch_dtype(dtype),
            revision=revision,
            attn_implementation=attn_implementation,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except OSError as error:
        raise FileNotFoundError(_missing("model", path_or_name, error)) from error


def load_tokenizer(path: str | Path, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a local folder or hub model.

    Raises:
        FileNotFoundError: as in `load_model`.
    """
    try:
        return AutoTokenizer.from_pretrained(path, revision=revision, trust_remote_code=False)
    except OSError as error:
        raise FileNotFoundError(_missing("tokenizer", path, error)) from error


def save_hf(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: str | Path) -> Path:
    """Write model and tokenizer as a plain Hugging Face folder that replaces an earlier one by a rename.

    An interrupted save leaves the earlier folder as it was.
    """
    _hide_bars_in_logs()
    target = Path(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        temporary.chmod(0o755)  # mkdtemp makes a private folder
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        _replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def package_weights(name: str) -> Path:
    """Folder of the weights `name` that ship inside the package.

    Raises:
        FileNotFoundError: no such weights; the message lists those that exist.
    """
    root = Path(str(resources.files("had"))) / "weights"
    folder = root / name
    if not (folder / "config.json").is_file():
        known = sorted(p.parent.relative_to(root).as_posix() for p in root.rglob("config.json"))
        raise FileNotFoundError(
            f"no packaged weights named {name!r} under {root}; known: {', '.join(known) or 'none'}. "
            "A source checkout without them can make them with `python src/pretrain.py`."
        )
    return folder


def torch_dtype(name: str) -> torch.dtype:
    """The floating-point type called `name`.

    Raises:
        ValueError: torch has no floating-point type of this name.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype: expected float32, bfloat16, float16 or float64, got {name!r}")
    return dtype


def _replace(source: Path, target: Path) -> None:
    """Put folder `source` in the place of `target`."""
    if not target.exists():
        source.rename(target)
        return
    retired = source.with_name(source.name + ".old")
    target.rename(retired)
    source.rename(target)
    shutil.rmtree(retired)


def _hide_bars_in_logs() -> None:
    """Progress bars of transformers are for terminals; in a log file they are lines without end."""
    if not sys.stderr.isatty():
        disable_progress_bar()


def _missing(what: str, path_or_name: str | Path, error: OSError) -> str:
    is_offline = os.environ.get("HF_HUB_OFFLINE", "0") not in ("0", "")
    first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return (
        f"{what} not found: {str(path_or_name)!r} is neither a local folder with config.json (looked in "
        f"{Path(path_or_name).absolute()}) nor a hub model that can be had here "
        f"(HF_HOME={os.environ.get('HF_HOME', 'unset')}, HF_HUB_OFFLINE={'on' if is_offline else 'off'}): "
        f"{first_line}. Give a folder, download the model first, or use the packaged one: student=small"
    )
