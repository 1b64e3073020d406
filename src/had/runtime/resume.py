"""Going on: from which checkpoint a run starts, what is refused, what a new folder takes over."""

from __future__ import annotations

import logging
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from had.runtime.checkpoint_files import FOLDER, checkpoints_in, damage, update_of
from had.runtime.files import read_csv
from had.runtime.ranks import is_first
from had.runtime.stop import exit_code_of

AUTO = "auto"
CONTINUED = ("updates.csv", "rounds.csv", "eval.csv", "records", "transcripts", "student/best")
# What may differ when a run goes on in its folder: where it runs and what it shows, not what it computes.
FREE = (
    "resume",
    "train",
    "plan",
    "paths",
    "logger",
    "planning",
    "bottleneck",
    "faults",
    "checkpoints",
    "engine",
    "weight_sync",
    "env.num_slots",
    "env.num_workers",
    "env.timeout_s",
    "env.pool",
    "env.pools",
    "trainer.devices",
    "trainer.num_nodes",
    "trainer.strategy",
    "trainer.default_root_dir",
    "evaluation.show_all_metrics",
)
MAX_NAMED = 8  # differing keys in a message
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """From where a run begins.

    Attributes:
        checkpoint: the file, None for the beginning.
        num_updates: taken before.
        is_finished: the folder holds the finished run, nothing is left to do.
    """

    checkpoint: Path | None = None
    num_updates: int = 0
    is_finished: bool = False


def find_start(resume: str | None, folder: Path | str, config: Mapping[str, Any]) -> Start:
    """Decide where a run begins; nothing is changed.

    Args:
        resume: None to begin, `auto` to go on from the newest intact checkpoint of the folder (or to begin,
            where it has none), or the path of a checkpoint.
        folder: the run folder.
        config: the resolved configuration; `trainer.max_steps` is read.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the folder belongs to another run or configuration, or the checkpoint is damaged.
    """
    folder, max_steps = Path(folder), int(config["trainer"]["max_steps"])
    if resume is None:
        check_unused(folder)
        updates = folder / "updates.csv"
        if updates.is_file() and read_csv(updates):
            _check_same_config(folder, config)
        return Start()
    if resume != AUTO:
        path = Path(resume)
        _check_checkpoint(path)
        if path.resolve().parent.parent == folder.resolve():
            _check_same_config(folder, config)
        start = _start_at(path, max_steps)
        if start.is_finished:
            raise ValueError(
                f"resume: {path} is the last checkpoint of a finished run of {start.num_updates} updates, "
                "nothing is left to do; raise trainer.max_steps, or evaluate the student (src/evaluate.py)"
            )
        return start
    _check_same_config(folder, config)
    newest = _newest_intact(folder / FOLDER)
    if newest is None:
        _check_unfinished(folder)
        return Start()
    return _start_at(newest, max_steps)


def _start_at(path: Path, max_steps: int) -> Start:
    num_updates = update_of(path)
    if 0 <= max_steps < num_updates:
        raise ValueError(
            f"resume: {path} is at update {num_updates}, behind trainer.max_steps={max_steps}; raise "
            "trainer.max_steps, or evaluate the student (src/evaluate.py)"
        )
    return Start(path, num_updates, is_finished=_is_finished(path.parent.parent, num_updates, max_steps))


def _is_finished(folder: Path, num_updates: int, max_steps: int) -> bool:
    """All updates are taken and all results written."""
    return 0 <= max_steps <= num_updates and (folder / "summary.json").is_file()


def _newest_intact(folder: Path) -> Path | None:
    for path in checkpoints_in(folder):
        problem = damage(path)
        if problem is None:
            return path
        _log.warning("resume: %s is damaged (%s); the one before it is taken", path, problem)
    return None


def _check_checkpoint(path: Path) -> None:
    """Refuse a file from which nothing can go on, and name those beside it that are good."""
    if not path.exists():
        raise FileNotFoundError(
            f"resume: expected a checkpoint (<run folder>/{FOLDER}/update_<number>.ckpt) or auto, found none "
            f"at {path}"
        )
    problem = damage(path)
    if problem is None:
        return
    intact = [other.name for other in checkpoints_in(path.parent) if damage(other) is None]
    advice = f"intact beside it: {', '.join(intact)}" if intact else "no other one beside it is intact"
    raise ValueError(f"resume: {path} is damaged ({problem}); {advice}")


def check_unused(folder: Path | str) -> None:
    """Refuse to mix two runs in one folder.

    Raises:
        ValueError: the folder holds the files of a run that went through at least one round.
    """
    found = [name for name in ("summary.json", FOLDER) if (Path(folder) / name).exists()]
    if found:
        raise ValueError(
            f"hydra.run.dir: {folder} holds a run already ({', '.join(found)}); go on with it (resume=auto), "
            "choose another folder, or remove this one"
        )


def _check_unfinished(folder: Path) -> None:
    if (folder / "summary.json").is_file():
        raise ValueError(
            f"resume=auto: {folder} holds a finished run (summary.json) without an intact checkpoint in "
            f"{FOLDER}/; choose another hydra.run.dir"
        )


def _check_same_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder with another experiment than the one that it holds."""
    path = folder / "config.yaml"
    if not path.is_file():
        return
    old, new = flat(_read_config(path)), flat(config)
    differing = differences(old, new)
    if not differing:
        return
    pairs = [(key, old.get(key, "absent"), new.get(key, "absent")) for key in differing]
    texts = [f"{key} ({there!r} there, {here!r} here)" for key, there, here in pairs]
    more = f" and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    raise ValueError(
        f"hydra.run.dir: {folder} holds a run with another configuration: "
        f"{'; '.join(texts[:MAX_NAMED])}{more}. Give the same command again with resume=auto, or choose "
        "another folder; a changed experiment can start from a checkpoint of this one in a folder of its own "
        "(resume=PATH)"
    )


def _read_config(path: Path) -> Mapping[str, Any]:
    """The configuration that a run wrote."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        config = error
    if not isinstance(config, Mapping):
        raise ValueError(
            f"hydra.run.dir: expected the configuration of the run in {path}, found none that can be read "
            f"({' '.join(str(config).split())[:200]}); put the file back, or start from a checkpoint of this "
            "folder in another one (resume=PATH)"
        )
    return config


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys of two flat configurations in which they are different experiments.

    A larger `trainer.max_steps` is none, nor are the values that follow it.
    """
    name = "trainer.max_steps"
    limits = (old.get(name), new.get(name))
    is_longer = None not in limits and limits[1] >= limits[0]  # type: ignore[operator]
    return [
        key
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
        and not any(key == free or key.startswith(f"{free}.") for free in FREE)
        and not (is_longer and (old.get(key), new.get(key)) == limits)
    ]


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of a configuration by dotted name; empty containers are leaves."""
    if isinstance(config, Mapping) and config:
        pairs: Any = config.items()
    elif isinstance(config, list | tuple) and config:
        pairs = enumerate(config)
    else:
        return {prefix: list(config) if isinstance(config, tuple) else config}
    found: dict[str, Any] = {}
    for key, value in pairs:
        found |= flat(value, f"{prefix}.{key}" if prefix else str(key))
    return found


def command_to_go_on(arguments: Sequence[str], folder: Path | str) -> str:
    """What to type to go on with a run.

    Args:
        arguments: the program and its arguments, as the run was started with.
        folder: the run folder.
    """
    kept = [text for text in arguments if not text.startswith(("resume=", "hydra.run.dir="))]
    return shlex.join(["python", *kept, f"hydra.run.dir={folder}", f"resume={AUTO}"])


def say_how_to_go_on(folder: Path | str, cause: signal.Signals | None, arguments: Sequence[str]) -> int:
    """Print where a run that was asked to end stands; the exit code.

    Args:
        folder: the run folder.
        cause: the signal, None when another process received it.
        arguments: the program and its arguments.

    Returns:
        0 or 130, see `exit_code_of`.
    """
    if is_first():
        found = checkpoints_in(Path(folder) / FOLDER)
        where = f"the last checkpoint is {found[0]}" if found else "it has no checkpoint yet and begins anew"
        name = "a signal" if cause is None else cause.name
        print(f"stopped by {name}; {where}. Go on with:\n  {command_to_go_on(arguments, folder)}", flush=True)
    return exit_code_of(cause)


def take_over(checkpoint: Path | str, folder: Path | str) -> None:
    """Copy tables, records, transcripts and best student of the checkpoint's run where the folder has none.

    Does nothing when the run goes on in its own folder.
    """
    source, target = Path(checkpoint).parent.parent, Path(folder)
    for name in CONTINUED:
        old, new = source / name, target / name
        if not old.exists() or new.exists():
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        if old.is_dir():
            shutil.copytree(old, new)
        else:
            shutil.copy2(old, new)
