"""The check of a GPU machine, in the form that a CPU can run, and what it does when something is broken."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "experiments" / "gpu_check"
# Stands in for run_step.py: what a step can do to the program that started it.
STEP = """
import json, os, sys, time
name, _, _, folder = sys.argv[1:]
if name == "models":
    sys.exit("the GPU is on fire")
if name == "training":
    time.sleep(60)
status = "FAIL" if name == "agreement" else "PASS"
answer = {"status": status, "reason": "", "text": ""}
open(os.path.join(folder, name + ".json"), "w").write(json.dumps(answer))
"""


@pytest.fixture(scope="module", autouse=True)
def path_of_the_check() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A CPU with the tiny models, written by the step that writes them."""
    from run_step import run
    from setting import Setting

    setting = Setting("cpu", True, tmp_path_factory.mktemp("check"))
    result = run("models", setting)
    assert result["status"] == "PASS", result
    return setting


def test_versions_are_told(setting: Any):
    from run_step import run

    result = run("versions", setting)
    assert result["status"] == "PASS" and result["numbers"]["torch"]


def test_the_tokenizer_fills_the_vocabulary_of_the_model(setting: Any):
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(setting.student)
    assert len(tokenizer) == AutoConfig.from_pretrained(setting.student).vocab_size
    text = "Thought: The mug is here.\nAction: go to drawer 1"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text
    assert len(ids) < len(text) / 2
    assert max(tokenizer.encode("<|end|>", add_special_tokens=False)) == tokenizer.eos_token_id


def test_updates_agree_and_a_lost_micro_batch_is_noticed(setting: Any, monkeypatch: pytest.MonkeyPatch):
    import learning_steps
    from run_step import run

    result = run("agreement", setting)
    assert result["status"] == "PASS", result
    names = " ".join(check["name"] for check in result["checks"])
    assert all(f"{it} update" in names for it in ("32-true", "bf16-mixed")) and "balance" in names
    whole = learning_steps.pack
    monkeypatch.setattr(learning_steps, "LIMITS", {"32-true": learning_steps.LIMITS["32-true"]})
    monkeypatch.setattr(learning_steps, "pack", lambda *a, **k: (whole(*a, **k) * 2)[1 : len(whole(*a, **k))])
    assert run("agreement", setting)["status"] == "FAIL"


@pytest.mark.parametrize("name", ["rollout", "label", "sync_local", "sync_servers", "sleep"])
def test_without_vllm_its_steps_are_skipped_with_a_reason(
    setting: Any, name: str, monkeypatch: pytest.MonkeyPatch
):
    from run_step import run

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run(name, setting)
    assert result["status"] == "SKIP" and "pip install" in result["reason"]


def test_steps_without_their_models_say_which_step_makes_them(tmp_path: Path):
    from run_step import run
    from setting import Setting

    result = run("agreement", Setting("cpu", True, tmp_path))
    assert result["status"] == "SKIP" and "`models`" in result["reason"]


def test_a_step_that_dies_or_hangs_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    import check

    (tmp_path / "run_step.py").write_text(STEP, encoding="utf-8")
    monkeypatch.setattr(check, "HERE", tmp_path)
    monkeypatch.setitem(check.STEPS, "training", 1)
    names = ["models", "versions", "training", "agreement", "fsdp"]
    arguments = ["--device", "cpu", "--tiny", "--out", str(tmp_path / "out"), "--only", *names]
    assert check.main(arguments) == 1
    results = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert [results[name]["status"] for name in names] == ["FAIL", "PASS", "FAIL", "FAIL", "PASS"]
    assert "code 1" in results["models"]["reason"] and "longer than 1 s" in results["training"]["reason"]
    assert "on fire" in (tmp_path / "out" / "models.log").read_text("utf-8")
    assert "2 PASS, 3 FAIL, 0 SKIP" in capsys.readouterr().out
    assert check.main([*arguments[:-5], "versions", "fsdp"]) == 0
    assert check.main([*arguments[:-5], "versions", "--total-s", "0"]) == 0
    assert "are over" in capsys.readouterr().out


def test_the_full_pair_needs_a_gpu():
    import check

    with pytest.raises(SystemExit) as stopped:
        check.main(["--device", "cpu"])
    assert stopped.value.code == 2


@pytest.mark.slow
def test_the_whole_check_passes_on_a_cpu(tmp_path: Path):
    command = [sys.executable, str(FOLDER / "check.py"), "--device", "cpu", "--tiny", "--out", str(tmp_path)]
    finished = subprocess.run(
        [*command, "--total-s", "3600", "--patience", "20"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout
    results = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert {name for name, result in results.items() if result["status"] == "PASS"} >= {
        "versions", "models", "agreement", "training", "fsdp",
    }  # fmt: skip
