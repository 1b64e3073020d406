"""The index of a folder of games: what must be known of each game before any is played, cached on disk.

Reading thousands of games takes seconds on a local disk and much longer on a network one; the index is one
file, made again only when a file of the folder was added, removed or changed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from had.envs.alfworld.game import parse_game, read_game_data
from had.envs.base import EnvFailure

GAME_FILE = "game.tw-pddl"
TRIAL_FILE = "traj_data.json"
_FORMAT = 2  # raise it when the meaning of a cached index changes
_LOG_EVERY = 500
_NUM_NAMED = 3  # damaged games that a warning quotes

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GameEntry:
    """One playable game.

    Attributes:
        path: its folder, relative to the indexed one: `<task>/<trial>`.
        type: the task type, e.g. `pick_and_place_simple`.
        goal: the task text: the first human annotation, else the template goal; empty when neither can be
            read.
        is_annotated: the text is a human annotation.
        fault: what is wrong with its files; empty for nothing. Such a game stays a task: whoever plays it
            gets a failed episode, which is counted.
    """

    path: str
    type: str
    goal: str
    is_annotated: bool
    fault: str = ""


def load_index(folder: Path, cache_dir: Path) -> tuple[GameEntry, ...]:
    """The playable games under `folder`/<task>/<trial>, by path; from the cache when nothing changed.

    As in ALFWorld, tasks with movable receptacles or slicing and games known to be unsolvable are not played.
    Games with damaged files are in the index and named in a warning.

    Raises:
        ValueError: every single game is damaged (the message quotes the first one).
    """
    listing = _list_games(folder)
    fingerprint = hashlib.sha256(json.dumps([_FORMAT, listing]).encode()).hexdigest()
    address = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    cache = cache_dir / f"{folder.name}-{address}.json"
    entries = _read_cache(cache, fingerprint)
    if entries is None:
        entries = _index(folder, [str(row[0]) for row in listing])
        _write_cache(cache, fingerprint, entries)
    _tell_faults(folder, entries)
    return entries


def _tell_faults(folder: Path, entries: Sequence[GameEntry]) -> None:
    """Warn of damaged games; refuse a folder that holds nothing else."""
    faults = [entry.fault for entry in entries if entry.fault]
    if not faults:
        return
    if len(faults) == len(entries):
        raise ValueError(f"all {len(entries)} games of {folder} are damaged; the first: {faults[0]}")
    more = f"\n  - and {len(faults) - _NUM_NAMED} more" if len(faults) > _NUM_NAMED else ""
    lines = "".join(f"\n  - {fault}" for fault in faults[:_NUM_NAMED])
    _log.warning(
        "%d of the %d games of %s are damaged; an episode that cannot be played is counted as failed:%s%s",
        len(faults), len(entries), folder, lines, more,
    )  # fmt: skip


def _list_games(folder: Path) -> list[list[str | int]]:
    """Path, sizes and times of change of every game of a supported kind that has both its files."""
    listing: list[list[str | int]] = []
    for task in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not task.is_dir() or "movable" in task.name or "Sliced" in task.name:
            continue
        for trial in sorted(os.scandir(task.path), key=lambda entry: entry.name):
            try:
                stats = [os.stat(os.path.join(trial.path, name)) for name in (GAME_FILE, TRIAL_FILE)]
            except (FileNotFoundError, NotADirectoryError):
                continue
            changes = [number for stat in stats for number in (stat.st_size, stat.st_mtime_ns)]
            listing.append([f"{task.name}/{trial.name}", *changes])
    return listing


def _index(folder: Path, paths: Sequence[str]) -> tuple[GameEntry, ...]:
    _log.info("indexing %d games of %s (once)", len(paths), folder)
    entries = []
    num_unsolvable = 0
    for number, path in enumerate(paths, start=1):
        entry = _read_entry(folder, path)
        if entry is None:
            num_unsolvable += 1
        else:
            entries.append(entry)
        if number % _LOG_EVERY == 0:
            _log.info("indexed %d of %d games", number, len(paths))
    if num_unsolvable:
        _log.info("%d games of %s are left out: marked as unsolvable", num_unsolvable, folder)
    return tuple(entries)


def _read_entry(folder: Path, path: str) -> GameEntry | None:
    """The entry of one game, or None when the game is not marked as solvable."""
    game_file, trial_file = folder / path / GAME_FILE, folder / path / TRIAL_FILE
    faults = []
    goal, is_solvable = "", True  # as far as one can tell of a damaged game
    try:
        data = read_game_data(game_file)
        is_solvable = data.get("solvable") is True
        goal = parse_game(data, str(game_file)).goal_sentence if is_solvable else ""
    except EnvFailure as error:
        faults.append(str(error))
    task_type, text = path.partition("-")[0], ""  # ALFWorld's folders begin with the task type
    try:
        trial = json.loads(trial_file.read_text(encoding="utf-8"))
        task_type = str(trial["task_type"])
        annotations = trial.get("turk_annotations", {}).get("anns", [])
        text = annotations[0]["task_desc"].strip() if annotations else ""
    except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        faults.append(
            f"expected a JSON object with 'task_type' in {trial_file}: {error!r}. Get the file again"
        )
    if not is_solvable:
        return None
    return GameEntry(path, task_type, text or goal, bool(text), "; ".join(faults))


def _read_cache(cache: Path, fingerprint: str) -> tuple[GameEntry, ...] | None:
    """The cached entries, or None when there are none for this state of the folder."""
    try:
        content = json.loads(cache.read_text(encoding="utf-8"))
        if content["fingerprint"] != fingerprint:
            return None
        return tuple(GameEntry(**entry) for entry in content["games"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OSError) as error:
        _log.warning("the index %s is damaged and is made again: %r", cache, error)
        return None


def _write_cache(cache: Path, fingerprint: str, entries: Sequence[GameEntry]) -> None:
    """Write the index in one step, so that two processes that index at once cannot mix their files."""
    content = {"fingerprint": fingerprint, "games": [asdict(entry) for entry in entries]}
    draft = cache.with_suffix(f".{os.getpid()}.tmp")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(content), encoding="utf-8")
        os.replace(draft, cache)
    except OSError as error:
        _log.warning("cannot keep the index of the games in %s, every start makes it again: %s", cache, error)
