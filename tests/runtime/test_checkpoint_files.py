"""Damaged checkpoints are found, whatever was done to them; drafts become checkpoints whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from had.runtime.checkpoint_files import (
    checkpoint_path,
    checkpoints_in,
    damage,
    draft_path,
    point_last,
    prune,
    publish,
    update_of,
)


def write(path: Path, update: int = 7) -> Path:
    generator = torch.Generator().manual_seed(update)
    torch.save({"global_step": update, "weights": torch.randn(4000, generator=generator)}, path)
    return path


def flip(position: float) -> Callable[[bytes], bytes]:
    """Change one bit at a place of the file, 0 the beginning and 1 the end."""

    def damaged(content: bytes) -> bytes:
        index = int(position * (len(content) - 1))
        return content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :]

    return damaged


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half of it": lambda content: content[: len(content) // 2],
    "last byte lost": lambda content: content[:-1],
    "zeros from the middle": lambda content: content[:9000] + bytes(len(content) - 9000),
    "another file": lambda content: b"not a checkpoint",
    **{f"bit at {share}": flip(share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)},
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(name: str, tmp_path: Path):
    path = write(tmp_path / "update_000007.ckpt")
    assert damage(path) is None
    assert update_of(path) == 7
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    assert damage(path)


def test_a_missing_file_is_damage(tmp_path: Path):
    assert "FileNotFoundError" in str(damage(tmp_path / "update_000001.ckpt"))


def test_of_a_folder_the_shared_part_is_checked(tmp_path: Path):
    folder = tmp_path / "update_000003.ckpt"
    folder.mkdir()
    assert damage(folder)  # killed before it was written
    write(folder / "meta.pt", update=3)
    assert damage(folder) is None
    assert update_of(folder) == 3


def test_a_draft_is_no_checkpoint_until_it_is_published(tmp_path: Path):
    path = checkpoint_path(tmp_path, 12)
    write(draft_path(path), update=12)
    assert checkpoints_in(tmp_path) == []
    publish(draft_path(path), path)
    assert checkpoints_in(tmp_path) == [path]
    assert update_of(path) == 12


def test_publishing_replaces_files_and_folders(tmp_path: Path):
    path = checkpoint_path(tmp_path, 1)
    for content in ("old", "new"):
        draft_path(path).mkdir()
        (draft_path(path) / "part").write_text(content)
        publish(draft_path(path), path)
    assert (path / "part").read_text() == "new"
    assert not draft_path(path).exists()


def test_the_newest_stay_and_drafts_of_killed_processes_go(tmp_path: Path):
    paths = [checkpoint_path(tmp_path, update) for update in (2, 9, 10, 1_000_000)]
    for path in paths:
        path.touch()
        point_last(path)
    draft_path(paths[0]).touch()
    (tmp_path / "notes.txt").touch()
    prune(tmp_path, keep=-1)
    assert checkpoints_in(tmp_path) == paths[::-1]
    prune(tmp_path, keep=2)
    assert checkpoints_in(tmp_path) == [paths[3], paths[2]]
    assert (tmp_path / "last.ckpt").resolve() == paths[3].resolve()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [paths[2].name, paths[3].name, "last.ckpt", "notes.txt"]
    )


def test_the_link_goes_on_when_the_folder_is_moved(tmp_path: Path):
    (tmp_path / "here").mkdir()
    path = write(checkpoint_path(tmp_path / "here", 4), update=4)
    point_last(path)
    (tmp_path / "here").rename(tmp_path / "there")
    assert update_of(tmp_path / "there" / "last.ckpt") == 4
