"""vLLM and SGLang: ``vllm:tp=8,engines=8[,pp=..][,dp=..][,ep=..]``, ``sglang:tp=8,engines=2``.

Read in vLLM 0.11.0 and SGLang 0.5.5 (their wheels); paths are below ``vllm/`` and ``sglang/srt/``.

Common to both:

- q by rows of heads; k and v by rows of kv heads, each on tp / kv_heads ranks where tp is larger:
  ``model_executor/layers/linear.py`` 896-909 and 1170-1173 of vLLM, ``layers/linear.py`` 816-822
  and 1144-1148 of SGLang.  A rank stores [q; k; v] of its own heads;
- gate and up by rows, a rank stores [gate part; up part] (658-663 of vLLM's); o and down by columns
  (1316-1319); biases of rows with their rows; norms and routers whole;
- embedding and head by rows of a vocabulary padded to a multiple of 64, of which the real rows are
  loaded: ``layers/vocab_parallel_embedding.py`` 285-309 and 359-400 of vLLM, 36 of SGLang; ``pad=``
  is that multiple;
- MLA: q_a and kv_a whole, the matrices of heads by rows, ``models/deepseek_v2.py`` 874-921 of vLLM,
  1136-1212 of SGLang;
- tied embeddings are one tensor, on the first and the last stage: ``models/qwen2.py`` 306 of vLLM,
  446-461 of SGLang;
- layers of multi-token prediction are skipped: ``models/deepseek_v2.py`` 1331-1333 of vLLM;
- no more ranks of tp than experts: ``models/qwen3_moe.py`` 123 of vLLM, 93 of SGLang.

vLLM: ranks engine, dp, pp, tp, the last fastest (``distributed/parallel_state.py`` 1141-1143; an
engine here is its ExternalDP).  Experts are cut by rows and columns over all tp x dp ranks of a
stage; with expert parallelism (``ep``, which is tp x dp, or it is off) they are whole and
contiguous over these, the first groups one longer where they do not divide
(``model_executor/layers/fused_moe/config.py`` 695-730, ``layer.py`` 818-832, 1317-1346).  With it
and both tp and dp above 1, shared experts of DeepSeek are whole (``config/parallel.py`` 292-298 by
the usual all-to-all backend, ``models/deepseek_v2.py`` 106-117).

SGLang: ranks engine, pp, tp, the last fastest (``distributed/parallel_state.py`` 1573-1666).
``ep`` divides tp: rank t has experts of group t // (tp / ep), cut tp / ep ways (1617-1652 and
``layers/moe/fused_moe_triton/layer.py`` 165-173, 464-470).  Shared experts are cut by tp, which
DeepEP and Mooncake change (``models/deepseek_v2.py`` 661-674): no rules for these, nor for
attention shared out by dp.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.models import WeightModel
from p2smt.interop.weights.ranks import (
    HeldParts,
    RankGrid,
    cut,
    layout_by,
    padded_rows,
    whole,
)
from p2smt.interop.weights.stages import StageOf, listed_stages, sglang_sizes, vllm_sizes
from p2smt.interop.weights.weight_tensors import Role, Weight, weights_of
from p2smt.transfer.layouts import IndexBox, WeightLayout

VLLM_OPTIONS = ("tp", "pp", "dp", "ep", "engines", "layers", "pad")
SGLANG_OPTIONS = ("tp", "pp", "ep", "engines", "layers", "pad")
USUAL_PAD = 64
_EXPERTS = (Role.EXPERT_WIDE, Role.EXPERT_NARROW)
_SHARED = (Role.SHARED_WIDE, Role.SHARED_NARROW)
_ROWS = (Role.QUERY, Role.LATENT_HEADS, Role.WIDE, Role.SHARED_WIDE)
_COLUMNS = (Role.OUTPUT, Role.NARROW, Role.SHARED_NARROW)


def vllm_layout(given: WeightsText, model: WeightModel) -> WeightLayout:
    """Who holds what of a model in engines of vLLM.

    Raises:
        InputError: degrees do not divide what they cut, or layers do not fit the stages.
    """
    tp, pp, dp = (given.degree(name) for name in ("tp", "pp", "dp"))
    ranks = RankGrid.of(
        given, [("tp", tp), ("pp", pp), ("dp", dp), ("engine", given.degree("engines"))]
    )
    spread = _over_all(given, model, tp * dp)
    places = [d * tp + t for d, t in zip(ranks.at("dp"), ranks.at("tp"), strict=True)]
    whole_shared = model.family.sequence and spread.groups > 1 and tp > 1 and dp > 1
    sizes = vllm_sizes(model.sizes.layers, pp)
    return _layout(given, model, ranks, sizes, _Experts(spread, tuple(places)), whole_shared)


def sglang_layout(given: WeightsText, model: WeightModel) -> WeightLayout:
    """Who holds what of a model in engines of SGLang.

    Raises:
        InputError: degrees do not divide what they cut, or layers do not fit the stages.
    """
    tp, pp, ep = (given.degree(name) for name in ("tp", "pp", "ep"))
    ranks = RankGrid.of(given, [("tp", tp), ("pp", pp), ("engine", given.degree("engines"))])
    _check_given(given, model)
    given.divides(ep, tp, "tp", "ep")
    if model.sizes.experts:
        given.divides(ep, model.sizes.experts.count, "the experts", "ep")
    spread = _Spread(ep, tp // ep, model.sizes.experts.count if model.sizes.experts else 0)
    sizes = sglang_sizes(model.sizes.layers, pp)
    experts = _Experts(spread, tuple(ranks.at("tp")))
    return _layout(given, model, ranks, sizes, experts, whole_shared=False)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Experts over groups of ranks, each expert cut ``ways`` ways inside its group."""

    groups: int
    ways: int
    count: int

    def group(self, expert: int) -> int:
        """The group of an expert: contiguous, the first ones one longer."""
        each, more = divmod(self.count, self.groups)
        longer = more * (each + 1)
        return expert // (each + 1) if expert < longer else more + (expert - longer) // each


@dataclass(frozen=True, slots=True)
class _Experts:
    """How experts are spread over the places of ranks in their engine and stage."""

    spread: _Spread
    places: tuple[int, ...]


def _over_all(given: WeightsText, model: WeightModel, ranks: int) -> _Spread:
    """vLLM: over tp x dp ranks, whole with expert parallelism, else cut."""
    _check_given(given, model)
    experts = model.sizes.experts
    if "ep" not in given.values or given.degree("ep") == 1:
        return _Spread(1, ranks, experts.count if experts else 0)
    if given.degree("ep") != ranks:
        rule = f"must be tp x dp ({ranks}), over which vLLM spreads experts, or 1"
        raise given.error(f"ep={given.degree('ep')}", rule)
    if experts and experts.count < ranks:
        raise given.error(f"ep={ranks}", f"must be at most the {experts.count} experts")
    return _Spread(ranks, 1, experts.count if experts else 0)


def _check_given(given: WeightsText, model: WeightModel) -> None:
    if "ep" in given.values and not model.sizes.experts:
        raise given.error("ep", "is of experts, which the model does not have")


def _layout(
    given: WeightsText,
    model: WeightModel,
    ranks: RankGrid,
    sizes: list[int],
    experts: _Experts,
    whole_shared: bool,
) -> WeightLayout:
    stages = listed_stages(given, model.sizes.layers, sizes)
    rules = _Serving(given, model, ranks, stages, experts, whole_shared)
    rules.check()
    return layout_by(weights_of(model), ranks.devices, rules.kind, rules.held)


@dataclass(frozen=True, slots=True)
class _Serving:
    """The rules with their degrees."""

    given: WeightsText
    model: WeightModel
    ranks: RankGrid
    stages: StageOf
    experts: _Experts
    whole_shared: bool

    @property
    def tp(self) -> int:
        """Ways that dense weights are cut."""
        return self.ranks.sizes["tp"]

    def check(self) -> None:
        """Degrees divide what they cut.

        Raises:
            InputError: one does not.
        """
        given, sizes, tp = self.given, self.model.sizes, self.tp
        for name, most, what in (
            ("pp", sizes.layers, "layers"),
            ("tp", sizes.experts.count if sizes.experts else tp, "experts"),
        ):
            if given.degree(name) > most:
                raise given.error(f"{name}={given.degree(name)}", f"is more than {most} {what}")
        given.divides(tp, sizes.heads, "the heads", "tp")
        if not sizes.mla and sizes.kv_heads % tp and tp % sizes.kv_heads:
            rule = f"must be a multiple or a divisor of the {sizes.kv_heads} kv heads"
            raise given.error(f"tp={tp}", rule)
        if sizes.ffn:
            given.divides(tp, sizes.ffn, "the width of the MLP", "tp")
        if sizes.experts:
            ways = self.experts.spread.ways
            given.divides(ways, sizes.experts.width, "the width of an expert", "ranks of an expert")
            if not self.whole_shared:
                given.divides(tp, sizes.experts.shared_width, "the width of shared experts", "tp")
        pad = given.degree("pad", USUAL_PAD)
        given.divides(tp, -(-sizes.vocab // pad) * pad, "the padded vocabulary", "tp")

    def kind(self, weight: Weight) -> Hashable:
        """What weights of one role, stage and group of experts have in common."""
        group = self.experts.spread.group(weight.expert) if weight.expert >= 0 else 0
        return weight.role, self._stages_of(weight), group

    def _stages_of(self, weight: Weight) -> tuple[int, ...]:
        return tuple(sorted({self.stages[layer] for layer in weight.at}))

    def held(self, weight: Weight) -> HeldParts:
        """Each rank that has a part of a weight, with it."""
        parts = self.ranks.at("tp")
        for rank in self.ranks.where("pp", self._stages_of(weight)):
            if weight.role in _EXPERTS:
                boxes = self._of_expert(weight, self.experts.places[rank])
            else:
                boxes = self._dense(weight, parts[rank])
            for box in boxes:
                yield rank, box

    def _of_expert(self, weight: Weight, place: int) -> Iterator[IndexBox]:
        spread = self.experts.spread
        group, part = divmod(place, spread.ways)
        if group == spread.group(weight.expert):
            dim = int(weight.role is Role.EXPERT_NARROW)
            yield cut(weight.tensor.shape, dim, (part, spread.ways))

    def _dense(self, weight: Weight, part: int) -> Iterator[IndexBox]:
        shape, role = weight.tensor.shape, weight.role
        if role is Role.WHOLE or (role in _SHARED and self.whole_shared):
            yield whole(shape)
        elif role is Role.VOCABULARY:
            multiple = self.given.degree("pad", USUAL_PAD)
            yield from padded_rows(shape, (part, self.tp), multiple)
        elif role in (Role.KEY, Role.VALUE):
            heads = self.model.sizes.kv_heads
            count = min(self.tp, heads)
            yield cut(shape, 0, (part * count // self.tp, count))
        else:
            yield cut(shape, int(role in _COLUMNS), (part, self.tp))
