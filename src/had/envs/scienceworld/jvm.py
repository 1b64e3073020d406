"""The one Java virtual machine (JVM) of a process, in which all its ScienceWorld environments live.

The package starts a JVM per environment, without a limit on its memory (it grew to 3.3 GB), and leaves it to
its destructor to end. Here it has a limit, and its standard input is a pipe to this process: when this
process ends, in whatever way, the kernel closes the pipe and the JVM ends itself.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from scienceworld.constants import BASEPATH, JAR_PATH

from had.envs.scienceworld.requirements import check_package, find_java

MIN_HEAP_MB = 96  # enough for one environment; 512 for eight
_STOP_S = 5.0

# It reports every call to a JVM that has died with several tracebacks; the caller gets the exception anyway.
logging.getLogger("py4j.java_gateway").setLevel(logging.CRITICAL)


def java_options(heap_mb: int) -> list[str]:
    """Options of the JVM; memory options in $JAVA_TOOL_OPTIONS come last, and the last one counts.

    The serial collector, because a worker has work for one core; and a JVM that runs out of memory ends
    instead of answering no more.
    """
    own = shlex.split(os.environ.get("JAVA_TOOL_OPTIONS", ""))
    memory = [option for option in own if option.startswith("-Xm")]
    return [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", *memory]


class Jvm:
    """A running JVM with the simulator's classes.

    Args:
        heap_mb: limit of its heap in MiB; the process takes about 120 MB more.

    Attributes:
        process: the JVM.

    Raises:
        FileNotFoundError: the package or Java is missing.
        RuntimeError: the JVM does not start; the message holds what it said.
    """

    def __init__(self, heap_mb: int) -> None:
        check_package()
        java, options = str(find_java()), java_options(heap_mb)
        try:
            port, token, process = launch_gateway(
                classpath=JAR_PATH,
                javaopts=options,
                die_on_exit=True,
                java_path=java,
                cwd=BASEPATH,
                enable_auth=True,  # the port is open to every user of this machine
                return_proc=True,
            )
        except ValueError as error:  # instead of its port it printed nothing
            raise RuntimeError(_start_failure(java, options)) from error
        self.process: subprocess.Popen[bytes] = process
        parameters = GatewayParameters(auto_field=True, port=port, auth_token=token)
        self._gateway = JavaGateway(gateway_parameters=parameters, java_process=process)

    @property
    def is_alive(self) -> bool:
        """False once the process has ended."""
        return self.process.poll() is None

    def new_simulator(self) -> Any:
        """One simulator, the Java object behind the package's `ScienceWorldEnv.server`."""
        return self._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()

    def close(self) -> None:
        """End the process."""
        self._gateway.shutdown() if self.is_alive else self._gateway.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class SharedJvm:
    """Lends the JVM of this process: started for the first user, ended after the last."""

    def __init__(self) -> None:
        self._jvm: Jvm | None = None
        self._num_users = 0

    def borrow(self, heap_mb: int) -> Jvm:
        """The living JVM, or a new one (with its heap limit in MiB) where there is none or where it died."""
        if self._jvm is None or not self._jvm.is_alive:
            self._jvm, self._num_users = Jvm(heap_mb), 0
        self._num_users += 1
        return self._jvm

    def give_back(self, jvm: Jvm) -> None:
        """One user fewer."""
        if jvm is not self._jvm:
            return  # it died while it was lent
        self._num_users -= 1
        if self._num_users == 0:
            jvm.close()
            self._jvm = None


SHARED = SharedJvm()


def _start_failure(java: str, options: list[str]) -> str:
    """What a JVM with these options says that did not start."""
    result = subprocess.run([java, *options, "-version"], capture_output=True, text=True, check=False)
    said = f"{result.stdout}{result.stderr}".strip()
    return (
        f"ScienceWorld: `{java} {' '.join(options)}` did not start ({said}). Lower env.heap_mb where memory "
        "is short, and see whether $JAVA_TOOL_OPTIONS holds an option that this Java does not know"
    )
