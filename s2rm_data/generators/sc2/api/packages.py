"""Which of the clients' packages are installed, and whether they fit together: checked once, said clearly."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

from s2rm_data.errors import MissingComponentError, missing_component

_NEEDED_FOR = "talking to StarCraft II"
_SMAC = "pip install --no-deps git+https://github.com/oxwhirl/smac"


@cache
def require_protocol() -> ModuleType:
    """`s2clientprotocol.sc2api_pb2`, or an error that says what to install.

    Two packages bring the module `s2clientprotocol`: the old one of that name, which pysc2 asks for and which today's
    protobuf refuses, and `pys2clientprotocol`, which works. The one installed last has overwritten the other.
    """
    try:
        return importlib.import_module("s2clientprotocol.sc2api_pb2")
    except ModuleNotFoundError:
        raise missing_component("pys2clientprotocol", "sc2", _NEEDED_FOR) from None
    except (TypeError, ImportError) as error:
        raise MissingComponentError(
            "the installed module 's2clientprotocol' cannot be used with the installed protobuf "
            f"({str(error).splitlines()[0]}). The old package of that name has overwritten 'pys2clientprotocol'; "
            "put it right with: pip install --force-reinstall --no-deps pys2clientprotocol"
        ) from None


@cache
def require_pysc2() -> None:
    """Check that pysc2 can be imported; its parts are imported where they are used."""
    require_protocol()
    try:
        importlib.import_module("pysc2.run_configs")
        importlib.import_module("pysc2.lib.remote_controller")
    except ModuleNotFoundError as error:
        raise missing_component((error.name or "pysc2").partition(".")[0], "sc2", _NEEDED_FOR) from None


def require_smac() -> ModuleType:
    """`smac.env`, or an error that says which of the two packages called `smac` is meant."""
    try:
        return importlib.import_module("smac.env")
    except ModuleNotFoundError as error:
        if error.name == "smac":
            raise MissingComponentError(
                f"SMAC is not installed; its registry name belongs to another package, so install it with: {_SMAC}"
            ) from None
        if error.name == "smac.env":
            raise MissingComponentError(
                "the installed package 'smac' is AutoML's SMAC (hyper-parameter search), not the StarCraft Multi-Agent "
                f"Challenge; replace it with: pip uninstall smac && {_SMAC}"
            ) from None
        raise missing_component((error.name or "?").partition(".")[0], "sc2", "SMAC") from None
