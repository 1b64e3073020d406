"""Which Java machines descend from a process, and whether they still run."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

WAIT_S = 30.0


def jvms_below(pid: int) -> list[int]:
    """The ids of all Java processes among the children, grandchildren… of a process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += below
        found += [child for child in below if is_java(child)]
    return found


def is_java(pid: int) -> bool:
    """True while a process with this id runs a Java machine; a zombie has ended."""
    with contextlib.suppress(OSError):
        is_zombie = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_zombie and b"py4j.GatewayServer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def resident_mb(pid: int) -> float:
    """Memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def gone(pids: list[int]) -> bool:
    """True once none of the Java machines runs any more; waits a while for that."""
    deadline = time.monotonic() + WAIT_S
    while any(is_java(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not any(is_java(pid) for pid in pids)
