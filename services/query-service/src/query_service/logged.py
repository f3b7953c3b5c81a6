"""What the log has said last, so that what lasts, or comes again and again, is one line."""

from collections.abc import Hashable


class Logged(dict[Hashable, object]):
    """The fact that was logged last of each subject; `pop` a subject that is over. One thread has each subject."""

    def is_new(self, subject: Hashable, fact: object = True) -> bool:
        """Returns whether the subject has its first fact, or another one than before, and notes it."""
        is_new = self.get(subject) != fact
        self[subject] = fact
        return is_new
