"""The process of one worker, started by `WorkerProcess`: `python -m had.envs.worker <descriptor> <parent>`.

A plain new interpreter and not a multiprocessing child: that one would import the main script again, and with
it torch, in every worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection

from had.envs.slots import Slots

_PARENT_CHECK_S = 1.0


def serve(connection: Connection) -> None:
    """Answer messages until the other side closes: first make_env, then (method of Slots, argument)."""
    try:
        slots = Slots(connection.recv())
        connection.send(("ready", None))
        while True:
            method, argument = connection.recv()
            connection.send(("answers", getattr(slots, method)(argument)))
    except EOFError:
        return
    except Exception:
        connection.send(("error", traceback.format_exc()))


def die_with_parent(parent: int) -> None:
    """End this process when its parent is gone, even in the middle of a command that never returns."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)
    os._exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    os.dup2(2, 1)  # what a backend prints belongs to the log
    threading.Thread(target=die_with_parent, args=(int(sys.argv[2]),), daemon=True).start()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the pool left while this one answered
        serve(Connection(int(sys.argv[1])))
