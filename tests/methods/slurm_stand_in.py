"""Stands in for SLURM's commands: `sbatch` starts every job of an array here, `srun` the tasks of a job.

Just enough for submitit's SLURM executor. Each command is a link to this file, named as the command.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

JOB = 4711
HOST = "127.0.0.1"


def install(folder: Path) -> str:
    """Write the commands; the `PATH` on which they are found first."""
    folder.mkdir()
    for name in ("sbatch", "srun", "sacct", "scontrol"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} {name} "$@"\n')
        program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def sbatch(*arguments: str) -> None:
    script = Path(arguments[-1])
    text = script.read_text()
    last = int(found.group(1)) if (found := re.search(r"--array=0-(\d+)", text)) else 0
    num_tasks = found.group(1) if (found := re.search(r"--ntasks-per-node=(\d+)", text)) else "1"
    given = dict.fromkeys(("NTASKS", "NTASKS_PER_NODE"), num_tasks) | {"NNODES": "1", "JOB_NUM_NODES": "1"}
    given |= {"NODELIST": HOST, "JOB_NODELIST": HOST, "NODEID": "0", "JOB_NAME": "train", "STEP_ID": "0"}
    for index in range(last + 1):
        own = {"JOB_ID": str(JOB + index), "ARRAY_JOB_ID": str(JOB), "ARRAY_TASK_ID": str(index)}
        variables = {f"SLURM_{name}": value for name, value in (given | own).items()}
        with script.with_name(f"batch_{index}.log").open("w") as log:
            subprocess.Popen(["bash", str(script)], env=os.environ | variables, stdout=log, stderr=log)
    print(f"Submitted batch job {JOB}")


def srun(*arguments: str) -> None:
    at = arguments.index(next(word for word in arguments if word.endswith("python")))
    options, command = list(arguments[:at]), arguments[at:]
    index = os.environ["SLURM_ARRAY_TASK_ID"]
    named = [word.replace("%j", f"{JOB}_{index}") for word in command]
    tasks = []
    for number in range(int(os.environ["SLURM_NTASKS"])):
        places = [options[options.index(option) + 1] for option in ("--output", "--error")]
        for mark, value in (("%A", JOB), ("%a", index), ("%t", number)):
            places = [place.replace(mark, str(value)) for place in places]
        own = {"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)}
        with open(places[0], "a") as out, open(places[1], "a") as error:
            tasks.append(subprocess.Popen(named, env=os.environ | own, stdout=out, stderr=error))
    sys.exit(max(task.wait() for task in tasks))


def sacct(*_: str) -> None:
    print("JobID|State|NodeList", *(f"{JOB}_{index}|RUNNING|{HOST}" for index in range(9)), sep="\n")


def scontrol(*_: str) -> None:
    print(HOST)


if __name__ == "__main__":
    {"sbatch": sbatch, "srun": srun, "sacct": sacct, "scontrol": scontrol}[sys.argv[1]](*sys.argv[2:])
