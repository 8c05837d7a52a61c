"""`p2smt plan`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import gcd
from typing import TYPE_CHECKING, Any

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.codes import INTERRUPTED
from p2smt.cli.output import command_line, note_beside
from p2smt.cli.parameters import Text, Texts, opened, option, part
from p2smt.cli.training import training_options as t
from p2smt.cli.training.compare_options import CompareOptions
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from p2smt.api.host_plan import PlannedOnHosts
    from p2smt.api.planning import Planned, Recommended
    from p2smt.api.what_if import WhatIf
    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import AxisRule, FixedEntry
    from p2smt.report.outputs.training import PlanOutput
    from p2smt.result import SearchLimits
    from p2smt.training.measured.anchor import Anchor
    from p2smt.training.prediction import RunEstimate
    from p2smt.training.present.comparison import PresentRun, RunComparison
    from p2smt.training.search.question import PlanQuestion, SpaceLimits
    from p2smt.training.strategy import Batch, Strategy
    from p2smt.training.transformer import Transformer

_MOST = 10**6


@dataclass(frozen=True)
class StrategyOptions:
    """Which strategies and placements are looked at, what requests cost, and what is told."""

    fix: Texts = option("KEY=N", "Such as tp=4 or recompute=none; or pp=rack:2 (matrix).")
    require: Texts = o.REQUIRE
    forbid: Texts = o.FORBID
    within: str = option("P%", "Count strategies at most so much slower.", default="5%")
    top: str = option("N", "How many strategies to rank.", default="3")
    pick: Text = option(
        "N|fastest",
        "Which of the list to run and to write; default: of those in the range of the fastest, the "
        "one nearest to a measured run.",
    )
    prices: str = option(
        "NAME",
        "What requests cost: collectives (then the best gets programs), or programs.",
        default="collectives",
    )
    launcher: Text = option(
        "NAME", "Only what it can run: megatron, megatron-bridge, torchtitan or deepspeed."
    )
    max_tp: Text = option("N", "Largest tp; default: a switch domain.")
    max_pp: Text = option("N", "Largest pp; default: the layers.")
    max_cp: Text = option("N", "Largest cp.")
    max_vpp: Text = option("N", "Most chunks of a stage.")
    max_mbs: Text = option("N", "Largest micro-batch.")
    max_ep: Text = option("N", "Of a mixture: largest ep; default: the experts.")
    max_etp: Text = option("N", "Of a mixture: largest etp.")
    max_dp_replicate: Text = option(
        "N", "Most copies of what ZeRO shards (HSDP); default: 1, for torchtitan any number."
    )
    recompute: Text = option(
        "NAMES",
        "Some of none, selective, full; of a mixture also modules: none,moe_act+layernorm.",
    )
    zero: Text = option(
        "N,..", "Stages of ZeRO; default: 0,1,2,3, of a mixture 0,1 (but for torchtitan)."
    )
    dispatcher: Text = option("NAMES", "Of a mixture: some of alltoall, flex; default: both.")
    overlap: Text = option("0,1", "Of a mixture: dispatch beside computing; default: both.")
    graphs: str = option("NAME", "Kernels that are captured: none, partial, full.", default="none")
    fp8_attention: str = option("0|1", "Core of attention in 8 bits.", default="0")
    flash: Text = option("0|1", "Fused attention; default: 1 where the devices have it.")
    dropout: Text = option("0|1", "Dropout; default: 0, with --compare as yours.")
    dtype: str = option("NAME", "bf16, fp16, fp8, mxfp8 or nvfp4.", default="bf16")

    def question(
        self,
        model: Transformer,
        batch: Batch,
        topology: Topology,
        workload: t.WorkloadOptions,
        memory: Text,
    ) -> PlanQuestion:
        """The question that they ask."""
        from p2smt.training.search.question import PlanQuestion, searched_axes

        return PlanQuestion(
            model,
            batch,
            topology,
            workload.constants(topology, self.launcher, self._kinds(model, batch)),
            self._space(),
            self._fixed(),
            self._rules(topology, searched_axes(model)),
            t.memory_bytes(memory),
            **self._wishes(batch, topology),
            **workload.given(),
        )

    def like(self, yours: Strategy) -> StrategyOptions:
        """The same with what all strategies have in common as yours has it, unless it is given."""
        own: dict[str, Any] = {
            "graphs": yours.graphs,
            "fp8_attention": str(int(yours.fp8_attention)),
            "flash": str(int(yours.flash)),
            "dropout": str(int(yours.dropout)),
            "dtype": yours.dtype,
        }
        usual = StrategyOptions()
        free = (name for name in own if getattr(self, name) == getattr(usual, name))
        return replace(self, **{name: own[name] for name in free})

    @property
    def lists(self) -> bool:
        """Whether a list of strategies is asked for, by --top or --within."""
        usual = StrategyOptions()
        return (self.top, self.within) != (usual.top, usual.within)

    def _kinds(self, model: Transformer, batch: Batch) -> bool:
        """Whether constants by kinds of layers are needed."""
        from p2smt.training.strategy import SIXTEEN

        return self.dtype not in SIXTEEN or not model.seen(batch.tokens).dense

    def _space(self) -> SpaceLimits:
        """The space; what is not given has the value of :class:`SpaceLimits`."""
        from p2smt.training.search.question import SpaceLimits

        numbers = {
            "tp": self.max_tp,
            "pp": self.max_pp,
            "cp": self.max_cp,
            "vpp": self.max_vpp,
            "micro_batch": self.max_mbs,
            "ep": self.max_ep,
            "etp": self.max_etp,
            "dp_replicate": self.max_dp_replicate,
        }
        choices = {
            "recompute": self.recompute,
            "zero": self.zero,
            "dispatcher": self.dispatcher,
            "overlap": self.overlap,
        }
        options = {"micro_batch": "mbs", "dp_replicate": "dp-replicate"}
        found: dict[str, Any] = {
            field: given.count_of(text, f"--max-{options.get(field, field)}", _MOST)
            for field, text in numbers.items()
            if text is not None
        }
        for field, text in choices.items():
            if text is not None:
                found[field] = _choices(field, text)
        return SpaceLimits(**found)

    def _fixed(self) -> tuple[tuple[str, Any], ...]:
        """Fields of the strategy with their values: ``tp=4``."""
        from p2smt.training.search.question import searched_field
        from p2smt.training.strategy import parse_value

        found = []
        for text in self.fix or []:
            key, equals, value = (part.strip() for part in text.partition("="))
            if ":" in value:
                continue
            whole = f"--fix {text[:40]!r}"
            if not equals:
                raise InputError(whole, "is not KEY=VALUE", "write it like tp=4, or pp=rack:2")
            found.append((searched_field(key, whole), parse_value(key, value, whole)))
        return tuple(found)

    def _rules(self, topology: Topology, names: Sequence[str]) -> tuple[AxisRule | FixedEntry, ...]:
        """Rules of the matrices: --require, --forbid, and --fix such as ``pp=rack:2``."""
        from p2smt.parallelism.placement import ParallelismAxis

        axes = [ParallelismAxis(name, 1) for name in names]
        entries = [text for text in self.fix or [] if ":" in text.partition("=")[2]]
        return o.RuleOptions(self.require, self.forbid, entries).rules(topology.names, axes)

    def _wishes(self, batch: Batch, topology: Topology) -> dict[str, Any]:
        """What is told of the answer, what requests cost, and what runs it."""
        from p2smt.training.search.question import MAX_TOP, Prices
        from p2smt.training.strategy import parse_value

        known = {one.value: one for one in Prices}
        dropout = "0" if self.dropout is None else self.dropout
        if self.prices not in known:
            rule = f"must be one of {', '.join(known)}"
            raise InputError(f"--prices {self.prices[:40]!r}", rule)
        return {
            "within": given.gap_of(self.within),
            "top": given.count_of(self.top, "--top", MAX_TOP),
            "prices": known[self.prices],
            "flash": self._fused(topology),
            "graphs": parse_value("graphs", self.graphs, f"--graphs {self.graphs[:40]!r}"),
            "fp8_attention": parse_value(
                "fp8_attention", self.fp8_attention, f"--fp8-attention {self.fp8_attention[:40]!r}"
            ),
            "dropout": parse_value("dropout", dropout, f"--dropout {dropout[:40]!r}"),
            "dtype": parse_value("dtype", self.dtype, f"--dtype {self.dtype[:40]!r}"),
            **self._launcher(batch),
        }

    def _fused(self, topology: Topology) -> bool:
        """Whether attention is fused: as it is given, or where the devices have kernels for it."""
        from p2smt.training.strategy import parse_value

        if self.flash is None:
            return topology.device is None or topology.device.fused_attention
        return bool(parse_value("flash", self.flash, f"--flash {self.flash[:40]!r}"))

    def _launcher(self, batch: Batch) -> dict[str, Any]:
        if self.launcher is None:
            return {}
        from p2smt.api.planning import launcher_lacks

        return {"launcher": self.launcher, "lacks": launcher_lacks(self.launcher, batch)}


def _choices(key: str, text: str) -> tuple[Any, ...]:
    """Values of a key, each once."""
    from p2smt.training.strategy import parse_value

    whole = f"--{key} {text[:40]!r}"
    values = [parse_value(key, part.strip(), whole) for part in text.split(",")]
    if len(set(values)) < len(values):
        raise InputError(whole, "names a value twice", "name each once")
    return tuple(values)


@opened
def plan(
    *,
    model: Text = t.MODEL,
    cluster: o.ClusterOptions,
    workload: t.WorkloadOptions,
    memory: Text = t.MEMORY,
    hosts: Text = o.HOSTS,
    strategies: StrategyOptions,
    beside: CompareOptions,
    links: o.PriceOptions = part("library", "nominal"),
    how: o.SearchOptions = part("time_limit", "seed", "workers"),
    parts: o.PartOptions,
    svg: Text = t.SVG,
    what_if: Texts = o.WHAT_IF,
    measured: Texts = t.MEASURED,
    force: bool = t.FORCE,
    output: Text = o.PLAN_FILE,
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """The fastest strategy and placement to train a model, proved in the model of cost.

    On a topology that names hosts: also how many and which of them, and in which order.
    """
    from p2smt.api.planning import compare_planned
    from p2smt.api.planning import plan as planned
    from p2smt.cli.solve_command import hosts_of
    from p2smt.cluster.changed_cluster import parse_changes
    from p2smt.files.write import check_svg_name
    from p2smt.training.on_hosts import devices_on

    if beside.compare is None or not beside.is_file:
        workload.check_given({"model": model, "topology": cluster.topology})
    topology = cluster.under(links)
    listed = hosts_of(hosts, topology)
    devices = devices_on(topology, listed)
    yours = beside.read(model, workload, devices, measured)
    workload = workload if yours is None else yours.completed(workload)
    launch = None if yours is None else yours.launch
    trained, batch = workload.of(
        model, ranges=True, trained=None if launch is None else launch.model
    )
    now = None if yours is None else yours.strategy(workload, devices, topology.device)
    strategies = strategies if now is None else strategies.like(now)
    batches = workload.batches()
    chosen = listed is not None and (hosts is not None or _of_hosts(topology, listed, batches))
    if chosen:
        _refuse_on_hosts(parts.given())
    parse_changes(what_if or (), topology, even=not chosen)  # refused before anything is searched
    o.plan_writable(output, svg)
    o.check_kept(output, beside.compare)
    if output is not None and topology.devices == 1:
        rule = "has no plan file: a plan has requests, and one device sends nothing"
        raise InputError(f"a training on one device of {topology.name}", rule, "drop -o")
    if svg is not None:
        check_svg_name(svg)
    question = strategies.question(trained, batch, topology, workload, memory)
    own = t.anchor_of(
        *(measured, trained, topology, batch, question.efficiency),
        *(workload.given(), force, beside.settings, listed if chosen else None, batches[0]),
    )
    question = _anchored(question, own)
    limits = how.limits()
    present: PresentRun | None = None
    if yours is not None and now is not None:
        present = yours.present(question, now, batches, listed if chosen else None)
    if listed is not None and chosen:
        asked = HostsAsked(
            question, listed, batches, limits, strategies.pick, present=present, own=own
        )
        asked = replace(asked, all_near=strategies.lists, what_if=tuple(what_if or ()))
        return _on_hosts(asked, (output, svg, details, json))
    if batches[0] < batches[1]:
        rule = "is a range, which is searched on named hosts"
        raise InputError(f"--global-batch {workload.global_batch}", rule, "give one number")
    parts.check_apart(output, svg)
    if present is not None and strategies.prices != StrategyOptions().prices:
        rule = "are not sought for what --compare names, which has a collective for each request"
        raise InputError("prices of programs", rule, "drop --prices")
    with t.hinting_at_part(topology, partial(_valid_on, question)):
        found = planned(question, limits, parts.over(), strategies.pick)
    _tell_odd(found)
    compared = None
    if present is not None and not found.interrupted:
        compared = compare_planned(found, present, limits)
    changes = parse_changes(what_if or (), question.topology)
    rows: tuple[WhatIf, ...] = ()
    if changes and found.listed and not found.interrupted:
        from p2smt.api.what_if import plan_what_if

        rows = tuple(plan_what_if(question, found.listed[0], changes, limits))
    cut = bool(found.listed) and len(rows) < len(changes)
    code = _finish(found, output, svg, rows, own, compared, details=details, as_json=json)
    return INTERRUPTED if cut else code


def _valid_on(question: PlanQuestion, there: Topology) -> None:
    """Raises where no strategy is valid."""
    from p2smt.training.search.choices import Choices
    from p2smt.training.search.strategies import space_of

    asked = replace(question, topology=there)
    space_of(asked, Choices.of(asked))


def _tell_odd(found: Planned) -> None:
    """Say which degrees but dp take up the odd factor of a rack, and what part of it has none."""
    from p2smt.cluster.trimmed import even_part

    part = even_part(found.answer.question.topology)
    if part is None or found.recommended is None:
        return
    chosen = found.recommended.estimate.run.strategy
    degrees = ((axis, getattr(chosen, axis)) for axis in ("tp", "pp", "cp", "ep"))
    odd = ", ".join(f"{axis}={size}" for axis, size in degrees if gcd(size, part.odd) > 1)
    if odd:
        why = f"{odd}: a factor {part.odd} of {part.size} must lie somewhere"
        note_beside(f"{why}; --use {part.use} has none: {part.words}")


def _of_hosts(topology: Topology, listed: Sequence[str], batches: tuple[int, int]) -> bool:
    """Whether hosts are to be chosen, and not all of a regular cluster taken as they lie."""
    from p2smt.training.on_hosts import in_order

    return batches[0] < batches[1] or not in_order(topology, listed, topology.devices)


@dataclass(frozen=True)
class HostsAsked:
    """A question on the hosts of a job, and what is asked around its answer."""

    question: PlanQuestion
    listed: tuple[str, ...]
    batches: tuple[int, int]
    limits: SearchLimits
    pick: str | None
    all_near: bool = False
    what_if: tuple[str, ...] = ()
    present: PresentRun | None = None
    own: Anchor | None = None


def _refuse_on_hosts(options: Mapping[str, object]) -> None:
    """Raise InputError if an option is given that is not for a search on hosts."""
    for name, value in options.items():
        if value is not None:
            raise InputError(name, "does not apply to a search on named hosts", "drop it")


def _on_hosts(asked: HostsAsked, shown: tuple[Text, Text, bool, bool]) -> int:
    """Search on the hosts of a job, and show the answer.

    Raises:
        InputError: what is picked is not listed.
    """
    from p2smt.api.host_plan import compare_on_hosts, plan_on_hosts
    from p2smt.api.planning import write_training_plan
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import tell_tables
    from p2smt.report.text import printable
    from p2smt.report.training.compare_screen import compare_screen, compare_tables
    from p2smt.report.training.estimate_data import hosts_data
    from p2smt.report.training.first_screen import hosts_screen
    from p2smt.report.training.picture import write_run_picture
    from p2smt.report.training.run_words import proof_words
    from p2smt.report.training.training_tables import estimate_tables

    output, svg, details, as_json = shown
    found = plan_on_hosts(
        *(asked.question, asked.listed, asked.batches, asked.limits, asked.pick),
        all_near=asked.all_near,
    )
    compared = None
    if asked.present is not None and not found.answer.interrupted:
        compared = compare_on_hosts(found, asked.present, asked.limits)
    rows = _what_if_on_hosts(asked, found)
    written, plan, run = _gained_on_hosts(found, rows), found.plan, found.recommended
    if plan is not None and output is not None:
        from p2smt.report.page.answer_part import hosted_answer

        write_training_plan(plan, output, hosted_answer(found, command_line()))
        written.append(_plan_written(output, run, compared))
    if run is not None and svg is not None:
        write_run_picture([run.estimate], svg)
        written.append(f"picture written to {printable(svg)}")

    def tables() -> Iterator[RenderableType]:
        below = () if details else written
        if compared is not None:
            said = proof_words(found.answer)
            yield from compare_screen(compared, said, below, asked.own, output)
        if details and compared is not None:
            yield from ("", compare_tables(compared), "")
        if details or compared is None:
            yield from hosts_screen(found, below, asked.own, output)
        if details and run is not None:
            yield from ("", estimate_tables(run.estimate))

    data = partial(hosts_data, found, rows or None, compared, asked.own)
    tell_tables(as_json, data, tables, written)
    cut = found.estimate is not None and len(rows) < len(asked.what_if)
    interrupted = found.answer.interrupted or cut
    return INTERRUPTED if interrupted else exit_code(found.answer.status)


def _what_if_on_hosts(asked: HostsAsked, found: PlannedOnHosts) -> tuple[WhatIf, ...]:
    """The fastest strategy under each change, on the hosts of the job."""
    from p2smt.api.what_if import asked_on_hosts, plan_what_if
    from p2smt.cluster.changed_cluster import parse_changes

    if found.estimate is None or found.answer.interrupted or not asked.what_if:
        return ()
    question = asked.question
    changes = parse_changes(asked.what_if, question.topology, even=False)
    ask = asked_on_hosts(asked.listed, asked.batches, asked.limits)
    return tuple(plan_what_if(question, found.estimate, changes, ask=ask))


def _gained_on_hosts(found: PlannedOnHosts, rows: Sequence[WhatIf]) -> list[str]:
    return [] if found.estimate is None else _gained(found.estimate, rows)


def _finish(
    found: Planned,
    output: str | None,
    svg: str | None,
    rows: Sequence[WhatIf] = (),
    own: Anchor | None = None,
    compared: RunComparison | None = None,
    *,
    details: bool,
    as_json: bool,
) -> int:
    """Write the files first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import tell_tables

    written = [
        *(_gained(found.listed[0], rows) if rows else ()),
        *_write(found, output, svg, compared),
    ]
    tell_tables(
        as_json,
        lambda: _data(found, rows, own, compared),
        lambda: _shown(found, written, own, compared, output, details=details),
        t.after_tables(written, details),
    )
    return INTERRUPTED if found.interrupted else exit_code(found.answer.status)


def _data(
    found: Planned, rows: Sequence[WhatIf], own: Anchor | None, compared: RunComparison | None
) -> PlanOutput:
    from p2smt.report.training.estimate_data import planned_data

    return planned_data(found, rows or None, own, compared)


def _anchored(question: PlanQuestion, own: Anchor | None) -> PlanQuestion:
    """The question with links and the host as they were measured; the factor is of every time."""
    if own is None:
        return question
    topology, efficiency = own.topology(question.topology), own.efficiency(question.efficiency)
    return replace(question, topology=topology, efficiency=efficiency)


def _gained(now: RunEstimate, rows: Sequence[WhatIf]) -> list[str]:
    """The fastest strategy under each change, beside the fastest of now."""
    from p2smt.report.training.run_words import short_strategy
    from p2smt.report.what_if_rows import training_lines

    if not rows:
        return []
    here = short_strategy(now.run.strategy), now.iteration_s
    return training_lines(rows, here, "fastest strategy")


def _shown(
    found: Planned,
    below: Sequence[str],
    own: Anchor | None,
    compared: RunComparison | None,
    file: str | None,
    *,
    details: bool,
) -> Iterator[RenderableType]:
    """The first screen, and all tables if these are asked for."""
    from p2smt.report.training.first_screen import plan_screen

    room_for = () if details else below
    if compared is not None:
        from p2smt.report.training.compare_screen import compare_screen, compare_tables
        from p2smt.report.training.run_words import headline

        proof = headline(found.answer).partition(", with a single collective")[0]
        yield from compare_screen(compared, proof, room_for, own, file)
        if details:
            yield from ("", compare_tables(compared), "")
    if details or compared is None:
        yield from plan_screen(found, room_for, own, file)
    if details:
        from p2smt.report.training.training_tables import plan_tables

        yield from ("", plan_tables(found))


def _plan_written(output: str, run: Recommended | None, compared: RunComparison | None) -> str:
    """Where the plan is; beside what somebody runs also which it is, if not the best there."""
    from p2smt.api.planning import Why
    from p2smt.report.text import printable
    from p2smt.report.training.run_words import short_strategy

    text = f"plan written to {printable(output)}"
    if compared is None or run is None or run.why is not Why.NEAREST or run.number == 1:
        return text
    short = short_strategy(run.estimate.run.strategy)
    return f"{text}: nearest to a measured run, {short}; --pick fastest writes the best"


def _write(
    found: Planned, output: str | None, svg: str | None, compared: RunComparison | None
) -> list[str]:
    """Write plan and picture; returns what to say of it."""
    from p2smt.report.text import printable

    lines: list[str] = []
    run = found.recommended
    if run is None:
        return lines
    if output is not None:
        from p2smt.api.planning import write_training_plan
        from p2smt.report.page.answer_part import planned_answer

        write_training_plan(run.plan, output, planned_answer(found, command_line()))
        lines.append(_plan_written(output, run, compared))
    if svg is not None:
        from p2smt.report.training.picture import write_run_picture

        first = found.listed[run.number - 1]
        others = (one for one in found.listed if one is not first)
        write_run_picture([first, *others], svg)
        lines.append(f"picture written to {printable(svg)}")
    return lines
