"""What is known of all cards, and the time for which it was known. Costs what changes, not what there is.

Each account holds from one instant on; when something else becomes known, the time since is added to the sums of its
hours, and the account goes on from there. So nothing has to happen while nothing changes, and whoever comes back after
a while finds the last that was known, with its instant.

A clock may be wrong. One that is behind what is accounted for, or ahead by more than anyone is ever away, is not
followed at once: it may be right again in the next pass. If it is still so at the next full hour, accounts go on there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuyard.domain.ledger import DAY, HOUR, Account, Amounts, Cards, Page, Span

LONGEST = 31 * DAY  # a longer stretch at once is the clock's fault, or nobody knows any more: it is not told
BY_DAY_FROM = 3 * DAY  # a longer stretch at once is accounted by whole days, where it covers them


class Accounts:
    """Instants are epoch milliseconds. One that lies before another that was told counts as that one. An hour that is
    lived again is told again, and what was told of it before is forgotten: no time is accounted for twice."""

    def __init__(self, known: Mapping[Cards, Account] | None = None) -> None:
        self._known: dict[str, dict[str, Account]] = {}
        self._sums: dict[tuple[Span, Cards], Amounts] = {}
        self._changed: set[Cards] = set()
        self._forgotten: set[Span] = set()
        self._at = 0
        self._again: int | None = None  # the full hour from which a clock that seems wrong is believed
        for cards, account in (known or {}).items():
            self._known.setdefault(cards.node, {})[cards.model] = account
            self._at = max(self._at, account.since)

    @property
    def nodes(self) -> list[str]:
        return list(self._known)

    def put(self, node: str, amounts: Mapping[str, Amounts], at: int) -> None:
        """From now on the machine's cards are so, by model; models that are not named are gone."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = {}
        for model in [*amounts, *(model for model in known if model not in amounts)]:
            account, now = known.get(model), amounts.get(model)
            if account is not None and account.amounts == now:
                continue
            self._go_on(at)
            self._settle(node, model)
            if now is None:
                del known[model]
            else:
                known[model] = Account(self._at, now)
        if not known:
            del self._known[node]

    def remove(self, node: str, at: int) -> None:
        """It is no part of the capacity any more."""
        self.put(node, {}, at)

    def settle(self, at: int) -> None:
        """Account for everything up to now."""
        self._go_on(at)
        self._settle_all()

    def _go_on(self, at: int) -> None:
        if self._at and not 0 <= at - self._at <= LONGEST:
            if at - at % HOUR != self._again:
                self._again = at - at % HOUR + HOUR
                return
            self._begin_again(self._again)
        self._again = None
        begun = self._at + -self._at % HOUR
        is_new_hour = self._at > 0 and begun < at
        self._at = at
        if is_new_hour:  # all accounts together, so that nobody's part of it is written yet
            self._forget({span for hour in range(begun, at, HOUR) for span in _beginning(hour)})
            self._settle_all()

    def _begin_again(self, at: int) -> None:
        """From this full hour on. Where its day was told as a whole, that goes: it cannot be told apart any more."""
        self._settle_all()
        self._at = at
        self._forget({Span(at - at % DAY, DAY // HOUR)})
        for models in self._known.values():
            for model, account in models.items():
                models[model] = Account(at, account.amounts)

    def _forget(self, spans: set[Span]) -> None:
        self._forgotten |= spans
        self._sums = {key: amounts for key, amounts in self._sums.items() if key[0] not in spans}

    def _settle_all(self) -> None:
        for node, models in self._known.items():
            for model, account in models.items():
                self._settle(node, model)
                models[model] = Account(self._at, account.amounts)

    def _settle(self, node: str, model: str) -> None:
        cards, account = Cards(node, model), self._known[node].get(model)
        self._changed.add(cards)
        if account is None:
            return
        for span, milliseconds in pieces(account.since, self._at):
            key, more = (span, cards), account.amounts.times(milliseconds)
            known = self._sums.get(key)
            self._sums[key] = more if known is None else known + more

    def take(self) -> Page:
        """What is to be written now; it is told once."""
        accounts = {cards: self._known.get(cards.node, {}).get(cards.model) for cards in self._changed}
        page = Page(self._sums, accounts, frozenset(self._forgotten))
        self._sums, self._changed, self._forgotten = {}, set(), set()
        return page


def _beginning(hour: int) -> Iterator[Span]:
    """The spans that begin with this hour."""
    yield Span(hour, 1)
    if hour % DAY == 0:
        yield Span(hour, DAY // HOUR)


def pieces(start: int, end: int) -> Iterator[tuple[Span, int]]:
    """The stretch, cut at full hours; of a long one the middle is cut at full days. With the milliseconds of each."""
    if end - start > LONGEST:
        return
    long = end - start > BY_DAY_FROM
    while start < end:
        step = DAY if long and start % DAY == 0 and end - start >= DAY else HOUR
        at = start - start % step
        stop = min(end, at + step)
        yield Span(at, step // HOUR), stop - start
        start = stop
