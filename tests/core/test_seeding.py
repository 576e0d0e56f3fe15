import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import MAX_SEED, generator, sequence_seeds

SEEDS = st.integers(0, MAX_SEED)


@given(SEEDS, st.integers(0, 10**6), st.integers(0, 40))
def test_a_seed_depends_on_its_index_alone(seed: int, start: int, length: int) -> None:
    block = sequence_seeds(seed, "bballs/train", start, start + length)
    single = [sequence_seeds(seed, "bballs/train", i, i + 1)[0] for i in range(start, start + length)]
    assert block.tolist() == single


def test_streams_and_seeds_do_not_share_sequences() -> None:
    streams = [sequence_seeds(seed, name, 0, 1000) for seed in (0, 1) for name in ("bballs/train", "bballs/val")]
    assert len(np.unique(np.concatenate(streams))) == 4000


def test_seeds_are_the_same_on_every_machine() -> None:
    assert sequence_seeds(0, "bballs/train", 0, 2).tolist() == [6030288204142079002, 7170829415997847339]


def test_generators_differ_by_every_counter() -> None:
    draws = {generator(0, "s", *counters).integers(2**63) for counters in [(), (1,), (0, 1), (0, 0, 1), (2,)]}
    assert len(draws) == 5


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="out of range"):
        sequence_seeds(seed, "s", 0, 1)
