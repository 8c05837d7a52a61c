"""Programs that the user gave, priced on a placement (`given_program`), over sizes (`sweep`)."""
