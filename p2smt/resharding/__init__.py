"""Moving an array from one layout to another over a device mesh (after arXiv 2112.01075).

``types`` (arrays over meshes), ``endpoints`` and ``states`` are what a plan moves between,
``steps`` its six steps, ``index_maps`` with ``semantics`` what these mean: THE SPECIFICATION of
this package. ``step_prices`` and ``time_left`` say what they cost.  ``search`` finds the plan: over
the ``state_graph`` by ``best_path``, or ``layered``, with a solver.  ``redistribution_plan`` is the
answer, ``plan_check`` its verification.
"""
