"""The shape of what is told of fragments: free cards that few can use, and the moves that would bring some together."""

from __future__ import annotations

from pydantic import Field

from gpuyard.api.models import Number, Out


class FragmentOut(Out):
    node: str
    device: str
    model: str
    cards: int
    free: Number
    unusable: Number = Field(
        description="of the free ones, those where not even one typical request fits; a mean, so also in parts"
    )


class RequestOut(Out):
    """What one replica typically asks for, and what the free cards are to it."""

    device: str
    cards: Number
    models: list[str] = Field(description="any of these will do; empty: every model")
    cpu: Number | None = Field(description="null: left open")
    share: float = Field(description="of all typical requests for cards, from 0 to 1")
    fit: int = Field(description="copies that would still fit now, by their cards and cores")
    free: Number = Field(description="free cards of those it may use")
    stranded: Number = Field(description="of those, what is left over when as many copies as fit have been placed")


class MoveOut(Out):
    id: str
    name: str | None = Field(description="null for what is not the asker's to see")
    owner: str | None
    group: str
    source: list[str] = Field(description="the machines it would leave")
    nodes: list[str] = Field(description="where it would go on, at once")
    lost_seconds: float = Field(description="of its work: since it was last saved")


class ApartOut(Out):
    id: str
    name: str | None = Field(description="null for what is not the asker's to see")
    owner: str | None
    group: str
    asked: dict[str, Number] = Field(description="cards of each device, of all its replicas")
    nodes: list[str] = Field(description="where it would start once the moves are made; empty: no moves would start it")
    moves: list[MoveOut]
    words: str


class FragmentsOut(Out):
    mode: str = Field(description="never: nobody looks for moves; propose: they are only shown; move: carried out")
    requests: list[RequestOut] = Field(description="typical requests, the most frequent first")
    learned: bool = Field(description="typical is what was submitted of late; false: what runs or waits now")
    nodes: list[FragmentOut] = Field(description="those that take new work")
    closed: int = Field(description="machines with cards that take no new work, so that they are not among `nodes`")
    waiting: list[ApartOut] = Field(description="those that wait though cards enough are free, only not together")
