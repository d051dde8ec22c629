"""From verdicts to the words of a result."""
