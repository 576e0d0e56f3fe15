"""Batches for training and evaluation, from a store: windows of sequences held in memory, cut on the model's device.

source = open_source(Store("data.zarr"), world, "train", steps=20)
batch = TrainingBatches(source, batch_size=32, seed=0).batch(epoch=3, step=17)  # a function of (seed, epoch, step)
for batch in FixedBatches(open_source(store, world, "test"), batch_size=50, drop=0.8): ..."""

from s2rm_data.core.errors import missing_component

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise missing_component("torch", "train", "loading batches") from None

from s2rm_data.learning.dataset import groups_of, open_groups, open_source, tasks_of
from s2rm_data.learning.windows import FixedBatches, Prefetcher, TrainingBatches
from s2rm_data.learning.world_learning import Source

__all__ = [
    "FixedBatches",
    "Prefetcher",
    "Source",
    "TrainingBatches",
    "groups_of",
    "open_groups",
    "open_source",
    "tasks_of",
]
