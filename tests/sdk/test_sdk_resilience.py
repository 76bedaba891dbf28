"""Lost answers, restarts and cut streams: one job and one log, not none and not two."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ports import a_port
from tests.sdk.flaky_server import Answer, FlakyServer, Request, flaky_server, refusal, sse, workload

from gpuyard import BadInput, Client, NotAllowed, NotFound, ServerUnreachable, YardApiError
from gpuyard.sdk.follow import LogSource, follow_log, read_events


def client_of(server: FlakyServer, patience: float = 20.0) -> Client:
    return Client(server.url, "yard_t", submit_patience_seconds=patience, patience_seconds=patience)


def in_turn(*answers: Answer) -> Callable[[Request], Answer]:
    """Each request gets the next answer; the last one is repeated."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_a_submit_whose_answer_was_lost_is_repeated_with_the_same_key() -> None:
    script = in_turn(Answer(lost=True), Answer(503, refusal("refused.busy_store", "busy")), Answer(201, workload()))
    with flaky_server(script) as server, client_of(server) as client:
        job = client.submit(command=["true"], cards=1)
    assert job.id == "a123456789"
    assert len(server.seen) == 3
    assert len({request.headers["Idempotency-Key"] for request in server.seen}) == 1
    assert {request.body for request in server.seen} == {b'{"command": ["true"], "cards": 1}'}


def test_two_submits_have_two_keys_unless_the_caller_names_one() -> None:
    with flaky_server(in_turn(Answer(201, workload()))) as server, client_of(server) as client:
        client.submit(command="a")
        client.submit(command="a")
        client.submit(command="a", idempotency_key="mine")
    keys = [request.headers["Idempotency-Key"] for request in server.seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_a_submit_waits_for_a_server_that_is_being_restarted() -> None:
    port = a_port()
    said: list[YardApiError] = []
    woken = threading.Event()

    def note(error: YardApiError) -> None:
        said.append(error)
        woken.set()

    results: list[str] = []
    with Client(f"http://127.0.0.1:{port}", "yard_t", submit_patience_seconds=60, say_waiting=note) as client:
        submitting = threading.Thread(target=lambda: results.append(client.submit(command="a").id))
        submitting.start()
        assert woken.wait(30)
        with flaky_server(in_turn(Answer(201, workload())), port) as server:
            submitting.join(60)
    assert results == ["a123456789"]
    assert said[0].code == "client.unreachable"
    assert len(server.seen) == 1


def test_a_refusal_is_not_repeated() -> None:
    answer = Answer(422, refusal("refused.bad_value", "cards: expected a number", at="cards"))
    with flaky_server(in_turn(answer)) as server, client_of(server) as client, pytest.raises(YardApiError) as told:
        client.submit(command="a", cards="many")
    assert len(server.seen) == 1
    assert (told.value.code, told.value.status, told.value.facts) == ("refused.bad_value", 422, {"at": "cards"})
    assert str(told.value) == "cards: expected a number"


def test_looking_does_not_wait_for_a_server_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url, "yard_t") as client, pytest.raises(ServerUnreachable) as told:
            client.nodes()
    assert told.value.code == "client.unreachable"


def test_an_answer_that_is_not_ours_is_named_by_its_status() -> None:
    answer = Answer(500, b"<html>oops")
    with flaky_server(in_turn(answer)) as server, client_of(server) as client, pytest.raises(YardApiError) as told:
        client.nodes()
    assert (told.value.code, told.value.status) == ("client.odd_answer", 500)


ASKED: dict[str, Callable[[Client], object]] = {
    "jobs": lambda client: list(client.jobs()),
    "job": lambda client: client.job("x"),
    "nodes": lambda client: client.nodes(),
    "quota": lambda client: client.quota(),
    "whoami": lambda client: client.whoami(),
    "submit": lambda client: client.submit(command="true"),
    "preview": lambda client: client.preview(command="true"),
    "open": lambda client: client.open("x"),
    "shell": lambda client: client.shell("x"),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("body", [b"<html>hello</html>", b'"yes"', b"[" * 100_000, b"\xff"])
def test_a_good_answer_that_is_not_ours_is_told_in_words(asked: str, body: bytes) -> None:
    server_of_others = flaky_server(in_turn(Answer(200, body)))
    with server_of_others as server, client_of(server, 0.0) as client, pytest.raises(YardApiError) as told:
        ASKED[asked](client)
    assert told.value.code == "client.odd_answer", told.value


@pytest.mark.parametrize("asked", ["jobs", "nodes", "quota", "open", "shell"])
def test_an_answer_that_lacks_what_was_asked_for_is_told_in_words(asked: str) -> None:
    server_of_others = flaky_server(in_turn(Answer(200, b"{}")))
    with server_of_others as server, client_of(server, 0.0) as client, pytest.raises(YardApiError) as told:
        ASKED[asked](client)
    assert told.value.code == "client.odd_answer", told.value


@pytest.mark.parametrize("ref", ["", ".", ".."])
def test_an_empty_name_is_refused_before_it_becomes_another_question(ref: str) -> None:
    with flaky_server(in_turn(Answer(200, {}))) as server, client_of(server) as client, pytest.raises(YardApiError):
        client.job(ref)
    assert server.seen == []


def test_a_name_with_slashes_stays_one_name() -> None:
    with flaky_server(in_turn(Answer(200, workload()))) as server, client_of(server) as client:
        client.job("../users/a?b#c")
    assert server.seen[0].path == "/api/v1/workloads/..%2Fusers%2Fa%3Fb%23c"


def test_jobs_are_fetched_page_by_page() -> None:
    def page(request: Request) -> Answer:
        first = int(request.params.get("cursor", "0"))
        items = [workload(id=f"a{number:09}") for number in range(first, first + 3)]
        return Answer(200, {"items": items, "next": str(first + 3) if first < 6 else None})

    with flaky_server(page) as server, client_of(server) as client:
        assert [job.id[-1] for job in client.jobs()] == list("012345678")
        assert len(list(client.jobs(limit=3))) == 3
        assert server.seen[-1].params["limit"] == "3"


# --- following ----------------------------------------------------------------------------------------------------


def streaming(text: str, cut_every: int) -> Callable[[Request], Answer]:
    """A log server that breaks the connection after so many bytes each time, once in the middle of an event."""
    connections = 0

    def script(request: Request) -> Answer:
        nonlocal connections
        connections += 1
        start = int(request.params["offset"])
        end = min(start + cut_every, len(text))
        events = [
            sse("log", {"text": text[at : at + 2], "from": at, "to": min(at + 2, end)}) for at in range(start, end, 2)
        ]
        events.append(sse("end", {}) if end == len(text) else sse("log", {"text": "cut", "from": end, "to": 99})[:20])
        return Answer(200, chunks=[b": hello\n\n", *events], headers={"Content-Type": "text/event-stream"})

    return script


def test_a_followed_log_has_no_gap_and_no_repeat_through_broken_connections() -> None:
    text = "abcdefghijklmnopqrstuvwxyz"
    with flaky_server(streaming(text, 6)) as server, client_of(server) as client:
        pieces = list(follow_log(client.wire, LogSource("a1", 1, "worker-0")))
    assert "".join(piece.text for piece in pieces) == text
    assert [request.params["offset"] for request in server.seen] == ["0", "6", "12", "18", "24"]
    assert {request.params["attempt"] for request in server.seen} == {"1"}


def test_following_from_the_tail_goes_on_by_offset_after_a_break() -> None:
    def script(request: Request) -> Answer:
        if "tail" in request.params:
            return Answer(200, chunks=[sse("log", {"text": "last\n", "from": 95, "to": 100})])
        return Answer(200, chunks=[sse("log", {"text": "more\n", "from": 100, "to": 105}), sse("end", {})])

    with flaky_server(script) as server, client_of(server) as client:
        pieces = list(follow_log(client.wire, LogSource("a1", 1), tail=1))
    assert [piece.text for piece in pieces] == ["last\n", "more\n"]
    assert server.seen[1].params == {"attempt": "1", "offset": "100"}


def test_a_dropped_middle_is_told_as_such() -> None:
    events = [sse("log", {"text": "a", "from": 0, "to": 1}), sse("gap", {"from": 1, "to": 900}), sse("end", {})]
    with flaky_server(in_turn(Answer(200, chunks=events))) as server, client_of(server) as client:
        pieces = list(follow_log(client.wire, LogSource("a1", 1)))
    assert [(p.text, p.start, p.end, p.dropped) for p in pieces] == [("a", 0, 1, False), ("", 1, 900, True)]


def test_following_what_is_not_there_fails_at_once() -> None:
    answer = Answer(404, refusal("refused.not_found", "no such job"))
    with flaky_server(in_turn(answer)) as server, client_of(server) as client, pytest.raises(YardApiError) as told:
        list(follow_log(client.wire, LogSource("a1", 1)))
    assert told.value.message == "no such job"
    assert len(server.seen) == 1


def test_following_goes_on_into_the_next_attempt() -> None:
    looks = iter(
        [workload(attempt=1), workload(attempt=1), workload(attempt=2), workload(attempt=2, state="succeeded")]
    )

    def script(request: Request) -> Answer:
        if request.path.endswith("/logs/follow"):
            text = f"try {request.params['attempt']}\n"
            return Answer(200, chunks=[sse("log", {"text": text, "from": 0, "to": 6}), sse("end", {})])
        return Answer(200, next(looks))

    with flaky_server(script) as server, client_of(server) as client:
        assert list(client.job("a1").logs(follow=True)) == ["try 1\n", "try 2\n"]


def test_events_are_read_whatever_pieces_they_arrive_in() -> None:
    whole = b'event: log\ndata: {"text": "a\\u2028\xe2\x80\xa8"}\n\nevent: end\ndata: {}\n\n'
    raw = b": ping\r\n\r\n" + whole + b"event: log\ndata: 1"
    expected = [("log", {"text": "a\u2028\u2028"}), ("end", {})]
    for size in (1, 2, 7, len(raw)):
        assert list(read_events(raw[at : at + size] for at in range(0, len(raw), size))) == expected


# --- shipping -----------------------------------------------------------------------------------------------------


class WorkdirStore:
    """Remembers what was put; the first upload is cut off."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.tries = 0

    def __call__(self, request: Request) -> Answer:
        digest = request.path.rsplit("/", 1)[-1]
        if request.method == "HEAD":
            return Answer(200 if digest in self.kept else 404)
        self.tries += 1
        if self.tries == 1:
            return Answer(lost=True)
        self.kept[digest] = request.body
        return Answer(201, {"done": True})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('hello')")
    return tmp_path


def test_a_folder_is_sent_once_and_again_when_the_upload_broke(folder: Path) -> None:
    store = WorkdirStore()
    told: list[tuple[int, int]] = []
    with flaky_server(store) as server, client_of(server) as client:
        digest = client.ship_workdir(folder, progress=lambda sent, size: told.append((sent, size)))
        assert client.ship_workdir(folder) == digest
    assert [request.method for request in server.seen] == ["HEAD", "PUT", "PUT", "HEAD"]
    assert list(store.kept) == [digest]
    assert told[-1] == (len(store.kept[digest]), len(store.kept[digest]))


def test_a_job_given_a_folder_names_its_digest(folder: Path) -> None:
    store = WorkdirStore()

    def script(request: Request) -> Answer:
        return Answer(201, workload()) if request.path.endswith("/workloads") else store(request)

    with flaky_server(script) as server, client_of(server) as client:
        client.submit(command="python train.py", workdir=folder)
    (digest,) = store.kept
    assert f'"workdir": "{digest}"'.encode() in server.seen[-1].body


def test_a_job_file_is_sent_as_it_is(folder: Path) -> None:
    (folder / "job.yaml").write_bytes(b"command: [true]\n\ttab")
    with flaky_server(in_turn(Answer(201, workload()))) as server, client_of(server) as client:
        client.submit(folder / "job.yaml")
    assert server.seen[0].body == b"command: [true]\n\ttab"
    assert server.seen[0].headers["Content-Type"] == "application/yaml"


# --- kinds of errors and answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, NotFound), (401, NotAllowed), (403, NotAllowed), (400, BadInput), (422, BadInput), (413, BadInput)],
)
def test_a_refusal_is_of_the_kind_its_status_says(status: int, kind: type[YardApiError]) -> None:
    answer = Answer(status, refusal("refused.x", "no"))
    with flaky_server(in_turn(answer)) as server, client_of(server) as client, pytest.raises(kind) as told:
        client.nodes()
    assert told.value.status == status


def test_a_job_is_short_when_printed_and_says_what_the_server_warned_of() -> None:
    answer = Answer(201, workload(warnings=["the image is not used"]))
    with flaky_server(in_turn(answer)) as server, client_of(server) as client:
        job = client.submit(command="a")
    assert repr(job) == "Job(id='a123456789', name='train', state='queued', reason='')"
    assert job.warnings == ("the image is not used",)


def test_a_job_file_names_the_folder_shipped_with_it(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("command: a\n")
    with flaky_server(in_turn(Answer(201, workload()))) as server, client_of(server) as client:
        client.submit(tmp_path / "job.yaml", workdir=tmp_path)
        with pytest.raises(TypeError):
            client.submit(tmp_path / "job.yaml", cards=2)
        with pytest.raises(TypeError):
            client.submit()
    asked, sent = server.seen
    assert asked.path == f"/api/v1/workdirs/{sent.params['workdir']}"
    assert sent.body == b"command: a\n"


# --- another port -------------------------------------------------------------------------------------------------


def say_where(data: Path, url: str) -> None:
    (data / "server.json").write_text(json.dumps({"url": url, "pid": 1, "started_at": 0}))


def test_a_server_that_came_back_on_another_port_is_found_through_its_data_folder(tmp_path: Path) -> None:
    (tmp_path / "owner.token").write_text("yard_owner")
    with flaky_server(in_turn(Answer(200, workload()))) as second:

        def move_away(_: Request) -> Answer:
            say_where(tmp_path, second.url)
            return Answer(lost=True)

        with flaky_server(move_away) as first:
            say_where(tmp_path, first.url)
            with Client(data=tmp_path, patience_seconds=20) as client:
                assert client.job("a123456789", patience_seconds=20).name == "train"
                assert client.door.url == second.url
    assert len(first.seen) == 1
    assert second.seen[0].headers["Authorization"] == "Bearer yard_owner"


def test_a_followed_log_goes_on_at_another_port(tmp_path: Path) -> None:
    rest = Answer(chunks=[sse("log", {"text": "two", "from": 3, "to": 6}), sse("end", {})])
    with flaky_server(in_turn(rest)) as second:

        def break_off(_: Request) -> Answer:
            say_where(tmp_path, second.url)
            return Answer(chunks=[sse("log", {"text": "one", "from": 0, "to": 3})])

        with flaky_server(break_off) as first:
            say_where(tmp_path, first.url)
            with Client(data=tmp_path) as client:
                pieces = [piece.text for piece in follow_log(client.wire, LogSource("a123456789", 1))]
    assert pieces == ["one", "two"]
    assert second.seen[0].params["offset"] == "3"
