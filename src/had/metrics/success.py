"""Success: how many tasks were won, at which score, in how many turns (spec section 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from had.metrics.bootstrap import ReplicatedSums, Statistic
from had.metrics.counts import ratio
from had.metrics.intervals import Estimate, wilson
from had.records import Episode


@dataclass(frozen=True)
class SuccessCounts:
    """Sums over episodes.

    Attributes:
        num_episodes: all episodes, the failed ones included.
        num_won: won episodes.
        num_failed: episodes that the environment or the engine could not finish; they count as not won.
        score, reward: sums of the final values over all episodes.
        turns_won: sum of the number of turns over the won episodes.
    """

    num_episodes: int = 0
    num_won: int = 0
    num_failed: int = 0
    score: float = 0.0
    reward: float = 0.0
    turns_won: int = 0


NUM_COUNTS = len(fields(SuccessCounts))
EPISODES, WON, FAILED, SCORE, REWARD, TURNS_WON = range(NUM_COUNTS)

STATISTICS: dict[str, Statistic] = {
    "sr": lambda sums: ratio(sums[..., WON], sums[..., EPISODES]),
    "score": lambda sums: ratio(sums[..., SCORE], sums[..., EPISODES]),
    "reward": lambda sums: ratio(sums[..., REWARD], sums[..., EPISODES]),
    "turns_success": lambda sums: ratio(sums[..., TURNS_WON], sums[..., WON]),
}


def count_success(episodes: Iterable[Episode]) -> SuccessCounts:
    """Count episodes; see `SuccessCounts`."""
    played = list(episodes)
    won = [e for e in played if e.is_won]
    return SuccessCounts(
        num_episodes=len(played),
        num_won=len(won),
        num_failed=sum(e.is_failed for e in played),
        score=sum(e.score for e in played),
        reward=sum(e.reward for e in played),
        turns_won=sum(len(e.turns) for e in won),
    )


def success_estimates(sums: ReplicatedSums) -> dict[str, Estimate]:
    """Estimates `sr` (Wilson), `score`, `reward`, `turns_success` (bootstrap over tasks), `num_failed`."""
    num_episodes, num_won, num_failed = (int(sums.sums_D[i]) for i in (EPISODES, WON, FAILED))
    return {
        "sr": wilson(num_won, num_episodes),
        "score": sums.estimate(STATISTICS["score"], num_episodes),
        "reward": sums.estimate(STATISTICS["reward"], num_episodes),
        "turns_success": sums.estimate(STATISTICS["turns_success"], num_won),
        "num_failed": Estimate(num_failed if num_episodes else None, count=num_episodes),
    }
