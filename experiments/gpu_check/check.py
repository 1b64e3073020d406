"""Ten minutes on one GPU: does everything that a CPU cannot test work here, and how fast?

    python experiments/gpu_check/check.py --out /tmp/gpu_check
    python experiments/gpu_check/check.py --device cpu --tiny --out /tmp/gpu_check

Every step is a process of its own with a time limit, so that one that fails, hangs or takes all memory leaves
the others alone. Exit code 1 when a step failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Step and its time limit in seconds, in order of importance: what the total leaves no time for is skipped.
STEPS = {
    "versions": 60,
    "models": 180,
    "agreement": 90,
    "training": 120,
    "rollout": 150,
    "label": 180,
    "sync_local": 120,
    "sync_servers": 150,
    "sleep": 120,
    "fsdp": 150,
    "sync_nccl": 150,
}

# Freed blocks of a CPU go back at once: the peak of the process is then that of the tensors.
ENVIRONMENTS = {"training": {"MALLOC_MMAP_THRESHOLD_": "65536"}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps; the exit code."""
    options = _options(arguments)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    results: dict[str, dict[str, Any]] = {}
    for name in options.only or STEPS:
        left = options.total_s - (time.monotonic() - started)
        limit = min(STEPS[name] * options.patience, left)
        if limit <= 0:
            reason = f"the {options.total_s:g} s are over"
            results[name] = {"status": "SKIP", "reason": reason, "seconds": 0.0}
        else:
            results[name] = run_step(name, limit, options, out)
        print(_line(name, results[name]), flush=True)
        kept = {key: {k: v for k, v in it.items() if k != "text"} for key, it in results.items()}
        (out / "results.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    failed = [name for name, result in results.items() if result["status"] == "FAIL"]
    statuses = [result["status"] for result in results.values()]
    print(", ".join(f"{statuses.count(status)} {status}" for status in ("PASS", "FAIL", "SKIP")), end="")
    print(f" in {time.monotonic() - started:.0f} s; {out / 'results.json'}")
    return 1 if failed else 0


def run_step(name: str, limit_s: float, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Run one step to its end or its limit; what it found."""
    answer, log = out / f"{name}.json", out / f"{name}.log"
    answer.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / "run_step.py"), name, options.device, str(options.tiny), str(out)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **ENVIRONMENTS.get(name, {})}
    started = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
        try:
            code = process.wait(limit_s)
            reason = f"the process ended with code {code}; see {log}"
        except subprocess.TimeoutExpired:
            reason = f"took longer than {limit_s:.0f} s; see {log}"
        finally:
            _end(process)
    seconds = round(time.monotonic() - started, 1)
    if answer.exists():
        return {**json.loads(answer.read_text("utf-8")), "seconds": seconds}
    return {"status": "FAIL", "reason": reason, "seconds": seconds}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the step and whatever it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _line(name: str, result: dict[str, Any]) -> str:
    reason = f": {result['reason']}" if result.get("reason") else ""
    head = f"{result['status']} {name} ({result['seconds']:.1f} s){reason}"
    return "\n".join(filter(None, [head, result.get("text", "")]))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="models of a few layers in place of 1.7B and 8B")
    parser.add_argument("--out", type=Path, default=Path("gpu_check"), help="models (20 GB), logs, results")
    parser.add_argument("--only", nargs="+", choices=list(STEPS), help="some of the steps, in this order")
    parser.add_argument("--total-s", type=float, default=600.0, help="time of all steps together")
    parser.add_argument("--patience", type=float, default=1.0, help="factor on the time limit of every step")
    options = parser.parse_args(arguments)
    if options.device == "cpu" and not options.tiny:
        parser.error("--device cpu: the full pair is too much for a CPU, expected --tiny beside it")
    return options


if __name__ == "__main__":
    sys.exit(main())
