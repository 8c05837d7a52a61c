"""`p2smt compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, argument, opened, part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType


@opened
def compare(
    *,
    orders: Texts = argument(
        "ORDER",
        "listed, alphabetical, sorted, exchanged or default, or as printed; a file of ranks or "
        "hosts; a mesh (.npy, .json); [0,2,1,3]; an order of axes such as tp-cp-ep-dp-pp (the "
        "first varies fastest); NAME=ORDER names it.  Default: the standard ones.  Or two answers "
        "of p2smt in JSON files, of a kind, without other options.",
    ),
    cluster: o.ClusterOptions,
    hosts: Text = o.HOSTS,
    axes: Text = o.AXES,
    requests: o.RequestOptions = part(
        "reduce", "reduce_scatter", "all_gather", "all_to_all", "send"
    ),
    objective: str = o.OBJECTIVE,
    rules: o.RuleOptions,
    prices: o.PriceOptions = part("algorithm", "library", "nominal"),
    how: o.SearchOptions = part(time_limit="60"),
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """Rank orders, or two answers, side by side: what each costs, and what one would gain.

    A list, a mesh and an order of axes number ranks as a launcher starts them: host by host in the
    order of --hosts, on each by device.
    """
    from p2smt.api.compare import compare as beside
    from p2smt.api.saved_answers import is_answer
    from p2smt.cli import given
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.guide.progress import tell_times
    from p2smt.cli.output import tell_tables
    from p2smt.cli.solve_command import hosts_of
    from p2smt.parallelism.request import Problem, parse_objective
    from p2smt.report.order_tables import comparison_data, comparison_tables
    from p2smt.report.screens.order_screens import comparison_screen

    if any(map(is_answer, orders or ())):
        _answers(
            orders or (), {"--topology": cluster.topology, "--axes": axes, "--hosts": hosts}, json
        )
        return 0
    topology = cluster.under(prices)
    chosen = given.axes_of(axes)
    problem = Problem(
        topology,
        chosen,
        requests.sized(),
        parse_objective(objective),
        rules=rules.rules(topology.names, chosen),
        algorithms=prices.algorithms(),
    )
    limits = how.limits()
    listed = hosts_of(hosts, topology)
    found = beside(problem, orders, listed, limits=limits, solver=how.by(), progress=tell_times)

    def shown() -> Sequence[RenderableType]:
        return (comparison_tables(found),) if details else comparison_screen(found)

    tell_tables(json, lambda: comparison_data(found), shown)
    return INTERRUPTED if found.best.interrupted else exit_code(found.status)


def _answers(paths: Sequence[str], others: Mapping[str, Text], as_json: bool) -> None:
    """Two answers side by side.

    Raises:
        InputError: there are not two, or an option is of orders.
    """
    from p2smt.api.saved_answers import compare_answers
    from p2smt.cli.output import tell
    from p2smt.errors import InputError
    from p2smt.report.answer_tables import answers_data, answers_lines

    if option := next((name for name, text in others.items() if text is not None), None):
        raise InputError(option, "is of orders of ranks, and answers in files are given", "drop it")
    if len(paths) != 2:
        rule = "is not two: an answer is compared with one other"
        raise InputError(f"{len(paths)} answers or orders", rule, "give a.json b.json")
    found = compare_answers(*paths)
    tell(as_json, lambda: answers_data(found), lambda: answers_lines(found))
