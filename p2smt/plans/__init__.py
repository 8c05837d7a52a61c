"""The answer: as values (``solution``), as a file, and the check of such a file.

``file_model`` has the keys of a file and ``problem`` the question in it, with its ``restrictions``;
``sides`` makes a plan of two matrices two plans of one, by which all that reads plans takes it.
``check`` holds a plan against semantics, cost model and restrictions.  ``rank_scene`` is the scene
where no matrix is, ``ranges`` says what measured times may be.  ``explanation`` is what an answer
rests on, ``crossings`` the certificate of a least sufficient set.
"""
