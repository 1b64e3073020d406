"""Every configuration composes, and every `_target_` in it exists and takes its keys."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
os.environ.setdefault("HAD_ROOT", str(ROOT))

EXPERIMENTS = sorted(path.stem for path in (CONFIGS / "experiment").glob("*.yaml"))
METHODS = ("had", "opd", "sage_opd", "guided_opd", "sopd", "opd_2x", "sopd_2x")
ENVS = (
    "household", "alfworld_small", "alfworld", "webshop", "webshop_small", "webshop_mini", "scienceworld",
    "scienceworld_small", "scienceworld_mini",
)  # fmt: skip
EXTRAS = {"scienceworld": "scienceworld", "py4j": "scienceworld", "vllm": "vllm"}  # package: what brings it
OWN_PRIMARIES = ("recipe", "calibration", "play", "server")  # groups of other primary configurations
ANYWHERE = "_"  # a file whose name begins so is a part of others
HYDRA_KEYS = ("_target_", "_partial_", "_convert_", "_recursive_")
ROOT_PACKAGES = ("experiment", "sweep", "debug")


def options(folder: Path = CONFIGS) -> Iterator[tuple[str, str]]:
    """(group, option) of every file in a group of train.yaml."""
    for path in sorted(folder.rglob("*.yaml")):
        group = path.parent.relative_to(CONFIGS).as_posix()
        if group == "." or group.split("/")[0] in (*OWN_PRIMARIES, *ROOT_PACKAGES):
            continue
        if not path.stem.startswith(ANYWHERE):
            yield group, path.stem


@pytest.fixture(scope="module", autouse=True)
def hydra_in_configs() -> Iterator[None]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        yield


@functools.cache
def composed(*overrides: str, primary: str = "train") -> DictConfig:
    return compose(primary, [*overrides])


def plain(config: DictConfig) -> dict[Any, Any]:
    """The configuration with its interpolations as they are written."""
    container = OmegaConf.to_container(config, resolve=False)
    assert isinstance(container, dict)
    return container


def nodes(config: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping with a `_target_`, with its place."""
    if isinstance(config, dict):
        if "_target_" in config:
            yield where, config
        for key, value in config.items():
            yield from nodes(value, f"{where}.{key}".lstrip("."))
    elif isinstance(config, list):
        for index, value in enumerate(config):
            yield from nodes(value, f"{where}[{index}]")


def resolve(path: str) -> Any:
    """The object with this dotted path."""
    parts = path.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError as error:
            if error.name in EXTRAS:
                pytest.skip(f"needs {error.name}: pip install -e '.[{EXTRAS[error.name]}]'")
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        return found
    raise ImportError(f"no module in {path}")


def problems(config: DictConfig) -> list[str]:
    """What is wrong with the targets of a configuration."""
    found = []
    # interpolations stay as they are: the run folder exists in a run only
    for where, node in nodes(plain(config)):
        keys = {key: value for key, value in node.items() if key not in HYDRA_KEYS}
        try:
            target = resolve(node["_target_"])
            if node["_target_"].startswith("hydra.utils.get_"):
                resolve(keys["path"])
            if where.endswith("harness"):
                keys.pop("condition", None)  # stands beside the object, is read without it
            if target.__module__ == "datetime":  # has no signature, and costs nothing to make
                target(**keys)
            else:
                inspect.signature(target).bind_partial(**keys)
        except (ImportError, AttributeError, TypeError) as error:
            found.append(f"{where}: {node['_target_']}: {error}")
    return found


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes_and_its_targets_take_their_keys(experiment):
    config = composed(f"experiment={experiment}")
    assert problems(config) == []
    method, _, env = experiment.partition(f"_{config.env.name.removesuffix('_small')}")
    assert config.method.name == method
    assert (env or "").removeprefix("_") in ("", "small")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_an_experiment_for_every_environment(method):
    assert {f"{method}_{env}" for env in ENVS} <= set(EXPERIMENTS)


@pytest.mark.parametrize(("group", "option"), list(options()))
def test_every_option_composes_and_its_targets_take_their_keys(group, option):
    parent = {"method/divergence": ["method=opd"], "method/judge": ["method=sage_opd"]}.get(group, [])
    assert problems(composed(*parent, f"{group}={option}")) == []


@pytest.mark.parametrize("method", sorted(path.stem for path in (CONFIGS / "method").glob("*.yaml")))
def test_a_method_carries_its_own_name_and_no_key_of_another(method):
    config = composed(f"method={method}").method
    assert config.name == method
    assert {"actor", "questions", "layouts", "losses", "balance", "columns"} <= set(config)
    assert ("rho" in config) == ("beta" in config) == (len(config.losses) == 2 and config.actor is None)


@pytest.mark.parametrize("base", ["opd", "sopd"])
@pytest.mark.parametrize("env", ENVS)
def test_the_double_budget_is_double(base, env):
    once, twice = (copy.deepcopy(composed(f"experiment={name}_{env}")) for name in (base, f"{base}_2x"))
    assert twice.data.tasks_per_round == 2 * once.data.tasks_per_round
    assert twice.trainer.max_steps == 2 * once.trainer.max_steps
    for config in (once, twice):
        config.method.name = ""
        config.data.tasks_per_round = config.trainer.max_steps = 0
    assert twice == once


def test_methods_differ_from_had_in_the_method_only():
    for env in ENVS:
        had = composed(f"experiment=had_{env}")
        for method in ("opd", "sage_opd", "guided_opd", "sopd"):
            other = composed(f"experiment={method}_{env}")
            changed = [key for key in had if key != "method" and plain(other)[key] != plain(had)[key]]
            assert changed == [] and set(other) == set(had)


@pytest.mark.parametrize("primary", sorted({path.stem for path in CONFIGS.glob("*.yaml")} - {"train"}))
def test_every_other_program_composes(primary):
    assert problems(composed(primary=primary)) == []


@pytest.mark.parametrize("recipe", sorted(path.stem for path in (CONFIGS / "recipe").glob("*.yaml")))
def test_every_recipe_composes(recipe):
    if recipe == "base":
        pytest.skip("a part of the others")
    assert problems(composed(f"recipe={recipe}", primary="pretrain")) == []


def test_a_wrong_key_is_noticed():
    config = composed("+method.losses_extra={_target_: had.losses.jsd.JSD, gamma: 1}")
    assert "gamma" in problems(config)[0]
    missing = composed("+method.losses_extra={_target_: had.losses.no_such.Loss}")
    assert "no_such" in problems(missing)[0]


@pytest.mark.parametrize("server", sorted(path.stem for path in (CONFIGS / "server").glob("*.yaml")))
@pytest.mark.parametrize("role", ["student", "teacher"])
def test_every_server_serves_either_model(server, role):
    config = composed(f"server={server}", f"role={role}", primary="serve")
    assert problems(config) == []
    assert config.files == config[role].files


ADVISED = re.compile(r"\b(?:data|engine|env|evaluation|paths|placement|trainer)(?:\.\w+)+")
GROUPS_OF_ADVICE = ("trainer=fsdp", "engine=vllm_servers", "experiment=had_scienceworld")


def test_what_a_bottleneck_advises_can_be_set():
    advice = plain(composed(*GROUPS_OF_ADVICE))["bottleneck"]["advice"]
    named = {name for text in advice.values() for name in ADVISED.findall(re.sub(r"\$\{[^}]*}", "", text))}
    assert len(named) > 10
    settings = sorted(named - {"engine.student", "engine.teacher"})
    composed(*GROUPS_OF_ADVICE, *(f"{name}=null" for name in settings))


@pytest.mark.parametrize("engine", sorted(path.stem for path in (CONFIGS / "engine").glob("*.yaml")))
def test_the_batch_of_an_engine_can_be_set_as_advised(engine):
    names = {"max_batch_tokens", "max_num_seqs", "max_concurrent"}
    for role in ("student", "teacher"):
        (name,) = names & set(composed(f"engine={engine}").engine[role])
        if not OmegaConf.is_interpolation(composed(f"engine={engine}").engine, role):
            assert composed(f"engine={engine}", f"engine.{role}.{name}=7").engine[role][name] == 7


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("backend", ["native", "textworld"])
def test_the_pool_takes_the_settings_of_its_environment(env, backend):
    found = composed(f"experiment=had_{env}").env
    if backend not in found.get("backends", {"native": None}):
        pytest.skip("the environment has one backend")
    names = [name for name in ("num_slots", "num_workers", "timeout_s") if name in found]
    options = [f"env.backend={backend}"] if "backends" in found else []
    pool = composed(f"experiment=had_{env}", *options, *(f"env.{name}=7" for name in names)).env.pool
    takes = inspect.signature(resolve(pool["_target_"])).parameters
    assert {name: pool[name] for name in names if name in takes} == dict.fromkeys(set(names) & set(takes), 7)
    assert "num_slots" in pool


@pytest.mark.parametrize("key", ["resume", "train.resume"])
def test_going_on_can_be_asked_for_under_both_names(key):
    assert composed(f"{key}=auto").resume == "auto"
    assert composed().resume is None
