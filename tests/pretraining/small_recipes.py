"""The recipes of the configuration, made small: a few generated games, no data."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate
from omegaconf import open_dict

from had.pretraining.recipe import Recipe

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("HAD_ROOT", str(ROOT))
LACKING = [name for name in ("rapidfuzz", "Stemmer") if importlib.util.find_spec(name) is None]


def small_recipe(name: str, folder: Path, *overrides: str) -> Recipe:
    """A recipe of configs/recipe by name; its generated games lie in `folder`."""
    if name.startswith("webshop") and LACKING:
        pytest.skip(f"the shop needs {', '.join(LACKING)}: pip install -e '.[webshop]'")
    games = [
        "~recipe.games.alfworld", "~recipe.games.full", "recipe.games.small.source.num_train=100",
        f"+recipe.games.small.source.cache_dir={folder / 'games'}",
    ]  # fmt: skip
    chosen = [] if name.startswith(("webshop", "scienceworld")) else games
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("pretrain", [f"recipe={name}", f"folder={folder}", *chosen, *overrides])
    with open_dict(config):
        del config.recipe.harness["condition"]
    recipe: Recipe = instantiate(config.recipe, _convert_="all")
    return recipe
