from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from s2rm_data.core.paint import new_figure, save_figure, save_gif, save_image


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


@pytest.mark.parametrize(
    ("name", "save"),
    [
        ("a.gif", lambda path: save_gif([Image.new("RGB", (9, 9))] * 2, path, 100)),
        ("a.png", lambda path: save_image(Image.new("RGB", (9, 9)), path)),
        ("a.svg", lambda path: save_figure(new_figure(1, 1), path.with_suffix(""), ("svg",))),
    ],
    ids=["animation", "image", "figure"],
)
def test_a_picture_takes_the_place_of_another_when_it_is_whole(
    tmp_path: Path, name: str, save: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("old")

    def interrupt(partial: Path, target: Path) -> None:
        assert partial.stat().st_size > 20 and target.read_text() == "old"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", interrupt)
        save(path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "old")]
    save(path)
    assert path.stat().st_size > 20
