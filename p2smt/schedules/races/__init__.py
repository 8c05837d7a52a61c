"""The race decision: can accesses that nothing orders make an output chunk wrong?

:func:`p2smt.schedules.races.decide.decide` decides it.  Three things decide in turn:

1. the *flow* of data: a goal that holds the right value whatever unordered reads see is closed;
2. the solver, on the *question* of each *open goal*: that no order makes it wrong is its proof;
3. the *replay*: an order that the solver found counts only once the interpreter has shown by it
   that the goal is wrong.

Words, in reading order of the files:

replay      *order item*: a step as a whole, or one *access* of it (a read or a write of one chunk);
            *replay*: to run a schedule under one order; imports nothing of the other files
flow        *shared* cell: accessed in no certain order; *value*: a multiset of parts and of what
            reads of shared cells see (:mod:`p2smt.schedules.multisets`)
reach       *graph*: nodes and edges of happens-before (:mod:`p2smt.schedules.order`), of which
            *relaxed* edges order execution and not data; *happens-before*: reachability in it,
            between the nodes that matter (*keys*)
cone        *cone* of influence: the reads that goals depend on; *source*: a write that a read may
            see (reads-from); *settled* read: all its sources leave the same value, so that it is
            *folded* into those that use it
question    *rule*: a *counter* or *packet* that makes steps wait beyond happens-before; *question*:
            the :class:`~p2smt.problems.race.RaceProblem` of one goal; *relaxation*: a question
            without the rules that cannot matter, so that only its proofs count; *prefix*: what is
            executed until the goal's chunk is final
linearize   *point*: the start of a node, an access, or the end of a node; *linearized*: the few
            pairs of points of an answer completed to an order of everything
shown_flow  in an order that was found, which cells the wrong data came through
decide      *open goal*: one that the flow of data leaves open; *decision*: harmless, wrong with an
            order as short as possible, or unknown with the reason
"""
