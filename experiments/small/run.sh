#!/bin/sh
# Everything behind the tables of this folder. Two CPU cores; real games need $ALFWORLD_DATA. About an hour in all.
#   experiments/small/run.sh household   teacher, student, HAD on generated games (the main job)
#   experiments/small/run.sh alfworld    the same models on the real splits, first 60 games of each
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-logs/small}
evaluate() { python src/evaluate.py "checkpoint=$1" "env=$2" "harness=$3" 'evaluation.conditions=[full,off]' "hydra.run.dir=$out/$4" "${5:-seed=0}"; }
case $1 in
household)
    evaluate packaged:teacher household_small household household_teacher
    python src/train.py experiment=had_household "hydra.run.dir=$out/had_household"
    ;;
alfworld)
    evaluate packaged:teacher alfworld_small alfworld alfworld_teacher evaluation.num_tasks=60
    evaluate packaged:student alfworld_small alfworld alfworld_student evaluation.num_tasks=60
    evaluate "$out/had_household" alfworld_small alfworld alfworld_had evaluation.num_tasks=60
    ;;
*)
    echo "usage: $0 household|alfworld" >&2
    exit 2
    ;;
esac
