"""What a policy file exports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from s2rm_data.generators.sc2.policies._network import Network


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Either a compiled `choose`, or a trained `network`, or the names of the `members` of which each episode draws
    one.

    epsilon: share of random available actions when the user does not give one.
    keeps_to_mask: false for a policy that also attacks enemies it sees beyond SMAC's shooting range.
    """

    description: str
    choose: Callable[..., int] | None = None
    network: Network | None = None
    members: tuple[str, ...] = ()
    epsilon: float = 0.0
    keeps_to_mask: bool = True
