"""Pictures as files: figures, animations and contact sheets, for every stage that draws. Nothing here knows a world.

A file appears under its name when it is whole, and one that was there before stays until then.
matplotlib and Pillow are imported when used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.files import disk_errors, make_folder, replaced

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from PIL.Image import Image

DPI = 130
PAPER, INK = (250, 250, 250), (30, 30, 30)


def new_figure(width_inch: float, height_inch: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inch, height_inch), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(figure: Figure, count: int, across: int, **options: Any) -> list[Any]:
    """`count` axes in rows of `across`; the rest of the last row stays empty."""
    axes = figure.subplots(-(-count // across), across, squeeze=False, **options)
    for unused in axes.flat[count:]:
        unused.remove()
    return list(axes.flat[:count])


def save_figure(figure: Figure, stem: Path, forms: Sequence[str] = ("png", "svg")) -> list[Path]:
    """`stem` with each suffix; neither form holds a date, so that equal data give equal files."""
    from matplotlib import rc_context

    paths = [stem.with_name(f"{stem.name}.{form}") for form in forms]
    make_folder(stem.parent)
    with disk_errors(stem), rc_context({"svg.hashsalt": "s2rm-data"}):
        for path, form in zip(paths, forms, strict=True):
            kept = {"metadata": {"Date": None}} if form == "svg" else {}
            with replaced(path) as partial:
                figure.savefig(partial, format=form, dpi=DPI, **kept)  # type: ignore[arg-type]
            figure.set_layout_engine("none")  # stays as it was laid out for the first form, at no further cost
    return paths


def figure_image(figure: Figure, dpi: int = 80) -> Image:
    """A figure as a picture."""
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
    with replaced(path) as partial:
        first.save(partial, "gif", save_all=True, append_images=rest, duration=milliseconds, loop=0, optimize=True)
    return path


def _one_palette(images: Iterator[Image]) -> Iterator[Image]:
    """Colour images with a palette made of the first: its most frequent colours, and those farthest apart.

    Frequent ones alone, Pillow's choice, would give small patches such as those of a legend one colour for several.
    """
    from PIL import Image

    first = next(images)
    if first.mode != "RGB":
        yield first
        yield from images
        return
    methods = (Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE)
    colours = [
        value for method in methods for value in (first.quantize(128, method=method).getpalette() or [])[: 3 * 128]
    ]
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours)
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
    """Images of one size below one another."""
    from PIL import Image

    sheet = Image.new("RGB", (images[0].width, images[0].height * len(images)), "white")
    for row, image in enumerate(images):
        sheet.paste(image, (0, row * image.height))
    return sheet


def captioned(image: Image, text: str) -> Image:
    """An image with a line of text below it."""
    from PIL import Image, ImageDraw

    canvas = Image.new("RGB", (image.width, image.height + 18), PAPER)
    canvas.paste(image, (0, 0))
    ImageDraw.Draw(canvas).text((4, image.height + 3), text, fill=INK)
    return canvas
