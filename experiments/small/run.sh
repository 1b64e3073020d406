#!/bin/sh
# Everything behind the tables of this folder. Two CPU cores; real games need $ALFWORLD_DATA.
#   experiments/small/run.sh pair        teacher and student on all generated evaluation games, harness on and off
#   experiments/small/run.sh study       HAD, SOPD and OPD from the same student, three seeds each
#   experiments/small/run.sh alfworld    the same models on all games of the real splits
#   experiments/small/run.sh shop        teacher, student, HAD, SOPD and OPD on the generated shop (webshop_scienceworld.md)
#   experiments/small/run.sh science     the same on ScienceWorld's short tasks; needs Java
#   experiments/small/run.sh pretrain_shop, pretrain_science   make the pairs of these two again
#   experiments/small/run.sh floor       how often the teacher's two answers differ: of two views, and of one view (the noise floor)
#   experiments/small/run.sh seed_1      make the pair with another seed and play all of these games with it
#   experiments/small/run.sh pretrain    make the pair again (eight trainings, about three hours on one core)
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-logs/small}
evaluate() { python src/evaluate.py "checkpoint=$1" "env=$2" "harness=$3" 'evaluation.conditions=[full,off]' "hydra.run.dir=$out/$4" "${5:-seed=0}"; }
case $1 in
pair)
    evaluate packaged:teacher household_small household household_teacher
    evaluate packaged:student household_small household household_student
    ;;
study)
    for seed in 0 1 2; do
        for method in had sopd opd; do
            python src/train.py "experiment=${method}_household" "seed=$seed" 'evaluation.conditions=[full]' "hydra.run.dir=$out/${method}_$seed"
        done
    done
    python src/compare.py "$out"/had_? "$out"/sopd_? "$out"/opd_?
    ;;
alfworld)
    evaluate packaged:teacher alfworld_small alfworld alfworld_teacher
    evaluate packaged:student alfworld_small alfworld alfworld_student
    evaluate "$out/had_0" alfworld_small alfworld alfworld_had
    ;;
floor)
    for method in had single_view; do
        python src/train.py experiment=had_household "method=$method" trainer.max_steps=2 evaluation.num_tasks=2 evaluation.num_validation_tasks=0 "hydra.run.dir=$out/floor_$method"
    done
    ;;
seed_1)
    made=$out/seed_1
    make() { python src/pretrain.py "recipe=$1" seed=1 "folder=$made/$1" "++recipe.schedule.autocast=true" ${2:+"recipe.start_from=$made/$2/model"}; }
    make teacher && make teacher_finish teacher && make teacher_broad teacher_finish && make teacher_settle teacher_broad
    make student && make student_finish student && make student_broad student_finish && make student_lapse student_broad
    for role in teacher_settle student_lapse; do
        evaluate "$made/$role/model" household_small household "household_${role%%_*}_1"
        evaluate "$made/$role/model" alfworld_small alfworld "alfworld_${role%%_*}_1"
    done
    ;;
pretrain)
    for recipe in teacher teacher_finish teacher_broad teacher_settle student student_finish student_broad student_lapse; do python src/pretrain.py "recipe=$recipe"; done
    ;;
shop | science)
    world=webshop amount=num_repeats=3
    if [ "$1" = science ]; then world=scienceworld amount=num_tasks=240; fi
    python src/calibrate.py "env=${world}_mini" "harness=$world" "prompt=${world}_window" "student=small_$world" "$amount" "hydra.run.dir=$out/${world}_calibration"
    for model in teacher student; do
        evaluate "packaged:$world/$model" "${world}_mini" "${world}_mini" "${world}_$model" "prompt=${world}_window"
    done
    for method in had opd sopd; do
        python src/train.py "experiment=${method}_${world}_mini" "hydra.run.dir=$out/${method}_${world}_mini"
    done
    ;;
pretrain_shop)
    for recipe in teacher teacher_finish teacher_settle student student_finish student_settle student_careful student_broad student_lapse; do python src/pretrain.py "recipe=webshop_$recipe"; done
    ;;
pretrain_science)
    for recipe in teacher teacher_finish teacher_settle student student_finish; do python src/pretrain.py "recipe=scienceworld_$recipe"; done
    ;;
*)
    echo "usage: $0 pair|study|alfworld|floor|seed_1|pretrain|shop|science|pretrain_shop|pretrain_science" >&2
    exit 2
    ;;
esac
