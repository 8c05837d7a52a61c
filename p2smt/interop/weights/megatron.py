"""Megatron-LM: ``megatron:tp=8,pp=4,dp=2[,cp=..][,ep=..][,etp=..][,vpp=..]``.

Read in NVIDIA/Megatron-LM d98e8a64:

- ranks: ``megatron/core/parallel_state.py`` 465-557 (``RankGenerator``) and 857-907: the order
  tp-cp-ep-dp-pp, tp fastest; experts have a grid of their own over the same ranks, etp, ep and what
  is left (cp = 1), where etp is tp unless it is said (871-872); ``order=tp-pp-dp`` is
  ``--use-tp-pp-dp-mapping`` (tp-cp-ep-pp-dp, ``megatron/training/initialize.py`` 395), where the
  two grids must have equal data parallelism (898-902);
- embedding and head: rows, padded to a multiple of 128 x tp (``pad=`` is
  ``--make-vocab-size-divisible-by``), ``megatron/training/vocab_utils.py`` 44-59; tied ones are on
  the first and the last stage;
- q, k and v: one matrix with the rows q q .. k v of one query group after the other, cut into tp
  equal parts as it is stored, also where a group is then cut: ``megatron/core/transformer/
  attention.py`` 353-380 and 1851-1871;
- MLA: what is common to all heads is duplicated, ``multi_latent_attention.py`` 527 and 574 (layers
  of Transformer Engine; the local ones cut it: no rules), the matrices of heads are cut by rows,
  the output by columns;
- gate and up: each rank stores [gate part; up part], ``mlp.py`` 203 and ``apply_swiglu_sharded_
  factory``; down by columns; shared experts by tp too, ``moe/shared_experts.py`` 131, their gate
  and the router whole;
- experts: expert e whole or by etp on ep rank e // (experts / ep), ``moe/moe_layer.py`` 186-194 and
  ``moe/experts.py`` (``TEGroupedMLP``: ``expt_tp`` cuts fc1 by rows, fc2 by columns);
- stages: :mod:`p2smt.interop.weights.stages`.

Optimizer states (the distributed optimizer, ``zero=1``) are no weights: every rank of dp holds its
weights; nor does sequence parallelism (``sp=1``) move any.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.models import WeightModel
from p2smt.interop.weights.ranks import (
    HeldParts,
    RankGrid,
    each_cut,
    layout_by,
    padded_rows,
    whole,
)
from p2smt.interop.weights.stages import StageOf, megatron_stages
from p2smt.interop.weights.weight_tensors import Role, Weight, weights_of
from p2smt.transfer.layouts import IndexBox, WeightLayout

MEGATRON_OPTIONS = (
    *("tp", "pp", "dp", "cp", "ep", "etp", "vpp", "first", "last", "layout", "order", "pad"),
)
STILL = {"sp": ("0", "1"), "zero": ("0", "1", "2")}
"""Sequence parallelism, optimizer states and gradients in parts: weights stay where they are."""
USUAL_PAD = 128
_LAST = {"tp-cp-ep-dp-pp": "pp", "tp-pp-dp": "dp", "tp-cp-ep-pp-dp": "dp"}
"""Orders of ranks, and which axis of them is the slowest."""
_EXPERTS = (Role.EXPERT_WIDE, Role.EXPERT_NARROW)
_ROWS = (Role.LATENT_HEADS, Role.WIDE, Role.SHARED_WIDE)
_COLUMNS = (Role.OUTPUT, Role.NARROW, Role.SHARED_NARROW)
_GROUPED = (Role.QUERY, Role.KEY, Role.VALUE)


def megatron_layout(given: WeightsText, model: WeightModel) -> WeightLayout:
    """Who holds what of a model in a training by Megatron-LM.

    Raises:
        InputError: degrees do not divide what they cut, or layers do not fit the stages.
    """
    rules = _Megatron(given, model)
    rules.check()
    return layout_by(weights_of(model), rules.dense.devices, rules.kind, rules.held)


@dataclass(frozen=True)
class _Megatron:
    """The rules with their degrees."""

    given: WeightsText
    model: WeightModel

    @cached_property
    def tp(self) -> int:
        """Ways that dense weights are cut."""
        return self.given.degree("tp")

    @cached_property
    def etp(self) -> int:
        """Ways that an expert is cut."""
        return self.given.degree("etp", self.tp) if self.model.sizes.experts else 1

    @cached_property
    def ep(self) -> int:
        """Groups of experts."""
        return self.given.degree("ep")

    @cached_property
    def stages(self) -> StageOf:
        """The stage of each layer."""
        return megatron_stages(self.given, self.model.sizes.layers)

    @cached_property
    def dense(self) -> RankGrid:
        """Ranks as dense weights see them."""
        degrees = {axis: self.given.degree(axis) for axis in ("cp", "dp", "pp")}
        return self._grid({"tp": self.tp, **degrees})

    @cached_property
    def of_experts(self) -> RankGrid:
        """Ranks as experts see them."""
        pp = self.given.degree("pp")
        left = self.dense.devices // pp // (self.etp * self.ep)
        return self._grid({"tp": self.etp, "ep": self.ep, "dp": left, "pp": pp})

    def _grid(self, sizes: Mapping[str, int]) -> RankGrid:
        order = self.given.values.get("order", "tp-cp-ep-dp-pp")
        if order not in _LAST:
            rule = f"is no order of ranks here; known are {', '.join(_LAST)}"
            raise self.given.error(f"order={order[:30]}", rule)
        ends = ("dp", "pp") if _LAST[order] == "pp" else ("pp", "dp")
        axes = [axis for axis in ("tp", "cp", "ep", *ends) if axis in sizes]
        return RankGrid.of(self.given, [(axis, sizes[axis]) for axis in axes])

    def check(self) -> None:
        """Degrees divide what they cut.

        Raises:
            InputError: one does not.
        """
        given, sizes, tp = self.given, self.model.sizes, self.tp
        given.divides(tp, sizes.heads, "the heads", "tp")
        if not sizes.mla and sizes.kv_heads % tp and tp % sizes.kv_heads:
            rule = f"must be a multiple or a divisor of the {sizes.kv_heads} query groups"
            raise given.error(f"tp={tp}", rule)
        if sizes.ffn:
            given.divides(tp, sizes.ffn, "the width of the MLP", "tp")
        if sizes.experts:
            given.divides(self.ep, sizes.experts.count, "the experts", "ep")
            given.divides(self.etp, sizes.experts.width, "the width of an expert", "etp")
            given.divides(tp, sizes.experts.shared_width, "the width of shared experts", "tp")
            self._check_experts()
        elif other := next((key for key in ("ep", "etp") if key in given.values), ""):
            raise given.error(other, "is of experts, which the model does not have")

    def _check_experts(self) -> None:
        """The grid of experts fills the ranks of a stage."""
        given, of_stage = self.given, self.dense.devices // self.given.degree("pp")
        if of_stage % (self.etp * self.ep):
            rule = f"their product must divide the {of_stage} ranks of a stage (tp x cp x dp)"
            remedy = "etp is tp unless it is given: give etp=1 for whole experts"
            raise given.error(f"etp={self.etp}, ep={self.ep}", rule, remedy)
        slow = _LAST[given.values.get("order", "tp-cp-ep-dp-pp")] == "dp"
        if slow and given.degree("pp") > 1 and self.of_experts.sizes["dp"] != given.degree("dp"):
            rule = "needs the same data parallelism of experts as of the rest"
            raise given.error("order", rule, "leave order out")

    def kind(self, weight: Weight) -> Hashable:
        """What weights of one role, stage and group of experts have in common."""
        return weight.role, self._stages_of(weight), self._group(weight)

    def _stages_of(self, weight: Weight) -> tuple[int, ...]:
        return tuple(sorted({self.stages[layer] for layer in weight.at}))

    def _group(self, weight: Weight) -> int:
        experts = self.model.sizes.experts
        return weight.expert // (experts.count // self.ep) if experts and weight.expert >= 0 else 0

    def held(self, weight: Weight) -> HeldParts:
        """Each rank that has a part of a weight, with it."""
        shape, role, stages = weight.tensor.shape, weight.role, self._stages_of(weight)
        if role in _EXPERTS:
            grid, dim = self.of_experts, int(role is Role.EXPERT_NARROW)
            ranks = grid.where("pp", stages, ep=self._group(weight))
            return each_cut(shape, dim, ranks, grid.at("tp"), self.etp)
        ranks, parts = self.dense.where("pp", stages), self.dense.at("tp")
        if role in _ROWS or role in _COLUMNS:
            return each_cut(shape, int(role in _COLUMNS), ranks, parts, self.tp)
        if role is Role.VOCABULARY:
            multiple = self.given.degree("pad", USUAL_PAD) * self.tp
            rows = {p: padded_rows(shape, (p, self.tp), multiple) for p in range(self.tp)}
        elif role in _GROUPED:
            rows = {p: list(self._grouped(shape, role, p)) for p in range(self.tp)}
        else:
            rows = {p: [whole(shape)] for p in range(self.tp)}
        return ((rank, box) for rank in ranks for box in rows[parts[rank]])

    def _grouped(self, shape: tuple[int, ...], role: Role, part: int) -> Iterator[IndexBox]:
        """What a part of the stored matrix has of q, k or v: rows group by group, q .. q k v."""
        sizes = self.model.sizes
        head, queries = sizes.head_size, sizes.heads // sizes.kv_heads
        first = {Role.QUERY: 0, Role.KEY: queries, Role.VALUE: queries + 1}[role] * head
        rows = (queries if role is Role.QUERY else 1) * head
        stored, span = (queries + 2) * head, sizes.kv_heads * (queries + 2) * head // self.tp
        begin, end = part * span, (part + 1) * span
        found: list[tuple[int, int]] = []
        for group in range(begin // stored, -(-end // stored)):
            at = group * stored + first
            start, stop = max(begin, at) - at, min(end, at + rows) - at
            if start < stop:
                found.append((group * rows + start, group * rows + stop))
        if found:  # groups lie side by side in q, k and v: what a part has of each is one range
            yield ((found[0][0], found[-1][1]), *((0, size) for size in shape[1:]))
