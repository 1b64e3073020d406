"""Play a task in the terminal and read what the model reads: `python src/play.py view=both`."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from omegaconf import DictConfig

from had.acting import ActingHalf
from had.runtime.instantiate import build
from had.runtime.output import stop_with


@hydra.main(version_base="1.3", config_path="../configs", config_name="play")
def main(config: DictConfig) -> None:
    """One session of a person."""
    try:
        session = make_session(config)
    except (OSError, ValueError) as error:
        stop_with("this cannot be played here:", [str(error)], "see the README for data and models")
    session.run(config.task)
    session.env.close()


def make_session(config: DictConfig) -> Any:
    """The session that a configuration describes."""
    acting = ActingHalf(config)
    if config.as_tokens:
        page = build(config.token_page)(acting.student_renderer)
    else:
        page = build(config.message_page)(build(config.prompt))
    return build(config.session)(
        env=build(config.env.make_env)(),
        tasks=acting.tasks(config.split),
        grammar=acting.grammar,
        harness=acting.harness,
        condition=acting.condition,
        page=page,
    )


if __name__ == "__main__":
    main()
