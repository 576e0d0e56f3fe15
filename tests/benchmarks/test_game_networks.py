"""The bench's networks: files of pymarl's kind are read, play greedily, are recorded; what does not fit is refused."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from replay import play_recorded, sightings

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.features import Features
from s2rm_data.starcraft.formation import formation
from s2rm_data.starcraft.scenarios import parse

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module("game_networks")


def saved(folder: Path, inputs: int, actions: int, prefix: str = "", **more: Any) -> Path:
    torch.manual_seed(0)
    layers = {"fc1": torch.nn.Linear(inputs, 8), "rnn": torch.nn.GRUCell(8, 8), "fc2": torch.nn.Linear(8, actions)}
    weights = {
        f"{prefix}{name}.{key}": value for name, layer in layers.items() for key, value in layer.state_dict().items()
    }
    torch.save(weights | more, folder / "agent.th")
    return folder / "agent.th"


@pytest.mark.parametrize(("inputs", "prefix", "family"), [(42, "", "pymarl"), (33, "agent.", "sac-qmix")])
def test_a_network_plays_whole_battles(
    tmp_path: Path, bench: ModuleType, inputs: int, prefix: str, family: str
) -> None:
    """3m observes 30 features; with the last of 9 actions and 3 agent numbers 42, with the numbers alone 33."""
    agent = bench.RecurrentAgent(saved(tmp_path, inputs, 9, prefix))
    result = bench.play_network(agent, "3m", episodes=2)
    assert agent.family == family
    assert set(result) == {"won", "length", "agents dead", "enemies dead"} and 0 < result["length"] <= 60


def test_the_best_available_action_is_chosen_on_observation_last_action_and_number(
    tmp_path: Path, bench: ModuleType
) -> None:
    """Two steps beside the same network written out agent by agent."""
    path = saved(tmp_path, 42, 9)
    weights = {key: 4 * value for key, value in torch.load(path, weights_only=True).items()}  # so that choices vary
    torch.save(weights, path)
    rnn = torch.nn.GRUCell(8, 8)
    rnn.load_state_dict({key.removeprefix("rnn."): value for key, value in weights.items() if key.startswith("rnn.")})
    agent = bench.RecurrentAgent(path)
    agent.begin(16, Features(formation(parse("3m")).unit_type, 3), 9)
    rng = np.random.default_rng(0)
    hidden, last = {}, {}
    for _ in range(2):
        observation, available = rng.random((16, 3, 30)).astype(np.float32), rng.random((16, 3, 9)) < 0.5
        available[..., 1] = True
        chosen = agent.act(observation, available)
        for b in range(16):
            for n in range(3):
                parts = (observation[b, n], last.get((b, n), np.zeros(9)), np.eye(3)[n])
                inputs = torch.tensor(np.concatenate(parts), dtype=torch.float32)
                with torch.no_grad():
                    first = torch.relu(weights["fc1.weight"] @ inputs + weights["fc1.bias"])
                    hidden[b, n] = rnn(first[None], hidden.get((b, n), torch.zeros(1, 8)))
                    values = (weights["fc2.weight"] @ hidden[b, n][0] + weights["fc2.bias"]).numpy()
                assert chosen[b, n] == max(np.flatnonzero(available[b, n]), key=values.__getitem__)
                last[b, n] = np.eye(9)[chosen[b, n]]
    assert len(np.unique(chosen)) > 3


def test_a_recorded_network_can_be_given_its_orders_again(tmp_path: Path, bench: ModuleType) -> None:
    """Agents who are told the same start the same way, whatever is drawn for the enemies."""
    agent = bench.RecurrentAgent(saved(tmp_path, 42, 9))
    played, played_again = bench.record(agent, "3m", 3), bench.record(agent, "3m", 3)
    assert played == played_again
    for battle in played:
        dead = {unit for _, unit, _ in battle.deaths}
        assert {0, 1, 2} <= dead or {3, 4, 5} <= dead or battle.steps == 60
        assert all(loop <= 8 * battle.steps for loop, _, _ in battle.deaths)
    seen = sightings(played, play_recorded(played, copies=2), enemies=False)
    assert seen.median_error(seen.loop <= 24) == pytest.approx(0.0, abs=1e-5)


def test_deaths_are_compared_with_a_recording_by_loop(
    tmp_path: Path, bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """A network that stands still kills nobody, whichever way its enemies are numbered."""
    path = saved(tmp_path, 42, 9)
    weights = {key: 0 * value for key, value in torch.load(path, weights_only=True).items()}
    torch.save(weights | {"fc2.bias": torch.tensor([0.0, 1, 0, 0, 0, 0, 0, 0, 0])}, path)
    judge = importlib.import_module("real_battles")
    judge.print_curves([path], judge.RECORDINGS, "3m", 2)
    lines = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in capsys.readouterr().out.splitlines()[2:]}
    assert [float(cell) for cell in lines["enemies, engine"][:-1]] == [0.0] * 9
    assert float(lines["enemies, game"][8]) == 3.0 and float(lines["agents, engine"][8]) == 3.0
    assert lines["enemies, engine"][-1].strip() == "0.88 of 3"  # by loop 200: 82 of 93 recorded enemies
    with pytest.raises(UsageError, match="MMM2_second"):
        judge.print_curves([path], judge.RECORDINGS, "4m", 2)


def test_a_network_of_another_map_is_refused(tmp_path: Path, bench: ModuleType) -> None:
    agent = bench.RecurrentAgent(saved(tmp_path, 42, 9))
    with pytest.raises(UsageError, match="check --map"):
        bench.play_network(agent, "8m", episodes=1)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, bench: ModuleType) -> None:
    with pytest.raises(UsageError, match="graph_conv"):
        bench.RecurrentAgent(saved(tmp_path, 42, 9, **{"graph_conv.weight": torch.zeros(8, 8)}))
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other.th")
    with pytest.raises(UsageError, match="not a recurrent agent"):
        bench.RecurrentAgent(tmp_path / "other.th")
