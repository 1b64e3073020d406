"""Plays many episodes at once: environment, harness, prompts and an actor, turn by turn."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from had.engines.base import EngineFailure
from had.envs.base import CommandGrammar, EnvFailure, EnvPool
from had.harness.compose import Harness
from had.harness.conditions import FULL, Condition, get_condition
from had.prompts.render import PromptTooLongError, Renderer
from had.prompts.views import Shown, View
from had.records import Episode, EpisodeStatus, Task
from had.rollout.actor import Actor, Answer, Request
from had.rollout.game import Game

ProgressHook = Callable[[int, int], None]  # (finished episodes, all episodes)


def derive_seed(*parts: object) -> int:
    """A 32-bit seed from anything with a stable text form; the same on every machine."""
    return zlib.crc32("/".join(str(part) for part in parts).encode())


def _occurrences(tasks: Sequence[Task]) -> list[int]:
    """How often each task was in the list before."""
    seen: Counter[str] = Counter()
    numbers = []
    for task in tasks:
        numbers.append(seen[task.id])
        seen[task.id] += 1
    return numbers


def _episode_id(prefix: str, task: Task, occurrence: int) -> str:
    repeated = f"#{occurrence + 1}" if occurrence else ""
    return f"{prefix}/{task.id}{repeated}" if prefix else f"{task.id}{repeated}"


@dataclass
class Player:
    """Keeps the slots of a pool busy until every task was played.

    A failed environment, worker or request ends its own episode with a status and a message; the others go
    on.

    Attributes:
        pool: the text worlds.
        grammar: of their commands.
        harness: what is reported.
        renderer: makes the prompts.
        max_turns: turns of an episode.
    """

    pool: EnvPool
    grammar: CommandGrammar
    harness: Harness
    renderer: Renderer
    max_turns: int
    _games: dict[int, Game] = field(default_factory=dict)

    def play(
        self,
        tasks: Sequence[Task],
        actor: Actor,
        *,
        seed: int,
        prefix: str = "",
        condition: Condition | str = FULL,
        policy_version: int = 0,
        progress: ProgressHook | None = None,
    ) -> list[Episode]:
        """Play every task once.

        Args:
            tasks: what to play.
            actor: who answers.
            seed: with the task, the number of its earlier occurrences in `tasks`, and the turn it decides
                wording and sampling, whatever else is played beside it and in whatever order.
            prefix: put before the task id in the episode's id; a repeated task gets `#2`, `#3`… behind it.
            condition: what of the harness is shown, and whether rejected commands are executed; or the name
                of such a condition.
            policy_version: recorded in the episodes.
            progress: called after every finished episode.

        Returns:
            The episodes in the order of the tasks.
        """
        if isinstance(condition, str):
            condition = get_condition(condition)
        done: dict[int, Episode] = {}
        waiting = list(range(len(tasks)))
        running: dict[int, int] = {}  # slot -> index of the task
        occurrences = _occurrences(tasks)
        self._games.clear()

        def finish(slot: int, status: EpisodeStatus, message: str = "") -> None:
            index = running.pop(slot)
            episode_id = _episode_id(prefix, tasks[index], occurrences[index])
            done[index] = self._games.pop(slot).episode(episode_id, policy_version, status, message)
            if progress is not None:
                progress(len(done), len(tasks))

        while waiting or running:
            free = [slot for slot in range(self.pool.num_slots) if slot not in running]
            fresh = {slot: waiting.pop(0) for slot in free if waiting}
            for slot, index in fresh.items():
                running[slot] = index
                game_seed = derive_seed(seed, occurrences[index], tasks[index].id)
                self._games[slot] = Game(
                    tasks[index], game_seed, self.max_turns, self.harness, condition, self.grammar
                )
            for slot, step in self.pool.reset({slot: tasks[index] for slot, index in fresh.items()}).items():
                if isinstance(step, EnvFailure):
                    finish(slot, EpisodeStatus.ENV_FAILED, str(step))
                else:
                    self._games[slot].start(step)
            self._play_turn(actor, finish)
        return [done[index] for index in range(len(tasks))]

    def _play_turn(self, actor: Actor, finish: Callable[..., None]) -> None:
        """One turn of every running game."""
        prompts: dict[int, tuple[Shown, tuple[int, ...]]] = {}
        for slot, game in list(self._games.items()):
            shown = game.shown()
            try:
                ids = self.renderer.prompt(game.task.goal, game.turns, shown, View.WITH_HARNESS)
            except PromptTooLongError as error:
                finish(slot, EpisodeStatus.ENGINE_FAILED, str(error))
                continue
            prompts[slot] = (shown, ids)
        slots = list(prompts)
        requests = [self._request(self._games[slot], prompts[slot][1]) for slot in slots]
        answers = actor.act(requests) if requests else []
        commands: dict[int, str] = {}
        for slot, answer in zip(slots, answers, strict=True):
            if isinstance(answer, EngineFailure):
                finish(slot, EpisodeStatus.ENGINE_FAILED, str(answer))
                continue
            command = self._take_answer(slot, prompts[slot], answer)
            if command is not None:
                commands[slot] = command
        for slot, step in self.pool.step(commands).items():
            if isinstance(step, EnvFailure):
                finish(slot, EpisodeStatus.ENV_FAILED, str(step))
            else:
                self._games[slot].executed(step)
        for slot, game in list(self._games.items()):
            if (status := game.status) is not None:
                finish(slot, status)

    def _take_answer(self, slot: int, prompt: tuple[Shown, tuple[int, ...]], answer: Answer) -> str | None:
        shown, ids = prompt
        return self._games[slot].answer(ids, shown, answer)

    @staticmethod
    def _request(game: Game, prompt_ids: tuple[int, ...]) -> Request:
        turn = len(game.turns)
        return Request(prompt_ids, derive_seed(game.seed, "turn", turn), game.task.id, turn)
