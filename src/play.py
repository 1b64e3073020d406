"""Play a task in the terminal and read what the model reads: `python src/play.py view=both`."""

import os
from pathlib import Path

os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from omegaconf import DictConfig, OmegaConf

from had.harness.conditions import get_condition
from had.prompts.render import Renderer
from had.records import Task
from had.rollout.game import Game
from had.rollout.person import Page, PersonSession, chosen_views, message_page, token_page
from had.rollout.player import derive_seed
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


def make_session(config: DictConfig) -> PersonSession:
    """The session that a configuration describes."""
    parts = [key for key in config.harness if key != "condition"]
    harness = build(OmegaConf.masked_copy(config.harness, parts))
    condition, grammar = get_condition(config.harness.condition), build(config.env.grammar)

    def make_game(task: Task) -> Game:
        seed = derive_seed(config.seed, 0, task.id)  # the wording that `Player.play` gives the task
        return Game(task, seed, config.env.max_turns, harness, condition, grammar)

    return PersonSession(
        env=build(config.env.make_env)(),
        tasks=build(config.env.tasks).tasks(config.split),
        make_game=make_game,
        page=make_page(config),
        views=chosen_views(config.view),
    )


def make_page(config: DictConfig) -> Page:
    """How a prompt becomes text for a person."""
    prompt = build(config.prompt)
    if not config.as_tokens:
        return message_page(prompt)
    tokenizer = build(config.student.files).tokenizer()
    room = config.env.max_context_tokens - config.env.max_reply_tokens
    return token_page(Renderer(tokenizer, prompt, room, frozenset([tokenizer.eos_token_id])))


if __name__ == "__main__":
    main()
