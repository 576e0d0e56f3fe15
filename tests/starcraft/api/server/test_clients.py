"""Clients as their users install them, unmodified, started in processes of their own: python-sc2 and SMAC.

The tests of SMAC run where it is installed; it is on GitHub only: https://github.com/oxwhirl/smac.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import complete

from s2rm_data.starcraft.api.server.install import install
from s2rm_data.starcraft.generated import RACES
from s2rm_data.store import Store


def has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


needs_smac = pytest.mark.skipif(
    not has("smac.env"),
    reason="SMAC is not installed (pip install --no-deps git+https://github.com/oxwhirl/smac); "
    "its environment was not tried against the server",
)

needs_smacv2 = pytest.mark.skipif(
    not has("smacv2.env"),
    reason="SMACv2 is not installed (pip install --no-deps git+https://github.com/oxwhirl/smacv2); "
    "its environment was not tried against the server",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clients") / "sc2"
    install(path, ("4s_vs_2z",))
    return path


def run(program: str, folder: Path, *arguments: str) -> Any:
    """What a client's program printed last, as JSON."""
    environment = {**os.environ, "SC2PATH": str(folder)}
    done = complete([sys.executable, "-c", program, *arguments], env=environment, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


PYTHON_SC2 = """
import json, sys
from loguru import logger
from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.ids.unit_typeid import UnitTypeId
from sc2.data import Difficulty, Race
from sc2.main import run_game
from sc2.player import Bot, Computer
logger.remove()

class Attacker(BotAI):
    async def on_start(self):
        self.seen = {"ours": len(self.units), "theirs": len(self.enemy_units), "deaths": 0,
                     "stalkers": len(self.units(UnitTypeId.STALKER))}
        abilities = await self.get_available_abilities(self.units)
        self.seen["abilities"] = sorted({ability.value for ability in abilities[0]})
        self.seen["way"] = await self.client.query_pathing(self.units.first, self.enemy_units.first.position)
        self.seen["walkable"] = self.in_pathing_grid(self.units.first)
        cost = self.calculate_cost(self.units.first.type_id)
        self.seen["costs"] = [cost.minerals, cost.vespene, self.supply_used]
    async def on_unit_destroyed(self, tag):
        self.seen["deaths"] += 1
    async def on_step(self, iteration):
        self.seen["steps"] = iteration + 1
        if self.enemy_units:
            target = self.enemy_units.closest_to(self.units.center)
            for unit in self.units:
                unit.attack(target) if iteration > 1 else unit.patrol(target.position)
            patrols = sum(unit.orders[0].ability.exact_id.value == 17 for unit in self.units if unit.orders)
            self.seen["patrols"] = self.seen.get("patrols", 0) + patrols

class Waiter(Attacker):
    async def on_step(self, iteration):
        self.seen["steps"] = iteration + 1

results = []
for bot, name in ((Attacker(), "4s_vs_2z_battle"), (Waiter(), "5m_vs_6m_battle")):
    result = run_game(maps.get(name), [Bot(Race.Terran, bot), Computer(Race.Terran, Difficulty.Easy)],
                      realtime=False, random_seed=3, save_replay_as=sys.argv[1])
    results.append({"result": result.name, **bot.seen})
print(json.dumps(results))
"""


def test_python_sc2_wins_loses_and_saves_replays(folder: Path, tmp_path: Path) -> None:
    won, lost = run(PYTHON_SC2, folder, str(tmp_path / "replay"))
    assert (won["result"], lost["result"]) == ("Victory", "Defeat")
    assert (won["ours"], won["theirs"]) == (4, 2)
    assert (lost["ours"], lost["theirs"]) == (5, 6)
    assert (won["stalkers"], lost["stalkers"]) == (4, 0)
    # the last one comes with the result, and python-sc2 passes on the result alone
    assert won["deaths"] >= 1 and lost["deaths"] >= 2
    assert won["abilities"] == [1, 4, 16, 17, 23]
    assert won["way"] == pytest.approx(14, abs=4)
    assert won["walkable"] and won["costs"] == [125, 50, 8] and won["patrols"] > 3
    assert lost["costs"] == [50, 0, 5]
    assert min(won["steps"], lost["steps"]) > 20
    assert json.loads((tmp_path / "replay").read_bytes())["map"] == "5m_vs_6m_battle"


SMAC = """
import json, sys
import numpy as np
import psutil
from absl import flags
flags.FLAGS(["test"])
from smac.env import StarCraft2Env
from smac.env.starcraft2.maps.smac_maps import SMACMap, get_smac_map_registry
get_smac_map_registry()["4s_vs_2z"] = {
    "n_agents": 4, "n_enemies": 2, "limit": 120, "a_race": "P", "b_race": "P", "unit_type_bits": 0,
    "map_type": "stalkers"}
own_map = type("4s_vs_2z", (SMACMap,), {"filename": "4s_vs_2z"})
name, episodes, heuristic = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "heuristic"
env = StarCraft2Env(map_name=name, seed=3, heuristic_ai=heuristic, heuristic_rest=heuristic)
rng, returns, lengths, wins, sizes = np.random.default_rng(0), [], [], [], []
for _ in range(episodes):
    env.reset()
    total, steps, done = 0.0, 0, False
    while not done:
        mask = env.get_avail_actions()
        reward, done, info = env.step([int(rng.choice(np.nonzero(row)[0])) for row in mask])
        env.get_obs(), env.get_state()
        total, steps = total + reward, steps + 1
    returns.append(total); lengths.append(steps); wins.append(bool(info["battle_won"]))
    server = psutil.Process(env._sc2_proc.pid)
    sizes.append([server.memory_info().rss, server.num_fds(), psutil.Process().num_fds()])
env.save_replay()
stats = env.get_stats()
shape = [len(env.get_obs()[0]), len(env.get_state())]
env.close()
print(json.dumps({"returns": returns, "lengths": lengths, "wins": wins, "sizes": sizes, "shape": shape,
                  "restarts": stats["restarts"], "left": psutil.pid_exists(server.pid)}))
"""


@needs_smac
@pytest.mark.parametrize("name", ["3s5z", "2s3z", "MMM2", "1c3s5z", "bane_vs_bane"])
def test_smac_plays_whole_episodes(name: str, folder: Path) -> None:
    seen = run(SMAC, folder, name, "3", "random")
    assert seen["restarts"] == 0
    assert not seen["left"]
    assert all(0 < total < 25 for total in seen["returns"])
    assert all(5 < length <= 200 for length in seen["lengths"])


@needs_smac
def test_smac_recognises_wins_and_saves_replays(folder: Path) -> None:
    """On a scenario that SMAC does not know, registered as docs/sc2_api.md shows; four against two cannot be lost."""
    won = run(SMAC, folder, "4s_vs_2z", "3", "heuristic")
    assert won["wins"] == [True] * 3
    assert won["returns"] == pytest.approx([20.0] * 3, abs=1.0)
    lost = run(SMAC, folder, "3m", "3", "random")
    assert lost["wins"] == [False] * 3
    assert max(lost["returns"]) < 12
    assert list((folder / "Replays").glob("4s_vs_2z_*.SC2Replay"))


@needs_smac
def test_ten_episodes_of_smac_leave_memory_and_open_files_as_they_were(folder: Path) -> None:
    sizes = run(SMAC, folder, "3s5z", "10", "random")["sizes"]
    assert min(size[0] for size in sizes[-4:]) <= max(size[0] for size in sizes[:4]) + (16 << 20)
    assert sizes[-1][1:] == sizes[1][1:]


RECORD = """
import json, sys
from pathlib import Path
import numpy as np
from absl import flags
flags.FLAGS(["test"])
from smac.env import StarCraft2Env
from s2rm_data.generators.sc2.making.recorder import Recorder
rng, returns = np.random.default_rng(0), []
with Recorder(StarCraft2Env(map_name="3s5z", seed=3), Path(sys.argv[1]), episodes=2, policy="random") as env:
    while not env.full:
        env.reset()
        done, total = False, 0.0
        while not done:
            reward, done, info = env.step([int(rng.choice(np.nonzero(row)[0])) for row in env.get_avail_actions()])
            total += reward
        returns.append(total)
print(json.dumps(returns))
"""


@needs_smac
def test_a_live_smac_environment_is_recorded(folder: Path, tmp_path: Path) -> None:
    returns = run(RECORD, folder, str(tmp_path / "data.zarr"))
    group = Store(tmp_path / "data.zarr")["sc2/3s5z/train"]
    assert group["reward"][:].sum(axis=1) == pytest.approx(returns, rel=1e-5)
    assert group["unit_alive"][:][:, 0].all()
    assert group["available"][:][:, 0].any(axis=2).all()
    assert group["outcome"][:].tolist() == [2, 2]


SMACV2 = """
import json, sys
import numpy as np
from absl import flags
flags.FLAGS(["test"])
from smacv2.env.starcraft2.wrapper import StarCraftCapabilityEnvWrapper
race, agents, enemies, conic, types, weights, never_alone = json.loads(sys.argv[1])
teams = {"dist_type": "weighted_teams", "unit_types": types, "weights": weights, "observe": True}
if never_alone:
    teams["exception_unit_types"] = never_alone
config = {"n_units": agents, "n_enemies": enemies, "team_gen": teams, "start_positions":
          {"dist_type": "surrounded_and_reflect", "p": 0.5, "map_x": 32, "map_y": 32}}
env = StarCraftCapabilityEnvWrapper(capability_config=config, map_name=f"10gen_{race}", conic_fov=conic, seed=3,
                                    use_unit_ranges=True, min_attack_range=2, obs_own_pos=True)
rng, lengths, kinds = np.random.default_rng(0), [], []
for _ in range(2):
    env.reset()
    kinds.append(sorted(unit.unit_type - env.env._min_unit_type for unit in env.env.agents.values()))
    done, steps = False, 0
    while not done:
        assert np.isfinite(env.get_obs()).all() and np.isfinite(env.get_state()).all()
        masks = np.array(env.get_avail_actions())
        _, done, info = env.step([int(rng.choice(np.nonzero(mask)[0])) for mask in masks])
        steps += 1
    lengths.append(steps)
stats = env.get_stats()
env.save_replay()
env.close()
print(json.dumps({"lengths": lengths, "kinds": kinds, "games": stats["battles_game"], "restarts": stats["restarts"]}))
"""


@needs_smacv2
@pytest.mark.parametrize(("race", "agents", "enemies", "conic"), [
    ("protoss", 5, 5, False), ("terran", 10, 11, True), ("zerg", 10, 10, False), ("zerg", 5, 5, True),
])  # fmt: skip
def test_smacv2_plays_generated_battles(race: str, agents: int, enemies: int, conic: bool, folder: Path) -> None:
    drawn = RACES[race]
    setup = [race, agents, enemies, conic, [*drawn.weights], [*drawn.weights.values()], [*drawn.never_alone]]
    played = run(SMACV2, folder, json.dumps(setup))
    assert (played["games"], played["restarts"]) == (2, 0)
    assert all(10 < steps < 200 for steps in played["lengths"])
    order = [
        "baneling",
        "colossus",
        "hydralisk",
        "marauder",
        "marine",
        "medivac",
        "stalker",
        "zealot",
        "zergling",
    ]  # smacv2's ids
    assert {order[kind] for kinds in played["kinds"] for kind in kinds} <= set(drawn.weights)
    assert all(len(kinds) == agents for kinds in played["kinds"])
