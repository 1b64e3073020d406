"""A person plays in the terminal and reads what the model reads: the prompt of each turn, in either view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from had.envs.base import CommandGrammar, EnvFailure, TextEnv
from had.harness.compose import Harness
from had.harness.conditions import Condition
from had.prompts.parse import ParsedAction, parse_action
from had.prompts.render import PromptTooLongError, Renderer
from had.prompts.views import PastTurn, PromptFormat, Shown, View
from had.records import Response, Task
from had.rollout.actor import Answer
from had.rollout.game import Game
from had.rollout.player import derive_seed

BOTH = "both"
HELP = (
    "Type a command, or its number in the list above; `:task N` starts another game, `:view NAME` shows "
    f"{', '.join(view.value for view in View)} or {BOTH}, `:quit` ends."
)
REPLY = "Thought: A person decides.\nAction: {command}"  # what the history shows of a person's turn

Page = Callable[[str, Sequence[PastTurn], Shown, View], str]  # goal, past, now, view -> the text of a prompt


def message_page(prompt: PromptFormat) -> Page:
    """Pages that show the messages of a prompt under the names of their roles."""

    def page(goal: str, past: Sequence[PastTurn], now: Shown, view: View) -> str:
        messages = prompt.messages(goal, past, now, view)
        return "\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)

    return page


def token_page(renderer: Renderer) -> Page:
    """Pages that show a prompt as one model gets it: decoded token ids, special tokens and all."""

    def page(goal: str, past: Sequence[PastTurn], now: Shown, view: View) -> str:
        try:
            ids = renderer.prompt(goal, past, now, view)
        except PromptTooLongError as error:
            return f"(the model would get no prompt: {error})"
        return str(renderer.tokenizer.decode(ids, skip_special_tokens=False))

    return page


def chosen_views(name: str) -> tuple[View, ...]:
    """The views behind a name.

    Raises:
        ValueError: unknown name.
    """
    if name == BOTH:
        return tuple(View)
    if name not in [view.value for view in View]:
        known = ", ".join([view.value for view in View] + [BOTH])
        raise ValueError(f"view: expected one of {known}, got {name!r}")
    return (View(name),)


@dataclass
class PersonSession:
    """Games of one person, one after the other.

    Attributes:
        env: the text world.
        tasks: what can be played, numbered from 1.
        grammar: of the commands.
        harness: what is reported.
        condition: what of it is shown, and whether rejected commands are executed.
        max_turns: turns of an episode.
        page: makes the text of a turn.
        view: which view is shown, or `both`.
        seed: decides the wording, as the seed of `Player.play` does.
        read: asks for a line; raises EOFError at the end of the input.
        write: shows a text.
    """

    env: TextEnv
    tasks: Sequence[Task]
    grammar: CommandGrammar
    harness: Harness
    condition: Condition
    max_turns: int
    page: Page
    view: str = View.WITH_HARNESS.value
    seed: int = 0
    read: Callable[[str], str] = input
    write: Callable[[str], None] = print
    _game: Game | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._views = chosen_views(self.view)

    def run(self, number: int = 1) -> None:
        """Play until `:quit` or the end of the input, beginning with a task by its number."""
        self.write(HELP)
        self._start(number)
        while True:
            try:
                line = self.read("> ").strip()
            except (EOFError, KeyboardInterrupt):
                return
            if line == ":quit":
                return
            if line:
                self._obey(line)

    def _obey(self, line: str) -> None:
        word, _, argument = line.partition(" ")
        if word == ":task" and argument.strip().isdecimal():
            self._start(int(argument))
        elif word == ":view":
            try:
                self._views = chosen_views(argument.strip())
            except ValueError as error:
                self.write(str(error))
            else:
                self._show()
        elif word.startswith(":"):
            self.write(f"{line!r} is not known. {HELP}")
        elif self._game is None:
            self.write("No game is running: `:task N` starts one.")
        else:
            self._act(self._game, line)

    def _start(self, number: int) -> None:
        if not 1 <= number <= len(self.tasks):
            self.write(f"task: expected a number from 1 to {len(self.tasks)}, got {number}")
            return
        task = self.tasks[number - 1]
        self.write(f"Task {number} of {len(self.tasks)}: {task.id}")
        seed = derive_seed(self.seed, 0, task.id)
        self._game = Game(task, seed, self.max_turns, self.harness, self.condition, self.grammar)
        try:
            self._game.start(self.env.reset(task))
        except EnvFailure as error:
            self._stop(f"The game cannot be started: {error}")
        else:
            self._show()

    def _act(self, game: Game, line: str) -> None:
        shown = game.shown()
        command = line
        if line.isdecimal() and shown.commands and line not in shown.commands:
            if not 1 <= int(line) <= len(shown.commands):
                self.write(f"command: expected a number from 1 to {len(shown.commands)}, got {line}")
                return
            command = shown.commands[int(line) - 1]
        to_execute = game.answer((), shown, Answer(person_response(command), "person"))
        if to_execute is not None:
            try:
                game.executed(self.env.step(to_execute))
            except EnvFailure as error:
                self._stop(f"The game failed: {error}")
                return
        if game.status is None:
            self._show()
        else:
            told = game.shown().observation
            self._stop(f"{told}\n\nThe game is over: {game.status.value} after {len(game.turns)} turns.")

    def _show(self) -> None:
        """The prompt of the current turn in the chosen views, and below it the numbers of the commands."""
        game = self._game
        if game is None:
            return
        shown = game.shown()
        for view in self._views:
            self.write(f"\n===== {view.value}, turn {len(game.turns) + 1} of {game.max_turns} =====")
            self.write(self.page(game.task.goal, game.turns, shown, view))
        numbered = [  # a number that is a command means itself
            command if command.isdecimal() else f"{number} {command}"
            for number, command in enumerate(shown.commands, start=1)
        ]
        self.write("=====\n" + "   ".join(numbered))

    def _stop(self, message: str) -> None:
        self._game = None
        self.write(f"{message}\n`:task N` starts another one, `:quit` ends.")


def person_response(command: str) -> Response:
    """The response that consists of a command; it has no tokens."""
    text = REPLY.format(command=command)
    parsed = parse_action(text)
    if isinstance(parsed, ParsedAction):
        return Response((), (), text, is_complete=True, action=parsed.action)
    return Response((), (), text, is_complete=True, failure=parsed)
