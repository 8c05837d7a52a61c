"""How many pairs of a chunk and an edge a question has, counted before anything is built."""

from __future__ import annotations

from p2smt.search.schedule.synthesis.question import CHUNKS_OF, SynthesisSetting

MAX_PAIRS = 20_000_000
"""Beyond it no search is begun, whatever the symmetries: see the encodings."""


def too_many_pairs(setting: SynthesisSetting, chunks: int) -> tuple[str, str, str] | None:
    """Why no model could be built: what is given, the rule, a remedy; None: one may be."""
    every = chunk_count(setting, chunks)
    if every * len(setting.fabric.edges) <= MAX_PAIRS:
        return None
    return (
        f"{every} chunks, {len(setting.fabric.edges)} edges",
        f"have more than {MAX_PAIRS} pairs of a chunk and an edge",
        "ask for fewer chunks, or a smaller fabric",
    )


def chunk_count(setting: SynthesisSetting, chunks: int) -> int:
    """All chunks, where so many are asked for as the collective counts them."""
    ranks = setting.fabric.ranks
    if CHUNKS_OF[setting.collective] == "per rank":
        return chunks * ranks
    if CHUNKS_OF[setting.collective] == "per pair":
        return chunks * (ranks - 1) * (1 if setting.rooted else ranks)
    return chunks
