"""Follows how long the slowest few of many answers take."""

_QUANTILE = 0.95
_GAIN = 0.1


class SlowAnswers:
    """A running estimate of the 95th percentile, in constant space.

    Each time above the estimate raises it by a good part, each other lowers it by a small one; they balance where one
    time in twenty is above. It forgets as it goes, within some hundred answers.
    """

    def __init__(self, least_s: float, most_s: float) -> None:
        """Starts at `least_s`, and stays between the two."""
        self.after_s = least_s
        self.most_s = most_s
        self._least_s = least_s

    def note(self, seconds: float) -> None:
        """Takes the time of one answer."""
        change = _QUANTILE if seconds > self.after_s else _QUANTILE - 1
        self.after_s = min(self.most_s, max(self._least_s, self.after_s * (1 + _GAIN * change)))
