"""What other planners do with the same redistribution, as steps of ours with our prices.

``peer_replay`` is about any peer: moves of whole axes as steps, or why they are none of the six.
``torch_planner`` runs DTensor's own planners; ``compare_peers`` reads sequences of Shardy from
MLIR, and prices all of them beside a plan.
"""
