"""A logger in one file: a run as lines of JSON in lines.txt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from s2rm_data.extend import Logger


class Lines(Logger):
    def open(self, name: str, config: dict[str, Any], step: int) -> None:
        self._append({"name": name, "model": config["model"], "step": step})

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._append({"step": step, **values})

    def _append(self, record: Mapping[str, Any]) -> None:
        with (self.folder / "lines.txt").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


LOGGER = Lines
