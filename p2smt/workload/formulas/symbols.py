"""The symbols of the formulas, as docs/planning.md explains them.

Switches are 0 or 1.  Symbols of a stage differ between the stages of one strategy.
"""

from __future__ import annotations

from sympy import Symbol


def _symbol(name: str) -> Symbol:
    return Symbol(name, nonnegative=True)


# of the model
L = _symbol("L")
h = _symbol("h")
a = _symbol("a")
e = _symbol("e")
q = _symbol("q")
k = _symbol("k")
f = _symbol("f")
g = _symbol("g")
V = _symbol("V")
tied = _symbol("tied")

# of the batch
B = _symbol("B")
s = _symbol("s")

# of the strategy
t = _symbol("t")
p = _symbol("p")
d = _symbol("d")
c = _symbol("c")
v = _symbol("v")
b = _symbol("b")
sp = _symbol("sp")
zero_1 = _symbol("zero_1")
zero_2 = _symbol("zero_2")
zero_3 = _symbol("zero_3")
selective = _symbol("selective")
full = _symbol("full")
flash = _symbol("flash")

# of the framework
G = _symbol("G")
fused = _symbol("fused")
overlap_tp = _symbol("overlap_tp")
overlap_pp = _symbol("overlap_pp")
overlap_dp = _symbol("overlap_dp")
overlap_fetch = _symbol("overlap_fetch")

# of the device
peak = _symbol("peak")
W = _symbol("W")
eta = _symbol("eta")
layer_s = _symbol("layer_s")

# of a stage
i = _symbol("i")
n = _symbol("n")
n_uneven = Symbol("n_uneven", real=True)
first = _symbol("first")
last = _symbol("last")

MEANINGS: tuple[tuple[Symbol, str], ...] = (
    (L, "layers of the model"),
    (h, "hidden size"),
    (a, "query heads"),
    (e, "elements of a head"),
    (q, "elements of the queries of a token, a e"),
    (k, "elements of the keys of a token, and of its values"),
    (f, "width inside the MLP"),
    (g, "input matrices of the MLP: 2 if gated, else 1"),
    (V, "vocabulary"),
    (tied, "1 if embedding and logits are one matrix"),
    (B, "sequences in an iteration"),
    (s, "tokens in a sequence"),
    (t, "tensor parallelism"),
    (p, "pipeline stages"),
    (d, "data parallelism"),
    (c, "context parallelism"),
    (v, "chunks of a stage"),
    (b, "sequences in a micro-batch"),
    (sp, "1 with sequence parallelism"),
    (zero_1, "1 from ZeRO stage 1 on: optimizer sharded"),
    (zero_2, "1 from ZeRO stage 2 on: gradients sharded"),
    (zero_3, "1 at ZeRO stage 3: parameters sharded"),
    (selective, "1 if attention is computed again"),
    (full, "1 if whole layers are computed again"),
    (flash, "1 with fused attention"),
    (G, "bytes of an element of a gradient"),
    (fused, "rate of fused attention, as a part of what matrix products reach"),
    (overlap_tp, "1 if collectives of tp run beside matrix products"),
    (overlap_pp, "part of sends between stages that interleaving hides"),
    (overlap_dp, "1 if gradients are reduced during the backward pass"),
    (overlap_fetch, "1 if parameters of ZeRO-3 are gathered during computation"),
    (peak, "flop/s of matrix products"),
    (W, "bytes/s of the device's memory"),
    (eta, "part of peak and memory bandwidth that the framework reaches"),
    (layer_s, "seconds that a layer takes besides, forward and backward"),
    (i, "number of a stage, from 0"),
    (n, "layers of the stage"),
    (n_uneven, "layers that it holds more than if its chunks were alike, counted step by step"),
    (first, "1 if the stage has the embedding"),
    (last, "1 if the stage has the logits"),
)
"""Every symbol that is given from outside, and what it stands for."""
