"""What decides the content of a StarCraft II split, apart from seed and split."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from s2rm_data.config import between, check_fields, from_json
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.features import Features
from s2rm_data.generators.sc2.formation import formation
from s2rm_data.generators.sc2.polar import PolarGrid
from s2rm_data.generators.sc2.policies import find

# The paper's scenarios. Its text trains on 2s5z, its figure shows 2s3z: both are made.
PAPER_TRAINING = ("1c3s5z", "3s5z", "2s3z", "2s5z")
PAPER_TEST = ("1s2z", "5s3z")


@dataclass(frozen=True, kw_only=True)
class EpisodeConfig:
    """What a stored episode looks like, whoever played it: all that reading it takes.

    radial, angular, radius: see `polar.PolarGrid`.
    """

    scenario: str
    steps: Annotated[int, between(1, 1000)] = 100  # paper: trajectories of 100 steps
    # Assumption: the paper leaves resolution and radius open; how often a unit is lost: docs/fidelity.md.
    radial: int = 16
    angular: int = 48
    radius: float = 9.0  # SMAC's sight range

    def __post_init__(self) -> None:
        check_fields(self)
        armies = scenarios.parse(self.scenario)
        if armies.generated is None:
            formation(armies)  # refuses an army that does not fit the map
        _ = self.grid  # refuses what cannot be an image

    @property
    def grid(self) -> PolarGrid:
        return PolarGrid(radial=self.radial, angular=self.angular, radius=self.radius)


@dataclass(frozen=True, kw_only=True)
class Sc2Config(EpisodeConfig):
    """epsilon None becomes the policy's own share of random actions."""

    policy: str = "mixed"  # a name, or the path of a trained policy's file
    epsilon: Annotated[float, between(0, 1)] | None = None  # share of random actions

    def __post_init__(self) -> None:
        super().__post_init__()
        policy = find(self.policy)
        if policy.network is not None:
            armies = scenarios.parse(self.scenario)
            if armies.generated is not None:
                raise UsageError(
                    f"policy {self.policy!r} is a trained one, which knows one pair of armies; scenario "
                    f"{self.scenario!r} draws new ones for every episode: take a script"
                )
            sizes = Features(formation(armies).unit_type, armies.agent_count)
            policy.network.require(self.scenario, sizes.observation_size, sizes.agents, sizes.actions)
        if self.epsilon is None:
            object.__setattr__(self, "epsilon", policy.epsilon)


def episode_config(stored: dict[str, Any]) -> EpisodeConfig:
    """What episodes with this stored config look like. Who played them need not be there: neither a trained policy's
    file nor a plug-in.
    """
    players = {field.name for field in fields(Sc2Config)} - {field.name for field in fields(EpisodeConfig)}
    return from_json(EpisodeConfig, {name: value for name, value in stored.items() if name not in players})
