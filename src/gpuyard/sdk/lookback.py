"""The journal of decisions by program: decide once more what was decided, and what another policy would have done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.wire import Wire

PATH = "/api/v1/journal"
ASK_EVERY_SECONDS = 0.3


class Lookback:
    """The part of the client that speaks of the journal."""

    wire: Wire
    if TYPE_CHECKING:
        get: Callable[..., Any]

    def journal(self) -> dict[str, Any]:
        """How much is kept, and whether it is written."""
        return dict(self.get("/journal"))

    def replay(
        self,
        *,
        last: int | None = None,
        since: str | None = None,
        until: str | None = None,
        job: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Decide once more what was decided; `same` tells whether everything came out alike."""
        asked = {"last": last, "since": since, "until": until, "job": job}
        body = {name: value for name, value in asked.items() if value is not None}
        return self._awaited(dict(self.wire.told("POST", f"{PATH}/replay", body=body)), progress)

    def what_if(
        self,
        document: bytes,
        *,
        since: str | None = None,
        until: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """The platform's own history under a policy (YAML or JSON, as in a file) beside the one in force."""
        params = {name: value for name, value in {"since": since, "until": until}.items() if value is not None}
        headers = {"Content-Type": "application/yaml"}
        answer = self.wire.ask("POST", f"{PATH}/what-if", content=document, headers=headers, params=params)
        return self._awaited(dict(read_answer(answer.content)), progress)

    def _awaited(self, run: dict[str, Any], progress: Callable[[int, int], None] | None) -> dict[str, Any]:
        """Until it is over. Whoever leaves before that ends it."""
        try:
            while run["state"] == "running":
                time.sleep(ASK_EVERY_SECONDS)
                run = dict(self.get(f"/journal/runs/{run['id']}"))
                if progress is not None and run["of"]:
                    progress(run["done"], run["of"])
        except KeyboardInterrupt:
            self.wire.ask("DELETE", f"{PATH}/runs/{run['id']}")
            raise
        return run
