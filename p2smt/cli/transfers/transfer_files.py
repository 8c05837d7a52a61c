"""What a transfer is written as beside its plan: code that carries it out, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, option
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.transfer.answer import TransferAnswer


@dataclass(frozen=True)
class TransferFiles:
    """Where these files go."""

    code: Text = option(
        "FILE.py", "Write it as code for torch.distributed, which needs torch alone."
    )
    svg: Text = option("FILE", "Draw who sends to whom, and when ports are busy.")

    def check(self, output: Text, *read: Text) -> None:
        """That all files can be written, and none of these is read.

        Raises:
            InputError: one cannot be, has another name, or is a file that is read.
        """
        from p2smt.files.write import check_svg_name, same_file

        o.plan_writable(output, self.code, self.svg)
        named = {"--output": output, "--code": self.code, "--svg": self.svg}
        for at, (name, path) in enumerate(named.items()):
            o.check_kept(path, *read)
            for other, more in list(named.items())[:at]:
                if path is not None and more is not None and same_file(path, more):
                    given = f"{name} {path[:200]!r}"
                    raise InputError(given, f"is the file of {other}, too", "rename one")
        if self.code is not None and not self.code.lower().endswith(".py"):
            raise InputError(f"code {self.code[:200]!r}", "must be named .py", "rename it")
        if self.svg is not None:
            check_svg_name(self.svg)

    def write(self, answer: TransferAnswer, dtype: str) -> list[str]:
        """Write what is asked for; returns what to say of it."""
        from p2smt.report.text import printable

        written = []
        if self.code is not None:
            from p2smt.files.write import write_atomically
            from p2smt.interop.weights.torch_code import CodedTransfer, transfer_module
            from p2smt.report.transfers.data import transfer_data
            from p2smt.report.transfers.screens import verdict_text
            from p2smt.resharding.types import ElementType

            verdict, element = verdict_text(transfer_data(answer)), ElementType.parse(dtype)
            pieces, count = answer.found.pieces, answer.buckets.count
            plan = CodedTransfer(answer.question, pieces, count, element, verdict)
            write_atomically(self.code, transfer_module(plan))
            written.append(f"code written to {printable(self.code)}")
        if self.svg is not None:
            from p2smt.report.transfers.picture import write_transfer_picture
            from p2smt.report.transfers.told import ToldTransfer

            write_transfer_picture(ToldTransfer.of_answer(answer), self.svg)
            written.append(f"picture written to {printable(self.svg)}")
        return written
