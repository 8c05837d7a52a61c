"""Where should the axes of a job lie, and how should their reductions run?"""

import p2smt

cluster = p2smt.load_topology("dgx-a100:4")
problem = p2smt.Problem(
    cluster,
    p2smt.parse_axes("dp=8,tp=4"),
    (p2smt.reduce("dp=1GiB"), p2smt.reduce("tp=64MiB*128")),
)
solution = p2smt.solve(problem, top=1)
best = solution.best
assert best is not None
print(f"{solution.status.value}: {1e3 * best.objective_s:.1f} ms, matrix {best.matrix}")
for request in best.requests:
    print(f"  {request.program}")
