"""How one of the small models is made: tokenizer, corpus, imitation, export."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from had.engines.base import SamplingParams
from had.engines.hf import HFEngine
from had.envs.base import TaskSource
from had.envs.pool import SerialPool
from had.harness.compose import Harness
from had.models.induction import add_induction_head
from had.models.student import load_model, load_tokenizer, save_hf
from had.models.tiny import make_qwen3, sharpened
from had.pretraining.corpus import Corpus, Noise, Sample, Source
from had.pretraining.journeys import Journeys, PlayedJourneys
from had.pretraining.player import Habits
from had.pretraining.tokenizer import build_tokenizer, phrases
from had.pretraining.trainer import Imitation, Schedule
from had.pretraining.world import World
from had.prompts.render import Renderer
from had.prompts.views import PromptFormat
from had.rollout.actor import EngineActor
from had.rollout.player import Player, derive_seed

MAX_REPLY_TOKENS = 48
MAX_PROMPT_TOKENS = 2000
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Games:
    """Where training games come from.

    Attributes:
        source: the tasks; only its split `train` is used.
        max_turns: turns of an episode.
        weight: relative share of the episodes.
    """

    source: TaskSource
    max_turns: int
    weight: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a small model.

    Attributes:
        world: the environment, and who is imitated.
        games: the sources by name.
        harness, prompt: how states are shown.
        architecture: arguments of `make_qwen3` besides the vocabulary.
        schedule: of the training.
        habits: how well the imitated player plays.
        noise: how far the player strays while it shows states.
        without_share: share of states shown without harness text.
        disguise_share: share of the episodes in which names are exchanged at random.
        vocab_size: of the tokenizer.
        own_play_episodes: episodes of the model's own play in a chunk, once they begin.
        common, common_share: states with these commands are thinned out (see `Corpus`).
        journeys: whether the expert's episodes are played afresh or kept on disk.
        start_from: folder of a saved model that goes on learning, with its tokenizer; None: from scratch.
        stage: 0 for a training from scratch; every later one draws other games in another order.
        sharpness: the saved model's logits are the learnt ones times this. A player who chooses at random
            among good commands is imitated with his spread; a sharper model samples his favourites.
        seed: of everything.
    """

    world: World
    games: Mapping[str, Games]
    harness: Harness
    prompt: PromptFormat
    architecture: Mapping[str, Any]
    schedule: Schedule
    habits: Habits = field(default_factory=Habits)
    noise: Noise = field(default_factory=Noise)
    without_share: float = 0.15
    disguise_share: float = 0.0
    vocab_size: int = 1024
    own_play_episodes: int = 32
    common: Sequence[str] = ()
    common_share: float = 1.0
    journeys: Journeys = field(default_factory=PlayedJourneys)
    start_from: str | None = None
    stage: int = 0
    sharpness: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sharpness <= 0:
            raise ValueError(f"recipe.sharpness: expected a factor > 0, got {self.sharpness}")

    def tokenizer_folder(self, folder: Path) -> Path:
        """Make the tokenizer in `folder` unless it is there."""
        if not (folder / "tokenizer.json").exists():
            tasks = [task for games in self.games.values() for task in _spread(games.source.tasks("train"))]
            words = self.world.lexicon.words(tasks)
            fixed = phrases(self.prompt, self.harness, words.phrases)
            tokenizer = build_tokenizer(words.texts, words.names, fixed, self.vocab_size)
            tokenizer.save_pretrained(folder)
        return folder

    def corpus(self, folder: Path) -> Corpus:
        """The samples for a model whose tokenizer lies in `folder`."""
        tokenizer = load_tokenizer(folder)
        renderer = Renderer(tokenizer, self.prompt, MAX_PROMPT_TOKENS, frozenset([tokenizer.eos_token_id]))
        sources = [
            Source(games.source.tasks("train"), games.max_turns, games.weight)
            for games in self.games.values()
        ]
        return Corpus(
            world=self.world,
            sources=sources,
            habits=self.habits,
            harness=self.harness,
            renderer=renderer,
            noise=self.noise,
            without_share=self.without_share,
            disguise_share=self.disguise_share,
            seed=self.seed + self.stage,
            common=self.common,
            common_share=self.common_share,
            journeys=self.journeys,
        )

    def train(self, folder: Path, report: Callable[[dict[str, float]], None] = lambda row: None) -> Path:
        """Train (or go on training) in `folder` and save the model there as a Hugging Face folder `model`."""
        start = None if self.start_from is None else Path(self.start_from)
        if start is not None and not (start / "config.json").exists():
            raise FileNotFoundError(f"recipe.start_from: {start} holds no saved model; train it first")
        corpus = self.corpus(start or self.tokenizer_folder(folder / "tokenizer"))
        tokenizer = corpus.renderer.tokenizer
        model = self._new_model(tokenizer) if start is None else load_model(start)
        _log.info("parameters: %d", sum(parameter.numel() for parameter in model.parameters()))
        own_play = OwnPlay(corpus, self.own_play_episodes)
        try:
            Imitation(model, corpus, self.schedule, folder, own_play).run(report)
        finally:
            own_play.close()
            corpus.close()
        return save_hf(sharpened(model, self.sharpness).bfloat16(), tokenizer, folder / "model")

    def _new_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        model = make_qwen3(
            len(tokenizer), seed=self.seed, eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id,
            **self.architecture,
        )  # fmt: skip
        add_induction_head(model, self.seed)
        return model


@dataclass
class OwnPlay:
    """The model plays training games; the expert says what it should have done (DAgger).

    Attributes:
        corpus: games, views and the expert.
        num_episodes: of one chunk.
    """

    corpus: Corpus
    num_episodes: int
    _pool: SerialPool | None = field(default=None, init=False, repr=False)

    def close(self) -> None:
        """Close the environments; the next play makes others."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def __call__(self, model: PreTrainedModel, chunk: int) -> list[Sample]:
        """Relabelled samples of the model's own play at temperature 1."""
        renderer, rng = self.corpus.renderer, random.Random(f"{self.corpus.seed}/own/{chunk}")
        engine = HFEngine(model, [renderer.tokenizer.eos_token_id], prefix_cache_tokens=0)
        actor = EngineActor(engine, renderer, SamplingParams(1.0, MAX_REPLY_TOKENS))
        source = rng.choices(self.corpus.sources, [source.weight for source in self.corpus.sources])[0]
        world = self.corpus.world
        if self._pool is None:
            self._pool = SerialPool(world.make_env, self.num_episodes)
        player = Player(self._pool, world.grammar, self.corpus.harness, renderer, source.max_turns)
        tasks = rng.sample(list(source.tasks), self.num_episodes)
        episodes = player.play(tasks, actor, seed=derive_seed(self.corpus.seed, chunk), prefix=f"own{chunk}")
        model.train()
        return [sample for episode in episodes for sample in self.corpus.relabel(episode, rng)]


def _spread(tasks: Sequence[_T], most: int = 2000) -> Sequence[_T]:
    return tasks[:: max(1, len(tasks) // most)]
