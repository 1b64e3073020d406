"""A plan as text, and what speaks against it."""

from __future__ import annotations

from typing import NamedTuple

from had.models.architecture import ModelSize
from had.models.memory import StepShape
from had.planning.plan import GIB, Plan

HOUR = 3600.0


class Part(NamedTuple):
    """Bytes of a part of the memory of one process, while it plays and labels and while it trains."""

    name: str
    playing: int
    training: int


def memory_parts(plan: Plan) -> list[Part]:
    """Where the memory of one process goes."""
    training, shape = plan.training(plan.usual_shape), plan.usual_shape
    shard = f", 1/{plan.ranks}" if plan.is_sharded else ""
    kind = plan.placement.weights
    parts = [
        Part(f"student: weights, {kind}{shard}", training.weights, training.weights),
        Part(f"student: optimizer, two moments{shard}", training.optimizer, training.optimizer),
        Part(f"student: gradients, {plan.groups} kept apart{shard}", 0, training.gradients),
        Part("student: weights as they are computed with", 0, training.copies),
        Part(f"activations of {_shape(shape)}", 0, training.activations),
    ]
    for role in ("student", "teacher"):
        engine = plan.engine(role)
        if engine.is_outside:
            parts.append(Part(f"engine of the {role}: on {engine.replicas} server(s) of its own", 0, 0))
            continue
        parts.append(Part(f"engine of the {role}: weights", engine.weights, engine.weights_kept))
        parts.append(Part(f"engine of the {role}: keys and values", engine.cache, engine.kept))
    return parts


def totals(parts: list[Part]) -> tuple[int, int]:
    """Bytes while playing and while training."""
    return sum(part.playing for part in parts), sum(part.training for part in parts)


def problems(plan: Plan) -> list[str]:
    """Why the run cannot work, each with what to do."""
    parts, found = memory_parts(plan), []
    for phase, total in zip(("playing", "training"), totals(parts), strict=True):
        if total <= plan.usable_bytes:
            continue
        largest = max(parts, key=lambda part: getattr(part, phase))
        found.append(
            f"memory while {phase}: {total / GIB:.1f} GiB a process, {plan.usable_bytes / GIB:.1f} of "
            f"{plan.device_bytes / GIB:.0f} GiB usable; the largest part is {largest.name!r} with "
            f"{getattr(largest, phase) / GIB:.1f} GiB. {_advice(plan, largest.name)}"
        )
    env, longest = plan.config.env, plan.work.last_prompt + plan.config.env.max_reply_tokens
    if longest > env.max_context_tokens:
        found.append(
            f"env.max_context_tokens={env.max_context_tokens}: the usual prompt of the last turn and the "
            f"longest reply have {longest:.0f} tokens. Raise it, or keep fewer turns in the prompt "
            "(prompt.history_turns)"
        )
    return found


def _advice(plan: Plan, part: str) -> str:
    """What makes a part smaller."""
    if part.startswith("engine"):
        role = part.split()[3].rstrip(":")
        return (
            "Serve this model on GPUs of its own (engine=vllm_gpu, engine=vllm_servers; src/serve.py), or "
            f"lower engine.{role}.max_batch_tokens and engine.{role}.prefix_cache_tokens"
        )
    if part.startswith("activations"):
        more = "" if plan.placement.activation_checkpointing else ", placement.activation_checkpointing=true"
        return f"Lower data.max_tokens{more}"
    return "Take more GPUs" if plan.is_sharded else "Take trainer=fsdp and more GPUs"


def plan_text(plan: Plan) -> str:
    """The whole plan."""
    config = plan.config
    parts = [
        [
            f"plan: {config.method.name} on {config.env.name}, {plan.acting.student_files.path} taught by "
            f"{plan.acting.teacher_files.path}",
            f"{plan.ranks} process(es), {plan.strategy}, {plan.device_bytes / GIB:.0f} GiB each",
        ],
        _model_lines(plan),
        _memory_lines(plan),
        _work_lines(plan),
    ]
    if plan.is_gpu:
        parts.append(_time_lines(plan))
    return "\n\n".join("\n".join(part) for part in parts)


def _model_lines(plan: Plan) -> list[str]:
    def line(role: str, size: ModelSize) -> str:
        active = f" ({size.active / 1e6:,.1f} a token)" if size.active < size.parameters else ""
        return (
            f"  {role:<8} {size.parameters / 1e6:10,.1f} million parameters{active}, {size.layers} layers, "
            f"{size.kv_numbers} numbers a token in the cache"
        )

    return ["models (built without weights)", line("student", plan.student), line("teacher", plan.teacher)]


def _memory_lines(plan: Plan) -> list[str]:
    parts, usable = memory_parts(plan), plan.usable_bytes
    playing, training = totals(parts)
    rows = [*parts, Part("sum", playing, training), Part("usable", usable, usable)]
    lines = [f"{'memory of one process, GiB':<58}{'playing':>9}{'training':>10}"]
    lines += [f"  {name:<56}{first / GIB:9.2f}{second / GIB:10.2f}" for name, first, second in rows]
    more = plan.training(plan.longest_shape).activations - plan.training(plan.usual_shape).activations
    verdict = "fits" if training + more <= usable else "would not fit"
    shape = _shape(plan.longest_shape)
    lines.append(f"  prompts at the limit of the context, {shape}: {(training + more) / GIB:.2f}, {verdict}")
    return lines


def _shape(shape: StepShape) -> str:
    return f"{shape.rows} × {shape.tokens} tokens"


def _work_lines(plan: Plan) -> list[str]:
    work = plan.work
    kept, answers = work.records * (work.prompt + work.reply), work.records * work.asked.answers
    return [
        "work",
        f"  a round: {work.tasks} tasks, {work.records:.0f} records, {work.updates_per_round:.1f} updates of "
        f"{work.batch}; {work.tokens_played:,.0f} tokens played, {kept:,.0f} in the records",
        f"  the teacher at a state: {work.asked.answers} answer(s), {work.asked.scored} scored run(s); "
        f"{answers:,.0f} answers a round",
        f"  the run: {work.rounds} rounds, {work.updates} updates, {work.teacher_answers:,.0f} teacher "
        f"answers of {work.teacher_answers * work.reply:,.0f} tokens, "
        f"{work.eval_episodes:,} evaluation episodes",
    ]


def _time_lines(plan: Plan) -> list[str]:
    times, work, speed = plan.times, plan.work, plan.assumptions["speed"]
    hours = times.total / HOUR
    spent = ", ".join(f"{name} {seconds / HOUR:.1f}" for name, seconds in vars(times).items())
    layer_ms = speed["layer_ms"][plan.engine("student").kind]
    return [
        f"time, estimated: {hours:.1f} h ({spent}); {hours * plan.ranks:.0f} GPU hours",
        f"  assumes episodes of {work.turns:.0f} turns, prompts of {work.prompt:.0f} tokens on average and "
        f"{work.last_prompt:.0f} at the last turn, replies of {work.reply:.0f};",
        f"  a GPU of {speed['tflops']:g} TFLOP/s ({speed['train_share']:.0%} reached in training, "
        f"{speed['prefill_share']:.0%} in prefill) and {speed['tb_per_s']:g} TB/s "
        f"({speed['decode_share']:.0%});",
        f"  at least {layer_ms:g} ms a layer in a decoding step; no failures, start-up, environment time.",
    ]
