"""Loading and saving of models and tokenizers."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from had.models.student import load_model, load_tokenizer, package_weights, save_hf, torch_dtype
from had.models.tiny import make_qwen3


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(WordLevel({"<pad>": 0, "<eos>": 1, "go": 2, "look": 3}, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<pad>")


def test_a_saved_folder_loads_with_the_same_weights(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    model = make_qwen3(4, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=4, intermediate=24)
    folder = save_hf(model, tokenizer, tmp_path / "runs" / "best")
    assert (folder / "model.safetensors").is_file()
    loaded = load_model(folder)
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    assert loaded.config._attn_implementation == "sdpa"
    assert load_tokenizer(folder).encode("look") == [3]
    assert next(load_model(folder, dtype="bfloat16").parameters()).dtype is torch.bfloat16


def test_saving_again_replaces_the_folder_and_leaves_nothing_else(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    for seed in (0, 1):
        model = make_qwen3(
            4, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=4, intermediate=24, seed=seed
        )
        save_hf(model, tokenizer, tmp_path / "best")
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    assert torch.equal(load_model(tmp_path / "best").lm_head.weight, model.lm_head.weight)


def test_a_failed_save_leaves_the_earlier_folder(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    model = make_qwen3(4, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=4, intermediate=24)
    save_hf(model, tokenizer, tmp_path / "best")

    class Broken:
        def save_pretrained(self, folder: Path) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_hf(model, Broken(), tmp_path / "best")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    load_model(tmp_path / "best")


@pytest.mark.parametrize("load", [load_model, load_tokenizer])
def test_a_missing_model_is_explained(
    load: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError) as caught:
        load(tmp_path / "nowhere")
    for part in ("nowhere", "HF_HOME", "HF_HUB_OFFLINE", "student=small"):
        assert part in str(caught.value)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    model = make_qwen3(4, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=4, intermediate=24)
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match="safetensors"):
        load_model(tmp_path)


def test_unknown_packaged_weights_are_explained() -> None:
    with pytest.raises(FileNotFoundError, match=r"no packaged weights named 'nothing'.*webshop/student"):
        package_weights("nothing")


def test_packaged_weights_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "weights" / "small"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    assert package_weights("small") == folder


def test_dtype_names() -> None:
    assert torch_dtype("bfloat16") is torch.bfloat16
    for name in ("int64", "float23", "nn"):
        with pytest.raises(ValueError, match="dtype: expected float32"):
            torch_dtype(name)


@pytest.mark.parametrize("pair", ["", "webshop/", "scienceworld/"])
def test_a_packaged_pair_loads_and_shares_its_tokens(pair: str) -> None:
    student, teacher = (package_weights(f"{pair}{role}") for role in ("student", "teacher"))
    assert load_tokenizer(student).get_vocab() == load_tokenizer(teacher).get_vocab()
    sizes = [load_model(folder, dtype="bfloat16").num_parameters() for folder in (student, teacher)]
    assert 0 < sizes[0] < sizes[1]


def test_everything_packaged_takes_less_than_forty_megabytes() -> None:
    files = (Path(str(resources.files("had"))) / "weights").rglob("*")
    assert sum(file.stat().st_size for file in files if file.is_file()) < 40e6
