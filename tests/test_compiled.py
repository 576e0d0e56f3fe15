"""Compiled code on disk must not outlive the sources it was made of."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import s2rm_data
from s2rm_data.compiled import SOURCES, sources_digest
from s2rm_data.generators.bballs.simulate import _simulate
from s2rm_data.generators.sc2.engine.step import step_batch
from s2rm_data.philox import philox

PACKAGE = Path(s2rm_data.__file__).parent


def test_every_compiled_function_is_stamped_with_all_sources() -> None:
    assert sources_digest() == SOURCES
    for function in (philox, step_batch):
        assert function._cache._cache_file._source_stamp == SOURCES
    assert callable(_simulate)


def test_no_function_is_compiled_past_the_stamp() -> None:
    offenders = [file for file in PACKAGE.rglob("*.py") if "njit" in file.read_text()]
    assert offenders == [PACKAGE / "compiled.py"]


def test_a_constant_changed_in_another_file_changes_what_compiled_code_does(tmp_path: Path) -> None:
    copy = tmp_path / "s2rm_data"
    copy.mkdir()
    (copy / "generators").mkdir()
    (copy / "__init__.py").write_text("")
    shutil.copy(PACKAGE / "compiled.py", copy)
    shutil.copy(PACKAGE / "philox.py", copy)
    (copy / "generators" / "__init__.py").write_text("")
    (copy / "generators" / "kernel.py").write_text(
        "from s2rm_data.compiled import compiled\n"
        "from s2rm_data.generators.constant import VALUE\n\n\n"
        "@compiled()\ndef value():\n    return VALUE\n"
    )
    said = []
    for number in (1, 2):
        (copy / "generators" / "constant.py").write_text(f"VALUE = {number}\n")
        code = "from s2rm_data.generators.kernel import value; print(value())"
        said.append(
            subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        )
    assert [done.stdout.strip() for done in said] == ["1", "2"]
