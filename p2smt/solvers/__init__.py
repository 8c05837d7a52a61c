"""The one door to the solvers: ``ask`` a problem one of the ``questions``, of a ``solver``.

Only here are encodings imported (``load``), each as its protocol says (``protocols``).
"""
