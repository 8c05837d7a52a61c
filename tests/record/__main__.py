"""``python -m tests.record``: see :mod:`tests.record.renew`."""

from __future__ import annotations

import sys

from tests.record.renew import main, variant

if sys.argv[1:2] == ["--variant"]:
    variant(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    main(sys.argv[1:])
