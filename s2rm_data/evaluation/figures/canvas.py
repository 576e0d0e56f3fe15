"""What all figures share: how they are made and saved, and which colour a model has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from s2rm_data.errors import DiskError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito (2008): told apart by all common kinds of colour vision.
COLOURS = {
    "s2gru": "#d55e00",
    "s2rmc": "#cc79a7",
    "lstm": "#0072b2",
    "rmc": "#009e73",
    "rims": "#e69f00",
    "tto": "#56b4e9",
}
_OTHERS = ("#5b3a8c", "#7a5a00", "#a0004f", "#2f4b26", "#444444")
REFERENCE_COLOUR = "#777777"
REFERENCE_STYLES = ((0, (1, 1)), (0, (4, 2)), (0, (6, 2, 1, 2)), (0, (2, 3)))
MARKERS = {"s2gru": "o", "s2rmc": "s", "lstm": "^", "rmc": "D", "rims": "v", "tto": "*"}
DPI = 130


def colour_of(model: str, number: int = 0) -> str:
    return COLOURS.get(model, _OTHERS[number % len(_OTHERS)])


def new_figure(width_inch: float, height_inch: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inch, height_inch), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, stem: Path, forms: Iterable[str] = ("png", "svg")) -> list[Path]:
    """`stem` with each suffix; neither form holds a date, so that equal data give equal files."""
    from matplotlib import rc_context

    paths = [stem.with_name(f"{stem.name}.{form}") for form in forms]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        with rc_context({"svg.hashsalt": "s2rm-data"}):
            for path in paths:
                kept = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
                figure.savefig(path, dpi=DPI, **kept)  # type: ignore[arg-type]
                figure.set_layout_engine("none")  # stays as it was laid out for the first form, at no further cost
    except OSError as error:
        raise DiskError(f"cannot write to {stem.parent}: {error.strerror or error}; choose another --out") from None
    return paths
