"""Battles as pictures: RGB frames, a live window, or a live picture in a notebook."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from s2rm_data.envs.battles import BattleBatch
from s2rm_data.errors import UsageError, missing_component
from s2rm_data.generators.sc2.codes import Order
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import UNIT_TYPES

MODES = ("human", "rgb_array")
FRAMES_PER_SECOND = 6
_AGENT, _ENEMY, _BAR = (43, 108, 176), (197, 48, 48), (225, 225, 225)
_HEALTH, _SHIELD = (47, 133, 90), (99, 179, 237)
_GROUND, _WALL = np.array((235, 231, 222)), np.array((120, 116, 110))
_MARGIN = 1  # cells around the walkable part of the map


class Painter:
    """Draws battles of one scenario: the walkable part of the map, its longer side `size` pixels, north at the top."""

    def __init__(self, battles: BattleBatch, size: int = 512) -> None:
        self._battles = battles
        walkable = np.argwhere(battles.terrain.pathing)  # (cells, 2) x and y
        self._low, high = walkable.min(axis=0) - _MARGIN, walkable.max(axis=0) + 1 + _MARGIN
        self._cells = high - self._low  # (2,) how many there are from west to east, from south to north
        self._scale = size / float(self._cells.max())
        self._background = self._paint_ground()
        self._font = ImageFont.load_default(max(8.0, 0.5 * self._scale))

    def _paint_ground(self) -> Image.Image:
        x, y = (np.clip(low + np.arange(count), 0, SIZE - 1) for low, count in zip(self._low, self._cells, strict=True))
        terrain = self._battles.terrain
        walkable, height = terrain.pathing[x][:, y].T[::-1], terrain.height[x][:, y].T[::-1]  # rows from the north
        shade = 0.85 + 0.15 * (height - height.min()) / max(float(np.ptp(height)), 1e-9)
        colour = np.where(walkable[..., None], _GROUND, _WALL) * shade[..., None]
        width, high = (round(float(count) * self._scale) for count in self._cells)
        return Image.fromarray(colour.astype(np.uint8)).resize((width, high), Image.Resampling.NEAREST)

    def frame(self, row: int = 0) -> NDArray[np.uint8]:
        """(H, W, 3) one battle as it stands."""
        image = self._background.copy()
        pen = ImageDraw.Draw(image)
        alive = np.flatnonzero(self._battles.snapshot.health[row] > 0)
        places = self._places(row)
        orders = self._battles.engine.orders()
        for unit in alive:
            target = int(orders.target[row, unit])
            aims = target in alive and int(orders.kind[row, unit]) != Order.MOVE
            if aims:  # whom it attacks or heals
                pen.line([places[unit], places[target]], fill=self._colour(int(unit)), width=1)
        for unit in alive:
            self._draw_unit(pen, row, int(unit), places[unit])
        return np.asarray(image)

    def _places(self, row: int) -> list[tuple[float, float]]:
        """Pixels of all units."""
        offset = (self._battles.snapshot.position[row].astype(np.float64) - self._low) * self._scale
        return [(float(x), self._background.height - float(y)) for x, y in offset]

    def _colour(self, unit: int) -> tuple[int, int, int]:
        return _AGENT if unit < self._battles.agents else _ENEMY

    def _draw_unit(self, pen: ImageDraw.ImageDraw, row: int, unit: int, place: tuple[float, float]) -> None:
        seen, kind = self._battles.snapshot, UNIT_TYPES[int(self._battles.engine.kinds[row, unit])]
        (x, y), r = place, kind.radius * self._scale
        pen.ellipse((x - r, y - r, x + r, y + r), fill=self._colour(unit), outline=(30, 30, 30))
        pen.text((x, y), kind.letters, fill=(255, 255, 255), font=self._font, anchor="mm")
        shares = [(float(seen.health[row, unit]) / kind.health, _HEALTH)]
        if kind.shield:
            shares.append((float(seen.shield[row, unit]) / kind.shield, _SHIELD))
        for number, (share, colour) in enumerate(shares):
            low = y - r - 3 - 4 * number
            pen.rectangle((x - r, low - 3, x + r, low - 1), fill=_BAR)
            pen.rectangle((x - r, low - 3, x - r + 2 * r * share, low - 1), fill=colour)


class Screen:
    """Shows frames: as a picture in a notebook, else in a window (pygame)."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._window: Any = None
        self._notebook = _in_notebook()

    def show(self, frame: NDArray[np.uint8]) -> None:
        if self._notebook:
            from IPython import display

            display.clear_output(wait=True)
            display.display(Image.fromarray(frame))
            return
        pygame = _pygame()
        if self._window is None:
            pygame.display.init()
            self._window = pygame.display.set_mode(frame.shape[:2][::-1])
            pygame.display.set_caption(self._title)
            self._clock = pygame.time.Clock()
        pygame.event.pump()
        self._window.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(FRAMES_PER_SECOND)

    def close(self) -> None:
        if self._window is not None:
            _pygame().display.quit()
            self._window = None


class Renderer:
    """What environments render with: `mode` "rgb_array" returns frames, "human" shows them."""

    def __init__(self, battles: BattleBatch, mode: str, size: int = 512) -> None:
        if mode not in MODES:
            raise UsageError(f"the render mode is {mode!r}; the choices are {', '.join(MODES)}")
        self.mode = mode
        self._painter = Painter(battles, size)
        self._screen = Screen(battles.options.map_name)

    def render(self, row: int = 0) -> NDArray[np.uint8] | None:
        frame = self._painter.frame(row)
        if self.mode == "rgb_array":
            return frame
        self._screen.show(frame)
        return None

    def close(self) -> None:
        self._screen.close()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _pygame() -> Any:
    try:
        import pygame
    except ImportError:
        raise missing_component("pygame", "envs", "a window") from None
    return pygame


class Rendered:
    """What environments share that were made with a render_mode, or without one (`_renderer` is None)."""

    _renderer: Renderer | None

    def render(self) -> NDArray[np.uint8] | None:
        if self._renderer is None:
            raise UsageError(f"the environment was made without render_mode; the choices are {', '.join(MODES)}")
        return self._renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
