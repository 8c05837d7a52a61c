"""What other planners do with the same redistribution, as steps of ours with our prices.

``replay`` is about any peer: moves of whole axes as steps, or why they are none of the six.
``torch_planner`` runs DTensor's own planners; ``shardy_file`` reads sequences of Shardy from MLIR;
``compare`` prices them beside a plan.
"""
