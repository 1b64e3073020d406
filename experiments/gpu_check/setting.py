"""Where the check runs, and the configurations that its steps share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("HAD_ROOT", str(ROOT))

CONTEXT = 2048


@dataclass(frozen=True)
class Setting:
    """Device, sizes and folders.

    Attributes:
        device: `cuda` or `cpu`.
        is_tiny: models of a few layers in place of the paper's pair.
        folder: models, games and outputs of the check.
    """

    device: str
    is_tiny: bool
    folder: Path

    @property
    def is_gpu(self) -> bool:
        """A GPU is used."""
        return self.device == "cuda"

    @property
    def student(self) -> Path:
        """Folder of the student."""
        return self.folder / "models" / "student"

    @property
    def teacher(self) -> Path:
        """Folder of the teacher."""
        return self.folder / "models" / "teacher"

    @property
    def small(self) -> Path:
        """Folder of a small model that a CPU can train, too."""
        return self.folder / "models" / "small"

    @property
    def dtype(self) -> str:
        """Type in which engines compute."""
        return "bfloat16" if self.is_gpu else "float32"

    def config(
        self,
        *overrides: str,
        primary: str = "train",
        engine: str = "vllm",
        experiment: str = "had_household",
    ) -> DictConfig:
        """The configuration of a run on generated games with the pair of this check.

        Args:
            overrides: further ones.
            primary: `train` or `serve`.
            engine: `vllm` inside the process, or `hf`.
            experiment: whose method and sizes; another than this one keeps its own environment.
        """
        shared = [
            f"student.files.path={self.student}",
            f"teacher.files.path={self.teacher}",
            f"paths.output_dir={self.folder / 'out'}",
        ]
        if experiment == "had_household":
            shared += [
                f"env.tasks.cache_dir={self.folder / 'games'}",
                "env.tasks.num_train=100",
                f"env.max_reply_tokens={self.reply}",
                f"env.max_context_tokens={CONTEXT}",
            ]
        if primary == "train":
            place = "gpu" if self.is_gpu else "cpu"
            shared += [f"experiment={experiment}", f"trainer={place}", f"engine={engine}_{place}"]
        return _composed(primary, [*shared, *overrides])

    # work in the checks of speed

    @property
    def reply(self) -> int:
        """Tokens of a reply; a random model hardly ever ends it earlier."""
        return 12 if self.is_tiny else 64

    @property
    def turns(self) -> int:
        """Turns of an episode."""
        return 3 if self.is_tiny else 10

    @property
    def tasks(self) -> int:
        """Episodes side by side."""
        return 4 if self.is_tiny else 16


def _composed(primary: str, overrides: Sequence[str]) -> DictConfig:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        return compose(primary, list(overrides))
