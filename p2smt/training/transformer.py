"""Dense decoder transformers by their sizes."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import InputError

MAX_SIZE = 10**7


@dataclass(frozen=True, slots=True)
class Transformer:
    """A dense decoder: ``layers`` equal blocks of attention and MLP, embedding and logits.

    ``heads`` query heads share ``kv_heads`` keys and values; a head has ``head_size`` elements,
    whose product with ``heads`` need not be ``hidden``.  ``ffn`` is the width inside the MLP,
    ``gated`` whether it has a second input matrix (SwiGLU).  ``tied``: embedding and logits are
    one matrix.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    gated: bool
    vocab: int
    head_size: int
    tied: bool = False
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "head_size"):
            if not 1 <= getattr(self, key) <= MAX_SIZE:
                given = f"model {self.name[:40]}: {key} {getattr(self, key)}"
                raise InputError(given, f"must be 1 to {MAX_SIZE}")
        if self.heads % self.kv_heads:
            given = f"model {self.name[:40]}: {self.heads} heads, {self.kv_heads} kv_heads"
            raise InputError(given, "kv_heads must divide heads")

    @property
    def query_width(self) -> int:
        """Elements of all query heads of a token."""
        return self.heads * self.head_size

    @property
    def key_width(self) -> int:
        """Elements of all keys of a token; the values have as many."""
        return self.kv_heads * self.head_size

    @property
    def layer_parameters(self) -> int:
        """Elements of a layer's matrices: query, key, value, output, and those of the MLP."""
        attention = self.hidden * (2 * self.query_width + 2 * self.key_width)
        return attention + (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def parameters(self) -> int:
        """Elements of all matrices; norms and biases are left out."""
        ends = (1 if self.tied else 2) * self.vocab * self.hidden
        return self.layers * self.layer_parameters + ends
