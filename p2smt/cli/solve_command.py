"""`p2smt solve`, and the hosts that it shares with `compare`."""

from __future__ import annotations

import json as json_module
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.guide.progress import tell_times
from p2smt.cli.parameters import Text, Texts, flag, opened, option, part

if TYPE_CHECKING:
    from rich.console import RenderableType

    from p2smt.cluster.changed_cluster import ClusterChange
    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.request import Problem
    from p2smt.plans.solution import Solution
    from p2smt.report.outputs.solve import SolveOutput
    from p2smt.search.comparison import Comparison
    from p2smt.search.solve_what_if import SolvedChange

NODELIST, ON_NODE = "SLURM_JOB_NODELIST", "SLURM_GPUS_ON_NODE"
ALL = "all"
"""Of --hosts: those that the topology names, whatever the job got."""


@opened
def solve(
    *,
    cluster: o.ClusterOptions,
    hosts: Text = o.HOSTS,
    axes: Text = o.AXES,
    requests: o.RequestOptions = part(
        *("reduce", "reduce_scatter", "all_gather", "all_to_all", "dispatch", "send"),
        metavar="AXES=SIZE[*N]",
    ),
    objective: str = o.OBJECTIVE,
    top: Text = option("N", "How many placements to rank; default: 3."),
    within: Text = option(
        "P%",
        "List every placement at most so much slower than the best, such as 5%; default: count "
        "those within 5%, for a fifth of the time.  On named hosts: every order, where there are "
        "few.",
    ),
    compare: Text = option(
        "LAYOUT",
        "Your layout: a matrix or a rank list; on named hosts also hosts, or what `compare` takes.",
    ),
    sensitivity: bool = flag("Re-solve with bandwidths 20 %, calls 50 % off."),
    explain: bool = flag(
        "How far each number may be off before another answer wins, and what holds for every "
        "hardware.  On named hosts: what each request waits for."
    ),
    split: bool = flag(
        "Send parts of a payload through several programs at once, and say what no split gains "
        "(proved by prices)."
    ),
    what_if: Texts = o.WHAT_IF,
    rules: o.RuleOptions,
    programs: o.ProgramOptions,
    prices: o.PriceOptions,
    how: o.SearchOptions,
    parts: o.PartOptions,
    output: Text = o.PLAN_FILE,
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """The best placement and programs, with a proof.

    On a topology that names hosts: the best order of the hosts that the job got, and which to leave
    idle.
    """
    from p2smt.cli import given
    from p2smt.parallelism.request import Problem, parse_objective
    from p2smt.search.near_optimal import BRIEFLY
    from p2smt.search.solve import MAX_TOP
    from p2smt.search.solve import solve as search

    topology = cluster.under(prices)
    chosen = given.axes_of(axes)
    problem = Problem(
        topology,
        chosen,
        requests.sized(),
        parse_objective(objective),
        programs.most(),
        rules.rules(topology.names, chosen),
        programs.forbidden(),
        programs.step_limits(topology.names),
        prices.algorithms(),
        prices.chunks(),
    )
    parts.check_apart(output)
    listed = hosts_of(hosts, topology)
    limits = how.limits()
    o.plan_writable(output)
    changes = _changes(what_if, problem)
    if listed is not None:
        asked = {"--top": top, "--pipeline": prices.pipeline, "--split": split or None}
        _refuse_on_hosts({**asked, **parts.given()})
        around = Around(compare, None if within is None else given.gap_of(within), sensitivity)
        return _on_hosts(problem, listed, around, changes, how, (output, explain, details, json))
    near = BRIEFLY if within is None else given.gap_of(within)
    order = None if compare is None else given.rank_order_of(compare)
    solution = search(
        problem,
        top=given.count_of("3" if top is None else top, "top", MAX_TOP),
        limits=limits,
        solver=how.by(),
        compare=order,
        sensitivity=sensitivity,
        explain=explain,
        split=split,
        within=near,
        progress=None if parts.wanted else tell_times,
        spread=parts.over(),
    )

    def again(changed: Problem) -> Solution:
        return search(changed, top=1, limits=limits, solver=how.by())

    rows = _gained(solution, problem, changes, again)
    return _finish(solution, output, json, rows=rows, cut=len(rows) < len(changes), details=details)


def _changes(texts: Texts, problem: Problem) -> tuple[ClusterChange, ...]:
    """The changes that were asked for, refused before anything is searched."""
    if not texts:
        return ()
    from p2smt.search.solve_what_if import solved_changes

    return solved_changes(texts, problem)


def _gained(
    found: Solution,
    problem: Problem,
    changes: Sequence[ClusterChange],
    again: Callable[[Problem], Solution],
) -> tuple[SolvedChange, ...]:
    """What each change gains; nothing where there is no answer, or it was interrupted."""
    if not changes or found.best is None or found.interrupted:
        return ()
    from p2smt.search.solve_what_if import solve_what_if

    return tuple(solve_what_if(found, problem, changes, again))


def _finish(
    solution: Solution,
    output: str | None,
    as_json: bool,
    beside: Comparison | None = None,
    rows: Sequence[SolvedChange] = (),
    *,
    cut: bool = False,
    explained: bool = False,
    details: bool = False,
) -> int:
    """Write the plan first: what is shown may go to a pipe that nobody reads any more.

    ``beside``: the orders that an answer on named hosts is compared with, and ``explained``:
    whether it says what binds; ``rows``: what changes of the cluster gain, the last of which may be
    ``cut`` off; ``details``: all tables.
    """
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import command_line, tell_tables
    from p2smt.files.write import write_atomically
    from p2smt.report.text import printable

    @cache
    def data() -> SolveOutput:
        from p2smt.report.solution_data import solution_data

        return solution_data(solution, beside, rows or None, explained=explained)

    def tables() -> Iterable[RenderableType]:
        if details:
            return (_tables(solution, beside, explained),)
        return _screen(solution, beside, lines, explained, output)

    lines = _gain_lines(rows, solution) if rows else []
    try:
        if output is not None and data().plan is not None:
            from p2smt.report.page.answer_part import solved_answer

            answer = solved_answer(solution, beside, command_line())
            plan = {**(data().plan or {}), "answer": answer}
            write_atomically(output, json_module.dumps(plan) + "\n")
            lines += [f"\nplan written to {printable(output)}"]
    finally:
        tell_tables(as_json, data, tables, lines)
    stopped = solution.interrupted or (cut and solution.best is not None)
    return INTERRUPTED if stopped else exit_code(solution.status)


def _gain_lines(rows: Sequence[SolvedChange], solution: Solution) -> list[str]:
    from p2smt.report.what_if_rows import solve_lines

    return solve_lines(rows, solution)


def _screen(
    solution: Solution,
    beside: Comparison | None,
    below: Sequence[str],
    explained: bool,
    file: str | None,
) -> list[str]:
    if beside is None:
        from p2smt.report.screens.solutions import solve_screen

        return solve_screen(solution, below, file)
    from p2smt.report.screens.order_screens import hosts_screen

    return hosts_screen(solution, beside, below, file, explained=explained)


def _tables(solution: Solution, beside: Comparison | None, explained: bool) -> RenderableType:
    """The tables of each are loaded for it alone: those of hosts need the search over hosts."""
    if beside is None:
        from p2smt.report.solution_tables import solution_tables

        return solution_tables(solution)
    from p2smt.report.order_tables import host_tables

    return host_tables(solution, beside, explained=explained)


# On the hosts of an allocation.

_INSTEAD = {
    "--top": "the answer is one order, and --within lists those near it; drop it",
    "--pipeline": "programs on named hosts run in one chunk; drop it",
    "--split": "parts are sought on a matrix of an even cluster; drop it",
    **dict.fromkeys(
        ("--processes", "--engine", "--scheduler", "--journal", "--budget"),
        "orders of hosts are searched in one piece; drop it",
    ),
}


def _refuse_on_hosts(options: Mapping[str, object]) -> None:
    """Refuse what has no meaning on named hosts.

    Raises:
        InputError: an option is given; names it and what to do instead.
    """
    from p2smt.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(name, "does not apply to a topology that names hosts", _INSTEAD[name])


@dataclass(frozen=True)
class Around:
    """What is asked around an answer on named hosts: an order of the user's beside it, orders near
    it, other bandwidths."""

    compare: str | None
    within: float | None
    sensitivity: bool


def _on_hosts(
    problem: Problem,
    hosts: Sequence[str],
    around: Around,
    changes: Sequence[ClusterChange],
    how: o.SearchOptions,
    shown: tuple[str | None, bool, bool, bool],
) -> int:
    """Solve on these hosts, and show the answer beside the orders that everyone has."""
    from p2smt.api.compare import named_orders
    from p2smt.cluster.allocation import check_stated
    from p2smt.search.allocation.solve_on_hosts import solve_on_hosts
    from p2smt.search.comparison import beside, on_hosts, standard_orders

    output, explained, details, as_json = shown
    limits, solver = how.limits(), how.by()
    placed, listed = on_hosts(problem, hosts)
    if explained:
        check_stated(placed.topology)
    standard = standard_orders(placed, listed)
    own = [] if around.compare is None else [around.compare]
    every = {**named_orders(own, placed, listed, standard), **standard}
    found = solve_on_hosts(
        problem,
        hosts,
        limits=limits,
        solver=solver,
        sensitivity=around.sensitivity,
        within=around.within,
        progress=tell_times,
    )
    orders = beside(placed, every, found)
    if own:
        found = replace(found, compared=orders.orders[0].figures.order)

    def again(changed: Problem) -> Solution:
        return solve_on_hosts(changed, hosts, limits=limits, solver=solver)

    rows = _gained(found, problem, changes, again)
    cut = len(rows) < len(changes)
    return _finish(
        *(found, output, as_json, orders, rows), cut=cut, explained=explained, details=details
    )


def hosts_of(spec: str | None, topology: Topology, remedy: str = "") -> tuple[str, ...] | None:
    """The hosts of --hosts, else of $SLURM_JOB_NODELIST, else all that the topology names.

    None: its nodes have no names, and none are given.  ``remedy``: as of
    :func:`~p2smt.cluster.allocation.allocated`.

    Raises:
        InputError: no host list, a host that the topology lacks, or one that is named twice.
    """
    from p2smt.cli.output import note
    from p2smt.cluster.allocation import allocated, as_known
    from p2smt.cluster.hostlist import hosts_named, offered_by, parse_hostlist

    known = () if topology.hosts is None else topology.hosts.names
    if spec == ALL and ALL not in known:
        return known or None
    if spec is not None:
        found, source = hosts_named(spec), f"--hosts {spec[:60]!r}"
        offered = offered_by(spec)
    elif topology.hosts is None:
        return None
    elif listed := os.environ.get(NODELIST):
        found, source = parse_hostlist(listed), f"${NODELIST}"
        note(f"the hosts are those of ${NODELIST} ({len(found)}); --hosts names others")
        each = os.environ.get(ON_NODE, "")
        offered = (int(each),) if each.isdecimal() else ()
    else:
        return known
    found = as_known(found, known)
    _check_hosts(spec, found, topology, source)
    allocated(topology, found, remedy)
    _note_offered(f"${ON_NODE}" if spec is None else source, offered, topology)
    return found


def _note_offered(source: str, offered: Sequence[int], topology: Topology) -> None:
    """That a job may have fewer devices of a node than there are: whole nodes are taken."""
    from p2smt.cli.output import note

    each = topology.devices_under(topology.node_level)
    if offered and offered[0] < each:
        fewer = f"{source} offers {offered[0]} of the {each} devices of a node"
        one_level = topology.names[topology.node_level + 1 :]
        how = f"--use {one_level[0]}={offered[0]} takes so many" if len(one_level) == 1 else ""
        note(f"{fewer}; all {each} are taken{how and ': '}{how}")


def _check_hosts(spec: str | None, found: tuple[str, ...], topology: Topology, source: str) -> None:
    """Whether a single name may be a file that is not there; and whether each stands once."""
    from p2smt.errors import InputError

    known = topology.hosts
    if known is not None and len(found) == 1 and found[0] == spec and spec not in known.names:
        rule = f"is neither a file nor a host of {topology.name}"
        raise InputError(source, rule, f"its hosts are {', '.join(known.names[:3])}, ..")
    if twice := [name for name, count in Counter(found).items() if count > 1]:
        rule = f"names {twice[0][:80]!r} twice"
        raise InputError(source, rule, "name each host once, whatever its ranks")
