"""Data as JSON has it."""

from __future__ import annotations

from hypothesis import strategies as st

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


def json_values(
    *keys: str, leaves: st.SearchStrategy[object] = LEAVES
) -> st.SearchStrategy[object]:
    """Lists and objects of a few entries, with these keys where some are named."""
    named = st.sampled_from(keys) if keys else st.text(max_size=5)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(named, inner, max_size=4),
        max_leaves=20,
    )
