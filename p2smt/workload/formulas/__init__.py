"""What training costs, as one table of formulas with their sources, for arrays of strategies."""
