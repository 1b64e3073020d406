"""Peak memory of this process alone, for programs that a test starts.

Not `ru_maxrss`: on Linux a new process inherits that of the test process that started it.
"""

from __future__ import annotations

import re
from pathlib import Path


def peak_kib() -> int:
    """The highest resident size since this program began, in KiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None, "no VmHWM in /proc/self/status: this needs Linux"
    return int(found[1])
