"""Speed of the environments, in environment steps per CPU-second of one core, random actions from the masks.

    python benchmarks/envs.py [--maps 3s5z,3m,27m_vs_30m] [--seconds 4]

One environment step is one step of one battle, all its agents. Rows: the engine alone with the same actions; the
drop-in class with observations, state and masks at every step; PettingZoo's and Gymnasium's interfaces; the vectorised
environment of 64 and 1,024 battles, with observations and masks, and with the state as well; SMAC's own class over the
server, SMAClite and JaxMARL's SMAX, where they are installed. Choosing actions is not counted, but for SMAX, which
draws them in its compiled step. Compilation is not counted: every row is warmed up first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.envs import StarCraft2Env, parallel_env, vector_env


class Clock:
    """CPU seconds of what is measured, and how many environment steps it made."""

    def __init__(self) -> None:
        self.seconds = self.steps = 0.0

    def timed(self, steps: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        result = function(*arguments, **options)
        self.seconds += time.process_time() - start
        self.steps += steps
        return result

    def rate(self) -> float:
        return self.steps / self.seconds if self.seconds else float("nan")


Step = Callable[[Clock], None]


class Drawer:
    """Random actions that masks (..., A) allow."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def __call__(self, available: np.ndarray) -> np.ndarray:
        keys = self._random.random(available.shape, dtype=np.float32)
        return np.where(available, keys, -1.0).argmax(axis=-1)


@contextlib.contextmanager
def engine(name: str, count: int) -> Iterator[Step]:
    """Batches of fresh battles, as a roll-out plays them, without observations."""
    draw, batch = Drawer(), 0

    def step(clock: Clock) -> None:
        nonlocal battles, batch
        if battles.done.all():
            batch += 1
            seeds = sequence_seeds(0, "benchmark", batch * count, (batch + 1) * count)
            battles = clock.timed(0, Engine, scenarios.parse(name), seeds)
        running = int((~battles.done).sum())
        clock.timed(running, battles.step, draw(battles.available()))

    battles = Engine(scenarios.parse(name), sequence_seeds(0, "benchmark", 0, count))
    yield step


@contextlib.contextmanager
def drop_in(name: str, make: Callable[[str], Any]) -> Iterator[Step]:
    """SMAC's loop: masks, a step, observations and state."""
    env, draw = make(name), Drawer()
    env.reset()

    def look() -> Any:
        return env.get_obs(), env.get_state(), env.get_avail_actions()

    def step(clock: Clock) -> None:
        nonlocal available
        actions = draw(np.array(available, dtype=np.bool_)).tolist()
        _, done, _ = clock.timed(1, env.step, actions)
        if done:
            clock.timed(0, env.reset)
        available = clock.timed(0, look)[2]

    available = look()[2]
    try:
        yield step
    finally:
        env.close()


@contextlib.contextmanager
def pettingzoo(name: str) -> Iterator[Step]:
    env, draw = parallel_env(name, seed=0), Drawer()
    seen, _ = env.reset()

    def step(clock: Clock) -> None:
        nonlocal seen
        masks = np.array([seen[agent]["action_mask"] for agent in env.agents], dtype=np.bool_)
        actions = dict(zip(env.agents, draw(masks).tolist(), strict=True))
        seen, *_ = clock.timed(1, env.step, actions)
        if not env.agents:
            seen, _ = clock.timed(0, env.reset)

    yield step


@contextlib.contextmanager
def vector(name: str, count: int, **options: Any) -> Iterator[Step]:
    envs, draw = vector_env(name, count, **options), Drawer()
    _, info = envs.reset()

    def step(clock: Clock) -> None:
        nonlocal info
        *_, info = clock.timed(count, envs.step, draw(info["available"]))

    yield step


def smac(name: str) -> Any:
    """SMAC's own class; SC2PATH has to be a folder that `s2rm-data sc2-server install` made."""
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["smac"])
    from smac.env import StarCraft2Env as Smac

    return Smac(map_name=name, seed=0)


@contextlib.contextmanager
def smaclite(name: str) -> Iterator[Step]:
    """SMAClite, whose rules are its own; its steps return observations, masks come from its environment."""
    import gymnasium
    import smaclite  # noqa: F401 (registers its maps)

    try:
        env, draw = gymnasium.make(f"smaclite/{name}-v0").unwrapped, Drawer()
    except gymnasium.error.UnregisteredEnv:
        raise NotImplementedError(name) from None
    env.reset()

    def look() -> Any:
        return env.get_state(), env.get_avail_actions()

    def step(clock: Clock) -> None:
        nonlocal available
        _, _, terminated, truncated, _ = clock.timed(1, env.step, draw(np.array(available, dtype=np.bool_)).tolist())
        if terminated or truncated:
            clock.timed(0, env.reset)
        available = clock.timed(0, look)[1]

    available = look()[1]
    yield step


@contextlib.contextmanager
def smax(name: str, count: int) -> Iterator[Step]:
    """JaxMARL's SMAX, compiled and batched; its scripted enemies, its own rules."""
    import jax
    from jaxmarl import make
    from jaxmarl.environments.smax import map_name_to_scenario

    env = make("HeuristicEnemySMAX", scenario=map_name_to_scenario(name))
    keys = jax.random.split(jax.random.PRNGKey(0), count)

    @jax.jit
    def play(keys: Any, state: Any) -> Any:
        def one(key: Any, state: Any) -> Any:
            key, choice, stepping = jax.random.split(key, 3)
            masks = env.get_avail_actions(state)
            choices = jax.random.split(choice, len(env.agents))
            actions = {
                agent: jax.random.categorical(k, jax.numpy.where(masks[agent] > 0, 0.0, -1e9))
                for agent, k in zip(env.agents, choices, strict=True)
            }
            observation, state, reward, _, _ = env.step(stepping, state, actions)
            return key, state, observation, reward

        return jax.vmap(one)(keys, state)

    _, state = jax.jit(jax.vmap(env.reset))(keys)
    for _ in range(3):  # the types of the state change after the first steps, and JAX compiles again
        keys, state, _, _ = play(keys, state)

    def step(clock: Clock) -> None:
        nonlocal keys, state
        keys, state, _, _ = clock.timed(count, lambda: jax.block_until_ready(play(keys, state)))

    yield step


def installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def rows() -> dict[str, Callable[[str], contextlib.AbstractContextManager[Step]]]:
    found: dict[str, Any] = {
        "engine alone, 1,024 battles": lambda name: engine(name, 1024),
        "drop-in class": lambda name: drop_in(name, lambda n: StarCraft2Env(n, seed=0)),
        "PettingZoo": pettingzoo,
        "vector, 64": lambda name: vector(name, 64, state=False),
        "vector, 64, with the state": lambda name: vector(name, 64),
        "vector, 1,024": lambda name: vector(name, 1024, state=False),
        "vector, 1,024, with the state": lambda name: vector(name, 1024),
    }
    if installed("smac.env"):
        found["SMAC over the server (the server's process not counted)"] = lambda name: drop_in(name, smac)
    if installed("smaclite"):
        found["SMAClite (its own rules)"] = smaclite
    if installed("jaxmarl"):
        found["SMAX, 1,024 (its own rules)"] = lambda name: smax(name, 1024)
    return found


def measure(step: Step, seconds: float) -> float:
    warm = Clock()
    until = time.perf_counter() + 0.25 * seconds
    while warm.steps == 0 or time.perf_counter() < until:
        step(warm)
    clock = Clock()
    while clock.seconds < seconds:
        step(clock)
    return clock.rate()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--maps", default="3s5z,3m,27m_vs_30m")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds per row and map")
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    options = parser.parse_args()
    maps = options.maps.split(",")
    print("| steps per CPU-second | " + " | ".join(maps) + " |\n|---|" + "---|" * len(maps))
    for label, make in rows().items():
        if options.rows not in label:
            continue
        print(f"| {label} |", end="", flush=True)
        for name in maps:
            try:
                with make(name) as step:
                    rate = f"{measure(step, options.seconds):,.0f}"
            except (KeyError, NotImplementedError):  # a map that the other package does not have
                rate = "–"
            print(f" {rate} |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
