"""Figures of training runs in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.api.efficiencies import efficiency_notes, is_default
from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import plain_kind
from p2smt.result import Status
from p2smt.training.efficiencies.efficiency_files import fitted_on
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.prediction_errors import untold
from p2smt.training.prediction import AxisRequest, Cover, Prediction, RunEstimate
from p2smt.training.search.known import Known
from p2smt.training.strategy import PEAK_OF, Batch, Strategy, strategy_text
from p2smt.training.transformer import Transformer
from p2smt.units import counted, format_time, plain

if TYPE_CHECKING:
    from p2smt.training.search.hosts.hosted_answer import HostsAnswer
    from p2smt.training.search.plan_answer import PlanAnswer


def teraflops(flops: float) -> str:
    """Flop/s as ``404 TFLOP/s``."""
    return f"{_three_digits(flops / 1e12)} TFLOP/s"


def model_words(model: Transformer) -> str:
    """A model with its size: ``llama-3-70b (70.6 billion parameters)``."""
    return f"{model.name} ({_three_digits(model.parameters / 1e9)} billion parameters)"


def _three_digits(value: float) -> str:
    """At least three digits, and no powers of ten: ``1,130``."""
    return plain(value, grouped=True)


def batch_words(batch: Batch) -> str:
    """A batch: ``1,024 sequences of 8,192 tokens``."""
    return f"{counted(batch.sequences, 'sequence')} of {counted(batch.tokens, 'token')}"


def headline(answer: PlanAnswer) -> str:
    """Status of a plan and its proof."""
    status, proof = answer.status.value, answer.proof()
    return proof if proof.startswith(status) else f"{status}: {proof}"


def proof_words(answer: HostsAnswer) -> str:
    """What is proved of an answer on hosts."""
    many = answer.searched
    least, most = answer.batches
    of = f"batches of {least:,} to {most:,}" if least < most else f"a batch of {most:,}"
    space = f"strategies, up to {counted(len(answer.listed), 'host')} and their orders, {of}"
    match answer.status:
        case Status.OPTIMAL:
            return f"optimal in the model: all {space}"
        case Status.INFEASIBLE:
            why = "can be placed and launched" if answer.shortfall is None else "fits into memory"
            return f"infeasible: none of the {space} {why}"
        case _ if answer.best:
            return f"feasible: of {space} none is more than {answer.gap:.1%} faster"
        case _:
            return f"unknown: {many.costed} orders were costed; give the search more time"


def cluster_words(topology: Topology) -> str:
    """A cluster: ``64 devices of dgx-h100``."""
    return f"{counted(topology.installed, 'device')} of {topology.name}"


def efficiency_lines(
    topology: Topology, efficiency: Efficiency, launcher: str = "", dtype: str = "bf16"
) -> tuple[str, ...]:
    """What of the peak a framework reaches, how well that is known, and what is odd about it."""
    default = is_default(topology, efficiency, launcher)
    chosen = ", the default here: --efficiency takes another" if default else ""
    notes = efficiency_notes(topology, efficiency, launcher)
    return (
        f"efficiency {_efficiency_words(efficiency, dtype)}{chosen}",
        *(f"note: {text}" for text in notes),
    )


def stack_lines(topology: Topology, efficiency: Efficiency) -> tuple[str, ...]:
    """Whose times they are where nobody said, and how to ask for those of others on the device."""
    if not is_default(topology, efficiency):
        return ()
    kinds = efficiency.layers is not None
    others = [one for one in fitted_on(topology.known_device, kinds) if one.name != efficiency.name]
    named = ", ".join(f"--efficiency {one.name} is of {one.framework.name}" for one in others)
    return (f"assumed: {efficiency.framework.name}" + f"; {named}" * bool(others),)


def attention_lines(found: RunEstimate) -> tuple[str, ...]:
    """That scores are kept, where the devices have no kernels that would not."""
    device = found.topology.known_device
    if device.fused_attention or found.run.strategy.flash:
        return ()
    return (f"assumed: flash=0: FlashAttention has no kernels for {device.name}",)


def overlap_lines(found: RunEstimate) -> tuple[str, ...]:
    """That collectives of tp hide beside products, which trainers do where they are told to."""
    hidden = (
        one
        for one in found.prediction.requests
        if one.request.cover is Cover.PRODUCT and one.hidden_s > 0
    )
    if next(hidden, None) is None:
        return ()
    return ("assumed: collectives of tp overlap products, by --tp-comm-overlap in Megatron-LM",)


def untold_words(efficiency: Efficiency) -> str:
    """Why constants do not tell strategies apart; empty: they do."""
    found = untold(efficiency)
    if found is None:
        return ""
    return (
        f"the runs of {efficiency.name} do not tell strategies apart: a plain count of operations "
        f"is {found.operations:.1%} off them, the model {found.model:.1%}"
    )


def unmeasured(found: RunEstimate) -> tuple[str, ...]:
    """The collectives that an estimate rests on and that the calibration of its links did not
    measure; none where there was no calibration."""
    measured = {one.operation for _, one in found.topology.errors}
    asked = [plain_kind(one.request.kind).value for one in found.prediction.requests]
    return tuple(sorted({kind for kind in asked if kind not in measured})) if measured else ()


def unmeasured_words(found: RunEstimate) -> str:
    """The same in words; empty: there are none."""
    kinds = unmeasured(found)
    if not kinds:
        return ""
    measured = ", ".join(sorted({one.operation for _, one in found.topology.errors}))
    return f"rests on {', '.join(kinds)}, unmeasured: the calibration is of {measured}"


_BEYOND = "; range may not hold"


def known_words(known: Known) -> str:
    """What runs say of a strategy: which are like it, or what of it none had."""
    if not known.runs:
        return f"no run of such a model by these constants is known{_BEYOND}"
    if not known.inside:
        values = ", ".join(one.value for one in known.missing)
        like = f"{values}: no run like it" if values else "no run like it"
        return f"{like}{_BEYOND}"
    off = "their errors unknown" if known.off is None else f"{known.off:.1%} off"
    left_out = "" if known.off is None else ", their model left out"
    like = f"{known.like} of {known.runs} fitted runs on {known.device}"
    return f"{like} {'is' if known.like == 1 else 'are'} like it: {off}{left_out}"


def short_strategy(strategy: Strategy) -> str:
    """A strategy by what is not as usual, as ``--strategy`` takes it."""
    usual = strategy_text(Strategy()).split(",")
    parts = [part for part in strategy_text(strategy).split(",") if part not in usual]
    return ",".join(parts) or usual[0]


def apart_texts(strategies: Sequence[Strategy]) -> list[str]:
    """Strategies by what not all of them have; whole where that is nothing."""
    every = [strategy_text(one).split(",") for one in strategies]
    same = set(every[0]).intersection(*every)
    apart = [",".join(part for part in parts if part not in same) for parts in every]
    return [text or short_strategy(one) for text, one in zip(apart, strategies, strict=True)]


def _efficiency_words(efficiency: Efficiency, dtype: str) -> str:
    overhead = f" and {format_time(efficiency.layer_s)} a layer" if efficiency.layer_s else ""
    peak = PEAK_OF[dtype]
    low = peak in dict(efficiency.layers.low if efficiency.layers else ())
    whose = f" of {peak}" if low else ""
    text = f"{efficiency.name}: {plain(efficiency.fraction_of(peak))} of the peak{whose}{overhead}"
    if not efficiency.runs:
        return f"{text}, not fitted to measured runs"
    return f"{text}, fitted to {counted(efficiency.runs, 'measured run')}"


# The parts of an iteration's time by name: what shows, and what hides behind work.


COMPUTE, BUBBLE, OPTIMIZER = "compute", "bubble", "optimizer"


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of an iteration; ``hidden_s`` runs beside other parts and adds nothing."""

    name: str
    seconds: float
    hidden_s: float = 0.0


def time_parts(prediction: Prediction) -> tuple[TimePart, ...]:
    """The parts, whose ``seconds`` sum to the iteration: work, each axis, optimizer."""
    time, hidden = prediction.time, _hidden(prediction)
    axes = [
        TimePart(axis, seconds, hidden[axis])
        for axis, seconds in time.communication_s
        if seconds > 0 or hidden[axis] > 0
    ]
    return (
        TimePart(COMPUTE, time.compute_s),
        TimePart(BUBBLE, time.bubble_s),
        *axes,
        TimePart(OPTIMIZER, time.optimizer_s),
    )


def _hidden(prediction: Prediction) -> dict[str, float]:
    """Seconds that each axis communicates unseen, by the names that the visible ones have."""
    known = [axis for axis, _ in prediction.time.communication_s]
    found: dict[str, float] = defaultdict(float)
    for priced in prediction.requests:
        found[_name(priced.request, known)] += priced.hidden_s
    return found


def _name(request: AxisRequest, known: list[str]) -> str:
    """The axis that a request is named after: what dp and cp share is dp's."""
    first = request.name.partition(" ")[0]
    return first if first in known else "+".join(request.axes)
