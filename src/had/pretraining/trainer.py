"""Imitation training of a small model from scratch: expert chunks, later with relabelled play of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from had.pretraining.corpus import Corpus, Sample
from had.pretraining.muon import MuonAdamW
from had.runtime.files import CsvAppender

# (model, chunk number) -> relabelled samples of its own play
PlayOwn = Callable[[PreTrainedModel, int], list[Sample]]
COLUMNS = ("step", "chunk", "loss_reply", "loss_prompt", "lr", "samples", "tokens", "seconds")


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Attributes:
        num_steps: optimizer steps.
        batch_tokens: padded tokens of one step.
        max_sample_tokens: longer samples are left out (counted).
        lr: peak learning rate; warm-up, then constant, then linear decay to a tenth over `decay_share` of the
            steps.
        num_warmup: warm-up steps.
        decay_share: share of the steps that decay.
        prompt_loss_weight: weight of the language-model loss on the prompt.
        weight_decay: of AdamW.
        chunk_episodes: expert episodes of one chunk.
        own_play_start: step from which chunks also hold the model's own play.
        save_every_s: seconds between checkpoints.
        autocast: matrix products in bfloat16 (weights, gradients and optimizer stay float32).
    """

    num_steps: int
    batch_tokens: int = 2048
    max_sample_tokens: int = 640
    lr: float = 3e-3
    num_warmup: int = 100
    decay_share: float = 0.25
    prompt_loss_weight: float = 0.3
    weight_decay: float = 0.01
    chunk_episodes: int = 40
    own_play_start: int = 10**9
    save_every_s: float = 60.0
    autocast: bool = False

    def lr_at(self, step: int) -> float:
        """Learning rate of a step."""
        decay_from = self.num_steps * (1 - self.decay_share)
        if step < self.num_warmup:
            return self.lr * (step + 1) / self.num_warmup
        if step <= decay_from:
            return self.lr
        return self.lr * (1 - 0.9 * (step - decay_from) / (self.num_steps - decay_from))


def batches(samples: Sequence[Sample], batch_tokens: int, rng: random.Random) -> list[list[Sample]]:
    """Samples of similar length together, at most `batch_tokens` padded tokens a batch, in random order."""
    ordered = sorted(samples, key=lambda sample: len(sample.ids))
    result: list[list[Sample]] = [[]]
    for sample in ordered:
        if result[-1] and len(sample.ids) * (len(result[-1]) + 1) > batch_tokens:
            result.append([])
        result[-1].append(sample)
    rng.shuffle(result)
    return result


def imitation_losses(model: nn.Module, batch: Sequence[Sample], pad_id: int) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy over the reply tokens and over the prompt tokens of a batch."""
    longest = max(len(sample.ids) for sample in batch)
    tokens_BT = torch.tensor([[*sample.ids, *[pad_id] * (longest - len(sample.ids))] for sample in batch])
    positions_T = torch.arange(longest)
    starts_B = torch.tensor([sample.reply_start for sample in batch])
    lengths_B = torch.tensor([len(sample.ids) for sample in batch])
    logits_BTV = model(input_ids=tokens_BT).logits[:, :-1]
    losses_BT = nn.functional.cross_entropy(logits_BTV.transpose(1, 2), tokens_BT[:, 1:], reduction="none")
    is_reply_BT = (positions_T[1:] >= starts_B[:, None]) & (positions_T[1:] < lengths_B[:, None])
    is_prompt_BT = positions_T[1:] < starts_B[:, None]
    return losses_BT[is_reply_BT].mean(), losses_BT[is_prompt_BT].mean()


class Imitation:
    """One resumable training: `run` goes on from the last checkpoint of its folder."""

    def __init__(
        self,
        model: PreTrainedModel,
        corpus: Corpus,
        schedule: Schedule,
        folder: Path,
        play_own: PlayOwn | None = None,
    ) -> None:
        self.model, self.corpus, self.schedule = model, corpus, schedule
        self.folder, self.play_own = folder, play_own
        self.optimizer = MuonAdamW(model, schedule.lr, schedule.weight_decay)
        self.step = self.chunk = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint = folder / "pretrain.pt"
        if self._checkpoint.exists():
            state = torch.load(self._checkpoint, weights_only=True)
            model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.chunk = state["step"], state["chunk"]

    def save(self) -> None:
        """Write a checkpoint; a kill while writing leaves the previous one."""
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "chunk": self.chunk,
            "schedule": asdict(self.schedule),
        }
        fresh = self._checkpoint.with_suffix(".tmp")
        torch.save(state, fresh)
        fresh.replace(self._checkpoint)

    def run(self, report: Callable[[dict[str, float]], None] = lambda row: None) -> None:
        """Train to the end of the schedule; resumption starts at the chunk that was interrupted."""
        log = CsvAppender(self.folder / "pretrain.csv", COLUMNS)
        log.truncate_after(self.step, column="step")
        pad_id = self.corpus.renderer.tokenizer.pad_token_id
        saved = time.monotonic()
        while self.step < self.schedule.num_steps:
            rng = random.Random(f"{self.corpus.seed}/order/{self.chunk}")
            for batch in batches(self._samples(), self.schedule.batch_tokens, rng):
                row = self._update(batch, pad_id)
                log.append(row)
                report(row)
                if self.step >= self.schedule.num_steps:
                    break
            self.chunk += 1
            if time.monotonic() - saved > self.schedule.save_every_s:
                self.save()
                saved = time.monotonic()
        self.save()

    def _samples(self) -> list[Sample]:
        samples = self.corpus.chunk(self.chunk, self.schedule.chunk_episodes)
        if self.play_own is not None and self.step >= self.schedule.own_play_start:
            samples += self.play_own(self.model, self.chunk)
        return [sample for sample in samples if len(sample.ids) <= self.schedule.max_sample_tokens]

    def _update(self, batch: Sequence[Sample], pad_id: int) -> dict[str, float]:
        started = time.monotonic()
        self.optimizer.set_lr(self.schedule.lr_at(self.step))
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.schedule.autocast):
            reply, prompt = imitation_losses(self.model, batch, pad_id)
        (reply + self.schedule.prompt_loss_weight * prompt).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return {
            "step": self.step,
            "chunk": self.chunk,
            "loss_reply": round(reply.item(), 5),
            "loss_prompt": round(prompt.item(), 5),
            "lr": self.optimizer.lr,
            "samples": len(batch),
            "tokens": sum(len(sample.ids) for sample in batch),
            "seconds": round(time.monotonic() - started, 3),
        }
