"""From a question to a checked answer, by the solvers.

``solve`` is the public function; ``joint`` finds the optimum by ``bound_table`` (made of what is in
``table``) and ``order``, which also has the placements near it; ``one_request`` finds the programs
of one request by ``programs`` or ``programs_pipelined``; ``placements`` lists matrices;
``rank_orders`` and ``sensitivity`` compare; ``conflict`` names the restrictions that leave no
answer.  ``weaker`` answers without a proof; ``prove`` solves a plan again.
"""
