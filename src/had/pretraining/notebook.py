"""What can be remembered of an episode in ScienceWorld: rooms looked at, things focused on, a temperature."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from had.records import Effect, EnvStep

ROOMS = (
    "art studio", "bathroom", "bedroom", "foundry", "greenhouse", "hallway", "kitchen", "living room",
    "outside", "workshop",
)  # fmt: skip
_LOOK = re.compile(r"^This (?:room|outside location) is called the (.+?)\. ")
_LINE = re.compile(r"^\t(?:[Aa]n? |[Tt]he )?(?:substance called )?(.+?)\s*$", re.MULTILINE)
_FOCUS = re.compile(r"^You focus on the (.+?)\.$")
_READING = re.compile(r"^the thermometer measures a temperature of (-?\d+) degrees celsius$")


@dataclass
class Notebook:
    """Taken down turn by turn from the environment's answers, whoever acts.

    Attributes:
        looks: what stood in each room at the last look around, a line each without its article; forgotten as
            soon as something was moved there or a command was refused there.
        focused: names of the things focused on, in order.
        readings: temperature in degrees Celsius by the name of what was measured.
        refused: the last command, if it was refused.
    """

    step: EnvStep
    looks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    focused: list[str] = field(default_factory=list)
    readings: dict[str, int] = field(default_factory=dict)
    refused: str | None = None

    def __post_init__(self) -> None:
        self._read(None)

    def take(self, command: str | None, step: EnvStep) -> None:
        """Take down the answer to a command; None stands for a reply without one."""
        before, self.step = self.here, step
        has_failed = step.effect is Effect.NO_EFFECT
        self.refused = command if has_failed else None
        if before is not None and (has_failed or step.effect is Effect.CHANGED):
            self.looks.pop(before, None)
        self._read(command)

    def _read(self, command: str | None) -> None:
        text = self.step.observation
        if match := _LOOK.match(text):
            self.looks[match[1]] = tuple(_LINE.findall(text.partition("You also see:")[0]))
        if match := _FOCUS.match(text):
            self.focused.append(match[1])
        if (match := _READING.match(text)) and command is not None:
            self.readings[command.rpartition(" on ")[2]] = int(match[1])

    @property
    def here(self) -> str | None:
        """The room."""
        return self.step.state.location

    @property
    def held(self) -> tuple[str, ...]:
        """The things in the inventory."""
        return self.step.state.held
