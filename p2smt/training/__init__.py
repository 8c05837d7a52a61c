"""Training runs: a model's layers and a strategy become requests, times and memory.

``transformer`` and ``strategy`` are what is trained and how, ``formulas`` what that computes, holds
and sends, ``pipeline`` the time of an iteration, ``validity`` which strategies can run,
``efficiencies`` what a framework reaches, fitted to ``measured`` runs.  ``search`` is what `plan`
does; ``training_plan`` its answer.
"""
