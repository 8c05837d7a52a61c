"""Options of Megatron-LM that do not change what is priced."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OF: dict[str, str] = {
    "data": (
        "data-path split data-cache-path vocab-file merge-file tokenizer-type "
        "tokenizer-model tiktoken-pattern num-workers mock-data "
        "no-create-attention-mask-in-dataloader no-mmap-bin-files reset-position-ids "
        "reset-attention-mask eod-mask-loss dataloader-type vocab-extra-ids "
        "train-data-path valid-data-path test-data-path per-split-data-args-path "
        "data-args-path tokenizer-hf-include-special-tokens "
        "no-use-tokenizer-model-from-checkpoint-args sft sft-tokenizer-prompt-format "
        "fim-data fim-rate fim-spm-rate legacy-tokenizer tiktoken-num-special-tokens "
        "tokenizer-metadata special-tokens-from-file bert-no-binary-head "
        "trust-remote-code full-validation multiple-validation-sets "
        "object-storage-cache-path mid-level-dataset-surplus dataloader-fast-cache-load "
        "dataloader-defer-npy-index-mmap tokenizer-special-tokens "
        "num-dataset-builder-threads data-impl "
    ),
    "length": (
        "train-iters train-samples exit-interval exit-duration-in-mins "
        "exit-signal-handler exit-on-missing-checkpoint eval-iters eval-interval "
        "skip-train max-tokens-to-oom test-mode iterations-to-skip start-weight-decay "
        "end-weight-decay weight-decay-incr-style "
    ),
    "checkpoints": (
        "save load save-interval ckpt-format async-save finetune no-load-optim "
        "no-load-rng no-save-optim no-save-rng use-checkpoint-opt_param-scheduler "
        "override-opt_param-scheduler override-opt-param-scheduler "
        "use-checkpoint-opt-param-scheduler dist-ckpt-strictness ckpt-fully-parallel-load "
        "ckpt-fully-parallel-save no-ckpt-fully-parallel-save auto-detect-ckpt-format "
        "ckpt-assume-constant-structure use-persistent-ckpt-worker async-strategy "
        "async-mode dist-ckpt-optim-fully-reshardable save-retain-interval "
        "ckpt-convert-format ckpt-convert-save ckpt-step use-dist-ckpt dist-ckpt-format "
        "dist-ckpt-save-pre-mcore-014 non-persistent-save-interval "
        "non-persistent-ckpt-type verify-integrity async-ckpt-use-cpu-shm "
        "async-ckpt-use-cached-structure ckpt-drop-redundant-extra-state "
        "pretrained-checkpoint use-mp-args-from-checkpoint-args no-initialization "
        "perform-initialization ckpt-fully-parallel-load-per-rank-objects "
        "no-ckpt-load-validate-sharding-integrity universal-checkpoint load-weights "
    ),
    "logs": (
        "log-interval log-throughput log-timers-to-tensorboard log-memory-to-tensorboard "
        "log-num-zeros-in-grad log-params-norm log-validation-ppl-to-tensorboard "
        "log-progress log-energy log-memory-interval log-batch-size-to-tensorboard "
        "log-world-size-to-tensorboard log-learning-rate-to-tensorboard "
        "log-loss-scale-to-tensorboard log-straggler log-device-memory-used "
        "log-max-attention-logit no-record-throughput tensorboard-dir "
        "tensorboard-log-interval tensorboard-queue-size wandb-project wandb-exp-name "
        "wandb-save-dir wandb-entity wandb-group timing-log-level timing-log-option "
        "logging-level straggler-minmax-count straggler-ctrlr-port "
        "disable-straggler-on-startup profile profile-step-start profile-step-end "
        "profile-ranks use-pytorch-profiler record-memory-history memory-snapshot-path "
        "one-logger-project one-logger-run-name enable-one-logger app-tag-run-name "
        "app-tag-run-version no-one-logger "
    ),
    "learning": (
        "lr min-lr lr-decay-style lr-decay-iters lr-decay-samples lr-warmup-fraction "
        "lr-warmup-iters lr-warmup-samples lr-warmup-init lr-wsd-decay-style "
        "lr-wsd-decay-iters lr-wsd-decay-samples decoupled-lr decoupled-min-lr "
        "weight-decay clip-grad adam-beta1 adam-beta2 adam-eps seed init-method-std "
        "init-method-xavier-uniform use-cpu-initialization loss-scale initial-loss-scale "
        "min-loss-scale loss-scale-window hysteresis apply-wd-to-qk-layernorm "
        "embedding-init-method-std data-parallel-random-init te-rng-tracker "
        "inference-rng-tracker check-weight-hash-across-dp-replicas-interval rerun-mode "
        "error-injection-rate error-injection-type calculate-per-token-loss "
        "label-smoothing max-lr "
    ),
    "routing": (
        "moe-router-load-balancing-type moe-aux-loss-coeff moe-z-loss-coeff "
        "moe-router-score-function moe-router-topk-scaling-factor "
        "moe-router-enable-expert-bias moe-router-bias-update-rate moe-router-dtype "
        "moe-router-pre-softmax moe-input-jitter-eps moe-per-layer-logging "
        "mtp-loss-scaling-factor moe-router-force-load-balancing "
        "moe-router-padding-for-quantization moe-router-padding-for-fp8 moe-extended-tp "
    ),
    "positions and norms": (
        "max-position-embeddings position-embedding-type use-rotary-position-embeddings "
        "rotary-base rotary-percent rotary-scaling-factor rotary-interleaved "
        "rotary-seq-len-interpolation-factor use-rope-scaling rope-scaling-factor "
        "no-position-embedding mscale mscale-all-dim beta-fast beta-slow "
        "original-max-position-embeddings normalization norm-epsilon apply-layernorm-1p "
        "qk-layernorm qk-l2-norm disable-bias-linear add-qkv-bias "
        "apply-query-key-layer-scaling no-query-key-layer-scaling "
        "attention-softmax-in-fp32 softmax-type "
        "glu-linear-offset activation-func-clamp-value squared-relu encoder-num-layers "
        "is-hybrid-model spec no-rope-freq rope-type layernorm-epsilon layernorm-init-weight "
        "apply-layernorm-rms rotary-position-embeddings-in-fp32 "
    ),
    "starting": (
        "distributed-backend distributed-timeout-minutes use-mcore-models "
        "use-legacy-models enable-experimental model-provider local-rank "
        "no-async-tensor-model-parallel-allreduce disable-gloo-process-groups "
        "enable-gloo-process-groups lazy-mpu-init standalone-embedding-stage "
        "nccl-communicator-config-path use-tp-pp-dp-mapping high-priority-stream-groups "
        "deterministic-mode local_rank no-check-for-nan-in-loss-and-grad "
        "check-for-large-grads check-for-spiky-loss manual-gc manual-gc-interval "
        "manual-gc-eval no-barrier-with-level-1-timing adlr-autoresume "
        "adlr-autoresume-interval kill-switch-path DDP-impl pipeline-dtype "
        "check-for-nan-in-grad deepspeed deepspeed_config "
        "deepspeed-config no-pipeline-parallel deepspeed-activation-checkpointing "
    ),
}
"""Options without effect on time and memory, by what they are of."""
_SMALL = (
    "overlap-grad-reduce overlap-param-gather overlap-param-gather-with-optimizer-step "
    "no-overlap-p2p-communication overlap-p2p-communication-warmup-flush tp-comm-overlap "
    "tp-comm-overlap-cfg tp-comm-bootstrap-backend grad-reduce-in-bf16 "
    "accumulate-allreduce-grads-in-fp32 no-gradient-accumulation-fusion "
    "no-bias-gelu-fusion no-bias-swiglu-fusion no-bias-dropout-fusion "
    "no-masked-softmax-fusion no-rope-fusion no-persist-layer-norm "
    "cross-entropy-loss-fusion cross-entropy-fusion-impl moe-grouped-gemm "
    "moe-permute-fusion moe-router-fusion use-transformer-engine-op-fuser "
    "use-flashinfer-fused-rope use-fused-weighted-squared-relu fp8-margin fp8-interval "
    "fp8-amax-history-len fp8-amax-compute-algo no-fp8-wgrad "
    "first-last-layers-bf16 num-layers-at-start-in-bf16 "
    "num-layers-at-end-in-bf16 reuse-grad-buf-for-mxfp8-param-ag "
    "keep-fp8-weight-transpose-cache ddp-bucket-size ddp-num-buckets "
    "ddp-average-in-collective ddp-pad-buckets-for-high-nccl-busbw "
    "empty-unused-memory-level microbatch-group-size-per-virtual-pipeline-stage "
    "defer-embedding-wgrad-compute wgrad-deferral-limit delay-wgrad-compute "
    "moe-hybridep-num-sms moe-deepep-num-sms moe-flex-dispatcher-num-sms "
    "distribute-saved-activations no-scatter-gather-tensors-in-pipeline "
    "use-ring-exchange-p2p init-model-with-meta-device fsdp-double-buffer use-nccl-ub "
    "moe-shared-expert-gate fp16-lm-cross-entropy embedding-weights-in-fp32 "
)
"""Options of kernels, buckets and overlap whose effect the fitted constants hold on average."""

WITHOUT_EFFECT = frozenset(f"--{name}" for names in _OF.values() for name in names.split())
ON_AVERAGE = frozenset(f"--{name}" for name in _SMALL.split())
_NAMED_SO = re.compile(r"--[A-Za-z0-9-]+-(path|dir|file|interval)")
"""What forks call files, folders, and how often something is written."""


@dataclass(frozen=True, slots=True)
class IgnoredOptions:
    """Options that do not change what is priced, by their names."""

    def __contains__(self, name: object) -> bool:
        known = name in WITHOUT_EFFECT or name in ON_AVERAGE
        return known or _NAMED_SO.fullmatch(str(name)) is not None


IGNORED = IgnoredOptions()
