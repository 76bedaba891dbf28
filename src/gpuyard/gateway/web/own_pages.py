"""What the gateway answers itself: exchanging codes, logging in and out, its own files, and terminals."""

from __future__ import annotations

import asyncio
import html
import re
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from gpuyard import words
from gpuyard.access import audit, gates, rights
from gpuyard.access.actors import Actor
from gpuyard.access.gates import OWN_PAGES
from gpuyard.access.rights import Action
from gpuyard.domain.doorways import TERMINAL, Asked, Visit, safe_path
from gpuyard.domain.errors import Conflict, LoginNeeded, NotAllowed, NotFound, TooMany, YardError
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ID_RULE, State
from gpuyard.gateway.web import answers, origins
from gpuyard.gateway.web.answers import WORDS_COOKIE, OwnAnswer, language_of, message, page, part, redirect
from gpuyard.gateway.web.assets import asset, built_folder, plain_terminal_parts, terminal_page
from gpuyard.gateway.web.framing import can_be_partitioned, comes_in_a_frame
from gpuyard.gateway.web.gate import Proof
from gpuyard.gateway.web.heads import Request
from gpuyard.gateway.web.own import Reply
from gpuyard.gateway.web.terminal import open_terminal
from gpuyard.gateway.web.texts import text
from gpuyard.store import gates as rows
from gpuyard.store import workloads

if TYPE_CHECKING:
    from gpuyard.gateway.web.server import Web

_LABEL = re.compile(r"(lab|ide|terminal|p[1-9][0-9]{0,4})-([a-z][a-z0-9]{9})\Z")
_WAITS = (State.QUEUED.value, State.PLACED.value, State.STARTING.value)
_BEARER = re.compile(r"[Bb]earer +([!-~]{1,200})\Z")


class OwnPages:
    def __init__(self, web: Web) -> None:
        self._web = web
        self._context = web.context
        self._built = built_folder(web.context.config.built)

    async def answer(self, request: Request, asked: Asked, path: str, body: bytes, peer: str) -> Reply:
        """Never raises for what a visitor can do."""
        try:
            return await self._answer(request, asked, path, body, peer)
        except LoginNeeded as error:
            if asked.visit is not None:
                return self.to_login(request, asked, asked.visit, error)
            return answers.refusal(request, error)
        except YardError as error:
            return self.refused(request, error)

    async def _answer(self, request: Request, asked: Asked, path: str, body: bytes, peer: str) -> Reply:
        route, _, raw = path.partition("?")
        query = dict(parse_qsl(raw, keep_blank_values=True, max_num_fields=20))
        if route.startswith("/.yard/assets/"):
            return await asyncio.to_thread(asset, request, route.rpartition("/")[2], self._built)
        if request.method not in (b"GET", b"HEAD") and not origins.is_own(request, self._web.scheme):
            return self._said(request, 403, "bad.origin")
        if asked.visit is not None:
            return await self._at_visit(request, asked, asked.visit, route, query, peer)
        return await self._at_base(request, asked, route, query, body, peer)

    # --- on the host of a visit -------------------------------------------------------------------------------------

    async def _at_visit(
        self, request: Request, asked: Asked, visit: Visit, route: str, query: dict[str, str], peer: str
    ) -> Reply:
        if request.method not in (b"GET", b"HEAD"):
            return self._said(request, 405, "bad.method")
        if route == "/.yard/enter":
            return await asyncio.to_thread(self._enter, request, asked, visit, query)
        if visit.what == TERMINAL and route in ("", "/"):
            return await self._terminal_page(request, asked, visit, peer)
        if visit.what == TERMINAL and route == "/.yard/terminal":
            if not origins.is_own(request, self._web.scheme):
                return self._said(request, 403, "bad.origin")
            return await open_terminal(self._web, request, self._web.proof_of(request, peer), visit, query)
        return self._said(request, 404, "not.here")

    def _enter(self, request: Request, asked: Asked, visit: Visit, query: dict[str, str]) -> OwnAnswer:
        """A code for a cookie. The cookie is of this very host, and the code is gone."""
        now = self._context.clock()
        with self._context.database.write() as conn:
            entered = gates.exchange_code(conn, query.get("code", "")[:100], visit, now)
        if entered is None:
            return self._said(request, 403, "bad.code")
        path = asked.prefix + "/" if asked.prefix else "/"
        framed = comes_in_a_frame(request) and can_be_partitioned(self._context.doorway, request.host.decode("latin-1"))
        cookies = [self._cookie(entered[1], path, gates.GATE_SECONDS, framed=framed)]
        if (chosen := query.get("words")) in ("en", "zh"):
            bound = "SameSite=None; Secure; Partitioned" if framed else "SameSite=Lax"
            cookies.append(f"{WORDS_COOKIE.decode()}={chosen}; Path={path}; HttpOnly; {bound}")
        return redirect(asked.prefix + safe_path(query.get("next", "/")), tuple(cookies))

    async def _terminal_page(self, request: Request, asked: Asked, visit: Visit, peer: str) -> OwnAnswer:
        permit = await self._web.gate.authorise(self._web.proof_of(request, peer), visit)
        facts = {
            "language": "zh-CN" if language_of(request) == "zh" else "en",
            "title": html.escape(permit.workload.spec.name),
            "prefix": html.escape(asked.prefix),
        }
        filled = await asyncio.to_thread(terminal_page, self._built, **facts)
        if filled is None:  # the console was not built: there is a smaller one that needs no build
            filled = Template(part("terminal.html")).substitute(plain_terminal_parts(), **facts)
        host = request.host.decode("latin-1")
        sources = f"connect-src 'self' ws://{host} wss://{host}; script-src 'self'; style-src 'self' 'unsafe-inline'"
        policy = f"default-src 'none'; {sources}; font-src 'self' data:; base-uri 'none'"
        return OwnAnswer(200, filled.encode(), policy=policy)

    # --- on the gateway's own host ----------------------------------------------------------------------------------

    async def _at_base(
        self, request: Request, asked: Asked, route: str, query: dict[str, str], body: bytes, peer: str
    ) -> Reply:
        asks = request.method in (b"GET", b"HEAD")
        if route == "/.yard/login" and asks:
            return await asyncio.to_thread(self._login_page, request, asked, query, peer)
        if route == "/.yard/login" and request.method == b"POST":
            return await asyncio.to_thread(self._log_in, request, asked, _form(body), peer)
        if route == "/.yard/logout" and request.method == b"POST":
            return await asyncio.to_thread(self._log_out, request, peer)
        if route.startswith("/.yard/api/terminal/") and request.method == b"GET":
            return await self._terminal_by_token(request, route.rpartition("/")[2], query, peer)
        if route == "/.yard/health" and asks:
            return OwnAnswer(200, b'{"status": "ok"}', answers.JSON)
        if route == "/" and asks:
            return redirect("/.yard/login")
        return self._said(request, 404, "not.here")

    async def _terminal_by_token(self, request: Request, id: str, query: dict[str, str], peer: str) -> Reply:
        """For the command line. A browser cannot send this header along by itself, so no page can come this way."""
        match = _BEARER.match(request.get(b"authorization").decode("latin-1"))
        if match is None or request.all(b"origin"):
            raise LoginNeeded(because(Code.LOGIN_NEEDED))
        if not ID_RULE.match(id):
            raise NotFound(because(Code.NOT_FOUND, what="workload", name=id[:40]))
        proof = Proof(bearer=match.group(1), address=peer)
        return await open_terminal(self._web, request, proof, Visit(id, TERMINAL), query)

    def _login_page(self, request: Request, asked: Asked, query: dict[str, str], peer: str) -> OwnAnswer:
        actor = self._logged_in(request, peer)
        visit = _read_label(query.get("to", ""))
        if actor is None:
            return self._form_page(request, query.get("to", ""), query.get("next", "/"))
        if visit is None:
            return self._who_page(request, actor)
        return redirect(self._way_in(asked, actor, visit, query.get("next", "/")))

    def _way_in(self, asked: Asked, actor: Actor, visit: Visit, further: str) -> str:
        """An address with a fresh code, for someone who may enter."""
        now = self._context.clock()
        with self._context.database.read() as conn:
            workload = workloads.get(conn, visit.workload)
        self._web.gate.may_enter(actor, workload, visit.workload)
        with self._context.database.write() as conn:
            code = gates.make_code(conn, actor, visit, now)
            audit.record(conn, actor, Action.ENTER_WORKLOAD, visit.workload, now, facts={"what": visit.what})
        known = urlencode({"code": code, "next": safe_path(further)})
        return f"{self._context.doorway.root(visit, asked.base)}/.yard/enter?{known}"

    def _logged_in(self, request: Request, peer: str) -> Actor | None:
        proof = self._web.proof_of(request, peer)
        with self._context.database.read() as conn:
            for cookie in proof.cookies:
                actor = gates.actor_at(conn, cookie, OWN_PAGES, self._context.clock(), peer)
                if actor is not None:
                    return actor
        return None

    def _log_in(self, request: Request, asked: Asked, form: dict[str, str], peer: str) -> OwnAnswer:
        to, further = form.get("to", ""), form.get("next", "/")
        try:
            actor, _ = self._context.access.log_in(form.get("name", ""), form.get("password", ""), peer)
        except (LoginNeeded, TooMany) as error:
            said = words.say(error.reason, language_of(request))
            status = 429 if isinstance(error, TooMany) else 401
            return self._form_page(request, to, further, said=said, name=form.get("name", ""), status=status)
        if rights.must_change_first(actor, Action.ENTER_WORKLOAD):
            self._context.access.log_out(actor)
            raise NotAllowed(because(Code.PASSWORD_CHANGE_NEEDED))
        with self._context.database.write() as conn:
            parent, now = gates.parent_of(actor), self._context.clock()
            _, secret = gates.begin(conn, actor.name, parent, OWN_PAGES, now)
        cookie = self._cookie(secret, self._base_path, gates.GATE_SECONDS)
        visit = _read_label(to)
        if visit is None:
            return redirect("/.yard/login", (cookie,))
        return redirect(f"/.yard/login?{urlencode({'to': visit.label, 'next': safe_path(further)})}", (cookie,))

    def _log_out(self, request: Request, peer: str) -> OwnAnswer:
        """Ends the login, and with it every way in that was opened with it."""
        actor = self._logged_in(request, peer)
        if actor is not None:
            self._context.access.log_out(actor)
            with self._context.database.write() as conn:
                for cookie in self._web.proof_of(request, peer).cookies:
                    rows.remove_session(conn, cookie)
        said = page(request, text("title.login", language_of(request)), _paragraph("logout.done", request))
        answer = OwnAnswer(200, said)
        answer.headers.append(("Set-Cookie", self._cookie("", self._base_path, 0)))
        return answer

    # --- pages ------------------------------------------------------------------------------------------------------

    def _form_page(
        self, request: Request, to: str, further: str, *, said: str = "", name: str = "", status: int = 200
    ) -> OwnAnswer:
        language = language_of(request)
        content = Template(part("login.html")).substitute(
            to=html.escape(to[:80]),
            next=html.escape(safe_path(further)),
            name=html.escape(name[:80]),
            said=f'<p class="said" role="alert">{html.escape(said)}</p>' if said else "",
            label_name=text("login.name", language),
            label_password=text("login.password", language),
            button=text("login.button", language),
        )
        body = page(request, text("title.login", language), content)
        return OwnAnswer(status, body, policy=self._form_policy, is_alone=True)

    def _who_page(self, request: Request, actor: Actor) -> OwnAnswer:
        language = language_of(request)
        who = html.escape(text("login.who", language, name=actor.name))
        button = text("logout.button", language)
        form = f'<form method="post" action="/.yard/logout"><button>{button}</button></form>'
        content = f"<p>{who}</p>{_paragraph('login.open', request)}{form}"
        return OwnAnswer(200, page(request, "gpuyard", content), policy=self._form_policy, is_alone=True)

    @property
    def _form_policy(self) -> str:
        """A form leads to a page of ours, and from there, by redirect, to the host of a visit."""
        doorway = self._context.doorway
        return f"{answers.STRICT}; form-action 'self' {doorway.scheme}://*.{doorway.domain}:*"

    def to_login(self, request: Request, asked: Asked, visit: Visit, error: LoginNeeded) -> OwnAnswer:
        """People are sent to log in and come back; programs are told."""
        if not request.wants_page:
            return answers.refusal(request, error)
        if comes_in_a_frame(request):  # nobody types a password into a page inside another one
            return self._said(request, 401, "visit.over")
        further = request.target.decode("latin-1")[len(asked.prefix) :] or "/"
        query = urlencode({"to": visit.label, "next": safe_path(further)}, quote_via=quote)
        return redirect(f"{self._context.doorway.scheme}://{asked.base}/.yard/login?{query}")

    def refused(self, request: Request, error: YardError) -> OwnAnswer:
        """What waits to be started is looked at again by itself."""
        if isinstance(error, Conflict) and error.reason.facts.get("state") in _WAITS:
            said = words.say(error.reason, language_of(request))
            return message(request, 503, error.reason.code.value, said, refresh=2)
        return answers.refusal(request, error)

    def _said(self, request: Request, status: int, name: str) -> OwnAnswer:
        return message(request, status, f"refused.{name.replace('.', '_')}", text(name, language_of(request)))

    @property
    def _base_path(self) -> str:
        return "/.yard/" if self._context.doorway.paths else "/"

    def _cookie(self, secret: str, path: str, seconds: float, *, framed: bool = False) -> str:
        """`framed`: for the inside of the console, which is another site. It is sent along there and nowhere else."""
        secure = "; Secure" if self._context.doorway.scheme == "https" else ""
        name, bound = self._web.cookie_name.decode(), f"SameSite=Lax{secure}"
        if framed:
            name, bound = self._web.framed_cookie_name.decode(), "SameSite=None; Secure; Partitioned"
        return f"{name}={secret}; Path={path}; Max-Age={int(seconds)}; HttpOnly; {bound}"


def _read_label(text: str) -> Visit | None:
    match = _LABEL.match(text)
    return Visit(match.group(2), match.group(1)) if match else None


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))


def _paragraph(name: str, request: Request) -> str:
    return f"<p>{html.escape(text(name, language_of(request)))}</p>"
