"""The notebooks run from their first cell to their last, here with less data."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import s2rm_data

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
TINY = {
    "balls": "TRAIN, VAL, TEST, STEPS = 8, 4, 2, 2",
    "battles": "EPISODES, VAL, STEPS = 4, 2, 2",
}


def test_every_notebook_is_tested() -> None:
    assert sorted(TINY) == sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.costs(15)
@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the notebook's own packages
@pytest.mark.parametrize("name", TINY)
def test_a_notebook_runs_and_shows_pictures_and_progress(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(s2rm_data.__file__).parents[1])]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    (parameters,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    parameters.source = TINY[name]
    NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert any("validation at step 2" in output.get("text", "") for output in outputs)


@pytest.mark.parametrize("name", TINY)
def test_the_stored_notebook_was_run_without_errors(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
