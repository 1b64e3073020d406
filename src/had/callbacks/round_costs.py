"""What a round cost: seconds, tokens and speeds, from sums that can be added over rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from had.records import EpisodeStatus

COUNT_COLUMNS = (
    "num_turns",
    "tokens_collect",
    "tokens_label_generated",
    "tokens_label_scored",
    "tokens_train",
)
# column: the sum above, the sum below
_RATIOS = {
    "lag_mean": ("lag", "records_drawn"),
    "turns_per_s": ("num_turns", "seconds_collect"),
    "tokens_collect_per_s": ("tokens_collect", "seconds_collect"),
    "tokens_label_generated_per_s": ("tokens_label_generated", "seconds_label"),
    "tokens_label_scored_per_s": ("tokens_label_scored", "seconds_label"),
    "tokens_train_per_s": ("tokens_train", "seconds_train"),
    "busy_share_collect": ("collect_busy_s", "collect_rank_s"),
    "busy_share_label": ("label_busy_s", "label_rank_s"),
    "batch_share_collect": ("collect_tokens_generated", "collect_slot_steps"),
    "cache_share_collect": ("collect_tokens_cached", "collect_tokens_read"),
    "cache_share_label": ("label_tokens_cached", "label_tokens_read"),
}
RATIO_COLUMNS = tuple(_RATIOS)
_MEASURED = ("seconds", "busy_", "batch_", "cache_")


def is_measured(column: str) -> bool:
    """True for what depends on the machine, the load and the number of ranks, not on the run alone."""
    return column.startswith(_MEASURED) or column.endswith("_per_s")


def round_sums(collected: Any, num_slots: int, num_ranks: int) -> dict[str, float]:
    """What a collected round adds to the sums.

    Args:
        collected: the `Round`, of all ranks.
        num_slots: episodes that one rank plays at once.
        num_ranks: processes that share the round.
    """
    turns = [turn for episode in collected.episodes for turn in episode.turns]
    sums = {
        "num_turns": len(turns),
        "num_env_failed": sum(e.status is EpisodeStatus.ENV_FAILED for e in collected.episodes),
        "num_unlabelled": collected.num_unlabelled,
        "tokens_collect": sum(len(turn.response.ids) for turn in turns),
        "seconds_collect": collected.seconds_collect,
        "seconds_label": collected.seconds_label,
        "collect_rank_s": collected.seconds_collect * num_ranks,
        "label_rank_s": collected.seconds_label * num_ranks,
    }
    for phase, work in (("collect", collected.work_collect), ("label", collected.work_label)):
        sums |= {f"{phase}_{name}": value for name, value in work.items()}
    if collected.work_collect:
        sums["collect_slot_steps"] = collected.work_collect["steps"] * num_slots
    if collected.work_label:
        sums["tokens_label_generated"] = collected.work_label["tokens_generated"]
        sums["tokens_label_scored"] = collected.work_label["tokens_scored"]
    return sums


def added(*parts: Mapping[str, float]) -> dict[str, float]:
    """Sums of sums; `lag_max` is a maximum."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: (max if name == "lag_max" else sum)(part[name] for part in parts if name in part)
        for name in names
    }


def cost_numbers(sums: Mapping[str, float]) -> dict[str, float | int | None]:
    """Counts and ratios; None where an engine does not count, or there is nothing to divide by."""
    counts = {name: _whole(sums.get(name)) for name in COUNT_COLUMNS}
    ratios = {name: _ratio(sums.get(above), sums.get(below)) for name, (above, below) in _RATIOS.items()}
    return {**counts, **ratios}


def _ratio(above: float | None, below: float | None) -> float | None:
    return round(above / below, 6) if above is not None and below else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
