"""Each episode draws one of the other policies from its own seed, and takes a share of random actions.

The members are written out, not searched for: a policy added later does not change the data that a seed makes."""

from __future__ import annotations

from s2rm_data.starcraft.policies._view import Policy

POLICY = Policy(
    members=("smac", "smac_restricted", "focus", "kite", "random"),
    epsilon=0.05,  # Assumption: enough to leave the scripts' tracks, too little to change who wins
    description="each episode draws one of smac, smac_restricted, focus, kite, random (the default)",
)
