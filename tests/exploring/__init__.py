"""``make explore``: the properties tried on new examples, and what that finds.

``text`` writes values down and makes them again; ``found`` is the committed file of cases, tried
by every run of the tests; ``turns`` says which property is next; ``plugin`` runs it; ``__main__``
starts the processes and tells what came of it.
"""
