"""A store in a data set of the Hugging Face hub, to be read: hf://datasets/OWNER/NAME/PATH, or NAME@REVISION.

A branch is looked up once: all that is read is of the commit that it named then. The environment says who asks
(HF_TOKEN) and where another hub is (HF_ENDPOINT), as for the hub's own tools."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote

from s2rm_data.core.addresses import StorePath
from s2rm_data.core.errors import DamagedStoreError, DiskError, UsageError
from s2rm_data.store.places.web import WebPlace

MOST_ANSWER_BYTES = 64 << 20


class HubPlace(WebPlace):
    schemes = ("hf",)
    form = "datasets/OWNER/NAME"
    forbidden = "; a private data set needs HF_TOKEN in the environment, with the right to read it"

    def __init__(self, path: StorePath) -> None:
        super().__init__(path)
        kind, owner, name, *inside = str(path).partition("://")[2].split("/")
        if kind != "datasets":
            raise UsageError(f"{path}: stores lie in data sets of the hub; write hf://datasets/OWNER/NAME/PATH")
        name, _, revision = name.partition("@")
        self._data_set, self._revision, self._inside = f"{owner}/{name}", revision or "main", "/".join(inside)
        self._hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        token = os.environ.get("HF_TOKEN")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def address(self, name: str) -> str:
        inside = f"{self._inside}/" if self._inside else ""
        return f"{self._hub}/datasets/{self._data_set}/resolve/{self._commit}/{quote(inside + name)}"

    @cached_property
    def _commit(self) -> str:
        found, _ = self._api(f"revision/{quote(self._revision, safe='')}")
        commit = found.get("sha") if isinstance(found, dict) else None
        if not isinstance(commit, str) or not commit.isalnum():
            raise DiskError(f"{self.path}: the hub does not say which commit {self._revision} is")
        return commit

    def names(self, folder: str = "") -> Iterator[str]:
        below = quote("/".join(part for part in (self._inside, folder) if part))
        question: str | None = f"tree/{self._commit}/{below}?recursive=true"
        while question:
            entries, question = self._api(question)
            for entry in entries:
                if entry["type"] == "file":
                    yield str(entry["path"]).removeprefix(f"{self._inside}/" if self._inside else "")

    def _api(self, question: str) -> tuple[Any, str | None]:
        """What the hub answers, and the address of the next page if there is one."""
        address = question if "://" in question else f"{self._hub}/api/datasets/{self._data_set}/{question}"
        try:
            with self._errors(""), self.asked(address) as answer:
                next_page = rf'<({re.escape(self._hub)}/[^>]+)>; rel="next"'  # who asks is no other host's business
                further = re.search(next_page, answer.headers.get("Link", ""))
                return json.loads(answer.read(MOST_ANSWER_BYTES)), further and further[1]
        except DamagedStoreError:
            what = f"no data set {self._data_set}, or no revision {self._revision} of it"
            raise UsageError(f"{self.path}: the hub knows {what}; a private one needs HF_TOKEN") from None
        except ValueError:
            raise DiskError(f"{self.path}: the hub's answer cannot be read") from None


PLACE = HubPlace
