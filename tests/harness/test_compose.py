"""The harness as a value: text, YAML and back, other parts, and files that are no harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from steps_by_hand import facts

from had.harness.compose import Harness
from had.harness.part import BEHAVIOR_MONITORING, Draw, check_wordings
from had.harness.situation import Situation
from had.harness.stall import Stall
from had.records import HarnessFacts, HarnessReport
from tiny_world import quick_harness

KNOWN = facts(turn=28, failures=(("fly", 2),), turns_without_new_state=3)


@dataclass(frozen=True)
class Greeting:
    """A sixth part, made outside the package."""

    name: str
    wordings: Sequence[str] = ("Hello {name}.",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wordings", check_wordings("greeting", self.wordings, {"name"}))

    def sentences(self, facts: HarnessFacts, draw: Draw) -> list[tuple[str, str]]:
        return [(BEHAVIOR_MONITORING, draw.choose("greeting", self.wordings).format(name=self.name))]

    def warn(self, facts: HarnessFacts, report: HarnessReport) -> HarnessReport:
        return report


def texts(harness: Harness) -> list[str]:
    return [harness.text(KNOWN, seed) for seed in range(20)]


def without(harness: Harness, name: str) -> Harness:
    return replace(harness, parts={key: part for key, part in harness.parts.items() if key != name})


def test_yaml_round_trip() -> None:
    harness = quick_harness()
    again = Harness.from_yaml(harness.to_yaml())
    assert again == harness
    assert again.to_yaml() == harness.to_yaml()
    assert texts(again) == texts(harness)
    assert list(again.parts) == list(harness.parts)


def test_the_yaml_is_small_plain_and_has_no_tags() -> None:
    text = quick_harness().to_yaml()
    assert "!" not in text and len(text) < 3000
    plain = yaml.safe_load(text)
    assert plain["parts"]["stall"]["window"] == 3
    assert plain["parts"]["stall"]["_target_"] == "had.harness.stall.Stall"


def test_changed_wordings_thresholds_and_letters_survive_the_round_trip() -> None:
    harness = quick_harness()
    stall = Stall(window=1, wordings=["Seit {turns} Zügen nichts Neues: „ok“ 🙂\nzweite Zeile", "yes", "1"])
    changed = replace(harness, parts={**harness.parts, "stall": stall}, separator="\n")
    again = Harness.from_yaml(changed.to_yaml())
    assert again == changed != harness
    assert texts(again) == texts(changed) != texts(harness)


def test_lists_and_tuples_of_wordings_are_the_same_value() -> None:
    assert Stall(window=1, wordings=["a"]) == Stall(window=1, wordings=("a",))
    assert hash(Stall(window=1, wordings=["a"])) == hash(Stall(window=1, wordings=("a",)))


def test_the_order_of_parts_belongs_to_the_value() -> None:
    harness = quick_harness()
    turned = replace(harness, parts=dict(reversed(harness.parts.items())))
    assert turned != harness
    assert texts(turned) != texts(harness)
    assert Harness.from_yaml(turned.to_yaml()) == turned


def test_a_sixth_part_speaks_and_is_written() -> None:
    harness = quick_harness()
    greeted = replace(harness, parts={**harness.parts, "greeting": Greeting("Ann")})
    assert texts(greeted) == [f"{text} Hello Ann." for text in texts(harness)]
    again = Harness.from_yaml(greeted.to_yaml())
    assert again == greeted and texts(again) == texts(greeted)
    assert greeted.report(KNOWN) == harness.report(KNOWN)


def test_a_part_that_is_left_out_neither_speaks_nor_warns_and_changes_no_other_sentence() -> None:
    harness = quick_harness()
    for name, part in harness.parts.items():
        less = without(harness, name)
        for seed in range(10):
            own = [sentence for _, sentence in part.sentences(KNOWN, Draw(seed, KNOWN.turn))]
            assert less.text(KNOWN, seed) == harness.text(KNOWN, seed).replace(" ".join(own), "").replace(
                "  ", " "
            ).strip()
    assert not without(harness, "stall").report(KNOWN).is_stalled
    assert not without(harness, "budget").report(KNOWN).is_urged
    assert without(harness, "failure").report(KNOWN).failures == ()


def test_an_empty_harness_says_nothing() -> None:
    empty = Harness()
    assert empty.text(KNOWN, 0) == "" and empty.report(KNOWN) == HarnessReport()
    assert Harness.from_yaml(empty.to_yaml()) == empty


def test_the_configured_harness_is_the_one_of_the_paper() -> None:
    path = Path(__file__).parents[2] / "configs" / "harness" / "alfworld.yaml"
    plain = yaml.safe_load(path.read_text())
    harness = Harness.from_yaml(yaml.safe_dump({"parts": plain["parts"]}, sort_keys=False))
    assert list(harness.parts) == ["situation", "visit", "budget", "failure", "stall"]
    thresholds = {name: plain["parts"][name] for name in ("budget", "failure", "stall")}
    assert thresholds["budget"]["threshold"] == 11
    assert thresholds["failure"]["min_repeats"] == 2
    assert thresholds["stall"]["window"] == 5


STALL = "_target_: had.harness.stall.Stall"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a mapping with 'parts'"),
        ("[1, 2]", "expected a mapping with 'parts'"),
        ("parts: 3", "expected a mapping with 'parts'"),
        ("parts: {a: [", "expected YAML"),
        ("parts: !!python/object:os.system {}", "expected YAML"),
        ("{parts: {}, sepparator: x}", "got also {'sepparator'}"),
        ("parts: {a: 3}", "part 'a': expected a mapping with _target_"),
        ("parts: {a: {window: 3}}", "part 'a': expected a mapping with _target_"),
        (f"parts: {{a: {{{STALL}}}}}", "part 'a': cannot build.*window"),
        (f"parts: {{a: {{{STALL}, window: 0}}}}", "part 'a'.*expected >= 1 turn, got 0"),
        (f"parts: {{a: {{{STALL}, window: x}}}}", "part 'a': cannot build"),
        (f"parts: {{a: {{{STALL}, windoww: 1}}}}", "part 'a'.*windoww"),
        (f"parts: {{a: {{{STALL}, 1: 2}}}}", "part 'a': cannot build"),
        ("parts: {a: {_target_: had.harness.stall.Stal}}", "part 'a'.*Stal"),
        ("parts: {a: {_target_: had.harness.nothing.Stall}}", "part 'a'.*nothing"),
        ("parts: {a: {_target_: Stall}}", "part 'a': cannot build"),
        ("parts: {a: {_target_: os.getcwd}}", "part 'a'.*a part is a dataclass"),
    ],
)
def test_what_is_no_harness(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Harness.from_yaml(text)


def test_a_part_needs_both_methods() -> None:
    with pytest.raises(TypeError, match=r"parts\.a: expected an object with sentences"):
        Harness({"a": "stall"})  # type: ignore[dict-item]
    assert Harness({"a": Situation()}).parts["a"] == Situation()
