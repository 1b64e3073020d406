"""`WebShopEnv`: WebShop's shop as a text world, with the original's rules and without its servers."""

from __future__ import annotations

from dataclasses import replace

from had.envs.base import EnvFailure
from had.envs.webshop.grammar import SEARCH_COMMAND, parse_command
from had.envs.webshop.pages import PageKind
from had.envs.webshop.session import Session
from had.envs.webshop.shop import ShopSource
from had.records import Effect, EnvState, EnvStep, Task

SEPARATOR = " [SEP] "


class WebShopEnv:
    """A `TextEnv`. All environments of a process share the shop.

    The state's location is the page, `held` are the selected options of the open product, and `places` are
    its option groups that have no selection yet.

    Args:
        source: where the shop comes from.
    """

    def __init__(self, source: ShopSource) -> None:
        self._source = source
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The episode in progress.

        Raises:
            EnvFailure: there is none.
        """
        if self._session is None:
            raise EnvFailure("step() was called before reset(): start a task first")
        return self._session

    def reset(self, task: Task) -> EnvStep:
        shop = self._source.open()
        number = int(task.source) if task.source.isdecimal() else -1
        goal = shop.goals[number] if 0 <= number < len(shop.goals) else None
        if goal is None or goal.text != task.goal:
            raise EnvFailure(
                f"task {task.id}: expected the number of one of this shop's goals as source, got "
                f"{task.source!r} for the goal {task.goal!r}; make the tasks with WebShopTasks over the same "
                "files and seed"
            )
        self._session = Session(shop, goal)
        return self._answer(Effect.CHANGED)

    def step(self, command: str) -> EnvStep:
        session, before = self.session, self._last
        page, options = session.page, session.options
        self._execute(command)
        if (session.page, session.options) == (page, options):
            return replace(before, effect=Effect.NO_EFFECT)
        after = self._answer(Effect.CHANGED)
        if (after.state, after.commands) == (before.state, before.commands):
            return replace(after, effect=Effect.INFORMATIONAL)
        return after

    def close(self) -> None:
        self._session = None

    def _execute(self, command: str) -> None:
        parsed = parse_command(command)
        if parsed is None or self.session.reward is not None:
            return
        verb, argument = parsed
        if verb == "search":
            self.session.search(" ".join(argument.split()))
        else:
            self.session.click(argument)

    def _commands(self) -> tuple[str, ...]:
        if self.session.page.kind is PageKind.DONE:
            return ()
        return (SEARCH_COMMAND, *(f"click[{name}]" for name in self.session.clickable))

    def _state(self) -> EnvState:
        session = self.session
        selected = tuple(f"{name}: {value}" for name, value in session.options.items())
        return EnvState(session.page.name, selected, session.unselected)

    def _answer(self, effect: Effect) -> EnvStep:
        session = self.session
        reward = session.reward.value if session.reward is not None else 0.0
        self._last = EnvStep(
            observation=SEPARATOR.join(text.strip() for text in session.texts()),
            commands=self._commands(),
            state=self._state(),
            effect=effect,
            reward=reward,
            score=100.0 * reward,
            is_done=session.reward is not None,
            is_won=reward == 1.0,
        )
        return self._last
