"""The store: one Zarr v3 hierarchy that any reader opens and that cannot change unnoticed (docs/data_format.md)."""

from s2rm_data.store.cache import ShardCache
from s2rm_data.store.layout import SplitSpec
from s2rm_data.store.reader import Group, Store, StoredArray
from s2rm_data.store.verification import Report, verify
from s2rm_data.store.writer import SplitWriter, StoreWriter

__all__ = ["Group", "Report", "ShardCache", "SplitSpec", "SplitWriter", "Store", "StoreWriter", "StoredArray", "verify"]
