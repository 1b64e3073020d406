import pytest

from had.metrics.intervals import Estimate, wilson
from had.reports.figures import before_after_bars, disagreement_by_position, learning_curves
from had.reports.method_figures import curves_of_methods, gains_of_methods
from had.reports.runs import Run

UPDATES = (
    "update,round,policy_version,lr,loss_response,loss_preference,grad_norm_response,grad_norm_preference,balance,"
    "grad_norm_total,num_records,num_pairs,num_accepted,num_differing,tokens,seconds\n"
    "1,0,0,1e-5,1.0,0.7,3.0,1.0,1.5,3.3,60,55,50,20,4000,9.1\n"
    "2,0,1,1e-5,nan,,2.0,0.0,0.0,2.0,60,55,0,0,4000,9.1\n"
)
EVAL = (
    "update,split,condition,metric,value,low,high,count\n"
    "0,seen,full,sr,0.1,0.05,0.2,60\n2,seen,full,sr,0.3,0.2,0.4,60\n"
    "0,seen,off,sr,0.1,,,60\n0,seen,full,hu,,,,0\n"
)


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_learning_curves(tmp_path):
    (tmp_path / "updates.csv").write_text(UPDATES)
    assert is_png(learning_curves(tmp_path, tmp_path / "plots" / "only_updates.png"))
    (tmp_path / "eval.csv").write_text(EVAL)
    assert is_png(learning_curves(tmp_path, tmp_path / "plots" / "both.png"))


def test_learning_curves_without_updates(tmp_path):
    with pytest.raises(FileNotFoundError):
        learning_curves(tmp_path, tmp_path / "a.png")


def test_before_after_bars(tmp_path):
    before = {"seen": {"full": {"sr": wilson(3, 10), "hu": Estimate(0.6, None, None, 100)}}}
    after = {"seen": {"full": {"sr": wilson(6, 10)}}, "unseen": {"off": {"sr": wilson(1, 10)}}}
    run = Run(tmp_path, "had", "household", 0, 40, before, after, {})
    assert is_png(before_after_bars(run, tmp_path / "bars.png"))
    nothing = Run(tmp_path, "had", "household", 0, 40, {}, {}, {})
    assert is_png(before_after_bars(nothing, tmp_path / "empty.png"))


def test_disagreement(tmp_path):
    estimates = {
        f"disagreement_{i}": wilson(i, 10 if i % 2 else 0) if i % 2 else wilson(0, 0) for i in range(10)
    }
    estimates["disagreement"] = wilson(25, 50)
    assert is_png(disagreement_by_position(estimates, tmp_path / "a.png"))


def test_methods_are_drawn_beside_each_other(tmp_path):
    runs = []
    for seed, method in enumerate(("had", "had", "opd")):
        folder = tmp_path / f"run_{seed}"
        folder.mkdir()
        (folder / "eval.csv").write_text(EVAL)
        pooled = {"sr_mean_of_splits": wilson(3 + seed, 10), "hu": Estimate(None, None, None, 0)}
        results = {"seen": {"full": {}}, "all": {"full": pooled}}
        runs.append(Run(folder, method, "household", seed, 2, results, results, {}))
    assert is_png(gains_of_methods(runs, tmp_path / "gains.png"))
    assert is_png(curves_of_methods(runs, tmp_path / "curves.png"))
    before = (tmp_path / "gains.png").read_bytes()
    gains_of_methods(runs[:2], tmp_path / "gains.png")
    assert (tmp_path / "gains.png").read_bytes() != before
