"""Where generators meet the store: sources of sequences in, committed shards out."""

from s2rm_data.making.parts import Merged, generate_part, merge
from s2rm_data.making.run import Outcome, Plan, ShardSize, generate, plan_splits

__all__ = ["Merged", "Outcome", "Plan", "ShardSize", "generate", "generate_part", "merge", "plan_splits"]
