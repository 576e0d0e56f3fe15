"""GIFs in a folder, one animation per sequence, numbered as in the group."""

from __future__ import annotations

from pathlib import Path

from s2rm_data.core.paint import save_gif
from s2rm_data.core.progress import Progress
from s2rm_data.inspection.export_format import ExportFormat
from s2rm_data.inspection.world_inspection import inspection_of
from s2rm_data.store import Group


class Gifs(ExportFormat):
    counts = "sequences"

    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
        inspection = inspection_of(group)
        digits = max(5, len(str(count - 1)))
        for number in range(count):
            pictures = inspection.pictures(group, number)
            save_gif(pictures, path / f"{number:0{digits}}.gif", inspection.milliseconds)
            progress.advance(1)


EXPORT_FORMAT = Gifs()
