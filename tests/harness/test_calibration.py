"""Calibration on hand-written episodes whose warnings can be counted by eye."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from steps_by_hand import facts

from had.harness.calibration import Calibration, Candidates, Trial, calibrate
from had.harness.compose import Harness
from had.harness.situation import Situation
from had.records import (
    Episode,
    EpisodeStatus,
    HarnessFacts,
    HarnessReport,
    ParseFailure,
    Response,
    Task,
    Turn,
)
from tiny_world import quick_harness

STALL = Candidates("stall", "window", (1, 2, 3, 4, 5))
BUDGET = Candidates("budget", "threshold", (20, 15, 10, 5, 1))
FAILURE = Candidates("failure", "min_repeats", (1, 2, 3))


def turn(index: int, known: HarnessFacts) -> Turn:
    response = Response((), (), "", True, None, ParseFailure.EMPTY)
    return Turn(index, "", (), known, HarnessReport(), "", (), response)


def episode(*known: HarnessFacts, status: EpisodeStatus = EpisodeStatus.WON) -> Episode:
    turns = tuple(turn(index, each) for index, each in enumerate(known))
    return Episode("e", Task("t", "validation", "", ""), turns, status)


def stalls(*counts: int, status: EpisodeStatus = EpisodeStatus.WON) -> Episode:
    return episode(*(facts(turns_without_new_state=count) for count in counts), status=status)


def run(episodes: Sequence[Episode], *candidates: Candidates, max_share: float = 0.05) -> Calibration:
    return calibrate(episodes, quick_harness(), candidates, max_share, min_episodes=1)


def test_the_most_sensitive_window_whose_warning_is_rare_enough() -> None:
    # of 40 turns, 4 have a count >= 1, 3 >= 2, 2 >= 3, 1 >= 4: five per cent are two turns
    calibration = run([stalls(*[0] * 16, 1, 2, 3, 4), stalls(*[0] * 20)], STALL)
    fired = [(trial.value, trial.num_fired, trial.num_turns) for trial in calibration.trials]
    assert fired == [(1, 4, 40), (2, 3, 40), (3, 2, 40), (4, 1, 40), (5, 0, 40)]
    assert [trial.value for trial in calibration.trials if trial.is_chosen] == [3]
    assert calibration.thresholds == {"stall.window": 3}
    assert calibration.trials[2].share == pytest.approx(0.05)


def test_exactly_the_allowed_share_is_allowed_and_one_turn_more_is_not() -> None:
    assert run([stalls(*[0] * 19, 1)], STALL).thresholds == {"stall.window": 1}
    assert run([stalls(*[0] * 18, 1)], STALL).thresholds == {"stall.window": 2}
    assert run([stalls(*[0] * 18, 1)], STALL, max_share=0.1).thresholds == {"stall.window": 1}
    assert run([stalls(*[0] * 18, 1)], STALL, max_share=0.0).thresholds == {"stall.window": 2}


def test_budget_counts_the_turns_that_would_be_urged() -> None:
    # 30 turns: an episode that takes all of them has t - 1 turns with fewer than t left
    known = [facts(turn=number) for number in range(1, 31)]
    calibration = run([episode(*known), *[episode(*known[:9])] * 10], BUDGET)
    assert [trial.num_fired for trial in calibration.trials] == [19, 14, 9, 4, 0]
    assert calibration.num_turns == 120 and calibration.thresholds == {"budget.threshold": 5}


def test_failure_counts_turns_at_which_a_command_is_reported() -> None:
    once, twice = facts(failures=(("a", 1), ("b", 1))), facts(failures=(("a", 2), ("b", 1)))
    calibration = run([episode(*[facts()] * 17, once, once, twice)], FAILURE)
    assert [trial.num_fired for trial in calibration.trials] == [3, 1, 0]
    assert calibration.thresholds == {"failure.min_repeats": 2}


def test_only_successful_episodes_count() -> None:
    others = [status for status in EpisodeStatus if status is not EpisodeStatus.WON]
    stuck = [stalls(*[9] * 50, status=status) for status in others]
    calibration = run([*stuck, stalls(0, 0, 0)], STALL)
    assert (calibration.num_episodes, calibration.num_successes, calibration.num_turns) == (5, 1, 3)
    assert calibration.thresholds == {"stall.window": 1}


def test_the_harness_is_the_same_but_for_the_chosen_thresholds() -> None:
    harness = quick_harness()
    calibration = run([stalls(*[0] * 10, 1, 2)], STALL, BUDGET, FAILURE)
    assert calibration.thresholds == {"stall.window": 3, "budget.threshold": 20, "failure.min_repeats": 1}
    parts = calibration.harness.parts
    assert list(parts) == list(harness.parts)
    assert (parts["situation"], parts["visit"]) == (harness.parts["situation"], harness.parts["visit"])
    assert (parts["stall"].window, parts["budget"].threshold, parts["failure"].min_repeats) == (3, 20, 1)
    assert Harness.from_yaml(calibration.harness.to_yaml()) == calibration.harness
    assert harness == quick_harness()


def test_what_the_harness_said_during_play_does_not_matter() -> None:
    quiet = Harness({"stall": quick_harness().parts["stall"]})
    calibration = calibrate([stalls(0, 1, 2)], quiet, [STALL], 0.4, min_episodes=1)
    assert calibration.trials[0] == Trial("stall.window", 1, 2, 3, is_chosen=False)


def test_too_few_successes_are_told() -> None:
    episodes = [stalls(0), stalls(0), stalls(0, status=EpisodeStatus.LOST)]
    with pytest.raises(ValueError, match="at least 3 successful episodes, got 2 of 3; play more tasks"):
        calibrate(episodes, quick_harness(), [STALL], min_episodes=3)
    with pytest.raises(ValueError, match="at least 10 successful episodes, got 0 of 0"):
        calibrate([], quick_harness(), [STALL])


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (Candidates("stall", "window", (1, 2)), r"stall.window: no candidate .*1: 100.0%, 2: 100.0%"),
        (Candidates("rest", "window", (1,)), r"rest.window: expected a part .*, one of \['situation'"),
        (Candidates("stall", "size", (1,)), r"stall.size: .* the arguments \['window', 'wordings'\]"),
        (Candidates("stall", "window", (0,)), "expected >= 1 turn, got 0"),
    ],
)
def test_candidates_that_do_not_fit(candidates: Candidates, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run([stalls(9, 9)], candidates)


def test_settings_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"stall\.window: expected distinct values"):
        Candidates("stall", "window", (1, 1))
    with pytest.raises(ValueError, match="expected distinct values"):
        Candidates("stall", "window", ())
    for max_share, min_episodes in [(-0.1, 1), (1.1, 1), (0.05, 0)]:
        with pytest.raises(ValueError, match="expected 0 <= max_share <= 1 and min_episodes >= 1"):
            calibrate([stalls(0)], quick_harness(), [STALL], max_share, min_episodes)


def test_a_harness_without_warnings_has_nothing_to_calibrate() -> None:
    calibration = calibrate([stalls(0)], Harness({"situation": Situation()}), [], min_episodes=1)
    assert calibration.thresholds == {} and calibration.trials == ()
