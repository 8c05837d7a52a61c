#!/bin/bash
#SBATCH --nodes=12 --ntasks-per-node=1 --gpus-per-node=8 --exclusive

TP=4
PP=2

MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --swiglu --normalization RMSNorm --disable-bias-linear
    --position-embedding-type rope --untie-embeddings-and-output-weights
    --attention-dropout 0 --hidden-dropout 0
    --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256
)
TRAINING_ARGS=(
    --bf16 --use-flash-attn --micro-batch-size 1 --global-batch-size 480
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
    --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce
    --lr 3e-4 --train-iters 500000
)

srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 8 \
    --rdzv-backend c10d --rdzv-endpoint "$HEAD:29500" \
    pretrain_gpt.py "${MODEL_ARGS[@]}" "${TRAINING_ARGS[@]}" --data-path "$DATA"
