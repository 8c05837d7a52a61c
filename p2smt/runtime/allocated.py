"""Memory that tensors take while something runs on a rank.

On the CPU every result of an operator is noted, hidden copies included, until its storage is gone;
on a GPU the caching allocator keeps the peak.  What communication libraries hold besides is not
counted.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_LET_GO_S = 0.03
"""A library's thread may let go of a buffer a moment after a call has returned."""
_SETTLED_S = 1.0


@dataclass(slots=True)
class Allocated:
    """``peak_bytes``: the most that there was at once, with what was given at the start.

    ``live``: bytes of the storages that there are, on the CPU.
    """

    peak_bytes: int = 0
    live: dict[int, int] = field(default_factory=dict)

    def settle(self, *kept: torch.Tensor) -> None:
        """Wait a while for all but these tensors to be gone: libraries' threads let go late."""
        right = sum({t.untyped_storage().data_ptr(): _storage_bytes(t) for t in kept}.values())
        end = time.monotonic() + _SETTLED_S
        while sum(self.live.values()) > right and time.monotonic() < end:
            time.sleep(_LET_GO_S / 10)


@contextlib.contextmanager
def watched(given: torch.Tensor) -> Iterator[Allocated]:
    """Watch what is allocated beside a tensor that exists; the result is there at the end."""
    found, device = Allocated(), given.device
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device) - _storage_bytes(given)
        torch.cuda.reset_peak_memory_stats(device)
        del given
        yield found
        torch.cuda.synchronize(device)
        found.peak_bytes = torch.cuda.max_memory_allocated(device) - before
        return
    mode = _Storages(found.live)
    mode.note(given)
    del given
    with mode:
        yield found
    found.peak_bytes = mode.peak_bytes


class _Storages(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Storages of the tensors that operators return, while they exist."""

    def __init__(self, live: dict[int, int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = live
        self.peak_bytes = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch loads its compiler at the first operator: two seconds of every rank."""
        return False

    def note(self, tensor: torch.Tensor) -> None:
        """Count the memory of a tensor, once, until it is gone."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.live:
            self.live[key] = _storage_bytes(tensor)
            weakref.finalize(storage, self.live.pop, key, None)
            if sum(self.live.values()) > self.peak_bytes:
                time.sleep(_LET_GO_S)
                self.peak_bytes = max(self.peak_bytes, sum(self.live.values()))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.note(leaf)
        return result


def _storage_bytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()
