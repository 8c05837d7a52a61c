"""How should an array get from one sharding to another, and how long does it take?"""

import p2smt

cluster = p2smt.load_topology("azure-ndv4:4").nominal()
source = p2smt.array_type("dp=4,tp=8", (8192, 8192), "bf16", "S(dp),S(tp)")
plan = p2smt.redistribute(source, "R,S(dp,tp)", cluster)
print(f"{plan.status.value}: {1e6 * plan.objective_s:.1f} us")
for step in plan.array_steps:
    print(f"  {step.text(plan.frame)}")
