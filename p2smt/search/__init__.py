"""From a question to a checked answer, by the solvers.

``solve`` is the public function; ``joint`` finds the optimum by the ``bound_table``, which looks at
every matrix of a ``matrix_list`` or asks a solver, and ``near_optimal`` has the placements near it;
``one_request`` finds the programs of one request by ``program_synthesis`` or
``programs_pipelined``, from a ``warm_start`` and the best of ``nests``; ``placements`` lists
matrices; ``comparison``, ``gain`` and ``sensitivity`` compare; ``conflict`` names the restrictions
that leave no answer; ``prove`` solves a plan again.  ``allocation`` answers on named hosts,
``explain`` says what an answer rests on, ``crossings`` what holds whatever the numbers, ``spaces``
what parts of a search share.
"""
