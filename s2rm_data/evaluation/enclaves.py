"""Enclaves: Z(P(x), p_m), how much each module of an S2RM answers for each position (figure 5 of the paper)."""

# M modules, S x S whole positions of the arena

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.core.paint import SAFE_COLOURS, new_figure
from s2rm_data.evaluation.candidates import titles_of
from s2rm_data.evaluation.report import Page, Section
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Cell, Row, Table
from s2rm_data.evaluation.world_evaluation import WorldEvaluation
from s2rm_data.models import WorldModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = 5
_COLUMNS = {
    "modules": "modules",
    "arena covered by any": "covered_share",
    "modules at a position": "modules_per_position",
    "largest part of one": "largest_share_of_one_module",
    "modules that cover nothing": "idle_modules",
}


class Enclaves(NamedTuple):
    maps: NDArray[np.float32]  # (M, S, S), [module, y, x]

    def to_json(self) -> dict[str, float]:
        """How the modules share the arena: what any of them covers, how many cover a place, how large one's part is."""
        covered = self.maps > 0
        return {
            "modules": float(len(self.maps)),
            "covered_share": float(covered.any(0).mean()),
            "modules_per_position": float(covered.sum(0).mean()),
            "largest_share_of_one_module": float(covered.mean((1, 2)).max()),
            "idle_modules": float((~covered.any((1, 2))).sum()),
        }


def has_enclaves(model: Any) -> bool:
    return isinstance(model, WorldModel) and model.has_enclaves


def enclaves_of(runs: Sequence[Run]) -> dict[str, Enclaves]:
    """Of every run whose model has enclaves, by name."""
    found = {}
    for run in (run for run in runs if has_enclaves(run.model)):
        width, height = (int(extent) for extent in run.model.config.arena_size)
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        with torch.inference_mode():
            maps = run.model.enclaves(torch.stack([x, y], -1).float().to(next(run.model.parameters()).device))
        found[run.name] = Enclaves(maps=maps.float().cpu().numpy())
    return found


def enclave_table(found: Mapping[str, Enclaves], runs: Sequence[Run]) -> Table | None:
    if not found:
        return None
    rows = []
    for run in (run for run in runs if run.name in found):
        scores = found[run.name].to_json()
        cells = tuple(Cell(values=(scores[key],)) for key in _COLUMNS.values())
        rows.append(Row(label=f"{run.label} on {run.world}, seed {run.seed}", kind="model", cells=cells))
    title, caption = "How the modules share the arena", "A module covers a position where Z(P(x), p) > 0."
    told: dict[str, Any] = {"digits": 2, "counts": ("modules", "modules that cover nothing"), "corner": ""}
    return Table(name="enclaves", title=title, caption=caption, columns=tuple(_COLUMNS), rows=tuple(rows), **told)


def enclave_section(
    found: Mapping[str, Enclaves], runs: Sequence[Run], worlds: Mapping[str, WorldEvaluation], table: Table, page: Page
) -> Section:
    """`worlds` say what else is to be seen on a map of the arena."""
    notes = {name: world.arena_note(page.store) for name, world in worlds.items()}
    section = Section(
        title="Enclaves",
        text="After the paper's figure 5: each module of an S2RM serves a part of the arena, its enclave. The maps "
        "show for every position x how much each module answers for it, Z(P(x), p)."
        + "".join(f" {sentence}" for sentence, _ in notes.values() if sentence),
        tables=[table],
    )
    titles = titles_of(runs)
    for run in (run for run in runs if run.name in found):
        figure = draw_enclaves(found[run.name].maps, titles[run.name], worlds[run.world], notes[run.world][1])
        page.add_figure(section, "enclaves_" + run.name.replace("/", "-"), figure)
    return section


def draw_enclaves(
    maps: NDArray[np.float32], title: str, world: WorldEvaluation, mark: Callable[[Any], None] | None
) -> Figure:
    """One map per module, and all of them over one another. maps (M, S, S), [module, y, x]."""
    modules, height, width = maps.shape
    down = -(-modules // _ACROSS)
    figure = new_figure(1.55 * _ACROSS + 4.2, max(1.62 * down, 3.2) + 0.5)
    left, right = figure.subfigures(1, 2, width_ratios=(1.55 * _ACROSS + 0.9, 3.3), squeeze=False)[0]
    axes = left.subplots(down, _ACROSS, squeeze=False)
    for panel in axes.flat[modules:]:
        panel.remove()
    shown: dict[str, Any] = {"origin": "lower", "extent": (0, width, 0, height)}
    if world.y_down:
        shown = {"origin": "upper", "extent": (0, width, height, 0)}
    for number, panel in enumerate(axes.flat[:modules]):
        picture = panel.imshow(maps[number], vmin=0, vmax=1, cmap="magma", **shown)
        panel.set_title(f"module {number}: {float((maps[number] > 0).mean()):.0%}", fontsize=8)
        panel.set(xticks=[], yticks=[])
        if mark:
            mark(panel)
    left.colorbar(picture, ax=axes.flat[:modules].tolist(), shrink=0.7).set_label("Z(P(x), p)", fontsize=8)
    panel = right.subplots()
    _draw_overlay(panel, maps, world, shown)
    if mark:
        mark(panel)
    figure.suptitle(f"{title} (percent: part of the arena that the module answers for)", fontsize=10)
    return figure


def _draw_overlay(panel: Any, maps: NDArray[np.float32], world: WorldEvaluation, shown: dict[str, Any]) -> None:
    from matplotlib.colors import to_rgb

    (modules, height, width), strength = maps.shape, maps.max(0)[..., None]
    colours = np.array([to_rgb(SAFE_COLOURS[number % len(SAFE_COLOURS)]) for number in range(modules)])  # (M, 3)
    # The strongest module's colour, paler where it is weak, white where there is none.
    panel.imshow(1 - strength * (1 - colours[maps.argmax(0)]), **shown)
    for covered, colour in zip((maps > 0).astype(float), colours, strict=True):
        if 0 < covered.mean() < 1:
            x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
            panel.contour(x, y, covered, levels=[0.5], colors=[colour], linewidths=0.8)
    panel.set_title("overlay: the module with the largest Z,\nand the outline of each enclave", fontsize=8)
    unit = f", {world.position_unit}" if world.position_unit else ""
    panel.set_xlabel(f"x{unit}", fontsize=8)
    panel.set_ylabel(f"y{unit}", fontsize=8)
    panel.tick_params(labelsize=7)
