"""From configuration to objects: the one bridge between Hydra and the package."""

from __future__ import annotations

from typing import Any

import hydra.utils
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf


def build(config: DictConfig | dict[str, Any], **given: Any) -> Any:
    """The object that a node with `_target_` describes.

    Plain containers all the way down: constructors never see a configuration object. Objects that exist
    already are passed by keyword.

    Raises:
        ValueError: a required value (`???`) is missing, the target does not exist, or it does not take these
            values; the message says which.
    """
    if OmegaConf.is_config(config):
        missing = OmegaConf.missing_keys(config)
        if missing:
            raise ValueError(
                f"configuration: required values are missing: {sorted(missing)}; set them on the command line"
            )
    try:
        if not given:
            return hydra.utils.instantiate(config, _convert_="all")
        # not through Hydra: it turns dataclasses among its keyword arguments into dictionaries
        return hydra.utils.instantiate(config, _convert_="all", _partial_=True)(**given)
    except (InstantiationException, TypeError) as error:
        cause = error.__cause__
        if cause is not None and not isinstance(cause, ValueError | TypeError):
            raise cause from error  # not about the configuration: a missing file, a full device
        # Hydra wraps every error of a constructor; people need the constructor's own words
        target = config.get("_target_", "a list of objects")
        raise ValueError(f"configuration, {target}: {cause or error}") from error


def target_of(config: DictConfig | dict[str, Any]) -> Any:
    """The class or function that a node's `_target_` names, not called.

    Raises:
        ValueError: the target does not exist.
    """
    try:
        return hydra.utils.get_object(config["_target_"])
    except (ImportError, ValueError) as error:
        raise ValueError(f"configuration, {config['_target_']}: {error}") from error


def as_plain(config: DictConfig) -> dict[str, Any]:
    """The resolved configuration as plain containers."""
    plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}
