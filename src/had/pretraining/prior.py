"""Where objects usually are, counted over training games."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from had.envs.alfworld.game import Game
from had.pretraining.expert import Prior, type_of


def count_prior(games: Iterable[Game]) -> Prior:
    """Object type -> place type -> mean number of such objects in one place of that type."""
    places: Counter[str] = Counter()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for game in games:
        receptacles = [name for identity, name in game.names.items() if game.types[identity] == "receptacle"]
        places.update(type_of(name) for name in receptacles)
        for item, receptacle in game.facts.get("inreceptacle", ()):
            found[type_of(game.names[item])][type_of(game.names[receptacle])] += 1
    return {
        item: {place: count / places[place] for place, count in counts.items()}
        for item, counts in found.items()
    }
