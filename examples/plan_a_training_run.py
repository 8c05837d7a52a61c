"""Which strategy trains a model fastest on a cluster?  With memory, and a proof."""

import p2smt

cluster = p2smt.load_topology("dgx-h100:1")
question = p2smt.PlanQuestion(
    p2smt.read_model("llama-3-8b"),
    p2smt.Batch(sequences=64, tokens=8192),
    cluster,
    p2smt.efficiency_of(cluster),
)
planned = p2smt.plan(question)
best = planned.top[0]
print(f"{planned.answer.status.value}: {p2smt.strategy_text(best.run.strategy)}")
