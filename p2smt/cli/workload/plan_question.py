"""What the options of `plan` ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from p2smt.cli import given
from p2smt.cli.workload.workload_options import WorkloadTexts
from p2smt.errors import InputError
from p2smt.training.search.question import (
    MAX_TOP,
    PlanQuestion,
    Prices,
    SpaceLimits,
    searched_field,
)
from p2smt.training.strategy import AXES, parse_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import AxisRule, FixedEntry
    from p2smt.training.strategy import Batch
    from p2smt.training.transformer import Transformer

_MOST = 10**6


@dataclass(frozen=True, slots=True)
class SpaceTexts:
    """The options that bound the space of strategies, as given."""

    max_tp: str | None
    max_pp: str | None
    max_cp: str | None
    max_vpp: str | None
    max_mbs: str | None
    recompute: str | None
    zero: str | None

    def limits(self) -> SpaceLimits:
        """The space; what is not given has the value of :class:`SpaceLimits`."""
        numbers = {
            "tp": self.max_tp,
            "pp": self.max_pp,
            "cp": self.max_cp,
            "vpp": self.max_vpp,
            "micro_batch": self.max_mbs,
        }
        options = {"micro_batch": "mbs"}
        found: dict[str, Any] = {
            field: given.count_of(text, f"--max-{options.get(field, field)}", _MOST)
            for field, text in numbers.items()
            if text is not None
        }
        for field, text in (("recompute", self.recompute), ("zero", self.zero)):
            if text is not None:
                found[field] = _choices(field, text)
        return SpaceLimits(**found)


def _choices(key: str, text: str) -> tuple[Any, ...]:
    """Values of a key, each once."""
    whole = f"--{key} {text[:40]!r}"
    values = [parse_value(key, part.strip(), whole) for part in text.split(",")]
    if len(set(values)) < len(values):
        raise InputError(whole, "names a value twice", "name each once")
    return tuple(values)


@dataclass(frozen=True, slots=True)
class RuleTexts:
    """Rules for strategy and placement, as given."""

    fix: Sequence[str]
    require: Sequence[str]
    forbid: Sequence[str]

    def fixed(self) -> tuple[tuple[str, Any], ...]:
        """Fields of the strategy with their values: ``tp=4``."""
        found = []
        for text in self.fix:
            key, equals, value = (part.strip() for part in text.partition("="))
            if ":" in value:
                continue
            whole = f"--fix {text[:40]!r}"
            if not equals:
                raise InputError(whole, "is not KEY=VALUE", "write it like tp=4, or pp=rack:2")
            found.append((searched_field(key, whole), parse_value(key, value, whole)))
        return tuple(found)

    def rules(self, topology: Topology) -> tuple[AxisRule | FixedEntry, ...]:
        """Rules of the matrix: --require, --forbid, and --fix such as ``pp=rack:2``."""
        from p2smt.parallelism.placement import ParallelismAxis

        axes = [ParallelismAxis(name, 1) for name in AXES]
        entries = [text for text in self.fix if ":" in text.partition("=")[2]]
        return given.rules_of(topology.names, axes, [*self.require], [*self.forbid], entries)


@dataclass(frozen=True, slots=True)
class WishTexts:
    """What is told of the answer, what requests cost, and what runs it, as given."""

    within: str
    top: str
    prices: str
    launcher: str | None
    flash: str
    dtype: str

    def fields(self, batch: Batch) -> dict[str, Any]:
        """As fields of the question."""
        known = {one.value: one for one in Prices}
        if self.prices not in known:
            rule = f"must be one of {', '.join(known)}"
            raise InputError(f"--prices {self.prices[:40]!r}", rule)
        return {
            "within": given.gap_of(self.within),
            "top": given.count_of(self.top, "--top", MAX_TOP),
            "prices": known[self.prices],
            "flash": parse_value("flash", self.flash, f"--flash {self.flash[:40]!r}"),
            "dtype": parse_value("dtype", self.dtype, f"--dtype {self.dtype[:40]!r}"),
            **self._launcher(batch),
        }

    def _launcher(self, batch: Batch) -> dict[str, Any]:
        if self.launcher is None:
            return {}
        from p2smt.api.planning import launcher_lacks

        return {"launcher": self.launcher, "lacks": launcher_lacks(self.launcher, batch)}


def question_of(
    model: Transformer,
    batch: Batch,
    topology: Topology,
    texts: WorkloadTexts,
    space: SpaceTexts,
    rules: RuleTexts,
    wishes: WishTexts,
) -> PlanQuestion:
    """The question that the options ask."""
    return PlanQuestion(
        model,
        batch,
        topology,
        texts.constants(topology, wishes.launcher),
        space.limits(),
        rules.fixed(),
        rules.rules(topology),
        texts.memory_bytes(),
        **wishes.fields(batch),
    )
