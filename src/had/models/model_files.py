"""Where a model comes from, checked before anything is loaded."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from huggingface_hub import constants
from transformers import AutoConfig, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from had.models.student import load_model, load_tokenizer, package_weights

PACKAGED = "packaged:"

_HUB_TIMEOUT_S = 3.0  # the hub client itself would retry for half a minute per model


def _reaches_hub() -> bool:
    """True when the model hub answers."""
    if constants.is_offline_mode():
        return False
    host = urlsplit(constants.ENDPOINT).hostname or ""
    try:
        socket.create_connection((host, 443), timeout=_HUB_TIMEOUT_S).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class ModelFiles:
    """A model by name; nothing is loaded until asked.

    Attributes:
        path: a Hugging Face folder, a run folder (its last student), a hub name, or `packaged:NAME` for
            weights that ship with this package.
        revision: commit or tag of a hub model.
        dtype: type of the weights in memory.
    """

    path: str
    revision: str | None = None
    dtype: str = "float32"

    def locate(self) -> str:
        """The folder or hub name to load from.

        Raises:
            FileNotFoundError: the model is not there and cannot be had here; says what is missing.
        """
        if self.path.startswith(PACKAGED):
            return str(package_weights(self.path.removeprefix(PACKAGED)))
        folder = Path(self.path).expanduser()
        if folder.is_dir():
            return str(_model_folder(folder))
        try:
            is_cached_only = not _reaches_hub()
            cached_file(self.path, "config.json", revision=self.revision, local_files_only=is_cached_only)
        except OSError as error:
            place = "in the hub's cache (the hub cannot be reached)" if is_cached_only else "on the hub"
            revision = f" --revision {self.revision}" if self.revision else ""
            raise FileNotFoundError(
                f"model {self.path!r}: expected a folder or a hub model; found no such folder, and no such "
                f"model {place}. "
                f"Download it first (`hf download {self.path}{revision}`), or give a folder"
            ) from error
        return self.path

    def stop_ids(self) -> frozenset[int]:
        """Token ids at which the model's authors let its replies end; empty where they name none."""
        try:
            config = GenerationConfig.from_pretrained(self.locate(), revision=self.revision or "main")
        except OSError:
            return frozenset()  # no generation_config.json
        ids = config.eos_token_id
        return frozenset() if ids is None else frozenset([ids] if isinstance(ids, int) else ids)

    def max_positions(self) -> int | None:
        """The longest context of the model in tokens, None where its configuration names none."""
        config = AutoConfig.from_pretrained(self.locate(), revision=self.revision, trust_remote_code=False)
        return getattr(config.get_text_config(), "max_position_embeddings", None)

    def origin(self) -> dict[str, str | None]:
        """Where the weights come from, for the provenance of a run.

        Returns:
            path, revision (as configured) and commit: the one that the hub's cache holds under that revision;
            None for a folder and for packaged weights.
        """
        folder = self.locate()
        file = None
        if folder == self.path and not Path(folder).is_dir():
            file = cached_file(folder, "config.json", revision=self.revision, local_files_only=True)
        # the cache keeps the files of a commit under snapshots/<commit>/
        commit = Path(file).parent.name if file else None
        return {"path": self.path, "revision": self.revision, "commit": commit}

    def model(self) -> PreTrainedModel:
        """Load the model."""
        return load_model(self.locate(), self.dtype, self.revision)

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Load the tokenizer."""
        return load_tokenizer(self.locate(), self.revision)


def _model_folder(folder: Path) -> Path:
    """The folder itself, or the last student of a run folder."""
    for candidate in (folder, folder / "student" / "last"):
        if (candidate / "config.json").is_file():
            return candidate
    raise FileNotFoundError(
        f"model {folder}: expected config.json and safetensors weights in this folder, or a run folder with "
        "student/last; found neither. Give the folder of a model or of a finished run"
    )
