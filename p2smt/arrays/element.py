"""Element types of arrays and the reductions of their partial values."""

from __future__ import annotations

from enum import Enum

from p2smt.errors import InputError


class ElementType(Enum):
    """Element types, by short names; frameworks' own names are read too."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def item_bytes(self) -> int:
        """Size of an element in bytes."""
        digits = "".join(c for c in self.value if c.isdigit())
        return int(digits) // 8 if digits else 1

    @property
    def long_name(self) -> str:
        """The name that PyTorch, JAX and numpy have for it, such as ``bfloat16``."""
        return next((name for name, short in _LONG.items() if short == self.value), self.value)

    @property
    def floating(self) -> bool:
        """Whether sums of it are rounded, and averages are of the type."""
        return self in (ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16)

    @staticmethod
    def parse(text: str) -> ElementType:
        """The type of a short name (``bf16``) or of a framework's (``bfloat16``, ``torch.int8``).

        Raises:
            InputError: no such type.
        """
        short = text.removeprefix("torch.")
        found = _LONG.get(short, short)
        for known in ElementType:
            if known.value == found:
                return known
        names = ", ".join(known.value for known in ElementType)
        raise InputError(f"dtype {text[:40]!r}", f"is none of {names}", "choose one of these")


_LONG = {
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    "bfloat16": "bf16",
    "uint8": "u8",
    "bool": "bool",
    "i1": "bool",
    "ui8": "u8",
}


class ReduceOp(Enum):
    """How partial values make the whole one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"

    @staticmethod
    def parse(text: str) -> ReduceOp:
        """The reduction of that name.

        Raises:
            InputError: no such reduction.
        """
        for known in ReduceOp:
            if known.value == text:
                return known
        names = ", ".join(known.value for known in ReduceOp)
        raise InputError(f"reduction {text[:40]!r}", f"is none of {names}", "choose one of these")
