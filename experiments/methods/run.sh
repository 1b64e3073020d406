#!/bin/sh
# Every method and every ablation for a few updates on generated games, then one table over all of them.
# Two CPU cores, no data. Arguments are passed on to every run, for example: env.backend=textworld seed=1
#   UPDATES=5   optimizer updates of a run; twice as many where the budget is double
#   TASKS=10    evaluation tasks of each split
#   OUT=...     where the run folders go
set -eu
cd "$(dirname "$0")/../.."
updates=${UPDATES:-5} tasks=${TASKS:-10} out=${OUT:-logs/methods/$(date +%Y-%m-%d_%H-%M-%S)}
status=0
sweep() { # name of the folder, updates, what is varied; the other arguments
    folder=$out/$1 steps=$2 varied=$3
    shift 3
    python src/train.py -m "$varied" "trainer.max_steps=$steps" "hydra.sweep.dir=$folder" \
        "evaluation.num_tasks=$tasks" evaluation.num_validation_tasks=0 "$@" || status=$?
}
sweep once "$updates" experiment=had_household,sopd_household,opd_household,sage_opd_household,guided_opd_household "$@"
sweep twice "$((2 * updates))" experiment=sopd_2x_household,opd_2x_household "$@"
sweep ablations "$updates" method=no_preference,no_validity,positive_only,full_response,single_view,teacher_reference,student_reference "$@"
python src/compare.py "$out"
exit "$status"
