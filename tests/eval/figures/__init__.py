"""How well figures are told apart and judged: labelled cases, predictions for a scorer, and a table of the
confusions."""
