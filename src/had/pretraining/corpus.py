"""Labelled states for imitation: an expert comments on every state that a noisy player reached."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from had.envs.base import TextEnv
from had.harness.compose import Harness
from had.harness.tracker import Tracker
from had.pretraining.journeys import Journey, Journeys, Moment, PlayedJourneys, Route
from had.pretraining.player import Decision, Habits, ImitatedPlayer
from had.pretraining.world import World
from had.prompts.render import Renderer
from had.prompts.views import PastTurn, Shown, ShownTurn, View
from had.records import Effect, EnvState, EnvStep, Episode, Task


@dataclass(frozen=True)
class Source:
    """Training games and how long they last.

    Attributes:
        tasks: games of training splits only.
        max_turns: turns of an episode.
        weight: relative share of the episodes.
    """

    tasks: Sequence[Task]
    max_turns: int
    weight: float = 1.0


@dataclass(frozen=True)
class Noise:
    """How far the player strays from the expert, so that recoveries are seen.

    Attributes:
        max_rate: every episode draws its own rate of random commands between 0 and this.
        refused_share: share of the random commands that the environment will refuse.
        repeat_probability: chance that a random command is repeated at the next turn, again and again.
        bad_share: share of the episodes that a player with `bad_habits` plays, while the expert comments.
        bad_habits: of that player; states like those of a weak student.
    """

    max_rate: float = 0.4
    refused_share: float = 0.4
    repeat_probability: float = 0.3
    bad_share: float = 0.0
    bad_habits: Habits = field(default_factory=lambda: Habits(forgetfulness=0.8, carelessness=0.6))


@dataclass(frozen=True)
class Sample:
    """One training text: `ids[reply_start:]` is the reply, end-of-turn included."""

    ids: tuple[int, ...]
    reply_start: int


@dataclass
class Corpus:
    """Makes samples; the same chunk number always gives the same samples.

    Attributes:
        world: the environment, and who plays it.
        sources: the games.
        habits: of the labelling expert.
        harness, renderer: how states are shown.
        noise: of the playing expert.
        without_share: share of the states rendered without harness text.
        disguise_share: share of the episodes in which names are exchanged at random.
        seed: of everything.
        common: first words of commands that make up most of an episode, such as `go`.
        common_share: share of the states with such a command that are kept: the others weigh more then.
        journeys: whether they are played afresh or kept.
    """

    world: World
    sources: Sequence[Source]
    habits: Habits
    harness: Harness
    renderer: Renderer
    noise: Noise = field(default_factory=Noise)
    without_share: float = 0.15
    disguise_share: float = 0.6
    seed: int = 0
    common: Sequence[str] = ()
    common_share: float = 1.0
    journeys: Journeys = field(default_factory=PlayedJourneys)
    _env: TextEnv | None = field(default=None, init=False, repr=False)

    def close(self) -> None:
        """Close the environment; the next journey makes another."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def chunk(self, number: int, num_episodes: int) -> list[Sample]:
        """The samples of one chunk of expert episodes."""
        rng = random.Random(f"{self.seed}/chunk/{number}")
        sources = rng.choices(self.sources, [source.weight for source in self.sources], k=num_episodes)
        samples: list[Sample] = []
        for source in sources:
            samples += self._play(rng.choice(source.tasks), source.max_turns, random.Random(rng.random()))
        return samples

    def relabel(self, episode: Episode, rng: random.Random) -> list[Sample]:
        """The expert's replies at the states of somebody else's episode (DAgger)."""
        expert = self.world.make_player(self.habits, rng)
        samples: list[Sample] = []
        previous: str | None = None
        names = self._names(episode.task.goal, episode.turns[0].facts.places if episode.turns else (), rng)
        for index, (turn, step) in enumerate(zip(episode.turns, steps_of(episode), strict=True)):
            if index == 0:
                expert.start(episode.task.goal, step)
            else:
                expert.observe(previous, step)
            decision = expert.decide()
            if self._keeps(decision.command, rng):
                past = episode.turns[:index]
                samples.append(self._sample(episode.task.goal, past, turn, decision.reply, rng, names))
            previous = turn.response.action
        return samples

    def _play(self, task: Task, max_turns: int, rng: random.Random) -> list[Sample]:
        signature = f"{max_turns} turns\n{self.habits}\n{self.noise}"
        route = Route(task, signature, lambda rng: self._set_out(task, max_turns, rng), self._names)
        return self._comment(self.journeys.draw(route, rng), max_turns, rng)

    def _set_out(self, task: Task, max_turns: int, rng: random.Random) -> Journey:
        """Begin an episode; it is played while the moments of the journey are read."""
        if self._env is None:
            self._env = self.world.make_env()
        expert = self.world.make_player(self.habits, rng)
        step = self._env.reset(task)
        goal = step.goal or task.goal
        expert.start(goal, step)
        names = self._names(goal, step.state.places, rng)
        rate, wording = rng.uniform(0, self.noise.max_rate), rng.getrandbits(32)
        actor = self._actor(expert, goal, step, rng)
        return Journey(goal, names, wording, self._travel(step, expert, actor, rate, max_turns, rng))

    def _travel(
        self,
        step: EnvStep,
        expert: ImitatedPlayer,
        actor: ImitatedPlayer,
        rate: float,
        max_turns: int,
        rng: random.Random,
    ) -> Iterator[Moment]:
        assert self._env is not None
        wild: str | None = None
        before: Decision | None = None
        listed = list(step.commands)
        for _ in range(max_turns):
            if step.is_done:
                return
            label = expert.decide()
            yield Moment(step, label, before)
            played = label if actor is expert else actor.decide()
            wild = self._stray(wild, rate, step, listed, rng)
            before = played if wild is None else replace(played, command=wild)
            step = self._env.step(before.command)
            listed = list(dict.fromkeys([*listed, *step.commands]))
            for player in {id(player): player for player in (expert, actor)}.values():
                player.observe(before.command, step)

    def _comment(self, journey: Journey, max_turns: int, rng: random.Random) -> list[Sample]:
        """The expert's replies at the states of a journey."""
        tracker, past, samples = Tracker(max_turns), list[Shown](), list[Sample]()
        now = Shown("", (), "")
        for moment in journey.moments:
            step = moment.step
            if moment.before is None:
                tracker.start(step)
            else:
                tracker.advance(moment.before.command, step)
                past.append(replace(now, reply=moment.before.reply))
            now = Shown(step.observation, step.commands, self.harness.text(tracker.facts(), journey.wording))
            if self._keeps(moment.label.command, rng):
                reply = moment.label.reply
                samples.append(self._sample(journey.goal, past, now, reply, rng, journey.names))
        return samples

    def _actor(self, expert: ImitatedPlayer, goal: str, step: EnvStep, rng: random.Random) -> ImitatedPlayer:
        """Who plays this episode: the expert, or a player with bad habits."""
        if not self.noise.bad_share or rng.random() >= self.noise.bad_share:
            return expert
        actor = self.world.make_player(self.noise.bad_habits, random.Random(rng.random()))
        actor.start(goal, step)
        return actor

    def _keeps(self, command: str, rng: random.Random) -> bool:
        return command.partition(" ")[0] not in self.common or rng.random() < self.common_share

    def _stray(
        self, last: str | None, rate: float, step: EnvStep, listed: Sequence[str], rng: random.Random
    ) -> str | None:
        """A random command to execute instead of the expert's, or None."""
        if last is not None and rng.random() < self.noise.repeat_probability:
            return last
        if rng.random() >= rate:
            return None
        return self.world.strays.draw(step, listed, self.noise.refused_share, rng)

    def _names(self, goal: str, places: Sequence[str], rng: random.Random) -> Mapping[str, str]:
        if rng.random() >= self.disguise_share:
            return {}
        return self.world.disguise.draw(goal, places, list(self.renderer.tokenizer.get_added_vocab()), rng)

    def _sample(
        self,
        goal: str,
        past: Sequence[PastTurn],
        now: ShownTurn,
        reply: str,
        rng: random.Random,
        names: Mapping[str, str],
    ) -> Sample:
        view = View.WITHOUT_HARNESS if rng.random() < self.without_share else View.WITH_HARNESS
        if names:
            disguise = self.world.disguise
            past = [disguise.turn(turn, names, turn.reply) for turn in past]
            now, reply = disguise.turn(now, names), disguise.text(reply, names)
            goal = disguise.text(goal, names)
        prompt = self.renderer.prompt(goal, past, now, view)
        tokenizer = self.renderer.tokenizer
        reply_ids = tokenizer.encode(reply, add_special_tokens=False)
        return Sample((*prompt, *reply_ids, tokenizer.eos_token_id), len(prompt))


def steps_of(episode: Episode) -> Iterator[EnvStep]:
    """The environment's answers before each turn of an episode, as far as its record tells."""
    effect = Effect.CHANGED
    for turn in episode.turns:
        state = EnvState(turn.facts.location, turn.facts.held, turn.facts.places)
        yield EnvStep(turn.observation, turn.commands, state, effect)
        effect = turn.effect
