"""Battles as pictures: RGB frames, a live window, or a live picture in a notebook."""

from __future__ import annotations

import secrets
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from s2rm_data.core.errors import UsageError
from s2rm_data.core.optional import needed
from s2rm_data.core.seeding import MAX_SEED
from s2rm_data.starcraft import battle_paint as paint
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.envs.battles import BattleBatch
from s2rm_data.starcraft.envs.vector import VectorEnv

MODES = ("human", "rgb_array")
FRAMES_PER_SECOND = 6
_MARGIN = 1  # cells around the walkable part of the map


class Renderer:
    """What environments render with: `mode` "rgb_array" returns frames, "human" shows them: as a picture in a notebook,
    else in a window (pygame). Battles of one scenario, the longer side of the map's walkable part `size` pixels, north
    at the top."""

    def __init__(self, battles: BattleBatch, mode: str, size: int = 512) -> None:
        if mode not in MODES:
            raise UsageError(f"the render mode is {mode!r}; the choices are {', '.join(MODES)}")
        self.mode, self._notebook = mode, _in_notebook()
        self._window: Any = None
        self._battles, terrain = battles, battles.terrain
        walkable = np.argwhere(terrain.pathing)  # (cells, 2) x and y
        self._low, high = walkable.min(axis=0) - _MARGIN, walkable.max(axis=0) + 1 + _MARGIN
        self._scale = size / float((high - self._low).max())
        cells = np.pad(paint.shaded_ground(terrain.pathing, terrain.height), ((1, 1), (1, 1), (0, 0)), "edge")
        window = tuple(float(edge) + _MARGIN for edge in (*self._low, *high))
        self._background = paint.ground_picture(cells, window, self._scale)  # type: ignore[arg-type]
        self._font = paint.font(max(8.0, 0.5 * self._scale))

    def render(self, row: int = 0) -> NDArray[np.uint8] | None:
        frame = self.frame(row)
        if self.mode == "rgb_array":
            return frame
        self._show(frame)
        return None

    def frame(self, row: int = 0) -> NDArray[np.uint8]:
        """(H, W, 3) one battle as it stands."""
        image, seen, agents = self._background.copy(), self._battles.snapshot, self._battles.agents
        pen = ImageDraw.Draw(image)
        offset = (seen.position[row].astype(np.float64) - self._low) * self._scale
        places = [(float(x), image.height - float(y)) for x, y in offset]
        alive = [int(unit) for unit in np.flatnonzero(seen.health[row] > 0)]
        orders = self._battles.engine.orders()
        for unit in alive:
            target = int(orders.target[row, unit])
            if target in alive and int(orders.kind[row, unit]) != Order.MOVE:  # whom it attacks or heals
                pen.line([places[unit], places[target]], fill=paint.side_colour(unit, agents), width=1)
        if self._battles.looking is not None:
            for agent in alive[: sum(unit < agents for unit in alive)]:
                self._draw_cone(pen, row, agent, places[agent])
        for unit in alive:
            paint.draw_unit(
                pen, int(self._battles.engine.kinds[row, unit]), places[unit], self._scale, self._font,
                health=float(seen.health[row, unit]), shield=float(seen.shield[row, unit]), enemy=unit >= agents,
            )  # fmt: skip
        return np.asarray(image)

    def _draw_cone(self, pen: ImageDraw.ImageDraw, row: int, agent: int, place: tuple[float, float]) -> None:
        battles = self._battles
        reach = battles.features.sight_range(int(battles.engine.kinds[row, agent])) * self._scale
        x, y = battles.looking[row, agent]  # type: ignore[index]
        for angle in (battles.features.half_angle, -battles.features.half_angle):
            cos, sin = np.cos(angle), np.sin(angle)
            end = place[0] + reach * (cos * x - sin * y), place[1] - reach * (sin * x + cos * y)
            pen.line([place, end], fill=paint.side_colour(agent, battles.agents), width=1)

    def _show(self, frame: NDArray[np.uint8]) -> None:
        if self._notebook:
            from IPython import display

            display.clear_output(wait=True)
            display.display(Image.fromarray(frame))
            return
        pygame = needed("pygame", "envs", "a window")
        if self._window is None:
            pygame.display.init()
            self._window = pygame.display.set_mode(frame.shape[:2][::-1])
            pygame.display.set_caption(self._battles.options.map_name)
            self._clock = pygame.time.Clock()
        pygame.event.pump()
        self._window.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(FRAMES_PER_SECOND)

    def close(self) -> None:
        if self._window is not None:
            needed("pygame", "envs", "a window").display.quit()
            self._window = None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Rendered:
    """What the environments of other libraries share: battles, where masks are told, and frames, if any are wanted."""

    _renderer: Renderer | None

    def _open(self, map_name: str, count: int, render_mode: str | None, mask: str, options: dict[str, Any]) -> None:
        self._env = VectorEnv(map_name, count, **{"seed": secrets.randbelow(MAX_SEED), **options})
        self._battles, self._mask, self.render_mode = self._env.battles, mask, render_mode
        self._renderer = Renderer(self._battles, render_mode) if render_mode else None

    def _masks(self) -> NDArray[np.int8]:
        """(N, A) of the first battle."""
        return self._battles.available[0].astype(np.int8)

    def render(self) -> NDArray[np.uint8] | None:
        if self._renderer is None:
            raise UsageError(f"the environment was made without render_mode; the choices are {', '.join(MODES)}")
        return self._renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
