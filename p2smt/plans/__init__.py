"""The answer: as values (``solution``), as a file, and the check of such a file.

``file_model`` has the keys of a file and ``problem`` the question in it, with its ``restrictions``.
``check`` holds a plan against semantics (``check_steps``), cost model (``check_numbers``) and
restrictions (``check_restrictions``).  ``rank_answer`` is the answer where no matrix is, and
``rank_program`` that of a program there, on its ``rank_scene``.
"""
