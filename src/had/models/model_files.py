"""Where a model comes from, checked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from had.models.student import load_model, load_tokenizer, package_weights

PACKAGED = "packaged:"


@dataclass(frozen=True)
class ModelFiles:
    """A model by name; nothing is loaded until asked.

    Attributes:
        path: a folder, a hub name, or `packaged:NAME` for weights that ship with this package.
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
        if Path(self.path).expanduser().is_dir():
            return str(Path(self.path).expanduser())
        try:
            found = cached_file(self.path, "config.json", revision=self.revision)
        except OSError as error:
            raise FileNotFoundError(
                f"model {self.path!r}: expected a folder, or a model that the hub or its cache can give; found neither "
                f"({str(error).splitlines()[0]}). Download it first (`hf download {self.path}`), or give a folder"
            ) from error
        assert found is not None
        return self.path

    def model(self) -> PreTrainedModel:
        """Load the model."""
        return load_model(self.locate(), self.dtype, self.revision)

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Load the tokenizer."""
        return load_tokenizer(self.locate(), self.revision)
