"""Plug-ins of every kind, from a .py file and from an installed package, are treated like built-in ones.

Every command runs in a process of its own, as a user would type it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from program import run_forked

from s2rm_data.store import Store

pytestmark = pytest.mark.costs(1)

TESTS = Path(__file__).parents[1] / "support"
TOYS = {
    "toy_gru": "models", "hold": "policies", "flat": "places", "lines": "loggers", "means": "export_formats",
    "linear": "codecs", "brief": "presets",
}  # fmt: skip
SMOKE = ["--preset", "smoke", "--steps", "2", "--set", "threads=1", "--set", "validate_every=2", "--model", "toy_gru"]
BATTLES = ["--train", "3", "--val", "0", "--steps", "4", "--radial", "8", "--angular", "16", "--backend", "engine"]


@dataclass(frozen=True)
class Said:
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class Way:
    """How the plug-ins reach a command: `words` on its line, and folders on `path`."""

    folder: Path
    words: tuple[str, ...] = ()
    path: tuple[Path, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    def call(
        self, program: str, *words: str, statuses: tuple[int, ...] = (0,), plugins: bool = True, **variables: str
    ) -> Said:
        more = self.words if plugins else ()
        path = [*(self.path if plugins else ()), TESTS, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        variables = {"PYTHONPATH": os.pathsep.join(map(str, path)), **variables}
        status, out, err = run_forked(program, *words, *more, cwd=self.folder, **variables)
        assert status in statuses, err
        return Said(out, err)

    def completed(self, program: str, *words: str) -> list[str]:
        """What the shell offers after the line `program words...`."""
        line = " ".join([program, *self.words, *words])
        name = program.upper().replace("-", "_")
        place = str(len(line.split()) - 1)
        shell = {f"_{name}_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": place}
        return self.call(program, plugins=True, **shell).out.split()


def install(site: Path, name: str, version: str, entry_points: dict[str, str]) -> None:
    """What a package manager would leave of a package's metadata."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "entry_points.txt").write_text("".join(f"[{g}]\n{entry}\n" for g, entry in entry_points.items()))


@pytest.fixture(scope="module", params=["file", "package"])
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp(f"plugins-{request.param}")
    site = folder / "site"
    copy = shutil.copytree(TESTS / "toy_plugins", site / "toy_zoo", ignore=shutil.ignore_patterns("__pycache__"))
    if request.param == "file":
        files = [*(str(copy / f"{name}.py") for name in TOYS), "tiny_world"]
        words = tuple(word for file in files for word in ("--plugin", file))
        yield Way(folder=folder, words=words, versions={"toy_gru": "toy_gru 0.3", "hold": "hold sha256:"})
    else:
        (copy / "__init__.py").touch()
        entries = {kind: f"{name} = toy_zoo.{name}" for name, kind in TOYS.items()}
        entries |= {"policies": "hold = toy_zoo.hold:POLICY", "worlds": "dots = tiny_world"}
        install(site, "toy-zoo", "1.4", {f"s2rm_data.{kind}": entry for kind, entry in entries.items()})
        yield Way(folder=folder, path=(site,), versions={"toy_gru": "toy-zoo 1.4", "hold": "toy-zoo 1.4"})


@pytest.fixture(scope="module")
def run(way: Way, store: Store) -> Path:
    """A smoke run of the toy model on the bouncing balls."""
    out = way.folder / "run"
    way.call("s2rm-train", "--store", str(store.path), "--task", "bballs", *SMOKE, "--out", str(out), "-q")
    return out


def test_plugins_are_listed_beside_the_built_in(way: Way) -> None:
    assert "toy_gru or tto" in " ".join(way.call("s2rm-train", "--help").out.split())
    listed = way.call("s2rm-train", "--list-models").out
    assert "Toy: one GRU on the sum of the encoded views." in listed and "hidden_size=64" in listed
    assert "Generate dots that walk over a torus." in way.call("s2rm-data", "--help").out
    options = " ".join(way.call("s2rm-train", "--help").out.split())
    assert "brief, laptop, paper or smoke" in options and "lines, mlflow or wandb, beside TensorBoard" in options
    assert "gif, hdf5, means, npz" in " ".join(way.call("s2rm-data", "export", "--help").out.split())
    shown = way.call("s2rm-data", "sc2", "--list").out
    assert "hold the position, whoever comes" in shown and "focus fire" in shown


def test_the_shell_completes_them(way: Way) -> None:
    assert way.completed("s2rm-train", "--model", "t") == ["plain,toy_gru", "plain,tto"]
    assert way.completed("s2rm-data", "sc2", "--policy", "h") == ["plain,hold"]
    assert way.completed("s2rm-data", "d") == ["plain,dots"]


def test_a_policy_is_rolled_out_and_named_in_the_store_with_its_version(way: Way) -> None:
    words = ["--scenario", "2s3z", *BATTLES, "--policy", "hold"]
    way.call("s2rm-data", "sc2", *words, "-o", "battles.zarr", "-q")
    group = Store(way.folder / "battles.zarr")["sc2/2s3z/train"]
    assert group.settings["policies"] == group.attributes["policies"] == ["hold"]
    assert list(group.attributes["plugins"]) == ["hold"]
    assert group.attributes["plugins"]["hold"].startswith(way.versions["hold"])
    living = group["action"][:] > 0
    assert living.any() and (group["action"][:][living] == 1).all()  # stop, and nothing else


def test_battles_of_a_policy_are_trained_on_where_it_is_missing(way: Way) -> None:
    words = ["--scenario", "2s3z", *BATTLES, "--val", "2", "--policy", "hold"]
    way.call("s2rm-data", "sc2", *words, "-o", "held.zarr", "-q")
    small = ["--preset", "smoke", "--steps", "1", "--set", "threads=1", "--set", "width=2", "--out", "held"]
    way.call("s2rm-train", "--store", "held.zarr", *small, "-q", plugins=False)


def test_a_store_made_without_a_plugin_does_not_mention_them(way: Way) -> None:
    words = ["--scenario", "2s3z", *BATTLES, "--policy", "focus", "-q"]
    way.call("s2rm-data", "sc2", *words, "-o", "with.zarr")
    way.call("s2rm-data", "sc2", *words, "-o", "without.zarr", plugins=False)
    stores = [way.folder / name for name in ("with.zarr", "without.zarr")]
    one, other = ({p.relative_to(s): p.read_bytes() for p in s.rglob("*") if p.is_file()} for s in stores)
    assert one == other and "plugins" not in Store(stores[0])["sc2/2s3z/train"].attributes


def test_a_model_is_trained_and_its_version_kept(way: Way, run: Path) -> None:
    assert json.loads((run / "environment.json").read_text())["plugins"] == {"toy_gru": way.versions["toy_gru"]}
    summary = json.loads((run / "summary.json").read_text())
    assert summary["model"] == "toy_gru" and summary["held_out"]["val"]["references"]


def test_a_model_is_evaluated_and_reported_under_its_title(way: Way, run: Path) -> None:
    way.call("s2rm-eval", "--run", str(run), "--quick", "-o", str(way.folder / "report"), "-q")
    assert "toy_gru" in (way.folder / "report/results.json").read_text()
    assert "Toy GRU" in (way.folder / "report/report.html").read_text()


def test_a_store_is_made_read_and_exported_in_a_place_that_a_plugin_brings(way: Way) -> None:
    words = ["bballs", "--balls", "3", "--train", "6", "--val", "4", "--test", "0", "--frames", "12", "-q", "-o"]
    way.call("s2rm-data", *words, "flat://balls")
    way.call("s2rm-data", *words, "balls.zarr", plugins=False)
    way.call("s2rm-data", "verify", "flat://balls")
    digests = [json.loads(way.call("s2rm-data", "info", s, "--json").out) for s in ("flat://balls", "balls.zarr")]
    assert digests[0]["groups"] == digests[1]["groups"] and (way.folder / "balls.flat").is_dir()
    for form in ("means", "hdf5"):
        way.call("s2rm-data", "export", "flat://balls", "bballs/val", "-f", form, "-o", "exports", "-q")
    table = (way.folder / "exports/bballs-val.csv").read_text().split()
    assert len(table) == 4 * len(Store(way.folder / "balls.zarr")["bballs/val"].arrays)
    said = way.call("s2rm-data", "info", "flat://balls", plugins=False, statuses=(2,)).err
    assert "flat://balls: addresses of stores begin with s3://, gs://, az://" in said


def test_a_run_takes_preset_codec_and_logger_of_plugins(way: Way, store: Store) -> None:
    words = ["--preset", "brief", "--set", "threads=1", "--set", "codec=linear", "--log", "lines", "--out", "brief"]
    way.call("s2rm-train", "--store", str(store.path), "--task", "bballs", "--model", "lstm", *words, "-q")
    plugins = json.loads((way.folder / "brief/environment.json").read_text())["plugins"]
    assert list(plugins) == ["linear", "brief"]
    config = json.loads((way.folder / "brief/config.json").read_text())["config"]
    assert (config["steps"], config["window"], config["model_fields"]["codec"]) == (2, 6, "linear")
    told = [json.loads(line) for line in (way.folder / "brief/lines.txt").read_text().splitlines()]
    summary = json.loads((way.folder / "brief/summary.json").read_text())
    assert told[0] == {"name": "brief", "model": "lstm", "step": 0}
    assert summary["best_validation_loss"] in [record.get("validation/loss") for record in told]
    assert summary["held_out"]["val"]["loss"] in [record.get("val/loss") for record in told]


def test_a_run_of_a_plugin_that_is_missing_says_what_to_do(way: Way, run: Path) -> None:
    asked = (("s2rm-train", ["--resume", "--out", str(run)], (2,)), ("s2rm-eval", ["--run", str(run)], (2, 3)))
    for program, words, statuses in asked:
        said = way.call(program, *words, plugins=False, statuses=statuses).err
        assert "no model 'toy_gru'" in said and "install its package or name its module with --plugin" in said


@pytest.mark.parametrize("failure", ["import no_such_package", "def (", "raise SystemExit(3)", "1 / 0"])
def test_a_file_that_fails_is_named_with_its_reason(failure: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(f"{failure}\n")
    said = Way(folder=tmp_path).call("s2rm-data", "info", "x.zarr", "--plugin", "broken.py", statuses=(2,)).err
    assert said.startswith("s2rm-data: the plug-in broken.py cannot be imported: ") and said.count("\n") == 1
    assert Way(folder=tmp_path, words=("--plugin", "broken.py")).completed("s2rm-data", "v") == [
        "plain,verify",
        "plain,view",
    ]


def test_an_installed_package_that_fails_spoils_only_its_own_entries(tmp_path: Path) -> None:
    (tmp_path / "sick.py").write_text("raise RuntimeError('sick')\n")
    kinds = ("models", "policies", "worlds", "places", "loggers", "export_formats", "codecs", "presets")
    install(tmp_path, "sick-zoo", "0.1", {f"s2rm_data.{kind}": "sick = sick" for kind in kinds})
    way = Way(folder=tmp_path, path=(tmp_path,))
    reason = "of the package sick-zoo 0.1 cannot be loaded (sick): RuntimeError: sick; repair or uninstall the package"

    assert "A plug-in that cannot be loaded." in way.call("s2rm-data", "--help").out
    assert f"the world 'sick' {reason}" in way.call("s2rm-data", "sick", "--train", "3", statuses=(2,)).err
    listed = way.call("s2rm-data", "sc2", "--list").out
    assert f"the policy 'sick' {reason}" in listed and "focus fire" in listed
    battle = ["--scenario", "3s5z", "--policy", "sick"]
    assert f"the policy 'sick' {reason}" in way.call("s2rm-data", "sc2", *battle, statuses=(2,)).err
    assert f"the place 'sick' {reason}" in way.call("s2rm-data", "info", "sick://x", statuses=(2,)).err
    assert "begin with s3://, gs://, az://" in way.call("s2rm-data", "info", "ftp://x/y", statuses=(2,)).err
    models = way.call("s2rm-train", "--list-models")
    assert f"the model 'sick' {reason}" in models.err and "s2gru" in models.out


def test_a_model_that_fails_is_named_when_it_is_asked_for(store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty.py").touch()
    install(tmp_path, "empty-zoo", "0.1", {"s2rm_data.models": "empty = empty"})
    words = ["--store", str(store.path), "--task", "bballs", "--preset", "smoke", "--model", "empty"]
    said = Way(folder=tmp_path, path=(tmp_path,)).call("s2rm-train", *words, statuses=(2,)).err
    assert "the model 'empty' of the package empty-zoo 0.1 cannot be loaded (empty): AttributeError" in said
