"""Whether two lists put items in the same order: Kendall's tau-b.

Source: Kendall 1945 for the variant b, which allows for ties.
"""

from __future__ import annotations


def tau_b(first: list[float], second: list[float]) -> float | None:
    """Kendall's tau-b of two lists of the same length; None where it isn't defined."""
    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    # It takes a second to import.
    from scipy.stats import kendalltau

    return float(kendalltau(first, second, variant="b").statistic)
