"""A data card: what is in a store, in the form in which data sets are published.

docs/publishing.md lists its files. What the card says of a world is the world's own (`Inspection.about`, `tags`); texts
that come from the store are escaped.

For programs the store is one set of files, whose root document has its SHA-256 there and seals all others. The record
set `arrays` says what every array is. Groups that lie beside the card as Parquet (`s2rm-data export -f parquet`) are
record sets too, whose rows `mlcroissant` reads."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import s2rm_data
from s2rm_data.core.errors import UsageError
from s2rm_data.core.optional import needed
from s2rm_data.core.paint import save_figure, save_gif, save_image
from s2rm_data.core.progress import Progress
from s2rm_data.core.write import make_folder, write_whole
from s2rm_data.inspection.stats import GroupStats
from s2rm_data.inspection.world_inspection import Inspection, inspection_of
from s2rm_data.making.world import World, world_of
from s2rm_data.store.layout import META

if TYPE_CHECKING:
    from s2rm_data.store import Group, Store

LICENCES = {
    "mit": "https://spdx.org/licenses/MIT.html",
    "apache-2.0": "https://spdx.org/licenses/Apache-2.0.html",
    "cc-by-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "cc0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}
PAPER = """@article{rahaman2020s2rms,
  title   = {Spatially Structured Recurrent Modules},
  author  = {Rahaman, Nasim and Goyal, Anirudh and Gondal, Muhammad Waleed and Wuthrich, Manuel and Bauer, Stefan and
             Sharma, Yash and Bengio, Yoshua and Sch{\\"o}lkopf, Bernhard},
  year    = {2020}
}"""
ROWS = 4  # of a contact sheet
ZARR, PARQUET = "application/vnd.zarr", "application/x-parquet"
_COLUMNS = ("group", "array", "type", "shape", "description", "units")
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))


@dataclass(frozen=True, kw_only=True)
class About:
    """What the store does not know; `published` is a date, as in 2026-11-17."""

    title: str
    author: str
    licence: str
    published: str
    url: str = "https://arxiv.org/abs/2007.06533"
    description: str = ""
    tags: tuple[str, ...] = ()
    citation: str = PAPER
    version: str = s2rm_data.__version__

    @property
    def licence_url(self) -> str:
        if self.licence not in LICENCES:
            raise UsageError(f"no licence {self.licence!r}; the choices are {', '.join(LICENCES)}")
        return LICENCES[self.licence]


class _Part(NamedTuple):
    world: World
    inspection: Inspection
    groups: list[Group]
    stats: list[GroupStats]

    @property
    def about(self) -> str:
        return self.inspection.about or self.world.help.split("\n\n")[0].strip()


def write_card(store: Store, folder: Path, about: About, progress: Progress | None = None) -> list[Path]:
    """Write the card into `folder`; returns its files. `progress` is advanced by sequences."""
    _ = about.licence_url  # refuse before anything is made
    mlc = needed("mlcroissant", "publish", "a data card with Croissant metadata")
    groups = [store[path] for path in store.groups]
    if not groups:
        raise UsageError(f"{store.path} has no finished group to describe")
    parts = _parts(groups, progress or Progress())
    tags = dict.fromkeys(["world model", "partial observability", *(t for part in parts for t in part.inspection.tags)])
    description = about.description or " ".join(part.about for part in parts)
    about = dataclasses.replace(about, description=description, tags=tuple(tags))
    parquet = {g.path: file for g in groups if (file := folder / (g.path.replace("/", "-") + ".parquet")).is_file()}
    croissant = _croissant(mlc, store, groups, about, parquet)
    make_folder(folder)
    pictures = {part.world.name: _draw(part, folder / "images") for part in parts}
    text = _text(store, parts, about, pictures, parquet)
    for name, data in (("croissant.json", croissant), ("README.md", text.encode())):
        write_whole(folder / name, [data])
    return [folder / "README.md", folder / "croissant.json", *(path for found in pictures.values() for path in found)]


def _parts(groups: Sequence[Group], progress: Progress) -> list[_Part]:
    progress.start(sum(len(group) for group in groups), 0)
    parts = []
    for name in dict.fromkeys(group.settings["generator"] for group in groups):
        own = [group for group in groups if group.settings["generator"] == name]
        inspection = inspection_of(own[0])
        parts.append(_Part(world_of(own[0]), inspection, own, [inspection.statistics(g, progress) for g in own]))
    return parts


def _draw(part: _Part, folder: Path) -> list[Path]:
    """Contact sheet and animation of a training group, and the figure of the statistics."""
    make_folder(folder)
    shown = next((group for group in part.groups if group.path.endswith("/train")), part.groups[0])
    options = {option.name: option.value(option.default) for option in part.inspection.preview_options}
    _, images, sheet = part.inspection.preview(shown, 0, ROWS, Progress(), **options)
    name = part.world.name
    return [
        save_image(sheet, folder / f"{name}.png"),
        save_gif(images, folder / f"{name}.gif", part.inspection.milliseconds),
        *save_figure(part.inspection.draw_statistics(part.stats), folder / f"{name}-statistics", ("png",)),
    ]


# -- the text


def _text(store: Store, parts: Sequence[_Part], about: About, pictures: dict[str, list[Path]], parquet: Any) -> str:
    name = store.path.name
    lines = ["---", *_front_matter(parts, about, parquet), "---", "", f"# {plain(about.title)}", ""]
    lines += [f"Data of {len(parts)} world{'s' * (len(parts) != 1)} in one Zarr store, `{plain(name)}`. "
              "Every object in it has its SHA-256 in the store's sealed manifest.", ""]  # fmt: skip
    for part in parts:
        lines += _section(part, [f"images/{path.name}" for path in pictures[part.world.name]])
    lines += ["## How to read it", "", "```python", "import s2rm_data as s2", ""]
    lines += [f"store = s2.open({name!r})  # or zarr.open_group: it is plain Zarr v3"]
    lines += [f"store[{parts[0].groups[0].path!r}]", "```", ""]
    lines += [f"`s2rm-data verify {plain(name)}` checks every byte."]
    if parquet:
        names = ", ".join(f"`{name}`" for name in _configs(parts, parquet))
        lines += ["The Parquet files hold the same groups, one row per sequence, for Hugging Face's `datasets`, which "
                  f"loads them under the names {names}."]  # fmt: skip
    lines += ["", "## Licence", "", f"[{about.licence}]({about.licence_url}), by {plain(about.author)}.", ""]
    lines += ["## Citation", "", "```bibtex", about.citation.replace("```", ""), "```"]
    return "\n".join(lines) + "\n"


def _front_matter(parts: Sequence[_Part], about: About, parquet: dict[str, Path]) -> list[str]:
    """YAML as Hugging Face reads it; values are JSON, which is YAML."""
    count = sum(len(group) for part in parts for group in part.groups)
    size = next((words for limit, words in _SIZES if count < limit), "n>1M")
    fields: dict[str, Any] = {"pretty_name": about.title, "license": about.licence, "tags": list(about.tags),
                              "size_categories": [size]}  # fmt: skip
    for config, files in _configs(parts, parquet).items():
        held = [{"split": split, "path": parquet[group].name} for split, group in files]
        fields.setdefault("configs", []).append({"config_name": config, "data_files": held})
    return [f"{name}: {json.dumps(value)}" for name, value in fields.items()]


def _configs(parts: Sequence[_Part], parquet: Container[str]) -> dict[str, list[tuple[str, str]]]:
    """(split, group) by the names under which `datasets` loads them; all splits of a name must have the same columns.
    The name is that of the folder, as in `bballs`, for groups like the folder's `train` (else like its first one), and
    that of the group, as in `bballs-test_5`, for others, such as those with another number of balls."""
    groups = [group for part in parts for group in part.groups]
    columns = {g.path: [(name, array.dtype, array.shape[1:]) for name, array in g.arrays.items()] for g in groups}
    configs: dict[str, list[tuple[str, str]]] = {}
    for path in columns:
        folder, _, split = path.rpartition("/")
        usual = columns.get(f"{folder}/train") or next(columns[p] for p in columns if p.rpartition("/")[0] == folder)
        name = folder if columns[path] == usual else path
        if path in parquet:
            configs.setdefault(name.replace("/", "-"), []).append((split.replace("-", "_"), path))
    return configs


def _section(part: _Part, images: list[str]) -> list[str]:
    sheet, animation, figure = images
    lines = [f"## {plain(part.world.title)}", "", part.about, "", f"![An example]({animation})", ""]
    lines += [f"![Examples]({sheet})", "", "### Groups", "", "| group | sequences | MB |", "|---|---|---|"]
    lines += [f"| `{group.path}` | {len(group):,} | {group.nbytes / 1e6:,.1f} |" for group in part.groups]
    lines += ["", "### Arrays", "", f"Of `{part.groups[0].path}`; shapes are those of one sequence.", ""]
    lines += ["| array | type | shape | meaning |", "|---|---|---|---|"]
    for name, array in part.groups[0].arrays.items():
        units = array.layout.attributes.get("units")
        meaning = str(array.layout.attributes.get("description", "")) + (f" ({units})" if units else "")
        lines.append(f"| `{name}` | {array.dtype} | {plain(array.words(1))} | {plain(meaning)} |")
    lines += ["", "### Statistics", "", f"![Statistics]({figure})", "", *_statistics(part.stats), ""]
    return lines + _making(part.groups)


def _statistics(stats: Sequence[GroupStats]) -> list[str]:
    columns = [entry.row | entry.details for entry in stats]
    lines = ["| | " + " | ".join(plain(entry.short_name) for entry in stats) + " |", "|---" * (len(stats) + 1) + "|"]
    for name in dict.fromkeys(name for column in columns for name in column):
        cells = [_cell(column.get(name)) for column in columns]
        lines.append(f"| {plain(name.replace('_', ' '))} | {' | '.join(cells)} |")
    return lines


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(f"{part:g}" for part in value)
    return "" if value is None else f"{value:,}" if isinstance(value, int) else plain(str(value))


def _making(groups: Sequence[Group]) -> list[str]:
    lines = ["### How it was made", "", "These commands make the same bytes again, on any machine:", "", "```sh"]
    commands = (str(group.attributes.get("command", "unknown")) for group in groups)
    lines += dict.fromkeys("".join(c if c.isprintable() and c != "`" else "?" for c in text) for text in commands)
    version, package = groups[0].settings.get("generator_version", "?"), groups[0].attributes.get("package", "?")
    return [*lines, "```", "", f"Generator version {plain(str(version))}, {plain(str(package))}.", ""]


def plain(text: str) -> str:
    """A text from elsewhere within Markdown: one line, and nothing in it is markup."""
    escaped = "".join(f"\\{c}" if c in r"\`*_[]|#!" else c if c.isprintable() else " " for c in text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


# -- for programs


def _croissant(mlc: Any, store: Store, groups: Sequence[Group], about: About, parquet: Mapping[str, Path]) -> bytes:
    """`parquet`: group -> file beside the card. Raises if what comes out is not valid Croissant."""
    name = store.path.name  # as the store is called beside the card
    seal, whole = "The root document, which seals all other objects.", "The Zarr store."
    distribution = [
        _file(mlc, f"{name}/{META}", store.manifest.to_bytes(), ZARR, seal),
        mlc.FileSet(id="store", name="store", includes=[f"{name}/**"], encoding_formats=[ZARR], description=whole),
        *(_file(mlc, path.name, path.read_bytes(), PARQUET, f"{group} as Parquet.") for group, path in parquet.items()),
    ]
    records = [_arrays(mlc, groups)]
    records += [_rows(mlc, group, parquet[group.path].name) for group in groups if group.path in parquet]
    told: dict[str, Any] = {
        "name": about.title, "description": about.description, "license": [about.licence_url], "url": about.url,
        "cite_as": about.citation, "version": about.version, "keywords": list(about.tags),
        "date_published": datetime.fromisoformat(about.published),
        "creators": [mlc.Organization(name=about.author, url=about.url)],
    }  # fmt: skip
    metadata = mlc.Metadata(**told, distribution=distribution, record_sets=records)
    return (json.dumps(metadata.to_json(), indent=1, default=str) + "\n").encode()


def _file(mlc: Any, name: str, data: bytes, encoding: str, description: str) -> Any:
    content = {"content_url": name, "content_size": f"{len(data)} B", "sha256": hashlib.sha256(data).hexdigest()}
    return mlc.FileObject(id=name, name=name, **content, encoding_formats=[encoding], description=description)


def _arrays(mlc: Any, groups: Sequence[Group]) -> Any:
    """One record per array, held in the document itself."""
    rows, text = [], [mlc.DataType.TEXT]
    for group, (name, array) in ((g, item) for g in groups for item in g.arrays.items()):
        words = (str(array.layout.attributes.get(key, "")) for key in ("description", "units"))
        rows.append((group.path, name, str(array.dtype), array.words(), *words))
    told = {name: f"The array's {name}." for name in _COLUMNS}
    fields = [mlc.Field(id=f"arrays/{n}", name=n, description=said, data_types=text) for n, said in told.items()]
    data = [{f"arrays/{name}": value for name, value in zip(_COLUMNS, row, strict=True)} for row in rows]
    return mlc.RecordSet(id="arrays", name="arrays", description="Every array of the store.", fields=fields, data=data)


def _rows(mlc: Any, group: Group, file: str) -> Any:
    fields = []
    for name, array in group.arrays.items():
        shape, words = array.shape[1:], str(array.layout.attributes.get("description", name))
        held = {"is_array": True if shape else None, "array_shape": ",".join(map(str, shape)) or None}
        source = mlc.Source(file_object=file, extract=mlc.Extract(column=name))
        told = {"description": words, "data_types": [getattr(mlc.DataType, array.dtype.name.upper())], **held}
        fields.append(mlc.Field(id=f"{group.path}/{name}", name=name, source=source, **told))
    return mlc.RecordSet(id=group.path, name=group.path, description=f"Sequences of {group.path}.", fields=fields)
