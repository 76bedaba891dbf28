"""Words bent by their number: `{count:job|jobs}` in a phrase is `1 job` or `2 jobs`."""

from __future__ import annotations


class Counted:
    """A fact of a phrase. With two words in its format it brings the one that goes with its number."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __format__(self, form: str) -> str:
        one, bar, many = form.partition("|")
        if not bar:
            return format(self._value, form)
        return f"{self._value} {one if str(self._value) == '1' else many}"
