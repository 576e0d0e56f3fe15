"""Steps per second through StarCraft II's API against the embedded engine, and where the time goes.

    python benchmarks/sc2_api.py [--scenario 3s5z] [--seconds 5] [--json]

A step is SMAC's: orders, eight loops, an observation; three round trips through the API. CPU times are those of the two
processes, so that they hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from s2clientprotocol import sc2api_pb2 as api

from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.client.battle import GameBattle
from s2rm_data.starcraft.api.client.process import GameProcess
from s2rm_data.starcraft.api.server.install import install
from s2rm_data.starcraft.api.server.requests import Client
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.rollout import rollout

STOP_ALL = 1  # SMAC's action `stop`: every agent sends an order in every step


def rate(step: Callable[[], int], seconds: float) -> dict[str, float]:
    """Steps per second by the clock, and CPU milliseconds per step of this process; `step` returns how many it made."""
    step()
    count, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        count += step()
    spent = time.process_time() - cpu
    return {"steps_per_s": count / (time.perf_counter() - wall), "cpu_ms": 1e3 * spent / count}


def engine_steps(name: str, battles: int) -> Callable[[], int]:
    scenario = scenarios.parse(name)
    state: dict[str, Any] = {}

    def step() -> int:
        if "engine" not in state or state["engine"].done.all():
            state["engine"] = Engine(scenario, np.arange(battles, dtype=np.uint64))
        engine = state["engine"]
        engine.snapshot(), engine.available(), engine.orders()
        engine.step(np.full((battles, scenario.agent_count), STOP_ALL))
        return battles

    return step


class Requests:
    """The requests of one SMAC step, as bytes, for a game that a client is in."""

    def __init__(self, name: str, send: Callable[[bytes], bytes]) -> None:
        self._send = send
        create = api.RequestCreateGame(local_map=api.LocalMap(map_path=f"{name}.SC2Map"), random_seed=1)
        create.player_setup.add(type=api.Participant)
        self.ask(create_game=create)
        self.ask(join_game=api.RequestJoinGame(race=1, options=api.InterfaceOptions(raw=True)))
        self.seconds = {"action": 0.0, "step": 0.0, "observation": 0.0}
        self.count = 0

    def ask(self, **request: Any) -> Any:
        return api.Response.FromString(self._send(api.Request(**request).SerializeToString()))

    def step(self) -> int:
        units = self.ask(observation=api.RequestObservation()).observation.observation.raw_data.units
        action = api.RequestAction()
        for unit in units:
            if unit.owner == 1:
                command = action.actions.add().action_raw.unit_command
                command.ability_id = 4
                command.unit_tags.append(unit.tag)
        requests = {"action": action, "step": api.RequestStep(count=8), "observation": api.RequestObservation()}
        for name, request in requests.items():
            frame = api.Request(**{name: request}).SerializeToString()
            begun = time.process_time()
            self._send(frame)
            self.seconds[name] += time.process_time() - begun
        self.count += 1
        if not action.actions:
            self.ask(restart_game=api.RequestRestartGame())
        return 1


def in_process(name: str, seconds: float) -> dict[str, float]:
    """What the server's answers cost without a websocket, by request, in CPU milliseconds."""
    requests = Requests(name, Client().answer)
    rate(requests.step, seconds)
    parts = {key: 1e3 * value / requests.count for key, value in requests.seconds.items()}
    return {**parts, "in all": sum(parts.values())}


def through_pysc2(name: str, seconds: float) -> dict[str, float]:
    """The adapter's own steps over the websocket: snapshot, mask and orders read from the API each time."""
    game = GameProcess()
    server = psutil.Process(game._process.pid)
    scenario = scenarios.parse(name)
    state: dict[str, Any] = {}

    def step() -> int:
        if "battle" not in state or state["battle"].done[0]:
            state["battle"] = GameBattle(game, scenario, 1)
        battle = state["battle"]
        battle.snapshot(), battle.available(), battle.orders()
        battle.step(np.full((1, scenario.agent_count), STOP_ALL))
        state["steps"] = state.get("steps", 0) + 1
        return 1

    step()
    begun, before = state["steps"], sum(server.cpu_times()[:2])
    result = rate(step, seconds)
    spent = sum(server.cpu_times()[:2]) - before
    game.close()
    return {
        "steps_per_s": result["steps_per_s"],
        "client_cpu_ms": result["cpu_ms"],
        "server_cpu_ms": 1e3 * spent / (state["steps"] - begun),
    }


def episodes(name: str, seconds: float) -> dict[str, float]:
    """Whole episodes by the policy `smac`, through the API and embedded in a batch of 200; steps per second."""
    scenario = scenarios.parse(name)
    game = GameProcess()

    def play() -> int:
        seeds = np.array([7], dtype=np.uint64)
        record = rollout(GameBattle(game, scenario, 7), scenario, policy="smac", epsilon=0.0, seeds=seeds, steps=100)
        return int(record["length"].sum())

    def batch() -> int:
        seeds = np.arange(200, dtype=np.uint64)
        record = rollout(Engine(scenario, seeds), scenario, policy="smac", epsilon=0.0, seeds=seeds, steps=100)
        return int(record["length"].sum())

    result = {"api": rate(play, seconds)["steps_per_s"], "engine": rate(batch, seconds)["steps_per_s"]}
    game.close()
    return result


def through_smac(name: str, seconds: float) -> dict[str, float] | None:
    """SMAC's own environment, random agents; None where it is not installed."""
    try:
        from smac.env import StarCraft2Env
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being imported is the answer
        print(f"SMAC: {error}")
        return None
    env, rng = StarCraft2Env(map_name=name, seed=1), np.random.default_rng(0)
    state = {"done": True}

    def step() -> int:
        if state["done"]:
            env.reset()
        chosen = [int(rng.choice(np.nonzero(row)[0])) for row in env.get_avail_actions()]
        _, state["done"], _ = env.step(chosen)
        env.get_obs(), env.get_state()
        return 1

    step()
    server = psutil.Process(env._sc2_proc.pid)
    before, steps = sum(server.cpu_times()[:2]), env._total_steps
    result = rate(step, seconds)
    spent = 1e3 * (sum(server.cpu_times()[:2]) - before) / (env._total_steps - steps)
    env.close()
    return {"steps_per_s": result["steps_per_s"], "client_cpu_ms": result["cpu_ms"], "server_cpu_ms": spent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="3s5z")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    name, seconds = options.scenario, options.seconds
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder) / "sc2", (name,))
        os.environ["SC2PATH"] = str(Path(folder) / "sc2")
        results = {
            "engine, one battle": rate(engine_steps(name, 1), seconds),
            "engine, 200 battles": rate(engine_steps(name, 200), seconds),
            "API, answers alone (CPU ms)": in_process(name, seconds),
            "API, pysc2 adapter": through_pysc2(name, seconds),
            "whole episodes (steps/s)": episodes(name, seconds),
            "API, SMAC": through_smac(name, seconds),
        }
    if options.json:
        print(json.dumps({"scenario": name, **results}))
        return
    for title, values in results.items():
        shown = ", ".join(f"{key} {value:,.3g}" for key, value in (values or {}).items()) or "not installed"
        print(f"{name}  {title:<27} {shown}")


if __name__ == "__main__":
    main()
