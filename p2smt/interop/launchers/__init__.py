"""Files for what starts the ranks of a plan, each rank where the plan has it.

``places`` says on which host and device each rank lies; every other file holds one format.
``p2smt.interop.exports`` is their table.
"""
