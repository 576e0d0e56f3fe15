"""Which queries are decoded: all of them, or those that exist.

Legend: R hidden states, Q queries of each, P queries that are decoded.
"""

from __future__ import annotations

from torch import Tensor


def rows_of(x: Tensor, at: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features x (R, ...) and places at (R, Q, n), once for each query that is decoded: (P, ...), (P, n).

    present (P,): their numbers among the R * Q; None: all.
    """
    queries = at.shape[1]
    if present is None:
        return x.unsqueeze(1).expand(-1, queries, *x.shape[1:]).flatten(0, 1), at.flatten(0, 1)
    return x[present.div(queries, rounding_mode="floor")] if queries > 1 else x[present], at.flatten(0, 1)[present]
