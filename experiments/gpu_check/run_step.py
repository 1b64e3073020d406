"""One step of the check in a process of its own: NAME DEVICE IS_TINY FOLDER. `check.py` starts it."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # waiting OpenMP threads must not steal others' cores

from findings import Findings, Skip
from setting import Setting


def run(name: str, setting: Setting) -> dict[str, Any]:
    """Status, reason and numbers of a step."""
    import engine_steps
    import learning_steps
    import sync_steps

    steps = {**learning_steps.STEPS, **engine_steps.STEPS, **sync_steps.STEPS}
    found, reason = Findings(), ""
    try:
        steps[name](setting, found)
        status = "PASS" if found.is_passed else "FAIL"
    except Skip as skipped:
        status, reason = "SKIP", str(skipped)
    except Exception as error:  # the other steps go on
        traceback.print_exc()
        status, reason = "FAIL", f"{type(error).__name__}: {error}"[:600]
    return {
        "status": status,
        "reason": reason,
        "numbers": found.numbers,
        "checks": found.checks,
        "text": found.text(),
    }


def main() -> None:
    """Run and write `NAME.json` into the folder."""
    name, device, is_tiny, folder = sys.argv[1:]
    result = run(name, Setting(device, is_tiny == "True", Path(folder)))
    draft = Path(folder) / f".{name}.part"
    draft.write_text(json.dumps(result), encoding="utf-8")
    draft.replace(Path(folder) / f"{name}.json")
    sys.stdout.flush()
    os._exit(0)  # an engine's threads must not hold the process back


if __name__ == "__main__":
    main()
