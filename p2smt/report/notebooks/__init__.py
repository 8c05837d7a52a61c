"""Answers in notebooks: :mod:`display` makes HTML and rows of them (:mod:`p2smt.display`)."""
