"""The symbols of the formulas, as docs/planning.md explains them.

Switches are 0 or 1.  Symbols of a stage differ between the stages of one strategy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import sympy
from sympy import Expr, Symbol

Max, Min = (partial(kind, evaluate=False) for kind in (sympy.Max, sympy.Min))
"""sympy's, left as they stand: it would first compare every two of their terms."""


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
mtp = _symbol("mtp")

E = _symbol("E")
r = _symbol("r")
fe = _symbol("fe")
fs = _symbol("fs")
w = _symbol("w")
wl = _symbol("wl")
clamp = _symbol("clamp")
rq = _symbol("rq")
rkv = _symbol("rkv")
en = _symbol("en")
er = _symbol("er")
ev = _symbol("ev")
direct = _symbol("direct")
win = _symbol("win")
HP = _symbol("HP")
GN = _symbol("GN")
Hm = _symbol("Hm")
Ns = _symbol("Ns")
token_flops = _symbol("token_flops")

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
full_a = _symbol("full_a")
full_f = _symbol("full_f")
full_w = _symbol("full_w")
full_m = _symbol("full_m")
full_d = _symbol("full_d")
full_x = _symbol("full_x")
flash = _symbol("flash")
dropout = _symbol("dropout")
ep = _symbol("ep")
et = _symbol("et")
ed = _symbol("ed")
low = _symbol("low")
fp8_params = _symbol("fp8_params")
copy_bytes = _symbol("copy_bytes")
again_core = _symbol("again_core")
again_up = _symbol("again_up")
again_norm = _symbol("again_norm")
again_act = _symbol("again_act")
again_experts = _symbol("again_experts")
again_mlp = _symbol("again_mlp")
again_shared = _symbol("again_shared")
hidden_dispatch = _symbol("hidden_dispatch")
launches = _symbol("launches")
core_8 = _symbol("core_8")
dr = _symbol("dr")
state = _symbol("state")
off = _symbol("off")
skew = _symbol("skew")
beside = _symbol("beside")

# of the framework
G = _symbol("G")
loss_b = _symbol("loss_b")
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
peak_low = _symbol("peak_low")
eta_low = _symbol("eta_low")
eta_memory = _symbol("eta_memory")
eta_core = _symbol("eta_core")
edge = _symbol("edge")
quantised = _symbol("quantised")
state_bytes = _symbol("state_bytes")
hides = _symbol("hides")
host_attention_s = _symbol("host_attention_s")
host_mlp_s = _symbol("host_mlp_s")
host_mamba_s = _symbol("host_mamba_s")
host_experts_s = _symbol("host_experts_s")
host_expert_s = _symbol("host_expert_s")

# of a stage
i = _symbol("i")
n = _symbol("n")
nf = _symbol("nf")
nw = _symbol("nw")
nm = _symbol("nm")
nd = _symbol("nd")
nx = _symbol("nx")
nt = _symbol("nt")
n_uneven = Symbol("n_uneven", real=True)
n_again = Symbol("n_again", real=True)
n_plain = Symbol("n_plain", real=True)
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
    (mtp, "1 if layers at its end predict further tokens"),
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
    (full, "part of the stage's layers that are computed again whole"),
    (flash, "1 with fused attention"),
    (dr, "copies of what ZeRO shards, each on its own part of dp"),
    (state, "bytes of the optimizer for a parameter"),
    (off, "part of the layers whose activations wait on the host"),
    (dropout, "1 if hidden states and attention are dropped out"),
    (G, "bytes of an element of a gradient"),
    (loss_b, "bytes of an element of the logits at the peak of the cross-entropy"),
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
    (n_again, "of layers computed again, how many more it holds than that part of n_uneven"),
    (n_plain, "the same of the others"),
    (first, "1 if the stage has the embedding"),
    (last, "1 if the stage has the logits"),
)
"""Every symbol that is given from outside, and what it stands for."""

KIND_MEANINGS: tuple[tuple[Symbol, str], ...] = (
    (E, "experts of a layer"),
    (r, "experts that a token goes through"),
    (fe, "width inside an expert"),
    (fs, "width inside all shared experts together"),
    (w, "elements of a token that experts see"),
    (wl, "the same where it is projected to them, else 0"),
    (clamp, "bytes more that clamped activations with biases move for an element inside an expert"),
    (rq, "elements of a token's queries before they are expanded, in latent attention"),
    (rkv, "elements of its keys and values before they are expanded"),
    (en, "elements of a head's query and key without rotation"),
    (er, "elements with rotation"),
    (ev, "elements of a head's value"),
    (direct, "1 if queries are made of all h elements"),
    (win, "tokens under a window"),
    (HP, "elements of all heads of Mamba-2"),
    (GN, "elements of its groups' states"),
    (Hm, "its heads"),
    (Ns, "elements of a head's state"),
    (token_flops, "operations of a token, forward and backward, nothing computed twice"),
    (ep, "expert parallelism"),
    (et, "tensor parallelism of experts"),
    (ed, "data parallelism of experts"),
    (low, "1 if products are in 8 bits or fewer"),
    (fp8_params, "1 if parameters are kept and gathered so, too"),
    (copy_bytes, "bytes of a parameter's copies for products in low precision"),
    (again_core, "1 if the core of attention is computed again"),
    (again_up, "1 if latent attention's expansions are"),
    (again_norm, "1 if norms are"),
    (again_act, "1 if activations inside experts are"),
    (again_experts, "1 if mixtures are, whole"),
    (again_mlp, "1 if dense MLPs are"),
    (again_shared, "1 if shared experts are"),
    (skew, "tokens of the busiest rank to those of a balanced routing"),
    (beside, "1 if tokens move beside the products of shared experts"),
    (hidden_dispatch, "1 if tokens move beside the computing of another micro-batch"),
    (launches, "part of launches that is left: 1, 0.95 with partial graphs, 0 with full ones"),
    (core_8, "1 if the core of attention is in 8 bits"),
    (peak_low, "flop/s of matrix products in the strategy's data type"),
    (eta_low, "part of it that they reach"),
    (eta_memory, "part of the memory's bandwidth that is reached"),
    (eta_core, "part of the peak of 16 bits that the core of attention reaches"),
    (edge, "inner elements of a product that starting and writing its outputs takes as long as"),
    (quantised, "bytes that quantising moves for an element of a product's input"),
    (state_bytes, "bytes that the scan of Mamba-2 moves for an element of its heads"),
    (hides, "part of a stage's computing under which tokens of another micro-batch move"),
    (host_attention_s, "seconds of launches of an attention, forward and backward"),
    (host_mamba_s, "of Mamba-2"),
    (host_mlp_s, "of a dense MLP"),
    (host_experts_s, "of a mixture of experts"),
    (host_expert_s, "more for each expert on a device"),
    (nf, "layers of the stage with full attention"),
    (nw, "with a window"),
    (nm, "with Mamba-2"),
    (nd, "with a dense MLP"),
    (nx, "with experts"),
    (nt, "that predict later tokens"),
    (full_a, "part of the stage's layers with attention that are computed again whole"),
    (full_f, "of those with full attention"),
    (full_w, "of those with a window"),
    (full_m, "of those with Mamba-2"),
    (full_d, "of those with a dense MLP"),
    (full_x, "of those with experts"),
)
"""What models with layers of several kinds, low precision and their constants have besides."""


# A row of the table of formulas.


PAPER = "arXiv 2205.05198"  # Reducing Activation Recomputation in Large Transformer Models
MEGATRON = "arXiv 2104.04473"  # Efficient Large-Scale Language Model Training on GPU Clusters
ZERO = "arXiv 1910.02054"  # ZeRO: Memory Optimizations Toward Training Trillion Parameter Models
FLASH = "arXiv 2205.14135"  # FlashAttention
RING = "arXiv 2310.01889"  # Ring Attention with Blockwise Transformers
COUNTED = "counted"
"""Follows from the operation itself: what is multiplied, read, or written."""


@dataclass(frozen=True, slots=True)
class FormulaRow:
    """A named quantity: an expression in given symbols and the names of other rows.

    ``meaning`` says in words what it is, ``source`` where the formula is from.
    """

    name: str
    expression: Expr
    unit: str
    meaning: str
    source: str

    @property
    def symbol(self) -> Symbol:
        """The symbol by which other rows name it."""
        return Symbol(self.name, nonnegative=True)


# Rows: tokens, micro-batches, and the elements of matrices on a device.


TOKENS = FormulaRow("tokens", b * s / c, "tokens", "of a micro-batch on a device", COUNTED)
MICRO_BATCHES = FormulaRow(
    "micro_batches", B / (d * b), "", "that go through a pipeline in an iteration", COUNTED
)
SPREAD = FormulaRow(
    "spread",
    1 + sp * (t - 1),
    "",
    "devices over which activations between the matrices of tp are split",
    "arXiv 2205.05198 section 4.2.2",
)
QUERY_WIDTH = FormulaRow(
    "query_width", q / t, "elements", "queries of a token on a device", COUNTED
)
KEY_WIDTH = FormulaRow(
    "key_width",
    Max(k / t, e),
    "elements",
    "keys of a token on a device; a head is not divided, but held several times",
    COUNTED,
)
LAYER_PARAMETERS = FormulaRow(
    "layer_parameters",
    2 * h * QUERY_WIDTH.symbol + 2 * h * KEY_WIDTH.symbol + (g + 1) * h * f / t,
    "elements",
    "matrices of a layer on a device; norms and biases are left out",
    COUNTED,
)
END_PARAMETERS = FormulaRow(
    "end_parameters", V * h / t, "elements", "embedding, or logits, on a device", COUNTED
)
STAGE_PARAMETERS = FormulaRow(
    "stage_parameters",
    n * LAYER_PARAMETERS.symbol + END_PARAMETERS.symbol * (first + last - tied * first * last),
    "elements",
    "matrices of a stage on a device; tied ones are on both ends",
    COUNTED,
)

SIZE_ROWS = (
    TOKENS,
    MICRO_BATCHES,
    SPREAD,
    QUERY_WIDTH,
    KEY_WIDTH,
    LAYER_PARAMETERS,
    END_PARAMETERS,
    STAGE_PARAMETERS,
)


def row_symbol(name: str) -> Symbol:
    """The symbol of a row of that name, where the row itself depends on the kind of a model."""
    return Symbol(name, nonnegative=True)
