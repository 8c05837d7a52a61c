"""When is a hierarchical all-reduce worth its three calls?  Two programs, by payload."""

import p2smt

cluster = p2smt.load_topology("dgx-a100:4")
problem = p2smt.Problem(cluster, p2smt.parse_axes("dp=8,tp=4"), (p2smt.reduce("dp=1MiB"),))
placement = p2smt.Placement(((4, 2), (1, 4)))
programs = (
    "all-reduce inside root",
    "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node",
)
sizes = tuple(2**power for power in range(14, 33, 3))
one, three = (p2smt.cost_by_size(problem, placement, sizes, [text]) for text in programs)
for size, single, nested in zip(sizes, one, three, strict=True):
    faster = "one call" if single.objective_s <= nested.objective_s else "three"
    times = f"{1e6 * single.objective_s:10.1f} us {1e6 * nested.objective_s:10.1f} us"
    print(f"{size >> 10:8} KiB {times}  {faster}")
