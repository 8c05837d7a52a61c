"""``python -m p2smt.cli``, the same as ``p2smt``."""

from __future__ import annotations

from p2smt.cli import main

main()
