"""Tensors of known values for a rank, and what is wrong with what the steps have made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from p2smt.arrays.element import ElementType
from p2smt.arrays.state import ArrayState
from p2smt.runtime.arrays.blocks import block_of
from p2smt.runtime.arrays.tensors import as_bytes
from p2smt.runtime.arrays.values import ArrayValues
from p2smt.runtime.payload import Floats


def torch_type(element: ElementType) -> torch.dtype:
    """The type that PyTorch has for an element type."""
    found: torch.dtype = getattr(torch, element.long_name)
    return found


@dataclass(frozen=True, slots=True)
class RankArrays:
    """Makes a rank's tensors; ``values`` say what they hold, ``device`` is where they lie."""

    values: ArrayValues
    rank: int
    device: torch.device

    def moved(self, state: ArrayState) -> torch.Tensor:
        """Arbitrary bits: what a state has of an array that only moves."""
        bits, element = self.values.bits(state, self.rank), self.values.frame.element
        if element is ElementType.BOOL:
            bits = bits % np.uint64(2)
        size = element.item_bytes
        wide = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)
        flat = torch.from_numpy(np.ascontiguousarray(wide[:, :size]).reshape(-1))
        return self._own(flat.view(torch_type(element)).view(bits.shape))

    def exact(self, state: ArrayState) -> torch.Tensor:
        """Numbers whose reduction is exact, reduced as far as they are in a state."""
        return self._tensor(self.values.integers(state, self.rank))

    def random(self, state: ArrayState) -> torch.Tensor:
        """The random contribution that the rank has in a state before any reduction."""
        (found,) = self.values.floats(state, self.rank)
        return self._tensor(found)

    def wrong_bits(self, found: torch.Tensor, right: torch.Tensor, state: ArrayState) -> str:
        """The first element that is not what it must be, in words; "" if all are."""
        if tuple(found.shape) != tuple(right.shape):
            return self._said(f"shape {tuple(found.shape)}, expected {tuple(right.shape)}")
        if torch.equal(as_bytes(found.contiguous()), as_bytes(right)):
            return ""
        one, other = (_rows(tensor) for tensor in (found, right))
        return self._first((one != other).any(dim=1).cpu().numpy(), found, right, state)

    def wrong_random(self, found: torch.Tensor, state: ArrayState) -> tuple[str, bool]:
        """The same for random numbers, within their bound; and whether it is finite."""
        right, bound = self.values.reduce(self._rounded(state), state)
        error = np.abs(found.to("cpu", torch.float64).numpy() - right)
        wrong = ~(error <= bound)
        limited = bool(np.isfinite(bound).all())
        if not wrong.any():
            return "", limited
        return self._first(wrong.reshape(-1), found, torch.from_numpy(right), state), limited

    def _rounded(self, state: ArrayState) -> Iterator[Floats]:
        for term in self.values.floats(state, self.rank):
            yield torch.from_numpy(term).to(self._type).to(torch.float64).numpy()

    @property
    def _type(self) -> torch.dtype:
        return torch_type(self.values.frame.element)

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        return self._own(torch.from_numpy(np.ascontiguousarray(values)).to(self._type))

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy in memory of the device's allocator, whose account is watched."""
        return tensor.to(self.device, copy=True)

    def _first(
        self, wrong: NDArray[Any], found: torch.Tensor, right: torch.Tensor, state: ArrayState
    ) -> str:
        flat = int(np.flatnonzero(wrong)[0])
        place = tuple(int(i) for i in np.unravel_index(flat, tuple(right.shape)))
        first = block_of(self.values.frame, state, self.rank).first
        where = tuple(a + b for a, b in zip(first, place, strict=True))
        values = f"expected {right[place].item()}, found {found[place].item()}"
        count = int(np.count_nonzero(wrong))
        return self._said(
            f"{count} elements are wrong, the first at {where} of the array: {values}"
        )

    def _said(self, text: str) -> str:
        return f"rank {self.rank}: {text}"


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of each element."""
    return as_bytes(tensor.contiguous()).view(-1, tensor.element_size())
