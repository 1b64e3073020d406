"""Make a small model: `python src/pretrain.py recipe=teacher` (goes on by itself where it was stopped)."""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # waiting OpenMP threads must not steal others' cores

from pathlib import Path

import hydra
from hydra.utils import instantiate
from omegaconf import DictConfig, open_dict

from had.runtime.progress import training_progress

os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))


@hydra.main(version_base="1.3", config_path="../configs", config_name="pretrain")
def main(config: DictConfig) -> None:
    """Build the recipe and train."""
    with open_dict(config):
        del config.recipe.harness["condition"]  # both views are shown, in the proportion `without_share`
    recipe = instantiate(config.recipe, _convert_="all")
    with training_progress(recipe.schedule.num_steps) as report:
        folder = recipe.train(Path(config.folder), report)
    print(f"saved {folder}")


if __name__ == "__main__":
    main()
