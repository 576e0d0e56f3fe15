"""Where generators meet the store: sources of sequences in, committed shards out."""

from s2rm_data.making.run import Outcome, Plan, generate, plan_splits

__all__ = ["Outcome", "Plan", "generate", "plan_splits"]
