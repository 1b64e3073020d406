"""Who may import whom, where heavy packages live, and how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "had"
SCRIPTS = sorted((ROOT / "src").glob("*.py"))
MAX_LINES, MAX_SCRIPT_LINES = 300, 100
VOCABULARY = PACKAGE / "records.py"  # one place for all words: most of its lines are documentation
MAX_VOCABULARY_LINES = 400

# `envs.base` means that module only: protocols of the standard library.
ALLOWED = {
    "records": set(),
    "batch": set(),
    "runtime": set(),
    "envs": {"records"},
    "prompts": {"records"},
    "metrics": {"records"},
    "harness": {"records", "envs.base"},
    "engines": {"records"},
    "rollout": {"records", "envs", "harness", "prompts", "engines"},
    "teachers": {"records", "prompts", "engines", "harness", "envs.base"},
    "data": {"records", "batch", "prompts", "rollout", "teachers", "runtime"},
    "losses": {"batch"},
    "faults": {"batch", "runtime"},
    "models": {"runtime"},
    "module": {"batch", "losses", "faults", "models", "runtime"},
    "callbacks": {"records", "metrics", "rollout", "models", "engines", "runtime"},
    "reports": {"records", "metrics"},
    "pretraining": {
        "records", "envs", "harness", "prompts", "engines", "rollout", "models", "runtime",
    },
}  # fmt: skip
# may import everything; only src/*.py and each other import them
COMPOSITION_ROOT = {"acting", "assembly", "planning"}
# Environments, engines, models, teachers, losses come from the configuration, never from a script's imports.
ALLOWED_IN_SCRIPTS = {*COMPOSITION_ROOT, "runtime", "reports", "records", "harness", "rollout"}

HOMES = {
    "alfworld": ("envs/alfworld/", "envs/household/"),
    "textworld": ("envs/alfworld/",),
    "fast_downward": ("envs/alfworld/", "envs/household/"),
    "scienceworld": ("envs/scienceworld/",),
    "vllm": ("engines/vllm",),
    "hydra": ("runtime/instantiate.py",),
    "omegaconf": ("runtime/instantiate.py", "acting.py", "assembly.py", "planning/plan.py"),
    "wandb": (),
    "lightning": ("module.py", "data/datamodule.py", "callbacks/", "runtime/", "assembly.py"),
    "torchmetrics": ("metrics/",),
    "transformers": ("models/", "engines/", "prompts/render.py", "pretraining/"),
    "tokenizers": ("pretraining/",),
    "matplotlib": ("reports/",),
}
STANDARD_LIBRARY_ONLY = ("records.py", "envs/base.py")


@dataclass(frozen=True)
class Import:
    """One imported module, as `file:line` knows it."""

    path: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.module}"

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def importer(self) -> str:
        """The part of `had` that imports: a package or a top-level module."""
        return Path(self.path).parts[0].removesuffix(".py")

    @property
    def part(self) -> str:
        """The part of `had` that is imported, without `had.`."""
        return self.module.removeprefix("had.").partition(".")[0]


def _imports(path: Path, relative_to: Path) -> Iterator[Import]:
    name = path.relative_to(relative_to).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(name, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{name}:{node.lineno}: write relative imports in full"
            if node.module in ("had", "had.envs"):  # `from had.envs import base` names a module too
                yield from (Import(name, node.lineno, f"{node.module}.{a.name}") for a in node.names)
            else:
                yield Import(name, node.lineno, node.module)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
IMPORTS = [item for path in FILES for item in _imports(path, PACKAGE)]
SCRIPT_IMPORTS = [item for path in SCRIPTS for item in _imports(path, ROOT / "src")]
OURS = [item for item in IMPORTS if item.package == "had"]


def _is_allowed(item: Import) -> bool:
    if item.importer == item.part:
        return True
    allowed = ALLOWED[item.importer]
    return item.part in allowed or item.module.removeprefix("had.") in allowed


def test_every_part_of_the_package_has_a_rule():
    parts = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert parts - set(ALLOWED) - COMPOSITION_ROOT == set()


def test_parts_import_only_what_they_may():
    bound = [item for item in OURS if item.importer not in COMPOSITION_ROOT]
    assert bound
    assert [str(item) for item in bound if not _is_allowed(item)] == []


def test_only_scripts_import_the_composition_root():
    others = [item for item in OURS if item.importer not in COMPOSITION_ROOT]
    assert [str(item) for item in others if item.part in COMPOSITION_ROOT] == []


def test_scripts_take_classes_from_the_configuration():
    ours = [item for item in SCRIPT_IMPORTS if item.package == "had"]
    assert ours
    assert [str(item) for item in ours if item.part not in ALLOWED_IN_SCRIPTS] == []


@pytest.mark.parametrize("package", HOMES)
def test_a_heavy_package_stays_at_home(package: str):
    users = [item for item in IMPORTS if item.package == package]
    assert [str(item) for item in users if not item.path.startswith(HOMES[package])] == []


def test_the_vocabulary_needs_the_standard_library_only():
    items = [item for item in IMPORTS if item.path in STANDARD_LIBRARY_ONLY and item.package != "had"]
    assert items
    assert [str(item) for item in items if item.package not in sys.stdlib_module_names] == []


def test_reports_never_load_torch_or_lightning():
    modules = [".".join(("had", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in FILES]
    reports = [name for name in modules if name.startswith(("had.reports.", "had.metrics.functional"))]
    program = (
        f"import importlib, sys\nfor name in {reports!r}: importlib.import_module(name)\n"
        "unwanted = {'torch', 'lightning', 'torchmetrics', 'matplotlib.pyplot'} & set(sys.modules)\n"
        "sys.exit(' '.join(unwanted) or None)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("paths", "limit"),
    [
        ([path for path in FILES if path != VOCABULARY], MAX_LINES),
        ([VOCABULARY], MAX_VOCABULARY_LINES),
        (SCRIPTS, MAX_SCRIPT_LINES),
    ],
    ids=["package", "vocabulary", "scripts"],
)
def test_no_file_is_too_long_for_one_subject(paths: list[Path], limit: int):
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in paths}
    assert {name: length for name, length in lengths.items() if length > limit} == {}


def test_init_files_are_empty():
    inits = sorted(PACKAGE.rglob("__init__.py"))
    assert inits
    assert [str(path) for path in inits if path.read_text(encoding="utf-8").strip()] == []
    packages = {path.parent for path in FILES}
    assert packages <= {path.parent for path in inits}


def test_no_file_is_a_dumping_ground():
    assert [str(path) for path in FILES if path.stem in ("utils", "util", "common", "helpers", "misc")] == []
