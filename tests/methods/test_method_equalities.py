"""Methods that must coincide do: the same updates, or the same gradient on the same records."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from method_world import gradient_on, parameters, train

from had.records import Record, Verdict


def relative_error(value: torch.Tensor, expected: torch.Tensor) -> float:
    return ((value - expected).norm() / expected.norm()).item()


def relabelled(records: list[Record], **labels: object) -> list[Record]:
    return [replace(record, labels=replace(record.labels, **labels)) for record in records]


def test_had_without_preference_is_sopd_update_for_update(run_of):
    had, sopd = run_of("no_preference"), run_of("sopd")
    assert [r.id for r in had.records] == [r.id for r in sopd.records]
    for mine, theirs in zip(had.steps, sopd.steps, strict=True):
        assert mine["balance"] == 0 and mine["num_accepted"] > 0
        assert mine["loss_response"] == pytest.approx(theirs["loss_response"], rel=1e-6)
        assert mine["grad_norm_total"] == pytest.approx(theirs["grad_norm_total"], rel=1e-5)
    assert (parameters(had.assembly) - parameters(sopd.assembly)).abs().max() < 1e-5


def test_no_validity_is_had_when_every_label_is_valid(world, run_of, tmp_path):
    records = run_of("had").records
    had, unchecked = (world.assembly(tmp_path, f"method={name}") for name in ("had", "no_validity"))
    assert gradient_on(had, records)[0] != gradient_on(unchecked, records)[0]
    valid = relabelled(records, verdict=Verdict.VALID)
    (metrics, gradient), (others, other) = gradient_on(had, valid), gradient_on(unchecked, valid)
    assert metrics == others and metrics["num_differing"] > 0
    assert torch.equal(gradient, other)


def test_guided_opd_is_opd_when_the_teacher_never_acts(world, run_of, tmp_path):
    guided = train(
        world.assembly(tmp_path, "method=guided_opd", "method.schedule._target_=method_world.Never")
    )
    opd = run_of("opd")
    assert [step["loss_reverse_kl"] for step in guided.steps] == [s["loss_reverse_kl"] for s in opd.steps]
    assert torch.equal(parameters(guided.assembly), parameters(opd.assembly))


@pytest.mark.parametrize("reduction", ["token", "record"])
def test_guided_opd_divides_both_terms_by_one_count(world, run_of, tmp_path, reduction):
    override = f"method.divergence.reduction={reduction}"
    guided, opd = (world.assembly(tmp_path, f"method={name}", override) for name in ("guided_opd", "opd"))
    own = run_of("opd").records
    alone, _ = gradient_on(opd, own)
    assert gradient_on(guided, own)[0]["loss_reverse_kl"] == pytest.approx(alone["loss_reverse_kl"])
    acted = [replace(record, id=f"{record.id}/t", actor="teacher") for record in own]
    mixed, _ = gradient_on(guided, own + acted)  # the same replies once more: half of the units of each kind
    assert mixed["loss_reverse_kl"] == pytest.approx(alone["loss_reverse_kl"] / 2, rel=1e-5)
    imitated, _ = gradient_on(guided, acted)
    assert mixed["loss_token_nll"] == pytest.approx(imitated["loss_token_nll"] / 2, rel=1e-5)


def test_sage_opd_is_opd_when_all_turns_are_strong_and_equally_sure(world, run_of, tmp_path):
    records = run_of("sage_opd").records
    sage, opd = (world.assembly(tmp_path, f"method={name}") for name in ("sage_opd", "opd"))
    (weighted, mine) = gradient_on(sage, relabelled(records, judgement=0.7))
    (plain, theirs) = gradient_on(opd, relabelled(records, judgement=None))
    assert weighted["loss_reverse_kl"] == pytest.approx(plain["loss_reverse_kl"], rel=1e-6)
    assert relative_error(mine, theirs) < 1e-5
    judged, _ = gradient_on(sage, records)
    assert judged["loss_reverse_kl"] != pytest.approx(plain["loss_reverse_kl"], rel=1e-6)


def test_sage_opd_is_zero_when_every_turn_is_skipped(world, run_of, tmp_path):
    skipped = relabelled(run_of("sage_opd").records, judgement=0.0)
    metrics, gradient = gradient_on(world.assembly(tmp_path, "method=sage_opd"), skipped)
    assert metrics["loss_reverse_kl"] == metrics["grad_norm_total"] == 0
    assert metrics["num_skipped"] == metrics["num_own"] == len(skipped)
    assert not gradient.numel() or gradient.abs().max() == 0


@pytest.mark.parametrize("divergence", ["reverse_kl", "forward_kl", "jsd"])
def test_a_student_that_is_its_own_teacher_has_no_divergence(world, tmp_path, divergence):
    overrides = ["method=opd", f"method/divergence={divergence}", f"teacher.files.path={world.student}"]
    (step,) = train(world.assembly(tmp_path, *overrides, "trainer.max_steps=1")).steps
    assert 0 <= step[f"loss_{divergence}"] < 1e-6
    assert step["grad_norm_total"] < 1e-3


def test_the_divergences_and_reductions_differ(world, run_of, tmp_path):
    records = run_of("opd").records
    losses = set()
    for divergence in ("reverse_kl", "forward_kl", "jsd"):
        for reduction in ("token", "record"):
            overrides = [f"method/divergence={divergence}", f"method.divergence.reduction={reduction}"]
            metrics, _ = gradient_on(world.assembly(tmp_path, "method=opd", *overrides), records)
            losses.add(metrics[f"loss_{divergence}"])
    assert len(losses) == 6


def test_the_untrained_student_as_reference_starts_at_log_2(run_of):
    first, *later = [step["loss_preference"] for step in run_of("student_reference").steps]
    assert first == pytest.approx(math.log(2), abs=1e-6)
    assert all(loss != pytest.approx(math.log(2), abs=1e-6) for loss in later)


def test_a_reference_changes_the_preference_and_nothing_else(run_of):
    plain, referred = run_of("had").steps[0], run_of("teacher_reference").steps[0]
    assert referred["loss_response"] == pytest.approx(plain["loss_response"], rel=1e-6)
    assert referred["num_differing"] == plain["num_differing"] > 0
    assert referred["loss_preference"] != pytest.approx(plain["loss_preference"], rel=1e-4)
