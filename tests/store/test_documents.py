"""The one spelling of a document, and the seal of the root."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from s2rm_data.store.documents import json_bytes

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@given(DOCUMENTS)
def test_it_is_that_of_the_json_library_with_sorted_keys_and_an_indentation_of_one(document: Any) -> None:
    try:
        spelled = json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair
        return
    assert json_bytes(document) == spelled
