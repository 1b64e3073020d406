"""What ScienceWorld needs on the machine, found before anything starts: its package and a Java runtime."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# The version of the paper. Tasks, templates and texts of this package belong to it.
PACKAGE_VERSION = "1.2.3"

_INSTALL_JAVA = (
    "Install a Java runtime (8 or newer; 17 is tested): `apt-get install openjdk-17-jre-headless`, "
    "`brew install openjdk@17`, or `conda install -c conda-forge openjdk=17`; or point $JAVA_HOME at one"
)


def check_package() -> None:
    """Make sure that the package `scienceworld` is there in the paper's version.

    Raises:
        FileNotFoundError: it is missing or another version.
    """
    try:
        found = version("scienceworld")
    except PackageNotFoundError:
        found = "none"
    if found != PACKAGE_VERSION:
        raise FileNotFoundError(
            f"ScienceWorld: expected the package scienceworld {PACKAGE_VERSION}, found {found}. Install it "
            f"with `pip install scienceworld=={PACKAGE_VERSION}` (or `pip install -e .[scienceworld]`)"
        )


def find_java() -> Path:
    """The `java` program: that of $JAVA_HOME when it is set, else the first on $PATH.

    Raises:
        FileNotFoundError: there is none; the message says how to install one.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"$JAVA_HOME/bin ({home}/bin)" if home else "$PATH"
        raise FileNotFoundError(f"ScienceWorld needs Java: no program `java` in {where}. {_INSTALL_JAVA}")
    return Path(found)
