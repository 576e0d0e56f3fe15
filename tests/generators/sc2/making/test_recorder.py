"""The recorder: what a user's own agents do in a live environment is stored as a generated split would be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import play
from s2rm_data.generators.sc2.making.recorder import Recorder
from s2rm_data.starcraft.api.client.battle import GameBattle
from s2rm_data.starcraft.api.client.field import armies
from s2rm_data.starcraft.api.client.process import GameProcess
from s2rm_data.starcraft.api.server.install import install
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.store import Store, verify

SEEDS = [5, 6, 7]


class LiveEnv:
    """SMAC's environment as far as the recorder knows it, over a real connection to the served engine."""

    def __init__(self, game: GameProcess, map_name: str) -> None:
        self._game, self.map_name, self.episode_limit = game, map_name, parse(map_name).limit_steps
        self._episodes, self._episode_steps, self.breaks_at = 0, 0, -1
        self._begun, self.seeds_from = -1, 100  # an environment with another seed in every episode
        self.closed = False

    def reset(self) -> str:
        self._battle = GameBattle(self._game, parse(self.map_name), SEEDS[self._episodes % len(SEEDS)])
        self._episodes += 1
        self._begun += 1
        self._episode_steps = 0
        ours, theirs = armies(self._battle._observation)
        by_tag = {unit.tag: unit for unit in (*ours, *theirs)}
        tags, first = self._battle._slots.tags, self._battle._slots.agents
        self.agents = {k: by_tag[tag] for k, tag in enumerate(tags[:first])}
        self.enemies = {k: by_tag[tag] for k, tag in enumerate(tags[first:])}
        self.n_actions = self._battle.available().shape[2]
        return "observation"

    def get_avail_actions(self) -> list[list[int]]:
        return self._battle.available()[0].astype(int).tolist()

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        if self._episode_steps == self.breaks_at:
            return 0, True, {}
        self._battle.step(np.array([actions]))
        self._episode_steps += 1
        units = {unit.tag: unit for army in armies(self._battle._observation) for unit in army}
        for side in (self.agents, self.enemies):
            for k, unit in side.items():
                if unit.tag in units:
                    side[k] = units[unit.tag]
                else:
                    unit.health = 0
        return float(self._battle.reward[0]), bool(self._battle.done[0]), {"battle_won": self._battle.outcome[0] == 1}

    def seed(self) -> int | None:
        return self.seeds_from + self._begun

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GameProcess]:
    folder = tmp_path_factory.mktemp("game") / "sc2"
    install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SC2PATH", str(folder))
        running = GameProcess()
        yield running
        running.close()
    assert os.environ.get("SC2PATH") != str(folder)


def embedded(scenario: str, steps: int = 0) -> dict[str, Any]:
    """To the map's limit, unless another number of steps is given."""
    config = Sc2Config(scenario=scenario, policy="smac", steps=steps or parse(scenario).limit_steps)
    return play(config, np.array(SEEDS, dtype=np.uint64))


def record(recorder: Recorder, want: dict[str, Any], episodes: int) -> None:
    """Play the actions that the embedded engine's policies chose for the same seeds."""
    for episode in range(episodes):
        assert recorder.reset() == "observation"
        done, step = False, 0
        while not done:
            _, done, _ = recorder.step(list(want["action"][episode % len(SEEDS), step]))
            step += 1


@pytest.mark.parametrize("scenario", ["3m", "2s3z"])
def test_the_store_holds_what_the_same_battle_gives_when_generated(
    scenario: str, game: GameProcess, tmp_path: Path
) -> None:
    env, want = LiveEnv(game, scenario), embedded(scenario)
    with Recorder(env, tmp_path / "data.zarr", episodes=3, policy="mine", split="val") as recorder:
        record(recorder, want, 3)
        assert recorder.full
        assert recorder.recorded == 3
        assert recorder.map_name == scenario  # everything else is the environment's
    assert env.closed
    group = Store(tmp_path / "data.zarr")[f"sc2/{scenario}/val"]
    for name in want:
        if name not in ("seed", "policy"):
            np.testing.assert_array_equal(group[name][:], want[name], err_msg=name)
    assert group["categories"][:].any()
    assert group.attributes["policies"] == ["mine"]
    assert group.attributes["settings"]["backend"] == "recorded"
    assert not verify(tmp_path / "data.zarr").problems


def test_an_episode_that_the_game_breaks_off_is_not_recorded(game: GameProcess, tmp_path: Path) -> None:
    env, want = LiveEnv(game, "3m"), embedded("3m")
    with Recorder(env, tmp_path / "data.zarr", episodes=2, policy="mine") as recorder:
        env.breaks_at = 4
        record(recorder, want, 1)
        assert recorder.recorded == 0
        env.breaks_at, env._episodes = -1, 0
        record(recorder, want, 2)
        assert recorder.full
        record(recorder, want, 1)  # plays on, unrecorded
    group = Store(tmp_path / "data.zarr")["sc2/3m/train"]
    assert group["length"][:].tolist() == want["length"][:2].tolist()
    assert group["episode_number"][:].tolist() == [1, 2]  # episode 0 broke off
    assert group["seed"][:].tolist() == [101, 102]
    assert group["action"].shape[1] == parse("3m").limit_steps


def test_longer_episodes_are_cut_and_said_to_be_running(game: GameProcess, tmp_path: Path) -> None:
    whole, want = embedded("3m"), embedded("3m", steps=5)
    with Recorder(LiveEnv(game, "3m"), tmp_path / "data.zarr", episodes=1, policy="mine", steps=5) as recorder:
        record(recorder, whole, 1)
    group = Store(tmp_path / "data.zarr")["sc2/3m/train"]
    assert (group["length"][0], group["outcome"][0]) == (5, 0)
    np.testing.assert_array_equal(group["unit_health"][:], want["unit_health"][:1])


def test_a_recording_left_early_goes_on_where_it_was(game: GameProcess, tmp_path: Path) -> None:
    want = embedded("3m")
    for episodes in (17, 3):
        env = LiveEnv(game, "3m")
        with Recorder(env, tmp_path / "data.zarr", episodes=18, policy="mine") as recorder:
            record(recorder, want, episodes)
            done = recorder.full
    assert done
    group = Store(tmp_path / "data.zarr")["sc2/3m/train"]
    assert group["length"][:].tolist() == [*np.tile(want["length"], 6)[:16], *want["length"][:2]]


def test_other_settings_or_other_armies_are_refused(game: GameProcess, tmp_path: Path) -> None:
    env = LiveEnv(game, "3m")
    with Recorder(env, tmp_path / "data.zarr", episodes=1, policy="mine") as recorder:
        record(recorder, embedded("3m"), 1)
    with pytest.raises(ConflictError, match="other settings"):
        Recorder(env, tmp_path / "data.zarr", episodes=1, policy="another")
    with pytest.raises(UsageError, match="episodes is 0"):
        Recorder(env, tmp_path / "other.zarr", episodes=0, policy="mine")
    with (
        Recorder(env, tmp_path / "third.zarr", episodes=1, policy="mine", scenario="2s3z") as recorder,
        pytest.raises(UsageError, match=r"3 agents and 3 enemies, scenario '2s3z' has 5 and 5"),
    ):
        recorder.reset()
