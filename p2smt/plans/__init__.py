"""The answer: as values (``solution``), as a file, and the check of such a file.

``check`` holds a plan file against semantics (``check_steps``) and cost model (``check_numbers``).
"""
