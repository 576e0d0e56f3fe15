"""An export format in one file: a table of the mean of every sequence of every array."""

from __future__ import annotations

from pathlib import Path

from s2rm_data.extend import ExportFormat, Group, Progress, blocks


class Means(ExportFormat):
    suffix = ".csv"

    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
        with path.open("w", encoding="utf-8") as file:
            for name, array in group.arrays.items():
                for start, block in blocks(array, count):
                    file.writelines(f"{name},{n},{values.mean():.4g}\n" for n, values in enumerate(block, start))
                    progress.advance(block.nbytes)


EXPORT_FORMAT = Means()
