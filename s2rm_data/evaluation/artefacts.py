"""Everything an evaluation leaves in its folder.

results.json            every number, of every run
tables/*.csv            one line a cell: mean over seeds, interval, the paper's number
figures/*.png, *.svg    one file a figure
rollouts/*.gif          truth above each model
report.html             all of it on one page that needs nothing else
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.errors import ConflictError, DiskError
from s2rm_data.evaluation import tables
from s2rm_data.evaluation.evaluate import Evaluation
from s2rm_data.evaluation.figures.balls import draw_heat_maps, draw_horizons, draw_strip, rollout_animation
from s2rm_data.evaluation.figures.battles import draw_polar_example
from s2rm_data.evaluation.figures.canvas import save_figure
from s2rm_data.evaluation.figures.curves import draw_tables
from s2rm_data.evaluation.figures.enclaves import draw_enclaves
from s2rm_data.evaluation.report import Section, page
from s2rm_data.evaluation.tables import Table
from s2rm_data.painting import save_gif
from s2rm_data.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GIF_MILLISECONDS = 160


@dataclass(kw_only=True)
class Written:
    report: Path
    files: list[Path]


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Before hours of work: can the results be written, and is nothing in the way?"""
    if folder.exists() and not folder.is_dir():
        raise ConflictError(f"{folder} is a file; give --out another name")
    if (folder / "results.json").exists() and not overwrite:
        raise ConflictError(f"{folder} holds the results of another evaluation; add --overwrite, or give another --out")
    foreign = [p.name for p in folder.iterdir() if p.name not in _OURS] if folder.exists() else []
    if foreign and not (folder / "results.json").exists():
        raise ConflictError(f"{folder} holds other files ({foreign[0]}, ...); give --out another name")
    probe = folder / "results.json.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DiskError(f"cannot write to {folder}: {error.strerror or error}; choose another --out") from None


_OURS = ("results.json", "results.json.partial", "tables", "figures", "rollouts", "report.html")


def write_artefacts(made: Evaluation, store: Store, folder: Path) -> Written:
    try:
        return _Writer(made, store, folder).write()
    except OSError as error:
        raise DiskError(f"cannot write to {folder}: {error.strerror or error}; choose another --out") from None


class _Writer:
    def __init__(self, made: Evaluation, store: Store, folder: Path) -> None:
        self.made, self.results, self.store, self.folder = made, made.results, store, folder
        self.files: list[Path] = []
        # Labels are shared by seeds: where one run is drawn, it is named by its seed, too.
        shared = [(run.task, run.label) for run in made.runs]
        self.titles = {
            run.name: run.label if shared.count((run.task, run.label)) == 1 else f"{run.label}, seed {run.seed}"
            for run in made.runs
        }
        first = {entry: run.name for entry, run in zip(reversed(shared), reversed(made.runs), strict=True)}
        self.drawn = {name: self.titles[name] for name in first.values()}  # in pictures: one seed of each model

    def write(self) -> Written:
        self._clear()
        (self.folder / "tables").mkdir()
        sections = []
        if "bballs" in self.results:
            sections += self._balls()
        if "sc2" in self.results:
            sections += self._battles()
        sections += self._enclaves()
        report = self.folder / "report.html"
        report.write_text(page(self.results, sections), "utf-8")
        self._json()
        return Written(report=report, files=[report, self.folder / "results.json", *self.files])

    def _clear(self) -> None:
        """Remove an earlier evaluation, what says that it is complete first: results of two are never mixed."""
        for name in ("results.json", "report.html"):
            (self.folder / name).unlink(missing_ok=True)
        for name in ("tables", "figures", "rollouts"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _json(self) -> None:
        """Last, under its own name only when whole: its existence means that the evaluation is complete."""
        partial = self.folder / "results.json.partial"
        partial.write_text(json.dumps(self.results, indent=1) + "\n", "utf-8")
        partial.replace(self.folder / "results.json")

    def _table(self, table: Table) -> Table:
        path = self.folder / "tables" / f"{table.name}.csv"
        path.write_text(table.to_csv(), "utf-8")
        self.files.append(path)
        return table

    def _figure(self, name: str, draw: Callable[..., Figure], *args: Any, **options: Any) -> Path:
        """The PNG."""
        paths = save_figure(draw(*args, **options), self.folder / "figures" / name)
        self.files += paths
        return paths[0]

    def _balls(self) -> list[Section]:
        one_step = [self._table(table) for table in tables.ball_tables(self.results, self._training_balls())]
        section = Section(
            title="Bouncing balls: one step ahead",
            text="After the paper's figure bb_ood: trained on one number of balls, tested on others. The paper prints "
            "no numbers for the balls, so none stand beside ours. The last seen canvas is all that the views have "
            "shown so far, drawn where it was last seen; the copy of the whole previous frame is more than any model "
            "but the oracle TTO is ever given.",
        )
        section.add_figure(
            self._figure(
                "bballs_one_step", draw_tables, one_step[:3], xlabel="balls", titles=list(tables.BALL_METRICS.values())
            )
        )
        section.tables = one_step
        views = Section(
            title="Bouncing balls: fewer views",
            text="After the paper's heat maps heatmaps_bacc and heatmaps_f1: the same predictions with a share of the "
            "views left out. One colour scale for all panels of a figure.",
        )
        for metric in ("f1", "balanced_accuracy", "f1_moving"):
            views.add_figure(self._figure(f"bballs_views_{metric}", draw_heat_maps, self.results, metric))
        views.tables = [self._table(table) for table in tables.dropped_view_tables(self.results)]
        views.folded = True
        return [section, views, *self._rollouts()]

    def _training_balls(self) -> int | None:
        """If it is the same for all runs."""
        found = {run.balls for run in self.made.runs if run.task == "bballs"}
        return found.pop() if len(found) == 1 else None

    def _rollouts(self) -> list[Section]:
        rolled = self.made.rollouts
        if not rolled:
            return []
        first = next(iter(rolled.values()))
        section = Section(
            title="Bouncing balls: roll-outs",
            text=f"After the paper's figure bb_roll: {first.prompt_steps} frames are shown through crops, then each "
            f"model is fed its own predictions, thresholded at 0.5, for {first.truth.shape[1]} steps. Pictures are "
            "stitched "
            "from crops that touch one another and cover all but a margin of the arena (44 of 48 pixels). The oracle "
            "TTO reads the frame it predicts and so cannot be rolled out.",
        )
        section.add_figure(
            self._figure("bballs_rollout_f1", draw_horizons, self.results, "f1", "F1"),
            "F1 by step; bands: range over seeds. The references know nothing of motion: what the prompt's end "
            "showed is held.",
        )
        section.add_figure(
            self._figure(
                "bballs_rollout_f1_moving", draw_horizons, self.results, "f1_moving", "F1, fixed ball left out"
            )
        )
        section.add_figure(
            self._figure("bballs_rollout_area", draw_horizons, self.results, "area", "pixels on / true"),
            "Do balls stay balls? Pixels that are on, relative to the truth: below 1 balls fade, above 1 they smear.",
        )
        (self.folder / "rollouts").mkdir(exist_ok=True)
        for split, found in rolled.items():
            number = self.results["bballs"]["balls"][split]
            heading = f"{number} ball{'s' * (number > 1)}, sequence 0 of {split}"
            section.add_figure(self._figure(f"bballs_rollout_{split}", draw_strip, found, self.drawn, heading))
            path = self.folder / "rollouts" / f"{split}.gif"
            save_gif(rollout_animation(found, self.drawn), path, GIF_MILLISECONDS)
            self.files.append(path)
            section.add_figure(path, f"{heading}, every step")
        section.tables = [self._table(table) for table in tables.rollout_tables(self.results)]
        section.folded = True
        return [section]

    def _battles(self) -> list[Section]:
        robust = [self._table(table) for table in tables.robustness_tables(self.results)]
        tested = [self._table(table) for table in tables.unseen_tables(self.results)]
        section = Section(
            title="StarCraft II: fewer active agents",
            text="After the paper's figure sc2_robustness and tables sc2_fmf1 to sc2_loss: each agent supplies its "
            "view with the given probability at every step, and is asked for its next image in any case. The paper's "
            "numbers (dashed) come from other episodes, of the real game, at a resolution that it does not state: "
            "compare orders, not values. TTO is asked where the views it is given stand: it sees its targets.",
        )
        section.add_figure(
            self._figure(
                "sc2_robustness",
                draw_tables,
                robust,
                xlabel="active agents",
                titles=[table.title.partition(" by ")[0] for table in robust],
                columns=3,
            )
        )
        section.tables = robust
        other = Section(
            title="StarCraft II: test scenarios",
            text="After the paper's table sc2_1s2z. UT-F1 is the mean over the classes that occur; the paper does not "
            "say whether it counts the class ‘nothing there’, so it is given with and without. LL of a reference is at "
            "the best confidence it could have.",
            tables=tested,
        )
        images = Section(
            title="StarCraft II: predicted images",
            text="One agent's image one step ahead, all agents active. Other episodes, agents and steps: --episode, "
            "--agent, --step.",
        )
        for path, example in self.made.examples.items():
            name = f"sc2_example_{path.split('/')[1]}"
            images.add_figure(self._figure(name, draw_polar_example, example, self.drawn))
        return [section, *([other] if tested else []), images]

    def _enclaves(self) -> list[Section]:
        table = tables.enclave_table(self.results)
        if table is None:
            return []
        section = Section(
            title="Enclaves",
            text="After the paper's figure bb_enclaves: for every position, how much each module answers for it."
            + " White dashes: the fixed ball." * any(run.task == "bballs" for run in self.made.runs),
            tables=[self._table(table)],
        )
        by_name = {run.name: run for run in self.made.runs}
        for name, maps in self.made.enclaves.items():
            run = by_name[name]
            is_balls = run.task == "bballs"
            section.add_figure(
                self._figure(
                    "enclaves_" + name.replace("/", "-"),
                    draw_enclaves,
                    maps,
                    self.titles[name],
                    fixed_ball_px=self._radius() if is_balls else None,
                    unit="px" if is_balls else "map units",
                )
            )
        return [section]

    def _radius(self) -> float | None:
        path = next((path for path in self.store.groups if path.startswith("bballs/")), None)
        return None if path is None else float(self.store[path].settings["config"]["radius_px"])
