"""Moving many tensors from one mesh to another: the layouts of both, and what each device lacks.

In reading order: ``layouts`` says who holds which box of which tensor, ``classes`` what moves, and
``ports`` what messages load.  ``certificate`` proves what no plan beats, by prices, and ``plan``
holds trees of pieces, with their replay; both know nothing of the search: ``chains``
where holders and needers are apart, ``colours`` and ``bound`` the linear program, ``trees`` what
follows its shares, ``whole`` the trees that a solver chooses, ``relays`` the cards of neighbours,
``search`` the best of these; ``buckets`` keep to a cap on memory.
``question`` is what is asked, ``answer`` what is found; ``layout_file``, ``plan_file`` and
``file_model`` are its files, ``check`` what a plan file is held to.
"""
