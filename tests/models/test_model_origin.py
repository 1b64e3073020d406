"""What a model says of itself before it is loaded: where it comes from, its stop tokens, its context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from had.models.model_files import ModelFiles
from had.models.tiny import make_qwen3

COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache that holds one commit of `some/model`, under that commit and under a tag."""
    model = tmp_path / "models--some--model"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "v1").write_text(COMMIT)
    snapshot = model / "snapshots" / COMMIT
    make_qwen3(50, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=8, intermediate=16, eos_id=3,
               max_positions=777).save_pretrained(snapshot)  # fmt: skip
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return snapshot


@pytest.mark.parametrize("revision", [COMMIT, "v1"])
def test_a_hub_model_knows_its_commit(hub_cache: Path, revision: str):
    files = ModelFiles("some/model", revision)
    assert files.origin() == {"path": "some/model", "revision": revision, "commit": COMMIT}
    assert files.stop_ids() == {3} and files.max_positions() == 777


def test_a_revision_that_is_not_there_is_named_with_the_command_that_gets_it(hub_cache: Path):
    with pytest.raises(FileNotFoundError, match="hf download some/model --revision v2"):
        ModelFiles("some/model", "v2").locate()


def test_a_folder_has_no_commit_and_may_name_several_stop_tokens(hub_cache: Path):
    files = ModelFiles(str(hub_cache))
    assert files.origin() == {"path": str(hub_cache), "revision": None, "commit": None}
    settings = hub_cache / "generation_config.json"
    settings.write_text(json.dumps({"eos_token_id": [3, 4]}))
    assert files.stop_ids() == {3, 4}
    settings.unlink()
    assert files.stop_ids() == frozenset()
