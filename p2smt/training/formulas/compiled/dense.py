"""The formulas of decoders with equal dense layers, written by ``make formulas``."""

from __future__ import annotations

from functools import reduce
from typing import Any

from numpy import ceil, greater, maximum, minimum, nan, select

from p2smt.collectives.names import RequestKind
from p2smt.training.formulas.compiled.table import CompiledRows, FormulaTable, Traffic
from p2smt.training.prediction import Cover


def counts(
    B: Any, G: Any, L: Any, V: Any, a: Any, b: Any, c: Any, d: Any, dr: Any,
    dropout: Any, e: Any, f: Any, first: Any, flash: Any, full: Any, g: Any,
    h: Any, i: Any, k: Any, last: Any, loss_b: Any, mtp: Any, n: Any,
    n_again: Any, n_plain: Any, n_uneven: Any, off: Any, overlap_dp: Any,
    overlap_fetch: Any, overlap_pp: Any, overlap_tp: Any, p: Any, q: Any,
    s: Any, selective: Any, sp: Any, state: Any, t: Any, tied: Any, v: Any,
    zero_1: Any, zero_2: Any, zero_3: Any,
) -> dict[str, Any]:
    tokens = b*s/c
    micro_batches = B/(b*d)
    spread = sp*(t - 1) + 1
    query_width = q/t
    key_width = reduce(maximum, [e, k/t])
    layer_parameters = f*h*(g + 1)/t + 2*h*key_width + 2*h*query_width
    end_parameters = V*h/t
    stage_parameters = end_parameters*(-first*last*tied + first + last) + layer_parameters*n
    qkv_flops = 2*h*tokens*(2*key_width + query_width)
    qkv_bytes = 2*h*tokens + 2*h*(2*key_width + query_width) + 2*tokens*(2*key_width + query_width)
    output_flops = 2*h*query_width*tokens
    output_bytes = 2*h*query_width + 2*h*tokens + 2*query_width*tokens
    up_flops = 2*f*g*h*tokens/t
    up_bytes = 2*f*g*h/t + 2*f*g*tokens/t + 2*h*tokens
    down_flops = 2*f*h*tokens/t
    down_bytes = 2*f*h/t + 2*f*tokens/t + 2*h*tokens
    logits_flops = 2*V*h*tokens/t
    logits_bytes = 2*V*h/t + 2*V*tokens/t + 2*h*tokens
    scores_flops = 2*query_width*s*tokens*(1 - 1/2*flash)
    scores_bytes = 2*a*s*tokens/t + 2*b*key_width*s + 2*query_width*tokens
    softmax_bytes = 9*a*s*tokens/t
    flash_bytes = 4*b*key_width*s + 4*query_width*tokens
    elementwise_bytes = f*tokens*(2*g + 2)/t + 22*h*tokens/spread + 4*tokens*(key_width + query_width)
    embedding_bytes = 4*h*tokens
    loss_forward_bytes = 18*V*tokens/t
    loss_backward_bytes = 14*V*tokens/t
    model_flops = 3*B*s*(2*L*h*(f*(g + 1) + 2*k + 2*q) + 2*L*q*s + 2*V*h)
    parameter_bytes = 2*stage_parameters/(zero_3*(c*d/dr - 1) + 1) + 2*zero_3*(end_parameters*(-first*last*tied + first + last) + 2*layer_parameters)
    gradient_bytes = G*stage_parameters/(zero_2*(c*d/dr - 1) + 1) + G*zero_2*reduce(maximum, [layer_parameters, end_parameters*reduce(maximum, [first, last])])
    optimizer_bytes = stage_parameters*state/(zero_1*(c*d/dr - 1) + 1)
    scores_kept_bytes = a*tokens*(4*flash + s*(1 - flash)*(3*dropout + 2))/t
    layer_kept_bytes = f*tokens*(2*g + 2)/t + h*tokens*(2*dropout + 8)/spread + scores_kept_bytes + 4*tokens*(key_width + query_width)
    kept_bytes = 2*full*h*tokens/spread + (1 - full)*(layer_kept_bytes - scores_kept_bytes*selective)
    passes = reduce(minimum, [micro_batches*v, select([greater(v, 1),True], [-2*i + p*(v - 1) + 2*p - 1,-i + p], default=nan)])
    held_layers = n*passes/v + n_uneven
    masks_kept_bytes = dropout*first*h*tokens*reduce(minimum, [micro_batches, select([greater(v, 1),True], [2*p,p], default=nan)])/spread
    loss_bytes = first*(1 - last)*reduce(maximum, [0, 4*V*h/t - kept_bytes*n/v]) + 4*h*last*tokens/spread + last*reduce(maximum, [V*loss_b*tokens/t, 4*V*h/t + 2*V*tokens/t])
    backward_bytes = layer_kept_bytes*ceil(full) + scores_kept_bytes*selective + reduce(maximum, [f*tokens*(2*g + 2)/t, a*s*tokens*(4 - 4*flash)/t])
    activation_bytes = 2*h*n_again*tokens/spread + held_layers*kept_bytes + layer_kept_bytes*n_plain + masks_kept_bytes - reduce(maximum, [0, -2*kept_bytes*ceil(off) + off*(2*h*n_again*tokens/spread + held_layers*kept_bytes + layer_kept_bytes*n_plain)]) + reduce(maximum, [backward_bytes, loss_bytes])
    tp_forward_payload = 2*h*tokens
    tp_forward_calls = (1 - sp)*(first + 2*n*(full + 1))
    tp_forward_part = 0
    tp_backward_payload = 2*h*tokens
    tp_backward_calls = (1 - sp)*(last + 2*n)
    tp_backward_part = 0
    tp_forward_gather_payload = 2*h*tokens
    tp_forward_gather_calls = sp*(last + 2*n*(full + 1))
    tp_forward_gather_part = overlap_tp*(1 - 1/t)
    tp_forward_scatter_payload = 2*h*tokens
    tp_forward_scatter_calls = sp*(first + 2*n*(full + 1))
    tp_forward_scatter_part = overlap_tp*(1 - 1/t)
    tp_backward_gather_payload = 2*h*tokens
    tp_backward_gather_calls = sp*(first + 2*n)
    tp_backward_gather_part = overlap_tp*(1 - 1/t)
    tp_backward_scatter_payload = 2*h*tokens
    tp_backward_scatter_calls = sp*(last + 2*n)
    tp_backward_scatter_part = overlap_tp*(1 - 1/t)
    tp_inputs_again_payload = 2*h*tokens
    tp_inputs_again_calls = sp*(last + 2*n)
    tp_inputs_again_part = 1
    cp_forward_payload = 4*b*key_width*s
    cp_forward_calls = n*(full + selective + 1)
    cp_forward_part = 1
    cp_backward_payload = 4*b*key_width*s
    cp_backward_calls = 2*n
    cp_backward_part = 1
    pp_send_payload = 2*h*tokens/t
    pp_send_calls = 2*v
    pp_send_part = select([greater(v, 1),True], [overlap_pp,0], default=nan)
    pp_shared_embedding_payload = G*end_parameters
    pp_shared_embedding_calls = reduce(maximum, [mtp, tied])
    pp_shared_embedding_part = 0
    dp_gradients_payload = G*stage_parameters
    dp_gradients_calls = 1 - zero_1
    dp_gradients_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    dp_gradients_scatter_payload = G*stage_parameters
    dp_gradients_scatter_calls = zero_1 - zero_2
    dp_gradients_scatter_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    dp_parameters_gather_payload = 2*stage_parameters
    dp_parameters_gather_calls = zero_1 - zero_3
    dp_parameters_gather_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    dp_copies_payload = G*dr*stage_parameters/(c*d)
    dp_copies_calls = zero_1
    dp_copies_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    dp_layer_gather_payload = 2*layer_parameters
    dp_layer_gather_calls = 2*n*zero_3
    dp_layer_gather_part = overlap_fetch
    dp_layer_scatter_payload = G*layer_parameters
    dp_layer_scatter_calls = n*zero_2
    dp_layer_scatter_part = overlap_dp
    dp_ends_gather_payload = 2*end_parameters
    dp_ends_gather_calls = zero_3*(-first*last*tied + first + last)
    dp_ends_gather_part = overlap_fetch
    dp_ends_scatter_payload = G*end_parameters
    dp_ends_scatter_calls = zero_2*(-first*last*tied + first + last)
    dp_ends_scatter_part = overlap_dp
    return locals()


def seconds(
    W: Any, c: Any, d: Any, down_bytes: Any, down_flops: Any, dr: Any,
    elementwise_bytes: Any, embedding_bytes: Any, eta: Any, first: Any,
    flash: Any, flash_bytes: Any, full: Any, fused: Any, last: Any,
    layer_s: Any, logits_bytes: Any, logits_flops: Any,
    loss_backward_bytes: Any, loss_forward_bytes: Any, n: Any,
    output_bytes: Any, output_flops: Any, peak: Any, qkv_bytes: Any,
    qkv_flops: Any, scores_bytes: Any, scores_flops: Any, selective: Any,
    softmax_bytes: Any, stage_parameters: Any, state: Any, up_bytes: Any,
    up_flops: Any, zero_1: Any,
) -> dict[str, Any]:
    qkv_s = reduce(maximum, [qkv_bytes/W, qkv_flops/peak])/eta
    output_s = reduce(maximum, [output_bytes/W, output_flops/peak])/eta
    up_s = reduce(maximum, [up_bytes/W, up_flops/peak])/eta
    down_s = reduce(maximum, [down_bytes/W, down_flops/peak])/eta
    logits_s = reduce(maximum, [logits_bytes/W, logits_flops/peak])/eta
    products_s = down_s + output_s + qkv_s + up_s
    attention_s = (1 - flash)*(2*reduce(maximum, [scores_bytes/W, scores_flops/peak])/eta + softmax_bytes/(W*eta)) + flash*reduce(maximum, [flash_bytes/W, 2*scores_flops/(fused*peak)])/eta
    attention_backward_s = attention_s*((1/2)*flash + 2)
    elementwise_s = elementwise_bytes/(W*eta)
    layer_forward_s = attention_s + elementwise_s + (1/3)*layer_s + products_s
    layer_backward_s = attention_backward_s + attention_s*selective + 2*elementwise_s + full*layer_forward_s + (2/3)*layer_s + 2*products_s
    stage_forward_s = last*(logits_s + loss_forward_bytes/(W*eta)) + layer_forward_s*n + embedding_bytes*first/(W*eta)
    stage_backward_s = last*(2*logits_s + loss_backward_bytes/(W*eta)) + layer_backward_s*n + 2*embedding_bytes*first/(W*eta)
    optimizer_s = stage_parameters*(2*state + 6)/(W*eta*(zero_1*(c*d/dr - 1) + 1))
    tp_forward_cover_s = 0
    tp_backward_cover_s = 0
    tp_forward_gather_cover_s = last*logits_s + n*(full + 1)*(qkv_s + up_s)
    tp_forward_scatter_cover_s = n*(down_s + output_s)*(full + 1)
    tp_backward_gather_cover_s = n*(down_s + output_s)
    tp_backward_scatter_cover_s = last*logits_s + n*(qkv_s + up_s)
    tp_inputs_again_cover_s = last*logits_s + n*(qkv_s + up_s)
    cp_forward_cover_s = attention_s*n*(1 - 1/c)*(full + selective + 1)
    cp_backward_cover_s = attention_backward_s*n*(1 - 1/c)
    pp_send_cover_s = stage_backward_s + stage_forward_s
    pp_shared_embedding_cover_s = 0
    dp_gradients_cover_s = stage_backward_s
    dp_gradients_scatter_cover_s = stage_backward_s
    dp_parameters_gather_cover_s = stage_forward_s
    dp_copies_cover_s = stage_backward_s
    dp_layer_gather_cover_s = stage_backward_s + stage_forward_s
    dp_layer_scatter_cover_s = stage_backward_s
    dp_ends_gather_cover_s = stage_backward_s + stage_forward_s
    dp_ends_scatter_cover_s = stage_backward_s
    return locals()


TABLE = FormulaTable(
    CompiledRows.of(counts),
    CompiledRows.of(seconds),
    (
        Traffic("tp forward", RequestKind.ALL_REDUCE, ("tp",), cover=Cover.NOTHING),
        Traffic("tp backward", RequestKind.ALL_REDUCE, ("tp",), cover=Cover.NOTHING),
        Traffic("tp forward gather", RequestKind.ALL_GATHER, ("tp",), cover=Cover.PRODUCT),
        Traffic("tp forward scatter", RequestKind.REDUCE_SCATTER, ("tp",), cover=Cover.PRODUCT),
        Traffic("tp backward gather", RequestKind.ALL_GATHER, ("tp",), cover=Cover.PRODUCT),
        Traffic("tp backward scatter", RequestKind.REDUCE_SCATTER, ("tp",), cover=Cover.PRODUCT),
        Traffic("tp inputs again", RequestKind.ALL_GATHER, ("tp",), cover=Cover.PRODUCT),
        Traffic("cp forward", RequestKind.ALL_GATHER, ("cp",), cover=Cover.ATTENTION),
        Traffic("cp backward", RequestKind.ALL_GATHER, ("cp",), cover=Cover.ATTENTION),
        Traffic("pp send", RequestKind.SEND, ("pp",), cover=Cover.COMPUTE, closes=True),
        Traffic("pp shared embedding", RequestKind.SEND, ("pp",), cover=Cover.NOTHING, once=True),
        Traffic("dp gradients", RequestKind.ALL_REDUCE, ("dp", "cp"), cover=Cover.BACKWARD, once=True),
        Traffic("dp gradients scatter", RequestKind.REDUCE_SCATTER, ("dp", "cp"), cover=Cover.BACKWARD, once=True),
        Traffic("dp parameters gather", RequestKind.ALL_GATHER, ("dp", "cp"), cover=Cover.FORWARD, once=True),
        Traffic("dp copies", RequestKind.ALL_REDUCE, ("dpr",), cover=Cover.BACKWARD, once=True),
        Traffic("dp layer gather", RequestKind.ALL_GATHER, ("dp", "cp"), cover=Cover.COMPUTE, edge=1),
        Traffic("dp layer scatter", RequestKind.REDUCE_SCATTER, ("dp", "cp"), cover=Cover.LAYERS_BACKWARD, edge=1),
        Traffic("dp ends gather", RequestKind.ALL_GATHER, ("dp", "cp"), cover=Cover.COMPUTE),
        Traffic("dp ends scatter", RequestKind.REDUCE_SCATTER, ("dp", "cp"), cover=Cover.LAYERS_BACKWARD),
    ),
)
