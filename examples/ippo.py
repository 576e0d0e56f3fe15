"""Train StarCraft II agents with independent PPO (de Witt et al., 2020) on the vectorised environment, in minutes.

    python examples/ippo.py 3m                      # writes ippo_3m.safetensors
    s2rm-data sc2 --scenario 3m --policy ippo_3m.safetensors

All agents share one network; each sees its own observation and number, and learns from the team's reward as if it were
alone. The file that is written holds the actor, which `s2rm-data sc2` rolls out into a store.
"""

# T steps, n environments, N agents, A actions, F = O + N inputs of a network

from __future__ import annotations

import argparse
import copy
import itertools
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from s2rm_data.envs import VectorEnv, save_policy, vector_env


@dataclass(frozen=True, kw_only=True)
class Settings:
    environments: int = 128
    steps: int = 32  # between updates
    epochs: int = 5
    minibatches: int = 4
    width: int = 128
    learning_rate: float = 5e-4
    discount: float = 0.99
    trace: float = 0.95  # of generalised advantages
    clip: float = 0.2
    entropy: float = 0.01
    reward_scale: float = 0.2
    updates: int = 24  # between evaluations
    battles: int = 200  # of an evaluation


class Agents(nn.Module):
    """Actor and critic, shared by all agents."""

    def __init__(self, inputs: int, actions: int, width: int) -> None:
        super().__init__()
        self.actor, self.critic = _mlp(inputs, actions, width), _mlp(inputs, 1, width)

    def policy(self, inputs: Tensor, available: Tensor) -> torch.distributions.Categorical:
        scores = self.actor(inputs).masked_fill(~available, -1e9)
        return torch.distributions.Categorical(logits=scores, validate_args=False)

    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        linear = [layer for layer in self.actor if isinstance(layer, nn.Linear)]
        return [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in linear]


def _mlp(inputs: int, outputs: int, width: int) -> nn.Sequential:
    sizes = [inputs, width, width]
    hidden = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    last = nn.Linear(width, outputs)
    nn.init.normal_(last.weight, std=0.01)
    return nn.Sequential(*hidden, last)


def seen(observation: np.ndarray) -> Tensor:
    """(n, N, F) observations (n, N, O) with the agents' numbers."""
    n, agents = observation.shape[:2]
    numbers = np.broadcast_to(np.eye(agents, dtype=np.float32), (n, agents, agents))
    return torch.from_numpy(np.concatenate([observation, numbers], axis=-1))


class Trainer:
    def __init__(self, map_name: str, settings: Settings, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.settings = settings
        self.envs: VectorEnv = vector_env(map_name, settings.environments, seed=seed, state=False)
        observation, info = self.envs.reset()
        self.now = seen(observation), torch.from_numpy(info["available"])
        self.agents = Agents(self.now[0].shape[-1], self.envs.actions, settings.width)
        self.optimiser = torch.optim.Adam(self.agents.parameters(), lr=settings.learning_rate, eps=1e-5)
        self.returns = np.zeros(settings.environments)  # of the battles under way
        self.finished: list[tuple[bool, float]] = []  # whether each battle was won, and its return (20 at best)

    @torch.no_grad()
    def play(self) -> dict[str, Tensor]:
        """Tensors (T, n, N, ...) of the next steps of all environments."""
        rows: dict[str, list[Tensor]] = {
            name: [] for name in ("inputs", "available", "action", "logp", "reward", "done")
        }
        for _ in range(self.settings.steps):
            inputs, available = self.now
            policy = self.agents.policy(inputs, available)
            action = policy.sample()
            observation, reward, terminated, truncated, info = self.envs.step(action.numpy())
            done = terminated | truncated
            self.returns += reward
            self.finished += zip(info["battle_won"][done].tolist(), self.returns[done].tolist(), strict=True)
            self.returns[done] = 0.0
            self.now = seen(observation), torch.from_numpy(info["available"])
            step = (
                inputs,
                available,
                action,
                policy.log_prob(action),
                torch.from_numpy(reward),
                torch.from_numpy(done),
            )
            for row, value in zip(rows.values(), step, strict=True):
                row.append(value)
        return {name: torch.stack(row) for name, row in rows.items()}

    @torch.no_grad()
    def advantages(self, played: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """(T, n, N) generalised advantages, and the returns that the critic should have known."""
        values = self.agents.critic(torch.cat([played["inputs"], self.now[0][None]]))[..., 0]
        reward = played["reward"].float() * self.settings.reward_scale
        advantage, later = torch.zeros_like(values[1:]), torch.zeros_like(values[0])
        for t in reversed(range(len(reward))):
            goes_on = (~played["done"][t]).float()[:, None]
            surprise = reward[t][:, None] + self.settings.discount * goes_on * values[t + 1] - values[t]
            later = surprise + self.settings.discount * self.settings.trace * goes_on * later
            advantage[t] = later
        return advantage, advantage + values[:-1]

    def learn(self, played: dict[str, Tensor]) -> None:
        """Some epochs of clipped updates on what was played; the dead learn nothing."""
        advantage, target = self.advantages(played)
        alive = ~played["available"][..., 0]
        parts = [played[name][alive] for name in ("inputs", "available", "action", "logp")]
        advantage, target = advantage[alive], target[alive]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(self.settings.epochs):
            for rows in torch.randperm(len(advantage)).chunk(self.settings.minibatches):
                loss = self.loss(*(part[rows] for part in parts), advantage[rows], target[rows])
                self.optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.agents.parameters(), 10.0)
                self.optimiser.step()

    def loss(
        self, inputs: Tensor, available: Tensor, action: Tensor, logp: Tensor, advantage: Tensor, target: Tensor
    ) -> Tensor:
        policy = self.agents.policy(inputs, available)
        ratio = (policy.log_prob(action) - logp).exp()
        clipped = ratio.clamp(1 - self.settings.clip, 1 + self.settings.clip)
        gain = torch.minimum(ratio * advantage, clipped * advantage).mean()
        error = (self.agents.critic(inputs)[..., 0] - target).square().mean()
        return 0.5 * error - gain - self.settings.entropy * policy.entropy().mean()


@torch.no_grad()
def win_rate(agents: Agents, map_name: str, battles: int, seed: int) -> float:
    """Share of battles, of seeds that training has not seen, that the agents win when each takes its best action."""
    envs = vector_env(map_name, battles, seed=seed, state=False)
    observation, info = envs.reset()
    won, running = np.zeros(battles, dtype=bool), np.ones(battles, dtype=bool)
    while running.any():
        actions = agents.policy(seen(observation), torch.from_numpy(info["available"])).probs.argmax(-1)
        observation, _, terminated, truncated, info = envs.step(actions.numpy())
        won |= running & info["battle_won"]
        running &= ~(terminated | truncated)
    return float(won.mean())


def main(
    map_name: str,
    *,
    out: Path,
    steps: int = 2_000_000,
    enough: float = 0.98,
    seed: int = 0,
    settings: Settings | None = None,
) -> list[dict[str, float]]:
    """Train until the agents win `enough` of the battles, or for `steps` environment steps; returns the curve.

    The file always holds the agents that have won most so far.
    """
    torch.set_num_threads(1)
    settings = settings or Settings()
    trainer = Trainer(map_name, settings, seed)
    played, curve, best = 0, [], (-1.0, copy.deepcopy(trainer.agents))
    while played < steps and best[0] < enough:
        for _ in range(settings.updates):
            trainer.learn(trainer.play())
            played += settings.environments * settings.steps
        won, seconds = win_rate(trainer.agents, map_name, settings.battles, seed + 10**6), time.process_time()
        wins, returns = np.mean(trainer.finished[-500:] or [(0.0, 0.0)], axis=0).tolist()
        point = {"steps": played, "cpu_seconds": seconds, "won_in_training": wins, "return": returns, "won": won}
        curve.append(point)
        print(f"{played:>9,} steps, {seconds:5.0f} CPU-s: return {returns:.1f}, won {wins:.1%}; greedily {won:.1%}")
        if won >= best[0]:
            best = won, copy.deepcopy(trainer.agents)
            save_policy(out, trainer.agents.layers(), map_name)
    tested = win_rate(best[1], map_name, settings.battles, seed + 2 * 10**6)
    print(f"won {tested:.1%} of {settings.battles} other battles; saved as {out}")
    return curve


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("map_name", nargs="?", default="3m")
    parser.add_argument("--steps", type=int, default=2_000_000, help="environment steps at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="policy file (default: ippo_MAP.safetensors)")
    parser.add_argument("--curve", type=Path, help="file for the learning curve, JSON")
    given = parser.parse_args()
    found = main(
        given.map_name, out=given.out or Path(f"ippo_{given.map_name}.safetensors"), steps=given.steps, seed=given.seed
    )
    if given.curve:
        given.curve.write_text(json.dumps(found))
