"""Decoder transformers: their sizes, and the kinds of their layers in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from itertools import groupby

from p2smt.errors import InputError
from p2smt.plans.training.file_model import MAX_SIZE

MOST_KINDS = 8
"""Layers in the longest pattern that is told to repeat."""
DENSE_KEYS = (
    *("name", "layers", "hidden", "heads", "kv_heads", "ffn", "gated", "vocab", "head_size"),
    "tied",
)
"""The fields that tell a decoder of equal dense layers with full attention."""


class Attention(Enum):
    """Which of the model's attentions a layer has; ``WINDOW`` sees the tokens of a window only."""

    FULL = "full"
    WINDOW = "window"
    MAMBA = "mamba"
    NONE = "none"


class Mlp(Enum):
    """Which of the model's MLPs a layer has."""

    DENSE = "dense"
    EXPERTS = "experts"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What a layer is made of."""

    attention: Attention = Attention.FULL
    mlp: Mlp = Mlp.DENSE


@dataclass(frozen=True, slots=True)
class LayerRun:
    """Layers of these kinds in this order, ``repeat`` times one after the other."""

    repeat: int
    kinds: tuple[LayerKind, ...]

    @property
    def layers(self) -> int:
        """How many layers the run has."""
        return self.repeat * len(self.kinds)

    @staticmethod
    def of(kinds: Sequence[LayerKind]) -> tuple[LayerRun, ...]:
        """Layers one by one as runs: one that repeats a few kinds, or layers that are alike.

        The rest of a run that repeats is a run of its own, as of six kinds over 26 layers.
        """
        for period in range(2, MOST_KINDS + 1):
            whole = len(kinds) // period
            repeated = [kinds[at % period] for at in range(len(kinds))]
            if whole > 1 and list(kinds) == repeated and len(set(kinds)) > 1:
                rest = LayerRun.alike(kinds[whole * period :])
                return (LayerRun(whole, tuple(kinds[:period])), *rest)
        return LayerRun.alike(kinds)

    @staticmethod
    def alike(kinds: Sequence[LayerKind]) -> tuple[LayerRun, ...]:
        """A run for each stretch of layers of one kind."""
        return tuple(LayerRun(len(list(run)), (kind,)) for kind, run in groupby(kinds))


@dataclass(frozen=True, slots=True)
class Experts:
    """The MLP of a mixture of experts: a token goes through ``active`` of ``count`` experts.

    ``width`` is the width inside an expert, ``shared_width`` that of all shared experts together,
    which every token goes through.  ``latent``: elements of a token that experts see where it is
    projected to fewer than ``hidden`` before (0: all).  ``groups``: into so many groups the experts
    are divided, and a token meets those of ``top_groups`` only (0: no groups).  ``clamped``: the
    activation inside has biases and is clamped.
    """

    count: int
    active: int
    width: int
    shared_width: int = 0
    latent: int = 0
    groups: int = 0
    top_groups: int = 0
    clamped: bool = False


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA, arXiv 2405.04434), in elements.

    Keys and values of a token are made of ``kv_rank`` elements, queries of ``query_rank`` (0: of
    all ``hidden``).  Of a head, ``nope`` elements of a query and a key are without rotation,
    ``rope`` with it, which all heads share in keys; ``value`` has those of a value.
    """

    kv_rank: int
    nope: int
    rope: int
    value: int
    query_rank: int = 0


@dataclass(frozen=True, slots=True)
class Mamba:
    """The state space layer of Mamba-2 (arXiv 2405.21060), in elements."""

    heads: int
    head_size: int
    groups: int
    state: int

    @property
    def width(self) -> int:
        """Elements of all heads of a token."""
        return self.heads * self.head_size


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder: ``layers`` blocks of attention and MLP, embedding and logits.

    ``heads`` query heads share ``kv_heads`` keys and values; a head has ``head_size`` elements,
    whose product with ``heads`` need not be ``hidden``; ``mla``: attention is latent
    instead.
    ``ffn`` is the width inside the dense MLP (0: no layer has one), ``gated`` whether an MLP or
    expert has a second input matrix (SwiGLU).  ``tied``: embedding and logits are one matrix.
    ``window``: tokens that windowed attention sees, itself among them; ``chunked``: those of its
    chunk of so many instead.  ``order`` tells the kinds of all layers; empty, all are alike: with
    full attention, and with experts if the model has any.  ``mtp``: further layers, of the last
    kind, that predict later tokens in training (multi-token prediction).  ``assumed``: what its
    file leaves to defaults, in words.
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
    experts: Experts | None = None
    mla: LatentAttention | None = None
    mamba: Mamba | None = None
    window: int = 0
    chunked: bool = False
    order: tuple[LayerRun, ...] = ()
    mtp: int = 0
    assumed: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for key in ("layers", "hidden", "heads", "kv_heads", "vocab", "head_size"):
            self._check_size(key, getattr(self, key))
        self._check_size("ffn", self.ffn, least=1 if self._has(mlp=Mlp.DENSE) else 0)
        for key in ("window", "mtp"):
            self._check_size(key, getattr(self, key), least=0)
        for name, part in (("experts", self.experts), ("mla", self.mla), ("mamba", self.mamba)):
            for size in fields(part) if part else ():
                least = 0 if size.default == 0 else 1
                self._check_size(f"{name} {size.name}", getattr(part, size.name), least)
        if self.heads % self.kv_heads:
            given = f"model {self.name[:40]}: {self.heads} heads, {self.kv_heads} kv_heads"
            raise InputError(given, "kv_heads must divide heads")
        self._check_order()
        self._check_experts()

    @property
    def dense(self) -> bool:
        """Whether all layers have full attention and a dense MLP, none for later tokens."""
        return not (self.mla or self.mtp) and set(self.kinds()) == {LayerKind()}

    @property
    def runs(self) -> tuple[LayerRun, ...]:
        """The kinds of all layers; see ``order``."""
        return self.order or (LayerRun(self.layers, (self._usual(),)),)

    @property
    def each_kind(self) -> tuple[LayerKind, ...]:
        """The kind of each layer, in the order of the model."""
        return tuple(kind for run in self.runs for kind in run.kinds * run.repeat)

    def kinds(self) -> dict[LayerKind, int]:
        """How many layers of each kind there are."""
        found: dict[LayerKind, int] = {}
        for run in self.runs:
            for kind in run.kinds:
                found[kind] = found.get(kind, 0) + run.repeat
        return found

    def seen(self, tokens: int) -> Transformer:
        """The model on sequences of so many tokens: a window no shorter than these is none."""
        if not self.window or self.window < tokens:
            return self
        runs = [LayerRun(run.repeat, tuple(map(_unwindowed, run.kinds))) for run in self.runs]
        alike = {kind for run in runs for kind in run.kinds} == {self._usual()}
        return replace(self, window=0, chunked=False, order=() if alike else tuple(runs))

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
        """Elements of the matrices of a layer with full attention and a dense MLP."""
        return self.parameters_of(LayerKind())

    def parameters_of(self, kind: LayerKind, active: bool = False) -> int:
        """Elements of the matrices of a layer of a kind; ``active``: those that a token meets."""
        return self._attention(kind.attention) + self._mlp(kind.mlp, active)

    @property
    def parameters(self) -> int:
        """Elements of all matrices but those of multi-token prediction; norms, biases and the
        convolutions of Mamba are left out."""
        return self._whole(active=False)

    @property
    def active_parameters(self) -> int:
        """Of these, elements of the matrices that a token meets, embedding and logits whole."""
        return self._whole(active=True)

    def token_flops(self, tokens: int) -> float:
        """Operations of a token of a sequence of so many in training, nothing computed twice.

        Forward and twice that backward; attention only where causality lets tokens meet; routers
        are left out, layers and logits of multi-token prediction are in.
        """
        forward = sum(many * self._layer_flops(kind, tokens) for kind, many in self.kinds().items())
        last = self.runs[-1].kinds[-1]
        ahead = self._layer_flops(last, tokens) + 4 * self.hidden**2
        logits = 2 * self.hidden * self.vocab * (1 + self.mtp)
        return 3 * (forward + self.mtp * ahead + logits)

    def _layer_flops(self, kind: LayerKind, tokens: int) -> float:
        router = self.experts.count * self.hidden if kind.mlp is Mlp.EXPERTS and self.experts else 0
        matrices = 2 * (self.parameters_of(kind, active=True) - router)
        return matrices + self._core_flops(kind.attention, tokens)

    def _core_flops(self, kind: Attention, tokens: int) -> float:
        """Scores and what they weigh, or the states of Mamba, a token, forward."""
        match kind:
            case Attention.NONE:
                return 0
            case Attention.MAMBA:
                assert self.mamba
                return 7 * self.mamba.width * self.mamba.state
        window = self.window if kind is Attention.WINDOW else tokens
        each = self.heads * (
            self.mla.nope + self.mla.rope + self.mla.value if self.mla else 2 * self.head_size
        )
        return 2 * each * _mean_window(tokens, window, self.chunked)

    def _usual(self) -> LayerKind:
        return LayerKind(mlp=Mlp.EXPERTS if self.experts else Mlp.DENSE)

    def _whole(self, active: bool) -> int:
        ends = (1 if self.tied else 2) * self.vocab * self.hidden
        layers = (many * self.parameters_of(kind, active) for kind, many in self.kinds().items())
        return sum(layers) + ends

    def _attention(self, kind: Attention) -> int:
        match kind:
            case Attention.NONE:
                return 0
            case Attention.MAMBA:
                assert self.mamba
                inner = 2 * self.mamba.width + 2 * self.mamba.groups * self.mamba.state
                return self.hidden * (inner + self.mamba.heads) + self.mamba.width * self.hidden
            case _ if self.mla:
                return self._latent(self.mla)
            case _:
                return self.hidden * (2 * self.query_width + 2 * self.key_width)

    def _latent(self, mla: LatentAttention) -> int:
        heads, key = self.heads, mla.nope + mla.rope
        down = mla.query_rank * self.hidden if mla.query_rank else 0
        queries = down + (mla.query_rank or self.hidden) * heads * key
        keys = self.hidden * (mla.kv_rank + mla.rope) + mla.kv_rank * heads * (mla.nope + mla.value)
        return queries + keys + heads * mla.value * self.hidden

    def _mlp(self, kind: Mlp, active: bool) -> int:
        matrices = 3 if self.gated else 2
        match kind:
            case Mlp.NONE:
                return 0
            case Mlp.DENSE:
                return matrices * self.hidden * self.ffn
            case Mlp.EXPERTS:
                assert self.experts
                one = self.experts
                met = one.active if active else one.count
                routed = met * matrices * (one.latent or self.hidden) * one.width
                router = self.hidden * one.count + 2 * self.hidden * one.latent
                return routed + router + matrices * self.hidden * one.shared_width

    def _has(self, attention: Attention | None = None, mlp: Mlp | None = None) -> bool:
        return any(attention in (None, k.attention) and mlp in (None, k.mlp) for k in self.kinds())

    def _check_size(self, key: str, value: int, least: int = 1) -> None:
        if not least <= value <= MAX_SIZE:
            given = f"model {self.name[:40]}: {key} {value}"
            raise InputError(given, f"must be {least} to {MAX_SIZE}")

    def _check_order(self) -> None:
        """Layers are as many as their kinds, and what a kind needs is told."""
        given = f"model {self.name[:40]}"
        if sum(run.layers for run in self.runs) != self.layers:
            total = sum(run.layers for run in self.runs)
            raise InputError(f"{given}: {self.layers} layers", f"their kinds are of {total}")
        needs = (
            ("experts", self.experts, self._has(mlp=Mlp.EXPERTS)),
            ("mamba", self.mamba, self._has(Attention.MAMBA)),
            ("window", self.window, self._has(Attention.WINDOW)),
        )
        for key, told, used in needs:
            if used and not told:
                raise InputError(f"{given}: a layer with {key}", f"needs its sizes, key {key}")
            if told and not used:
                raise InputError(f"{given}: {key}", "no layer has it", "name its layers")

    def _check_experts(self) -> None:
        if (one := self.experts) is None:
            return
        given = f"model {self.name[:40]}: {one.count} experts"
        if one.active > one.count:
            raise InputError(f"{given}, {one.active} active", "active must be at most count")
        if one.groups and (one.count % one.groups or not 1 <= one.top_groups <= one.groups):
            rule = "groups must divide count, and top_groups be 1 to groups"
            raise InputError(f"{given}, {one.groups} groups, top_groups {one.top_groups}", rule)


def _unwindowed(kind: LayerKind) -> LayerKind:
    windowed = kind.attention is Attention.WINDOW
    return LayerKind(Attention.FULL, kind.mlp) if windowed else kind


def _mean_window(tokens: int, window: int, chunked: bool) -> float:
    """Tokens that a token of a sequence attends to on average, under a causal window or chunk."""
    if window >= tokens:
        return tokens / 2
    if chunked:
        whole, rest = divmod(tokens, window)
        return (whole * window**2 + rest**2) / (2 * tokens)
    return window - window**2 / (2 * tokens)
