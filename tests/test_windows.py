"""What a system without the calls of POSIX can do, tried by hiding them: read and draw, and refuse to write stores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from s2rm_data.store import Store

# Hidden only when the libraries are imported, which have their own ways on Windows.
WITHOUT_POSIX = """
import os, shutil, signal, sys
import click, numpy, numba, PIL.Image, matplotlib.figure, rich.console, scipy.stats, concurrent.futures, http.server
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "pread", "preadv", "getuid", "register_at_fork", "sysconf"):
    delattr(os, name)
for name in ("SIGALRM", "SIGURG", "setitimer", "pthread_kill"):
    delattr(signal, name)
shutil._use_fd_functions = False
usual = os.open
def open_path(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return usual(path, flags, mode)
os.open = open_path
"""


def without_posix(program: str, folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + WITHOUT_POSIX + program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def command(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return without_posix(f"sys.argv[1:] = {words.split()!r}\nfrom s2rm_data.cli.data import main\nmain()", folder)


def test_a_store_can_be_checked_and_exported(store: Store, tmp_path: Path) -> None:
    checked = command(f"verify {store.path}", tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    exported = command(f"export {store.path} bballs/val --format npz", tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert [path.name for path in (tmp_path / "exports").iterdir()] == ["bballs-val.npz"]


def test_a_link_inside_a_store_is_not_followed(toy_store: Path, tmp_path: Path) -> None:
    document = toy_store / "toy/val/zarr.json"
    document.rename(tmp_path / "moved.json")
    document.symlink_to(tmp_path / "moved.json")
    checked = command(f"verify {toy_store}", tmp_path)
    assert checked.returncode == 3 and "links inside a store or run are not followed" in checked.stderr + checked.stdout


def test_what_needs_a_lock_is_refused_with_a_way_out(tmp_path: Path) -> None:
    made = command("bballs --balls 2 --train 2 --val 0 --test 0", tmp_path)
    assert made.returncode == 4 and "WSL 2" in made.stderr and "Traceback" not in made.stderr


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    program = """
import importlib, pathlib, s2rm_data
package = pathlib.Path(s2rm_data.__file__).parent
for file in package.rglob("*.py"):
    if file.stem != "__main__":
        importlib.import_module(".".join(("s2rm_data", *file.relative_to(package).with_suffix("").parts)))
print("all")
"""
    before = "import torch, torch.distributed, safetensors.torch, selectors, asyncio, multiprocessing.connection\n"
    found = without_posix(program, tmp_path, before)
    assert found.stdout.strip() == "all", found.stderr
