"""The formulas of decoders with layers of several kinds and latent attention, written by ``make formulas``."""

from __future__ import annotations

from functools import reduce
from typing import Any

from numpy import ceil, greater, maximum, minimum, nan, select

from p2smt.collectives.names import RequestKind
from p2smt.training.formulas.compiled.table import CompiledRows, FormulaTable, Traffic
from p2smt.training.prediction import Cover


def counts(
    B: Any, E: Any, G: Any, GN: Any, HP: Any, Hm: Any, Ns: Any, V: Any, a: Any,
    again_act: Any, again_core: Any, again_experts: Any, again_mlp: Any,
    again_norm: Any, again_shared: Any, again_up: Any, b: Any, beside: Any,
    c: Any, clamp: Any, copy_bytes: Any, d: Any, direct: Any, dr: Any,
    dropout: Any, e: Any, ed: Any, en: Any, ep: Any, er: Any, et: Any, ev: Any,
    f: Any, fe: Any, first: Any, flash: Any, fp8_params: Any, fs: Any, full: Any,
    full_a: Any, full_d: Any, full_f: Any, full_m: Any, full_w: Any,
    full_x: Any, g: Any, h: Any, hidden_dispatch: Any, i: Any, k: Any, last: Any,
    loss_b: Any, low: Any, mtp: Any, n: Any, n_again: Any, n_plain: Any,
    n_uneven: Any, nd: Any, nf: Any, nm: Any, nt: Any, nw: Any, nx: Any, off: Any,
    overlap_dp: Any, overlap_fetch: Any, overlap_pp: Any, overlap_tp: Any,
    p: Any, q: Any, r: Any, rkv: Any, rq: Any, s: Any, skew: Any, sp: Any,
    state: Any, t: Any, tied: Any, token_flops: Any, v: Any, w: Any, win: Any,
    wl: Any, zero_1: Any, zero_2: Any, zero_3: Any,
) -> dict[str, Any]:
    tokens = b*s/c
    micro_batches = B/(b*d)
    spread = sp*(t - 1) + 1
    query_width = q/t
    key_width = reduce(maximum, [e, k/t])
    end_parameters = V*h/t
    tau = tokens/t
    routed = et*r*skew*tau
    query_key = en + er
    local_experts = E/ep
    q_down_flops = 2*h*rq*tau*reduce(minimum, [1, rq])
    q_down_bytes = 2*h*rq + 2*tau*(h + rq)*reduce(minimum, [1, rq])
    kv_down_flops = 2*h*tau*(er + rkv)
    kv_down_bytes = 2*h*(er + rkv) + 2*tau*(er + h + rkv)
    q_up_flops = 2*a*query_key*tokens*(direct*h + rq)/t
    q_up_bytes = 2*a*query_key*(direct*h + rq)/t + 2*tokens*(a*query_key/t + direct*h + rq)
    kv_up_flops = 2*a*rkv*tokens*(en + ev)/t
    kv_up_bytes = 2*a*rkv*(en + ev)/t + 2*tokens*(a*(en + ev)/t + rkv)
    output_flops = 2*a*ev*h*tokens/t
    output_bytes = 2*a*ev*h/t + 2*tokens*(a*ev/t + h)
    mamba_in_flops = 2*h*tokens*(2*GN + 2*HP + Hm)/t
    mamba_in_bytes = 2*h*(2*GN + 2*HP + Hm)/t + 2*tokens*(h + (2*GN + 2*HP + Hm)/t)
    mamba_out_flops = 2*HP*h*tokens/t
    mamba_out_bytes = 2*HP*h/t + 2*tokens*(HP/t + h)
    up_flops = 2*f*g*h*tokens/t
    up_bytes = 2*f*g*h/t + 2*tokens*(f*g/t + h)
    down_flops = 2*f*h*tokens/t
    down_bytes = 2*f*h/t + 2*tokens*(f/t + h)
    expert_up_flops = 2*fe*g*routed*w/et
    expert_up_bytes = 2*routed*(w + fe*g/et) + 2*fe*g*local_experts*w/et
    expert_down_flops = 2*fe*routed*w/et
    expert_down_bytes = 2*routed*(w + fe/et) + 2*fe*local_experts*w/et
    shared_up_flops = 2*fs*g*h*tokens*reduce(minimum, [1, fs])/t
    shared_up_bytes = 2*fs*g*h/t + 2*tokens*(fs*g/t + h)*reduce(minimum, [1, fs])
    shared_down_flops = 2*fs*h*tokens*reduce(minimum, [1, fs])/t
    shared_down_bytes = 2*fs*h/t + 2*tokens*(fs/t + h)*reduce(minimum, [1, fs])
    latent_in_flops = 2*h*tau*wl*reduce(minimum, [1, wl])
    latent_in_bytes = 2*h*wl + 2*tau*(h + wl)*reduce(minimum, [1, wl])
    latent_out_flops = 2*h*tau*wl*reduce(minimum, [1, wl])
    latent_out_bytes = 2*h*wl + 2*tau*(h + wl)*reduce(minimum, [1, wl])
    mtp_in_flops = 4*h**2*tokens/t
    mtp_in_bytes = 4*h**2/t + 2*tokens*(2*h + h/t)
    logits_flops = 2*V*h*tokens/t
    logits_bytes = 2*V*h/t + 2*tokens*(V/t + h)
    core_flops = a*s*tokens*(ev + query_key)/t
    window_flops = 2*a*tokens*(ev + query_key)*reduce(minimum, [(1/2)*s, win + 64])/t
    narrow = reduce(maximum, [1, 224/(ev + query_key)])
    mamba_flops = 7*HP*Ns*tokens/t
    attention_moved = 8*a*query_key*tokens/t + 11*h*tokens/spread
    mamba_moved = 11*h*tokens/spread
    dense_moved = f*tokens*(2*g + 2)/t + 11*h*tokens/spread
    act_moved = fe*routed*(clamp + 2*g + 2)/et
    experts_moved = 12*E*tau + fs*tokens*(2*g + 2)/t + 11*h*tokens/spread + 8*routed*w
    attention_parameters = a*ev*h/t + a*query_key*(direct*h + rq)/t + a*rkv*(en + ev)/t + h*(er + rkv + rq)
    mamba_parameters = h*(2*GN + 3*HP + Hm)/t
    dense_parameters = f*h*(g + 1)/t
    mixed_parameters = E*h + fs*h*(g + 1)/t + 2*h*wl
    expert_parameters = fe*local_experts*w*(g + 1)/et
    stage_parameters = attention_parameters*(nf + nw) + dense_parameters*nd + end_parameters*(1 - last)*(-first*tied + 1)*reduce(minimum, [1, nt]) + end_parameters*(-first*last*tied + first + last) + 2*h**2*nt/t + mamba_parameters*nm + mixed_parameters*nx
    stage_experts = expert_parameters*nx
    model_flops = B*s*token_flops
    parameter_bytes = 2*zero_3*(end_parameters*(-first*last*tied + first + last) + 2*expert_parameters + 2*reduce(maximum, [attention_parameters, mamba_parameters]) + 2*reduce(maximum, [dense_parameters, mixed_parameters])) + (-copy_bytes + 2*fp8_params)*(end_parameters*(1 - first)*(1 - tied)*reduce(minimum, [1, nt]) + end_parameters*(-first*last*tied + first + last))/(zero_3*(c*d/dr - 1) + 1) + (stage_experts/(zero_3*(-1 + ed/dr) + 1) + (end_parameters*(1 - first)*(1 - tied)*reduce(minimum, [1, nt]) + stage_parameters)/(zero_3*(c*d/dr - 1) + 1))*(copy_bytes - 2*fp8_params + 2)
    gradient_bytes = G*zero_2*reduce(maximum, [end_parameters*reduce(maximum, [first, last]), expert_parameters + reduce(maximum, [attention_parameters, mamba_parameters]) + reduce(maximum, [dense_parameters, mixed_parameters])]) + G*(stage_experts/(zero_2*(-1 + ed/dr) + 1) + (end_parameters*(1 - first)*(1 - tied)*reduce(minimum, [1, nt]) + stage_parameters)/(zero_2*(c*d/dr - 1) + 1))
    optimizer_bytes = state*(stage_experts/(zero_1*(-1 + ed/dr) + 1) + (end_parameters*(1 - first)*(1 - tied)*reduce(minimum, [1, nt]) + stage_parameters)/(zero_1*(c*d/dr - 1) + 1))
    attention_kept_bytes = full_a*h*tokens/spread + (1 - full_a)*(2*a*ev*tokens/t + a*tokens*(1 - again_core)*(4*flash + s*(1 - flash)*(3*dropout + 2))/t + a*tokens*(1 - again_up)*(2*en + 4*ev + 4*query_key)/t + h*tokens*(dropout + (1 - again_norm)*(2 - low) + 2)/spread + tau*(4*er + 4*rkv + 4*rq))
    mamba_kept_bytes = full_m*h*tokens/spread + (1 - full_m)*(h*tokens*(dropout + (1 - again_norm)*(2 - low) + 2)/spread + tokens*(8*GN + 10*HP)/t)
    dense_kept_bytes = full_d*h*tokens/spread + (1 - full_d)*(f*tokens*(1 - again_mlp)*(2*g - low + 2)/t + h*tokens*(dropout + (1 - again_norm)*(2 - low) + 2)/spread)
    mixture_kept_bytes = full_x*h*tokens/spread + (1 - full_x)*(h*tokens*(dropout + (1 - again_norm)*(2 - low) + 2)/spread + (1 - again_experts)*(12*E*tau + fs*tokens*(1 - again_shared)*(2*g - low + 2)/t + routed*w*(2 - low) + 2*fe*g*routed/et + fe*routed*(1 - again_act)*(-2*g - low + 6)/et))
    passes = reduce(minimum, [micro_batches*v, select([greater(v, 1),True], [-2*i + p*(v - 1) + 2*p - 1,-i + p], default=nan)])
    masks_kept_bytes = dropout*first*h*tokens*reduce(minimum, [micro_batches, select([greater(v, 1),True], [2*p,p], default=nan)])/spread
    loss_bytes = 4*V*nt*tokens/t + first*(1 - last)*reduce(maximum, [0, 4*V*h/t - (attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/v]) + h*tokens*(4*last + 4*nt)/spread + last*reduce(maximum, [V*loss_b*tokens/t, 4*V*h/t + 2*V*tokens/t])
    backward_bytes = a*again_core*tokens*(4*flash + s*(1 - flash)*(3*dropout + 2))/t + 2*h*tokens*(dropout + (1 - again_norm)*(2 - low) + 2)*ceil(full)/spread + reduce(maximum, [again_mlp*f*tokens*(2*g - low + 2)/t, again_experts*(12*E*tau + fs*tokens*(1 - again_shared)*(2*g - low + 2)/t + routed*w*(2 - low) + 2*fe*g*routed/et + fe*routed*(1 - again_act)*(-2*g - low + 6)/et)]) + reduce(maximum, [tokens*(8*GN + 10*HP)*ceil(full_m)*reduce(minimum, [1, nm])/t, (2*a*ev*tokens/t + a*tokens*(1 - again_core)*(4*flash + s*(1 - flash)*(3*dropout + 2))/t + a*tokens*(1 - again_up)*(2*en + 4*ev + 4*query_key)/t + tau*(4*er + 4*rkv + 4*rq))*ceil(full_a)*reduce(minimum, [1, nf + nw])]) + reduce(maximum, [f*tokens*(2*g - low + 2)*ceil(full_d)*reduce(minimum, [1, nd])/t, (12*E*tau + fs*tokens*(1 - again_shared)*(2*g - low + 2)/t + routed*w*(2 - low) + 2*fe*g*routed/et + fe*routed*(1 - again_act)*(-2*g - low + 6)/et)*ceil(full_x)*reduce(minimum, [1, nx])]) + reduce(maximum, [2*f*tokens*(g + 1)*reduce(minimum, [1, nd])/t, 4*a*s*tokens*(1 - flash)*reduce(minimum, [1, nf + nw])/t, routed*(4*w + fe*(2*g + 2)/et)*reduce(minimum, [1, nx])])
    activation_bytes = h*n_again*tokens*(full_a*(nf + nw) + full_d*nd + full_m*nm + full_x*nx)/(spread*reduce(maximum, [1, full*n])) + masks_kept_bytes + n_plain*(attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd - h*tokens*(full_a*(nf + nw) + full_d*nd + full_m*nm + full_x*nx)/spread + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/reduce(maximum, [1, n*(1 - full)]) + n_uneven*(attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/reduce(maximum, [1, n]) + passes*(attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/v - reduce(maximum, [0, off*(h*n_again*tokens*(full_a*(nf + nw) + full_d*nd + full_m*nm + full_x*nx)/(spread*reduce(maximum, [1, full*n])) + n_plain*(attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd - h*tokens*(full_a*(nf + nw) + full_d*nd + full_m*nm + full_x*nx)/spread + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/reduce(maximum, [1, n*(1 - full)]) + n_uneven*(attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/reduce(maximum, [1, n]) + passes*(attention_kept_bytes*(nf + nw) + dense_kept_bytes*nd + mamba_kept_bytes*nm + mixture_kept_bytes*nx)/v) - 2*(reduce(maximum, [attention_kept_bytes, mamba_kept_bytes]) + reduce(maximum, [dense_kept_bytes, mixture_kept_bytes]))*ceil(off)]) + reduce(maximum, [backward_bytes, loss_bytes])
    tp_forward_payload = 2*h*tokens
    tp_forward_calls = (1 - sp)*(first + full_d*nd + full_f*nf + full_m*nm + full_w*nw + full_x*nx*reduce(minimum, [1, fs]) + nd + nf + nm + nw + nx*reduce(minimum, [1, fs]))
    tp_forward_part = overlap_tp*(1 - 1/t)
    tp_backward_payload = 2*h*tokens
    tp_backward_calls = (1 - sp)*(last + nd + nf + nm + nt + nw + nx*reduce(minimum, [1, fs]))
    tp_backward_part = overlap_tp*(1 - 1/t)
    tp_forward_gather_payload = 2*h*tokens
    tp_forward_gather_calls = sp*(full_d*nd + full_m*nm + full_x*nx*reduce(minimum, [1, fs]) + last + nd + nm + nt + nx*reduce(minimum, [1, fs]))
    tp_forward_gather_part = overlap_tp*(1 - 1/t)
    tp_forward_scatter_payload = 2*h*tokens
    tp_forward_scatter_calls = sp*(first + full_d*nd + full_f*nf + full_m*nm + full_w*nw + full_x*nx*reduce(minimum, [1, fs]) + nd + nf + nm + nw + nx*reduce(minimum, [1, fs]))
    tp_forward_scatter_part = overlap_tp*(1 - 1/t)
    tp_backward_gather_payload = 2*h*tokens
    tp_backward_gather_calls = sp*(first + nd + nf + nm + nw + nx*reduce(minimum, [1, fs]))
    tp_backward_gather_part = overlap_tp*(1 - 1/t)
    tp_backward_scatter_payload = 2*h*tokens
    tp_backward_scatter_calls = sp*(last + nd + nm + nt + nx*reduce(minimum, [1, fs]))
    tp_backward_scatter_part = overlap_tp*(1 - 1/t)
    tp_inputs_again_payload = 2*h*tokens
    tp_inputs_again_calls = sp*(last + nd + nm + nt + nx*reduce(minimum, [1, fs]))
    tp_inputs_again_part = 1
    tp_latent_gather_payload = 2*tokens*(direct*h + er + rkv + rq)
    tp_latent_gather_calls = full_f*nf + full_w*nw + 2*nf + 2*nw
    tp_latent_gather_part = overlap_tp*(1 - 1/t)
    tp_latent_scatter_payload = 2*tokens*(direct*h + er + rkv + rq)
    tp_latent_scatter_calls = nf + nw
    tp_latent_scatter_part = overlap_tp*(1 - 1/t)
    cp_forward_payload = 2*a*b*s*(en + er + ev)/t
    cp_forward_calls = nf*(reduce(maximum, [again_core, full_f]) + 1)
    cp_forward_part = 1
    cp_backward_payload = 2*a*b*s*(en + er + ev)/t
    cp_backward_calls = 2*nf
    cp_backward_part = 1
    cp_window_forward_payload = 2*a*b*s*(en + er + ev)*reduce(minimum, [1, win/s])/t
    cp_window_forward_calls = nw*(reduce(maximum, [again_core, full_w]) + 1)
    cp_window_forward_part = 1
    cp_window_backward_payload = 2*a*b*s*(en + er + ev)*reduce(minimum, [1, win/s])/t
    cp_window_backward_calls = 2*nw
    cp_window_backward_part = 1
    ep_dispatch_payload = 2*r*skew*tau*w
    ep_dispatch_calls = nx*(2*reduce(maximum, [again_experts, full_x]) + 4)
    ep_dispatch_part = reduce(maximum, [beside, hidden_dispatch])
    et_gather_payload = 2*routed*w
    et_gather_calls = 2*nx
    et_gather_part = 0
    et_scatter_payload = 2*routed*w
    et_scatter_calls = 2*nx
    et_scatter_part = 0
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
    experts_gradients_payload = G*stage_experts
    experts_gradients_calls = (1 - zero_1)*reduce(minimum, [1, E])
    experts_gradients_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    experts_gradients_scatter_payload = G*stage_experts
    experts_gradients_scatter_calls = (zero_1 - zero_2)*reduce(minimum, [1, E])
    experts_gradients_scatter_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    experts_parameters_gather_payload = 2*stage_experts
    experts_parameters_gather_calls = (zero_1 - zero_3)*reduce(minimum, [1, E])
    experts_parameters_gather_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    dp_copies_payload = G*dr*stage_parameters/(c*d)
    dp_copies_calls = zero_1
    dp_copies_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    experts_copies_payload = G*dr*stage_experts/ed
    experts_copies_calls = zero_1*reduce(minimum, [1, E])
    experts_copies_part = overlap_dp*(1 - 1/reduce(maximum, [1, n]))
    dp_layer_gather_payload = 2*(-end_parameters*(-first*last*tied + first + last) + stage_parameters)/reduce(maximum, [1, n])
    dp_layer_gather_calls = 2*n*zero_3
    dp_layer_gather_part = overlap_fetch
    dp_layer_scatter_payload = G*(-end_parameters*(-first*last*tied + first + last) + stage_parameters)/reduce(maximum, [1, n])
    dp_layer_scatter_calls = n*zero_2
    dp_layer_scatter_part = overlap_dp
    experts_layer_gather_payload = 2*stage_experts/reduce(maximum, [1, nx])
    experts_layer_gather_calls = 2*nx*zero_3
    experts_layer_gather_part = overlap_fetch
    experts_layer_scatter_payload = G*stage_experts/reduce(maximum, [1, nx])
    experts_layer_scatter_calls = nx*zero_2
    experts_layer_scatter_part = overlap_dp
    dp_ends_gather_payload = 2*end_parameters
    dp_ends_gather_calls = zero_3*(-first*last*tied + first + last)
    dp_ends_gather_part = overlap_fetch
    dp_ends_scatter_payload = G*end_parameters
    dp_ends_scatter_calls = zero_2*(-first*last*tied + first + last)
    dp_ends_scatter_part = overlap_dp
    return locals()


def seconds(
    GN: Any, HP: Any, Hm: Any, V: Any, W: Any, a: Any, act_moved: Any,
    again_act: Any, again_core: Any, again_experts: Any, again_mlp: Any,
    again_norm: Any, again_shared: Any, again_up: Any, attention_moved: Any,
    beside: Any, c: Any, core_8: Any, core_flops: Any, d: Any, dense_moved: Any,
    direct: Any, down_bytes: Any, down_flops: Any, dr: Any, ed: Any, edge: Any,
    en: Any, er: Any, et: Any, eta: Any, eta_core: Any, eta_low: Any,
    eta_memory: Any, ev: Any, expert_down_bytes: Any, expert_down_flops: Any,
    expert_up_bytes: Any, expert_up_flops: Any, experts_moved: Any, f: Any,
    fe: Any, first: Any, fs: Any, full: Any, full_d: Any, full_f: Any,
    full_m: Any, full_w: Any, full_x: Any, g: Any, h: Any, hides: Any,
    host_attention_s: Any, host_expert_s: Any, host_experts_s: Any,
    host_mamba_s: Any, host_mlp_s: Any, kv_down_bytes: Any,
    kv_down_flops: Any, kv_up_bytes: Any, kv_up_flops: Any, last: Any,
    latent_in_bytes: Any, latent_in_flops: Any, latent_out_bytes: Any,
    latent_out_flops: Any, launches: Any, layer_s: Any, local_experts: Any,
    logits_bytes: Any, logits_flops: Any, low: Any, mamba_flops: Any,
    mamba_in_bytes: Any, mamba_in_flops: Any, mamba_moved: Any,
    mamba_out_bytes: Any, mamba_out_flops: Any, mtp_in_bytes: Any,
    mtp_in_flops: Any, n: Any, narrow: Any, nd: Any, nf: Any, nm: Any, nt: Any,
    nw: Any, nx: Any, output_bytes: Any, output_flops: Any, peak: Any,
    peak_low: Any, q_down_bytes: Any, q_down_flops: Any, q_up_bytes: Any,
    q_up_flops: Any, quantised: Any, query_key: Any, rkv: Any, routed: Any,
    rq: Any, shared_down_bytes: Any, shared_down_flops: Any,
    shared_up_bytes: Any, shared_up_flops: Any, stage_experts: Any,
    stage_parameters: Any, state: Any, state_bytes: Any, t: Any, tau: Any,
    tokens: Any, up_bytes: Any, up_flops: Any, w: Any, window_flops: Any,
    wl: Any, zero_1: Any,
) -> dict[str, Any]:
    q_down_s = 2*edge*rq*tau*reduce(minimum, [1, rq])/(eta_low*peak) + reduce(maximum, [q_down_bytes/(W*eta_memory), q_down_flops/(eta_low*peak_low)]) + h*low*quantised*tau*reduce(minimum, [1, rq])/(W*eta_memory)
    kv_down_s = 2*edge*tau*(er + rkv)/(eta_low*peak) + reduce(maximum, [kv_down_bytes/(W*eta_memory), kv_down_flops/(eta_low*peak_low)]) + h*low*quantised*tau/(W*eta_memory)
    q_up_s = 2*a*edge*query_key*tokens/(eta_low*peak*t) + reduce(maximum, [q_up_bytes/(W*eta_memory), q_up_flops/(eta_low*peak_low)]) + low*quantised*tokens*(direct*h + rq)/(W*eta_memory)
    kv_up_s = 2*a*edge*tokens*(en + ev)/(eta_low*peak*t) + reduce(maximum, [kv_up_bytes/(W*eta_memory), kv_up_flops/(eta_low*peak_low)]) + low*quantised*rkv*tokens/(W*eta_memory)
    output_s = 2*edge*h*tokens/(eta_low*peak) + reduce(maximum, [output_bytes/(W*eta_memory), output_flops/(eta_low*peak_low)]) + a*ev*low*quantised*tokens/(W*eta_memory*t)
    mamba_in_s = 2*edge*tokens*(2*GN + 2*HP + Hm)/(eta_low*peak*t) + reduce(maximum, [mamba_in_bytes/(W*eta_memory), mamba_in_flops/(eta_low*peak_low)]) + h*low*quantised*tokens/(W*eta_memory)
    mamba_out_s = HP*low*quantised*tokens/(W*eta_memory*t) + 2*edge*h*tokens/(eta_low*peak) + reduce(maximum, [mamba_out_bytes/(W*eta_memory), mamba_out_flops/(eta_low*peak_low)])
    up_s = 2*edge*f*g*tokens/(eta_low*peak*t) + reduce(maximum, [up_bytes/(W*eta_memory), up_flops/(eta_low*peak_low)]) + h*low*quantised*tokens/(W*eta_memory)
    down_s = 2*edge*h*tokens/(eta_low*peak) + reduce(maximum, [down_bytes/(W*eta_memory), down_flops/(eta_low*peak_low)]) + f*low*quantised*tokens/(W*eta_memory*t)
    expert_up_s = 2*edge*fe*g*routed/(et*eta_low*peak) + reduce(maximum, [expert_up_bytes/(W*eta_memory), expert_up_flops/(eta_low*peak_low)]) + low*quantised*routed*w/(W*eta_memory)
    expert_down_s = 2*edge*routed*w/(eta_low*peak) + reduce(maximum, [expert_down_bytes/(W*eta_memory), expert_down_flops/(eta_low*peak_low)]) + fe*low*quantised*routed/(W*et*eta_memory)
    shared_up_s = 2*edge*fs*g*tokens*reduce(minimum, [1, fs])/(eta_low*peak*t) + reduce(maximum, [shared_up_bytes/(W*eta_memory), shared_up_flops/(eta_low*peak_low)]) + h*low*quantised*tokens*reduce(minimum, [1, fs])/(W*eta_memory)
    shared_down_s = 2*edge*h*tokens*reduce(minimum, [1, fs])/(eta_low*peak) + reduce(maximum, [shared_down_bytes/(W*eta_memory), shared_down_flops/(eta_low*peak_low)]) + fs*low*quantised*tokens*reduce(minimum, [1, fs])/(W*eta_memory*t)
    latent_in_s = 2*edge*tau*wl*reduce(minimum, [1, wl])/(eta_low*peak) + reduce(maximum, [latent_in_bytes/(W*eta_memory), latent_in_flops/(eta_low*peak_low)]) + h*low*quantised*tau*reduce(minimum, [1, wl])/(W*eta_memory)
    latent_out_s = 2*edge*h*tau*reduce(minimum, [1, wl])/(eta_low*peak) + reduce(maximum, [latent_out_bytes/(W*eta_memory), latent_out_flops/(eta_low*peak_low)]) + low*quantised*tau*wl*reduce(minimum, [1, wl])/(W*eta_memory)
    mtp_in_s = 2*edge*h*tokens/(eta_low*peak*t) + reduce(maximum, [mtp_in_bytes/(W*eta_memory), mtp_in_flops/(eta_low*peak_low)]) + 2*h*low*quantised*tokens/(W*eta_memory)
    logits_s = 2*V*edge*tokens/(eta*peak*t) + reduce(maximum, [logits_bytes/(W*eta_memory), logits_flops/(eta*peak)])
    core_s = core_flops*narrow/(eta_core*peak*(0.28*core_8 + 1))
    window_s = narrow*window_flops/(eta_core*peak*(0.28*core_8 + 1))
    states_s = reduce(maximum, [mamba_flops/(eta*peak), HP*state_bytes*tokens/(W*eta_memory*t)])
    attention_forward_s = core_s + kv_down_s + kv_up_s + output_s + q_down_s + q_up_s + attention_moved/(W*eta_memory)
    attention_backward_s = attention_forward_s*full_f + (5/2)*core_s + 2*kv_down_s + 2*kv_up_s + 2*output_s + 2*q_down_s + 2*q_up_s + (1 - full_f)*(again_core*core_s + again_up*(kv_up_s + q_up_s) + 4*again_norm*h*tau/(W*eta_memory)) + 2*attention_moved/(W*eta_memory)
    window_forward_s = kv_down_s + kv_up_s + output_s + q_down_s + q_up_s + window_s + attention_moved/(W*eta_memory)
    window_backward_s = full_w*window_forward_s + 2*kv_down_s + 2*kv_up_s + 2*output_s + 2*q_down_s + 2*q_up_s + (5/2)*window_s + (1 - full_w)*(again_core*window_s + again_up*(kv_up_s + q_up_s) + 4*again_norm*h*tau/(W*eta_memory)) + 2*attention_moved/(W*eta_memory)
    mamba_forward_s = mamba_in_s + mamba_out_s + states_s + mamba_moved/(W*eta_memory)
    mamba_backward_s = full_m*mamba_forward_s + 2*mamba_in_s + 2*mamba_out_s + 2*states_s + 4*again_norm*h*tau*(1 - full_m)/(W*eta_memory) + 2*mamba_moved/(W*eta_memory)
    dense_forward_s = down_s + up_s + dense_moved/(W*eta_memory)
    dense_backward_s = dense_forward_s*full_d + 2*down_s + 2*up_s + (1 - full_d)*(again_mlp*(down_s + up_s + dense_moved/(W*eta_memory)) + 4*again_norm*h*tau/(W*eta_memory)) + 2*dense_moved/(W*eta_memory)
    mixture_forward_s = expert_down_s + expert_up_s + latent_in_s + latent_out_s + shared_down_s + shared_up_s + act_moved/(W*eta_memory) + experts_moved/(W*eta_memory)
    mixture_backward_s = 2*expert_down_s + 2*expert_up_s + full_x*mixture_forward_s + 2*latent_in_s + 2*latent_out_s + 2*shared_down_s + 2*shared_up_s + (1 - full_x)*(again_experts*(expert_down_s + expert_up_s + latent_in_s + latent_out_s + shared_down_s + shared_up_s + act_moved/(W*eta_memory) + experts_moved/(W*eta_memory)) + (1 - again_experts)*(again_shared*(shared_down_s + shared_up_s) + act_moved*again_act/(W*eta_memory)) + 4*again_norm*h*tau/(W*eta_memory)) + 2*act_moved/(W*eta_memory) + 2*experts_moved/(W*eta_memory)
    host_s = launches*(host_attention_s*(nf + nw) + host_mamba_s*nm + host_mlp_s*nd + nx*(host_expert_s*local_experts + host_experts_s))
    device_forward_s = attention_forward_s*nf + dense_forward_s*nd + last*(4*V*tokens/(W*eta_memory*t) + logits_s) + mamba_forward_s*nm + mixture_forward_s*nx + nt*(4*V*tokens/(W*eta_memory*t) + logits_s + mtp_in_s) + nw*window_forward_s + 4*first*h*tokens/(W*eta_memory)
    stage_forward_s = (1/3)*layer_s*n + (device_forward_s**(7/4) + (1/9)*3**(1/4)*host_s**(7/4))**(4/7)
    device_backward_s = attention_backward_s*nf + dense_backward_s*nd + 2*last*logits_s + mamba_backward_s*nm + mixture_backward_s*nx + nt*(2*logits_s + 2*mtp_in_s) + nw*window_backward_s + 8*first*h*tokens/(W*eta_memory)
    stage_backward_s = layer_s*n*((1/3)*full + 2/3) + (device_backward_s**(7/4) + host_s**(7/4)*((1/3)*full + 2/3)**(7/4))**(4/7)
    optimizer_s = (2*state + 6)*(stage_experts/(zero_1*(-1 + ed/dr) + 1) + stage_parameters/(zero_1*(c*d/dr - 1) + 1))/(W*eta_memory)
    tp_forward_cover_s = 0
    tp_backward_cover_s = 0
    tp_forward_gather_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    tp_forward_scatter_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    tp_backward_gather_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    tp_backward_scatter_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    tp_inputs_again_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    tp_latent_gather_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    tp_latent_scatter_cover_s = (1/2)*nd*(down_s + up_s) + (1/2)*nm*(mamba_in_s + mamba_out_s) + (1/2)*nx*(shared_down_s + shared_up_s) + (1/2)*(nf + nw)*(kv_down_s + kv_up_s + output_s + q_down_s + q_up_s)
    cp_forward_cover_s = core_s*nf*(1 - 1/c)*(reduce(maximum, [again_core, full_f]) + 1)
    cp_backward_cover_s = (5/2)*core_s*nf*(1 - 1/c)
    cp_window_forward_cover_s = nw*window_s*(1 - 1/c)*(reduce(maximum, [again_core, full_w]) + 1)
    cp_window_backward_cover_s = (5/2)*nw*window_s*(1 - 1/c)
    ep_dispatch_cover_s = beside*nx*(shared_down_s + shared_up_s)*(reduce(maximum, [again_experts, full_x]) + 3) + hides*(1 - beside)*(stage_backward_s + stage_forward_s)
    et_gather_cover_s = 0
    et_scatter_cover_s = 0
    pp_send_cover_s = stage_backward_s + stage_forward_s
    pp_shared_embedding_cover_s = 0
    dp_gradients_cover_s = stage_backward_s
    dp_gradients_scatter_cover_s = stage_backward_s
    dp_parameters_gather_cover_s = stage_forward_s
    experts_gradients_cover_s = stage_backward_s
    experts_gradients_scatter_cover_s = stage_backward_s
    experts_parameters_gather_cover_s = stage_forward_s
    dp_copies_cover_s = stage_backward_s
    experts_copies_cover_s = stage_backward_s
    dp_layer_gather_cover_s = stage_backward_s + stage_forward_s
    dp_layer_scatter_cover_s = stage_backward_s
    experts_layer_gather_cover_s = stage_backward_s + stage_forward_s
    experts_layer_scatter_cover_s = stage_backward_s
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
        Traffic("tp latent gather", RequestKind.ALL_GATHER, ("tp",), cover=Cover.PRODUCT),
        Traffic("tp latent scatter", RequestKind.REDUCE_SCATTER, ("tp",), cover=Cover.PRODUCT),
        Traffic("cp forward", RequestKind.ALL_GATHER, ("cp",), cover=Cover.ATTENTION),
        Traffic("cp backward", RequestKind.ALL_GATHER, ("cp",), cover=Cover.ATTENTION),
        Traffic("cp window forward", RequestKind.ALL_GATHER, ("cp",), cover=Cover.ATTENTION),
        Traffic("cp window backward", RequestKind.ALL_GATHER, ("cp",), cover=Cover.ATTENTION),
        Traffic("ep dispatch", RequestKind.ALL_TO_ALL, ("ep",), cover=Cover.COMPUTE),
        Traffic("et gather", RequestKind.ALL_GATHER, ("et",), cover=Cover.NOTHING),
        Traffic("et scatter", RequestKind.REDUCE_SCATTER, ("et",), cover=Cover.NOTHING),
        Traffic("pp send", RequestKind.SEND, ("pp",), cover=Cover.COMPUTE, closes=True),
        Traffic("pp shared embedding", RequestKind.SEND, ("pp",), cover=Cover.NOTHING, once=True),
        Traffic("dp gradients", RequestKind.ALL_REDUCE, ("dp", "cp"), cover=Cover.BACKWARD, once=True),
        Traffic("dp gradients scatter", RequestKind.REDUCE_SCATTER, ("dp", "cp"), cover=Cover.BACKWARD, once=True),
        Traffic("dp parameters gather", RequestKind.ALL_GATHER, ("dp", "cp"), cover=Cover.FORWARD, once=True),
        Traffic("experts gradients", RequestKind.ALL_REDUCE, ("ed",), cover=Cover.BACKWARD, once=True),
        Traffic("experts gradients scatter", RequestKind.REDUCE_SCATTER, ("ed",), cover=Cover.BACKWARD, once=True),
        Traffic("experts parameters gather", RequestKind.ALL_GATHER, ("ed",), cover=Cover.FORWARD, once=True),
        Traffic("dp copies", RequestKind.ALL_REDUCE, ("dpr",), cover=Cover.BACKWARD, once=True),
        Traffic("experts copies", RequestKind.ALL_REDUCE, ("edr",), cover=Cover.BACKWARD, once=True),
        Traffic("dp layer gather", RequestKind.ALL_GATHER, ("dp", "cp"), cover=Cover.COMPUTE, edge=1),
        Traffic("dp layer scatter", RequestKind.REDUCE_SCATTER, ("dp", "cp"), cover=Cover.LAYERS_BACKWARD, edge=1),
        Traffic("experts layer gather", RequestKind.ALL_GATHER, ("ed",), cover=Cover.COMPUTE, edge=1),
        Traffic("experts layer scatter", RequestKind.REDUCE_SCATTER, ("ed",), cover=Cover.LAYERS_BACKWARD, edge=1),
        Traffic("dp ends gather", RequestKind.ALL_GATHER, ("dp", "cp"), cover=Cover.COMPUTE),
        Traffic("dp ends scatter", RequestKind.REDUCE_SCATTER, ("dp", "cp"), cover=Cover.LAYERS_BACKWARD),
    ),
)
