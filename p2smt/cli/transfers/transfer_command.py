"""`p2smt transfer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, opened, option, part
from p2smt.cli.transfers.layout_options import LayoutOptions
from p2smt.cli.transfers.transfer_files import TransferFiles

if TYPE_CHECKING:
    from p2smt.transfer.answer import ComparedRule, TransferAnswer


@opened
def transfer(
    *,
    cluster: o.ClusterOptions,
    layouts: LayoutOptions,
    prices: o.PriceOptions = part("library", "nominal"),
    how: o.SearchOptions = part("time_limit"),
    compare: Text = option(
        "NAME,..", "What rules of other tools take: megatron, awex, alpa, m2n, gather, first."
    ),
    output: Text = o.PLAN_FILE,
    files: TransferFiles,
    shown: o.ShownOptions,
) -> int:
    """Move a model's tensors from one mesh to another, with a bound and its proof."""
    from p2smt.interop.weights.peers import compared_rules, rule_names
    from p2smt.transfer.answer import find_transfer

    names = () if compare is None else rule_names(compare)
    topology = cluster.under(prices)
    question = layouts.question(topology, prices.nominal, how)
    files.check(output, layouts.source, layouts.target, layouts.model, cluster.topology)
    answer, compared = find_transfer(question), compared_rules(question, names)
    written = files.write(answer, layouts.dtype)
    return finish(answer, output, shown, written, compared)


def finish(
    answer: TransferAnswer,
    output: str | None,
    shown: o.ShownOptions,
    others: Sequence[str] = (),
    compared: Sequence[ComparedRule] = (),
) -> int:
    """Write the file first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import command_line, tell
    from p2smt.report.text import printable
    from p2smt.report.transfers.data import transfer_data
    from p2smt.report.transfers.screens import transfer_details, transfer_screen

    written = []
    if output is not None:
        from p2smt.files.write import write_atomically
        from p2smt.transfer.plan_file import transfer_text

        write_atomically(output, transfer_text(answer, command_line()))
        written.append(f"plan written to {printable(output)}")
    written += others
    said = transfer_details if shown.details else transfer_screen
    tell(
        shown.json, lambda: transfer_data(answer, compared), lambda: said(answer, written, compared)
    )
    return exit_code(answer.status)
