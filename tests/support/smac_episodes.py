"""Episodes of SMAC's own class over the served API, to compare the drop-in class with.

    python tests/support/smac_episodes.py

plays them anew and keeps what they gave; this needs SMAC (https://github.com/oxwhirl/smac) and has to be repeated
whenever the engine's rules change. Actions are drawn from SMAC's masks. Masks, rewards, ends and counts are kept of
every step; observations and states of some steps, rounded to 1/16384. SMAC's class is its own and unmodified; it talks
to the server in the same process, without the socket, which the tests of the served API cover.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parents[1] / "starcraft" / "envs" / "smac_episodes.npz"
SCALE = 16384
SEED = 3  # of the environments
OPTIONS: dict[str, dict[str, Any]] = {
    "least": {"obs_all_health": False, "obs_own_health": False, "state_last_action": False},
    "own health": {"obs_all_health": False, "obs_last_action": True, "state_timestep_number": True},
    "terrain": {"obs_pathing_grid": True, "obs_terrain_height": True, "obs_timestep_number": True},
    "observations": {"obs_instead_of_state": True, "obs_last_action": True, "obs_timestep_number": True},
    "negative": {"reward_only_positive": False, "reward_death_value": 7, "reward_negative_scale": 0.3,
                 "reward_defeat": -20, "reward_win": 100, "reward_scale_rate": 10},
    "sparse": {"reward_sparse": True, "continuing_episode": True},
    "unscaled": {"reward_scale": False, "reward_only_positive": False},
    "loops": {"step_mul": 5, "move_amount": 3},
    "part of a unit": {"step_mul": 11, "move_amount": 1.3},
    "heuristic": {"heuristic_ai": True},
    "restricted": {"heuristic_ai": True, "heuristic_rest": True},
}  # fmt: skip
MAPS = (
    "3m", "8m", "25m", "5m_vs_6m", "8m_vs_9m", "10m_vs_11m", "27m_vs_30m", "MMM", "MMM2", "2s3z", "3s5z",
    "3s5z_vs_3s6z", "3s_vs_3z", "3s_vs_4z", "3s_vs_5z", "1c3s5z", "2m_vs_1z", "corridor", "6h_vs_8z", "2s_vs_1sc",
    "so_many_baneling", "bane_vs_bane", "2c_vs_64zg",
)  # fmt: skip
LARGE = {"25m", "27m_vs_30m", "bane_vs_bane", "2c_vs_64zg", "corridor", "so_many_baneling"}


def cases() -> Iterator[tuple[str, str, dict[str, Any], int, int]]:
    """Name, map, options, episodes, observations kept of each."""
    for name in MAPS:
        yield name, name, {}, 2, 1 if name in LARGE else 3
    for name, options in OPTIONS.items():
        for other in ("MMM2", "3s5z") if "heuristic" in str(options) else ("2s3z",):
            yield f"{other}, {name}", other, options, 2, 3
    yield "3m, sparse", "3m", {"reward_sparse": True, "heuristic_ai": True}, 3, 1


def play(env: Any, episodes: int, kept: int, seed: int = 5) -> dict[str, np.ndarray]:
    """Whole episodes; `kept` observations and states of each, spread over its first steps."""
    random = np.random.default_rng(seed)
    seen: dict[str, list[Any]] = {name: [] for name in ("obs", "state", "mask", "reward", "end", "action")}
    for _ in range(episodes):
        obs, state = env.reset()
        step, done = 0, False
        while True:
            if step % 12 == 0 and step < 12 * kept:
                seen["obs"].append(np.concatenate(obs))
                seen["state"].append(state)
            if done:
                break
            mask = np.array(env.get_avail_actions())
            actions = [int(random.choice(np.flatnonzero(row))) for row in mask]
            reward, done, info = env.step(actions)
            obs, state = env.get_obs(), env.get_state()
            seen["mask"].append(np.packbits(mask.astype(bool).ravel()))
            # SMAC's script goes on choosing for the dead, from where they were last seen: that has no effect
            seen["action"].append([0 if row[0] else action for row, action in zip(mask, actions, strict=True)])
            seen["reward"].append(reward)
            end = info["battle_won"], info["dead_allies"], info["dead_enemies"], info.get("episode_limit", False), done
            seen["end"].append([int(value) for value in end])
            step += 1
        seen["obs"].append(np.concatenate(obs))
        seen["state"].append(state)
    described = env.get_env_info() | {"stats": env.get_stats(), "max_reward": env.max_reward}
    values = {name: np.array(rows) for name, rows in seen.items()}
    for name in ("obs", "state"):
        values[name] = np.rint(values[name].astype(np.float64) * SCALE).astype(np.int32)
    return values | {"described": np.array(json.dumps(described, sort_keys=True))}


class Controller:
    """pysc2's controller, as far as SMAC uses it, on a server in this process."""

    def __init__(self) -> None:
        from s2rm_data.starcraft.api.server.requests import Client

        self._client = Client()

    def ask(self, **request: Any) -> Any:
        from s2clientprotocol import sc2api_pb2 as api

        response = api.Response.FromString(self._client.answer(api.Request(**request).SerializeToString()))
        assert not response.error, response.error
        return getattr(response, str(response.WhichOneof("response")))

    def create_game(self, request: Any) -> Any:
        return self.ask(create_game=request)

    def join_game(self, request: Any) -> Any:
        return self.ask(join_game=request)

    def actions(self, request: Any) -> Any:
        return self.ask(action=request)

    def game_info(self) -> Any:
        return self.ask(game_info={})

    def observe(self) -> Any:
        return self.ask(observation={})

    def step(self, count: int) -> Any:
        return self.ask(step={"count": count})

    def debug(self, commands: Any) -> Any:
        return self.ask(debug={"debug": commands if isinstance(commands, list) else [commands]})


class RunConfig:
    """pysc2's way to start the game; also the game's process."""

    def start(self, **options: Any) -> RunConfig:
        self.controller = Controller()
        return self

    def map_data(self, path: str) -> bytes:
        return b""

    def close(self) -> None:
        pass


def hide_maps_of(package: str) -> None:
    """SMAC and SMACv2 both bring their maps, and pysc2 refuses two of one name: it is to know those of the other."""
    from pysc2.maps import lib

    def get_maps() -> dict[str, Any]:
        every = (kind for kind in lib.Map.all_subclasses() if kind.filename or kind.battle_net)
        return {kind.__name__: kind for kind in every if kind.__module__.partition(".")[0] != package}

    lib.get_maps = get_maps


def smac_env(name: str, options: dict[str, Any]) -> Any:
    """SMAC's own class, playing the engine through the server."""
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["smac"])
    from smac.env.starcraft2 import starcraft2

    starcraft2.run_configs.get = lambda version=None: RunConfig()
    hide_maps_of("smacv2")
    return starcraft2.StarCraft2Env(map_name=name, seed=SEED, **options)


def record(path: Path) -> None:
    arrays = {}
    for case, name, options, episodes, kept in cases():
        played = play(smac_env(name, options), episodes, kept)
        arrays |= {f"{case}/{key}": values for key, values in played.items()}
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    record(FILE)
