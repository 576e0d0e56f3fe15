from __future__ import annotations

from pathlib import Path

from PIL import Image

from s2rm_data.painting import save_gif


def test_small_patches_keep_their_colours(tmp_path: Path) -> None:
    """A picture of many shades with a legend of a few pixels, whose colours have to stay apart."""
    shades = Image.linear_gradient("L")
    picture = Image.merge("RGB", [shades, shades.rotate(90), shades.transpose(Image.Transpose.FLIP_LEFT_RIGHT)])
    legend = [(27, 158, 119), (102, 166, 30), (47, 133, 90), (215, 48, 31)]
    for number, colour in enumerate(legend):
        picture.paste(colour, (4 * number, 0, 4 * number + 4, 4))
    save_gif([picture, picture.rotate(180), picture], tmp_path / "a.gif", 100)
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 3
        for frame in (0, 2):
            gif.seek(frame)
            shown = gif.convert("RGB")
            for number, colour in enumerate(legend):
                found = shown.getpixel((4 * number + 2, 2))
                assert max(abs(a - b) for a, b in zip(found, colour, strict=True)) <= 24, (found, colour)
