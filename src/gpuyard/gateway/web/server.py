"""The web part as a whole: listens, keeps watch over what is open, and ends in good time."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import resource
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence

from gpuyard.domain.doorways import Asked, Visit
from gpuyard.domain.errors import Unavailable, YardError
from gpuyard.gateway.context import Context
from gpuyard.gateway.strangers import Proxies, Strangers
from gpuyard.gateway.web.connection import Connection, Talk
from gpuyard.gateway.web.crowd import Crowd
from gpuyard.gateway.web.framing import FRAMED, Framing
from gpuyard.gateway.web.gate import Gate, Proof
from gpuyard.gateway.web.heads import Request
from gpuyard.gateway.web.own import OwnTalk
from gpuyard.gateway.web.own_pages import OwnPages
from gpuyard.gateway.web.porch import Porch
from gpuyard.gateway.web.reaching import Reaching
from gpuyard.gateway.web.rewriting import cookies_named
from gpuyard.gateway.web.upstream import Pool

HEAD_SECONDS = 10.0
KEEP_SECONDS = 75.0
QUIET_SECONDS = 600.0
"""A request during which nothing moved for so long. Not for WebSockets."""
WATCH_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 2.0
END_SECONDS = 3.0
MOST_CONNECTIONS = 8192
MOST_KNOWN, LARGEST_KNOWN = 2048, 1024  # how many hosts and cookies are known by heart, and how large these may be
COOKIE = b"yard_gate"
TLS_COOKIE, TLS_PATHS_COOKIE = b"__Host-yard_gate", b"__Secure-yard_gate"  # the first is for whole hosts only
_log = logging.getLogger(__name__)


class Web:
    def __init__(self, context: Context, *, crowd: Crowd | None = None, workers: int = 1) -> None:
        """`workers`: how many such there are on one port; each has its share of what one address may take."""
        self.context = context
        self.scheme = context.doorway.scheme.encode()
        # Browsers take it for every port of that name, and on somebody's own machine other things run without TLS.
        self.is_https_for_good = self.scheme == b"https" and context.doorway.domain != "localhost"
        self.gate = Gate(context.database, context.access, context.clock)
        self.pool = Pool()
        self.crowd = crowd or Crowd()
        self.acquaintances = Crowd()
        self.reaching = Reaching(context)
        self.pages = OwnPages(self)
        self.now = time.monotonic()
        self.framing = Framing(context.config.folder, context.doorway)
        self.framing.look(self.now)
        self.stopping = False
        self._hosts: dict[bytes, Asked] = {}
        self._proofs: dict[tuple[bytes, str], Proof] = {}
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server | Porch] = []
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = min(MOST_CONNECTIONS, soft // 3)  # each takes one of ours and one inside
        self.proxies = Proxies(context.config.proxies)
        self.strangers = Strangers(self._most, math.ceil(context.config.per_address / workers), self.proxies)

    @property
    def cookie_name(self) -> bytes:
        if self.scheme != b"https":
            return COOKIE
        return TLS_PATHS_COOKIE if self.context.doorway.paths else TLS_COOKIE

    @property
    def framed_cookie_name(self) -> bytes:
        """Of visits inside the console's pages."""
        return self.cookie_name.replace(COOKIE, FRAMED)

    # --- listening --------------------------------------------------------------------------------------------------

    async def start(self, listeners: Sequence[socket.socket], tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        for listener in listeners:
            if tls is not None:
                self._servers.append(Porch(self, listener, tls))
            else:
                self._servers.append(await loop.create_server(lambda: Connection(self), sock=listener, backlog=1024))
        self.spawn(self._keep_watch())

    async def end(self) -> None:
        """What is under way gets a moment to finish; then everything is closed."""
        self.stopping = True
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            if connection.talk is None:
                connection.close()
            elif connection.talk.stays:
                connection.talk.end()
        deadline = time.monotonic() + END_SECONDS
        while self._connections and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        for connection in list(self._connections):
            connection.close(cut=True)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.pool.sweep(self.now + 3600)
        await asyncio.to_thread(self.context.activity.write)

    def welcome(self, connection: Connection) -> bool:
        if self.stopping or len(self._connections) >= self._most:
            return False
        if connection.counted_as is None:
            if not self.strangers.come(connection.peer):
                return False
            connection.counted_as = connection.peer
        self._connections.add(connection)
        return True

    def know(self, connection: Connection, person: str) -> None:
        """No longer a stranger. Of someone who has very many already, the rest is bounded by where it comes from."""
        if connection.counted_as is not None and self.acquaintances.come(person):
            self.strangers.go(connection.counted_as)
            connection.counted_as, connection.known_as = None, person

    def gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection.counted_as is not None:
            self.strangers.go(connection.counted_as)
            connection.counted_as = None
        if connection.known_as:
            self.acquaintances.go(connection.known_as)
            connection.known_as = ""

    # --- for connections --------------------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[None, None, None], broken: Callable[[], None] | None = None) -> asyncio.Task[None]:
        """Something that waits. What nobody foresaw is told to `broken`, and written down."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if task.cancelled():
                return
            problem = task.exception()
            if problem is not None:
                _log.error("a request could not be answered", exc_info=problem)
                if broken is not None:
                    broken()

        task.add_done_callback(done)
        return task

    def asked(self, request: Request) -> Asked:
        """What the request is for. Raises UnknownHost."""
        known = self._hosts.get(request.host)
        if known is not None:
            return known
        asked = self.context.doorway.asked(request.host.decode("latin-1"), request.target.decode("latin-1"))
        if asked.visit is not None and not asked.prefix:  # told by the host alone
            if len(self._hosts) >= MOST_KNOWN:
                self._hosts.clear()
            self._hosts[request.host] = asked
        return asked

    def proof_of(self, request: Request, peer: str) -> Proof:
        cookies = request.all(b"cookie")
        key = (b";".join(cookies), peer)
        known = self._proofs.get(key)
        if known is None:
            names = (self.cookie_name, self.framed_cookie_name)
            values = [value for name in names for value in cookies_named(cookies, name)]
            known = Proof(tuple(hashlib.sha256(value).hexdigest() for value in values), address=peer)
            if len(self._proofs) >= MOST_KNOWN:
                self._proofs.clear()
            if len(key[0]) <= LARGEST_KNOWN:
                self._proofs[key] = known
        return known

    def answer_ourselves(self, client: Connection, request: Request, asked: Asked, path: str, rest: bytes) -> None:
        talk = OwnTalk(client, request, asked, path)
        client.talk = talk
        talk.begin(rest)

    # --- keeping watch ----------------------------------------------------------------------------------------------

    async def _keep_watch(self) -> None:
        look_again, looking = 0.0, None
        while not self.stopping:
            await asyncio.sleep(WATCH_SECONDS)
            self.now = time.monotonic()
            self.pool.sweep(self.now)
            self.framing.look(self.now)
            for connection in list(self._connections):
                self._close_if_late(connection)
            if self.now >= look_again and (looking is None or looking.done()):
                look_again = self.now + LOOK_AGAIN_SECONDS
                looking = self.spawn(self._look_again())
            if self.context.activity.due:
                await asyncio.to_thread(self.context.activity.write)

    def _close_if_late(self, connection: Connection) -> None:
        quiet = self.now - connection.since
        if connection.lingers_until is not None:
            late = self.now >= connection.lingers_until
        elif isinstance(connection.talk, OwnTalk) and connection.talk.is_reading:
            late = self.now - connection.talk.began > HEAD_SECONDS
        elif connection.talk is not None:
            late = quiet > QUIET_SECONDS and not connection.talk.stays
        else:
            late = quiet > (HEAD_SECONDS if connection.is_speaking else KEEP_SECONDS)
        if late:
            connection.close(cut=connection.talk is not None)

    async def _look_again(self) -> None:
        """Whoever logged out, was removed, or whose work ended, is shown out."""
        inside: dict[tuple[Proof, Visit], list[Talk]] = {}
        for connection in self._connections:
            talk = connection.talk
            if talk is not None and talk.permit is not None:
                inside.setdefault((talk.permit.proof, talk.permit.visit), []).append(talk)
        for (proof, visit), talks in inside.items():
            if not await self._still_good(proof, visit):
                for talk in talks:
                    talk.end()

    async def _still_good(self, proof: Proof, visit: Visit) -> bool:
        try:
            await self.gate.authorise(proof, visit)
        except Unavailable:
            return True  # nobody can be asked just now
        except YardError:
            return False
        except Exception:  # nor does a store that is broken tell anything about them
            _log.exception("nobody could be asked whether %s may still be visited", visit.label)
        return True
