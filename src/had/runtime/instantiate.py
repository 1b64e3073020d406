"""From configuration to objects: the one bridge between Hydra and the package."""

from __future__ import annotations

from typing import Any

import hydra.utils
from omegaconf import DictConfig, OmegaConf


def build(config: DictConfig | dict[str, Any], **given: Any) -> Any:
    """The object that a node with `_target_` describes.

    Plain containers all the way down: constructors never see a configuration object. Objects that exist already
    are passed by keyword.

    Raises:
        ValueError: a required value (`???`) is missing; names it.
    """
    if OmegaConf.is_config(config):
        missing = OmegaConf.missing_keys(config)
        if missing:
            raise ValueError(f"configuration: required values are missing: {sorted(missing)}; set them on the command line")
    return hydra.utils.instantiate(config, _convert_="all", **given)


def as_plain(config: DictConfig) -> dict[str, Any]:
    """The resolved configuration as plain containers."""
    plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}
