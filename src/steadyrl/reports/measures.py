"""What the tables and the page call the Gini deviation, of undiscounted and of discounted returns."""

GD = "Gini deviation (GD)"
"""That of undiscounted returns: `undiscounted_gini_deviation` in metrics.jsonl."""
DISCOUNTED_GD = "discounted GD"
"""That of discounted returns: `gini_deviation` in metrics.jsonl."""
GD_MEANING = f"The {GD} is half the expected distance between the returns of two episodes."
DISCOUNTED_GD_MEANING = (
    f"The {DISCOUNTED_GD} is the Gini deviation: half the expected distance between the discounted returns of two "
    "episodes."
)
