"""Runs the programs of src/ inside the test process, which saves the imports of a new one."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from unittest.mock import patch

SOURCE = Path(__file__).resolve().parents[1] / "src"


def run_script(name: str, *arguments: str) -> int:
    """Run a program of src/ with command-line arguments; the exit code."""
    program = SOURCE / name
    with patch.object(sys, "argv", [str(program), *arguments]):
        try:
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
