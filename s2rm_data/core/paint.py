"""Pictures as files: figures, animations and contact sheets, for every stage that draws. Nothing here knows a world. A
file that was there before stays until the new one is whole. matplotlib and Pillow are imported when used."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.core.write import disk_errors, make_folder, replaced

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from PIL.Image import Image

DPI = 130
# Of every figure: one set of sizes, legible in a column of a paper, and text that stays text.
STYLE: Any = {
    "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.fontsize": 8, "legend.frameon": False, "axes.spines.top": False, "axes.spines.right": False,
    "grid.linewidth": 0.3, "grid.color": "#cccccc", "axes.axisbelow": True, "pdf.fonttype": 42,
    "svg.hashsalt": "s2rm-data",
}  # fmt: skip
# Ten colours that the colour-blind tell apart (P. Tol's `muted`).
SAFE_COLOURS = (
    "#cc6677", "#332288", "#ddcc77", "#117733", "#88ccee", "#882255", "#44aa99", "#999933", "#aa4499", "#999999",
)  # fmt: skip
PAPER, INK = (250, 250, 250), (30, 30, 30)


def new_figure(width_inch: float, height_inch: float) -> Figure:
    """Axes and legends that it makes are of our STYLE, whatever the user's own is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure: Figure = _styled()(figsize=(width_inch, height_inch), facecolor="white", layout="constrained")
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.08)  # titles keep off what is above them
    FigureCanvasAgg(figure)
    return figure


@cache
def _styled() -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    class StyledFigure(Figure):
        def subplots(self, *given: Any, **options: Any) -> Any:
            with rc_context(STYLE):
                return super().subplots(*given, **options)

        def legend(self, *given: Any, **options: Any) -> Any:
            with rc_context(STYLE):
                return super().legend(*given, **options)

    return StyledFigure


def legend_below(figure: Figure, drawn: Sequence[Any]) -> None:
    """One legend for all these axes, below them, each label once."""
    labelled: dict[str, Any] = {}
    for panel in drawn:
        labelled |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    across = max(1, min(len(labelled), int(figure.get_figwidth() / 2.0)))
    figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=across)


def panels(figure: Figure, count: int, across: int, **options: Any) -> list[Any]:
    """`count` axes in rows of `across`; the rest of the last row stays empty."""
    axes = figure.subplots(-(-count // across), across, squeeze=False, **options)
    for unused in axes.flat[count:]:
        unused.remove()
    return list(axes.flat[:count])


def save_figure(figure: Figure, stem: Path, forms: Sequence[str] = ("png", "svg")) -> list[Path]:
    """`stem` with each suffix; no form holds a date, so that equal data give equal files."""
    from matplotlib import rc_context

    paths = [stem.with_name(f"{stem.name}.{form}") for form in forms]
    make_folder(stem.parent)
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with disk_errors(stem), rc_context(STYLE):
        for path, form in zip(paths, forms, strict=True):
            with replaced(path) as partial:
                figure.savefig(partial, format=form, dpi=DPI, metadata=undated.get(form))
            figure.set_layout_engine("none")  # stays as it was laid out for the first form, at no further cost
    return paths


def figure_image(figure: Figure, dpi: int = 80) -> Image:
    from PIL import Image

    figure.set_dpi(dpi)
    canvas: Any = figure.canvas
    canvas.draw()
    return Image.frombytes("RGBA", canvas.get_width_height(), bytes(canvas.buffer_rgba())).convert("RGB")


def grey_image(levels: NDArray[np.uint8], enlargement: int = 1) -> Image:
    """(H, W), or (H, W, 3) in colour, each pixel as a square."""
    from PIL import Image

    return Image.fromarray(levels.repeat(enlargement, 0).repeat(enlargement, 1))


def save_image(image: Image, path: Path) -> Path:
    with replaced(path) as partial:
        image.save(partial, path.suffix[1:])
    return path


def save_gif(images: Iterable[Image], path: Path, milliseconds: int) -> Path:
    """An endless animation; images are taken one by one."""
    rest = _one_palette(iter(images))
    first = next(rest)
    data = io.BytesIO()  # to a file, Pillow writes what the disk takes, and does not look whether that was all
    first.save(data, "gif", save_all=True, append_images=rest, duration=milliseconds, loop=0, optimize=True)
    with replaced(path) as partial:
        partial.write_bytes(data.getvalue())
    return path


def _one_palette(images: Iterator[Image]) -> Iterator[Image]:
    """Colour images with a palette made of the first: its most frequent colours, and those farthest apart, so that
    small patches such as those of a legend keep colours of their own."""
    from PIL import Image

    first = next(images)
    if first.mode != "RGB":
        yield first
        yield from images
        return
    methods = Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE
    palettes = (first.quantize(128, method=method).getpalette() for method in methods)
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colours in palettes for value in (colours or [])[: 3 * 128]])
    for image in itertools.chain([first], images):
        yield image.quantize(palette=palette, dither=Image.Dither.NONE)


def contact_sheet(
    rows: Sequence[Sequence[Image]], labels: Sequence[str], heads: Sequence[str], legend: str = ""
) -> Image:
    """Images of one size in rows, a label before each row, a head above each column, a legend below all."""
    from PIL import Image, ImageDraw

    gap, top, left = 6, 22, 8 + max(7 * len(label) for label in labels)
    width, height = rows[0][0].width + gap, rows[0][0].height + gap
    sheet = Image.new("RGB", (left + width * len(heads), top + height * len(rows)), PAPER)
    pen = ImageDraw.Draw(sheet)
    for column, head in enumerate(heads):
        pen.text((left + column * width, 6), head, fill=INK)
    for row, (images, label) in enumerate(zip(rows, labels, strict=True)):
        pen.text((4, top + row * height + height // 2 - 8), label, fill=INK)
        for column, image in enumerate(images):
            sheet.paste(image, (left + column * width, top + row * height))
    return captioned(sheet, legend) if legend else sheet


def stacked(images: Sequence[Image]) -> Image:
    from PIL import Image

    sheet = Image.new("RGB", (images[0].width, images[0].height * len(images)), "white")
    for row, image in enumerate(images):
        sheet.paste(image, (0, row * image.height))
    return sheet


def captioned(image: Image, text: str) -> Image:
    from PIL import Image, ImageDraw

    canvas = Image.new("RGB", (image.width, image.height + 18), PAPER)
    canvas.paste(image, (0, 0))
    ImageDraw.Draw(canvas).text((4, image.height + 3), text, fill=INK)
    return canvas
