"""Values that a key of a ``config.json`` may have by mistake."""

from hypothesis import strategies as st

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**8),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["attn_type", "x"]), st.text(max_size=3), max_size=2),
)
