"""What dlc refuses: in its own style, with the right exit code, and nothing is created."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Ran, Yard
from tests.dialects.dlc_params import USUAL
from tests.doors import dlc as words
from tests.doors.dlc import Dlc, add_people, configured, endpoint_of
from tests.doors.elsewhere import answering

from gpuyard import Client
from gpuyard.dialects.dlc import ids
from gpuyard.sdk.finding import SERVER_FILE, default_data_folder

FAILED = re.compile(
    r"\[FAILED\] code: (\d{3}), (.*) request id: [0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}\n", re.DOTALL
)
PARAMS = USUAL


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    yard.up("--engine", "simulated", "--nodes", "2x4")
    add_people(yard)
    with Client(data=yard.data) as owner:
        owner.create_group("others")
        owner.create_user("newcomer", group=words.WORKSPACE)
    yield yard
    yard.down()


@pytest.fixture(scope="module")
def dlc(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Dlc:
    return configured(yard, tmp_path_factory.mktemp("person"))


@pytest.fixture(autouse=True)
def _nothing_is_created(yard: Yard, request: pytest.FixtureRequest) -> Iterator[None]:
    before = yard.number_of_jobs()
    yield
    if "creates" not in request.node.name:
        assert yard.number_of_jobs() == before


def refusal(done: Ran) -> tuple[int, str]:
    """The code and the words, once it is clear that they have dlc's form."""
    assert done.code == 1, done
    match = FAILED.fullmatch(done.err)
    assert match, done
    return int(match.group(1)), match.group(2)


def usage_error(done: Ran) -> str:
    assert done.code == 1, done
    assert done.out == ""
    assert done.err.startswith("Error: "), done
    return done.err.splitlines()[0].removeprefix("Error: ")


def submitted(dlc: Dlc, text: str) -> Ran:
    (dlc.folder / "job.params").write_text(text)
    return dlc.run("create", "job", "--params_file", "job.params")


def test_a_listing_of_nothing_is_a_whole_table(dlc: Dlc) -> None:
    for typed in (("get", "quota"), ("get", "job", "-o", "table", "-n", "nobodys")):
        rule, head, *rest = dlc.good(*typed).splitlines()
        assert head.startswith("| ")
        assert rest == [rule, rule]


# --- params files -------------------------------------------------------------------------------------------------


def test_the_guide_s_own_file_creates_a_job_that_ends_well(dlc: Dlc) -> None:
    made = submitted(dlc, PARAMS)
    assert made.code == 0
    assert dlc.wait_for(words.job_id(made.out))["Status"] == "Succeeded"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("name=yourtaskname\n", ""), 'required flag(s) "name" not set'),
        (("command=", "comand="), 'job.params line 9: unknown key "comand", did you mean "command"?'),
        (("worker_memory=4", "worker_memory=4 apples"), 'job.params line 6: invalid argument "4 apples"'),
        (("worker_count=1", "worker_count=one"), 'job.params line 3: invalid argument "one" for "worker_count"'),
        (("PyTorchJob", "RayJob"), "kind RayJob cannot be run here yet"),
        (("PyTorchJob", "PyTorch"), 'unknown kind "PyTorch", did you mean "PyTorchJob"?'),
        (("priority=1", "priority=10"), 'invalid argument "10" for "priority": expected 1 to 9'),
        (("priority=1\n", "priority\n"), 'job.params line 10: expected key=value, found "priority"'),
        (("interactive=false", "interactive=fal"), 'invalid argument "fal" for "interactive"'),
        (('world"', "world"), "expected every quotation mark to be closed"),
        (("worker_image=", "worker_image=not an image"), 'for "worker_image"'),
    ],
)
def test_a_wrong_file_is_refused_with_its_lines(dlc: Dlc, change: tuple[str, str], said: str) -> None:
    code, text = refusal(submitted(dlc, PARAMS.replace(*change)))
    assert code == 400
    assert said in text


@pytest.mark.parametrize(("language", "says"), [("en", "runs nothing"), ("zh", "什么也不运行")])
def test_who_creates_a_job_where_all_is_simulated_is_told_so(dlc: Dlc, language: str, says: str) -> None:
    (dlc.folder / "image.params").write_text(PARAMS)
    made = Dlc(dlc.folder, {"YARD_LANG": language}).run("create", "job", "--params_file", "image.params")
    assert says in made.err


def test_a_note_about_a_flag_creates_no_line_that_nobody_wrote(dlc: Dlc) -> None:
    (dlc.folder / "noted.params").write_text(f"{PARAMS}data_sources=d-1\n")
    made = dlc.run("create", "job", "--params_file", "noted.params", "--tags", "a=b")
    assert re.search(r"Line \d+: `data_sources` is not used", made.err)
    assert "[WARN] `tags` is not used" in made.err
    (dlc.folder / "bad.params").write_text(PARAMS.replace("priority=1\n", ""))
    _, text = refusal(dlc.run("create", "job", "--params_file", "bad.params", "--priority", "10"))
    assert text.startswith('invalid argument "10" for "priority"')


def test_several_mistakes_are_told_at_once(dlc: Dlc) -> None:
    _, text = refusal(submitted(dlc, PARAMS.replace("=4\n", "=4X\n").replace("PyTorchJob", "Torch")))
    assert text.count("line ") == 4


@pytest.mark.parametrize("length", [0, 1, 20, 60, 100, 165, 180])
def test_a_half_written_file_is_refused(dlc: Dlc, length: int) -> None:
    assert refusal(submitted(dlc, PARAMS[:length]))[0] == 400


def test_a_workspace_that_one_is_not_in_is_not_found(dlc: Dlc) -> None:
    for workspace in ("nowhere", "others", ids.workspace_id("others"), "ws1lu4iyv5yjjyvp"):
        code, text = refusal(submitted(dlc, PARAMS.replace("your-workspace-id", workspace)))
        assert (code, text) == (404, f"Workspace {workspace} not found; see 'dlc get workspace'")


def test_a_file_that_cannot_be_read_is_named(dlc: Dlc) -> None:
    _, text = refusal(dlc.run("create", "job", "--params_file", "./missing.params"))
    assert text == "open ./missing.params: no such file or directory"
    _, text = refusal(dlc.run("create", "job", "--params_file", "."))
    assert text == "open .: is a directory"
    (dlc.folder / "bytes.params").write_bytes(b"name=\xff\xfe")
    _, text = refusal(dlc.run("create", "job", "--params_file", "bytes.params"))
    assert text == "open bytes.params: not a text file in UTF-8"


def test_a_file_without_end_is_not_read_to_its_end(dlc: Dlc) -> None:
    assert refusal(dlc.run("create", "job", "--params_file", "/dev/zero"))[1].startswith("open /dev/zero: too large")
    assert "is not a configuration" in refusal(dlc.run("get", "job", "-c", "/dev/zero"))[1]


def test_what_a_file_says_does_not_move_the_cursor(dlc: Dlc) -> None:
    done = submitted(dlc, PARAMS.replace("kind=PyTorchJob", "kind=\x1b[2J\x07Job"))
    assert "\\x1b[2J\\x07Job" in refusal(done)[1]
    assert "\x1b" not in done.err


def test_flags_are_refused_by_their_names(dlc: Dlc) -> None:
    flags = ("--name", "x", "--kind", "BatchJob", "--command", "true", "--worker_count", "1")
    _, text = refusal(dlc.run("create", "job", *flags, "--worker_memory", "lots"))
    assert text.startswith('invalid argument "lots" for "worker_memory"')
    assert 'required flag(s) "name", "kind", "command" not set' in refusal(dlc.run("create", "job"))[1]


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("create", "job", "--worker_cout", "1"), "unknown flag: --worker_cout"),
        (("create", "job", "--name"), "flag needs an argument: --name"),
        (("create", "job", "--interactive=maybe"), 'invalid argument "maybe" for "--interactive" flag'),
        (("get", "job", "--page_size", "ten"), 'invalid argument "ten" for "--page_size" flag: strconv.ParseInt'),
        (("get", "job", "-z"), "unknown shorthand flag: 'z' in -z"),
        (("get", "jbo"), 'unknown command "jbo" for "dlc get"'),
        (("submit",), 'unknown command "submit" for "dlc"'),
        (("stop", "job"), "accepts 1 arg(s), received 0"),
        (("logs",), "accepts between 1 and 2 arg(s), received 0"),
        (("create", "job", "extra"), "accepts 0 arg(s), received 1"),
    ],
)
def test_a_wrong_command_line_is_answered_as_cobra_does(dlc: Dlc, typed: tuple[str, ...], said: str) -> None:
    assert usage_error(dlc.run(*typed)).startswith(said)


def test_a_near_miss_is_told_what_was_probably_meant(dlc: Dlc) -> None:
    assert "Did you mean this?\n\tjob\n" in dlc.run("get", "jbo").err
    assert "Did you mean this?\n\t--worker_count\n" in dlc.run("create", "job", "--worker_cout", "1").err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("get", "job", "--status", "Done"), 'invalid argument "Done" for "--status" flag: expected Creating'),
        (("get", "job", "--start_time", "yesterday"), "expected a time like 2026-11-16T09:30:00Z"),
        (("get", "job", "--display_name_regex", "("), 'invalid argument "(" for "--display_name_regex" flag'),
        (("get", "job", "--job_type", "Foo"), 'invalid argument "Foo" for "--job_type" flag'),
        (("get", "job", "--page_num", "0"), "count from 1"),
        (("get", "job", "-o", "xml"), "expected table, plain, json"),
        (("logs", "dlc0", "--max_events_num", "0"), "expected 1 to 100000"),
        *(
            ((*asked, "--start_time", "2027-01-01", "--end_time", "2020-01-01"), 'it is before "--start_time"')
            for asked in (("logs", "dlc0"), ("get", "job"))
        ),
    ],
)
def test_a_senseless_question_is_refused(dlc: Dlc, typed: tuple[str, ...], said: str) -> None:
    code, text = refusal(dlc.run(*typed))
    assert code == 400
    assert said in text


@pytest.mark.parametrize("id", ["dlc1xjcumbfm7aai", "nothing", "../users", ids.job_id("abcdefghij")])
def test_a_job_that_is_not_there_is_not_found(dlc: Dlc, id: str) -> None:
    for typed in (("get", "job", id), ("stop", "job", id, "-f"), ("logs", id, f"{id}-worker-0"), ("get", "pod", id)):
        assert refusal(dlc.run(*typed)) == (404, f"Job {id} not found")


def test_a_pod_that_is_not_there_is_not_found_and_creates_one_job_to_look_for_it(dlc: Dlc) -> None:
    id = dlc.create()
    code, text = refusal(dlc.run("logs", id, f"{id}-worker-7"))
    assert (code, text) == (404, f"Pod {id}-worker-7 of job {id} not found; its first one is {id}-worker-0")


# --- who and where ------------------------------------------------------------------------------------------------


def login(dlc: Dlc, endpoint: str, *more: str, name: str = words.NAME, password: str = words.PASSWORD) -> Ran:
    return dlc.run("config", "--username", name, "--password", password, "--endpoint", endpoint, *more)


def test_a_wrong_password_is_refused_and_nothing_is_kept(yard: Yard, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "wrong")
    assert refusal(login(dlc, endpoint_of(yard), password="not this one"))[0] == 401
    assert refusal(login(dlc, endpoint_of(yard), name="nobody"))[0] == 401
    assert not (dlc.folder / ".dlc").exists()


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "away")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        code, text = refusal(login(dlc, endpoint))
    assert code == 503
    assert endpoint in text
    assert not (dlc.folder / ".dlc").exists()


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b"{}", b"\xff\xfe\x00"])
def test_something_else_at_the_endpoint_is_told_as_such(tmp_path: Path, body: bytes) -> None:
    dlc = Dlc(tmp_path / "elsewhere")
    with answering(body) as port:
        assert "is no gpuyard server" in refusal(login(dlc, f"127.0.0.1:{port}"))[1]
        kept = tmp_path / "config"
        kept.write_text(f"endpoint=127.0.0.1:{port}\ntoken=any\n")
        for typed in (("get", "workspace"), ("get", "quota"), ("get", "job")):
            told = refusal(dlc.run(*typed, "-c", str(kept)))[1]
            assert "is this the address of a gpuyard server?" in told
    assert not (dlc.folder / ".dlc").exists()


def test_a_folder_is_no_place_for_a_login(yard: Yard, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "folder")
    with Client(data=yard.data) as owner:
        before = len(list(owner.tokens(words.NAME)))
        assert refusal(login(dlc, endpoint_of(yard), "-c", "."))[1] == "write .: is a directory"
        assert len(list(owner.tokens(words.NAME))) == before


def test_a_server_that_went_away_is_named(dlc: Dlc, tmp_path: Path) -> None:
    kept = (dlc.folder / ".dlc" / "config").read_text()
    (tmp_path / "config").write_text(re.sub(r"endpoint=.*", "endpoint=127.0.0.1:1", kept))
    code, text = refusal(dlc.run("get", "job", "--config", str(tmp_path / "config")))
    assert code == 503
    assert "127.0.0.1:1" in text


def test_a_password_is_not_sent_unprotected_unless_one_says_so(yard: Yard, tmp_path: Path) -> None:
    """A name that is not this machine's own is spoken to with https, which this server does not speak."""
    dlc = Dlc(tmp_path / "plain")
    name = socket.gethostname()
    code, text = refusal(login(dlc, f"{name}:{endpoint_of(yard).rpartition(':')[2]}"))
    assert code == 503
    assert "--protocol http" in text
    assert login(dlc, endpoint_of(yard), "--protocol", "http").code == 0
    assert refusal(login(dlc, endpoint_of(yard), "--protocol", "ftp"))[0] == 400


@pytest.mark.parametrize("endpoint", ["http://", "a b", "127.0.0.1:notaport", "ftp://host"])
def test_an_endpoint_that_cannot_be_one_is_refused(tmp_path: Path, endpoint: str) -> None:
    assert refusal(login(Dlc(tmp_path / "odd"), endpoint)) == (400, f'invalid endpoint "{endpoint}"')


def test_who_has_not_logged_in_is_told_how(tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "nobody")
    if (default_data_folder(dlc.environment()) / SERVER_FILE).exists():
        pytest.skip("root's own platform is on this machine, and would be asked")
    for typed in (("get", "workspace"), ("get", "job"), ("stop", "job", "dlc0", "-f"), ("create", "job")):
        code, text = refusal(dlc.run(*typed))
        assert code == 401
        assert "dlc config --username" in text
    assert "no such file or directory" in refusal(dlc.run("get", "job", "-c", "missing"))[1]


def test_without_a_login_of_its_own_the_server_is_found_as_yard_finds_it(yard: Yard, tmp_path: Path) -> None:
    assert "default" in Dlc(tmp_path / "owner", {"YARD_DATA": str(yard.data)}).good("get", "workspace")
    code, text = refusal(Dlc(tmp_path / "lost", {"YARD_DATA": str(tmp_path / "no")}).run("get", "workspace"))
    assert code == 503
    assert f"no server runs on the data folder {tmp_path / 'no'}" in text


def test_a_configuration_that_makes_no_sense_is_not_used(tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "broken")
    (dlc.folder / ".dlc").mkdir()
    for text in ("", "half", "endpoint=x\n", "\x00\xff"):
        (dlc.folder / ".dlc" / "config").write_text(text)
        assert "is not a configuration of this dlc" in refusal(dlc.run("get", "job"))[1]


def test_a_token_that_was_taken_back_is_told_to_log_in_again(yard: Yard, tmp_path: Path) -> None:
    dlc = configured(yard, tmp_path / "revoked")
    kept = (dlc.folder / ".dlc" / "config").read_text()
    id = re.search(r"token_id=(.*)", kept)
    assert id
    with Client(data=yard.data) as owner:
        owner.remove_token(id.group(1))
    code, text = refusal(dlc.run("get", "job"))
    assert code == 401
    assert text == "the login is not good, or no longer. Log in with 'dlc config'."


def test_a_token_that_cannot_be_one_is_refused(yard: Yard, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "odd", {"YARD_URL": yard.url, "YARD_TOKEN": "two\nlines"})
    assert refusal(dlc.run("get", "job"))[0] == 401


def test_a_one_time_password_must_be_changed_first(yard: Yard, tmp_path: Path) -> None:
    with Client(data=yard.data) as owner:
        password = owner.set_password("newcomer")
    assert password is not None
    code, text = refusal(login(Dlc(tmp_path / "fresh"), endpoint_of(yard), name="newcomer", password=password))
    assert code == 403
    assert "yard login" in text
    assert "one-time password" in text


def test_a_password_that_an_admin_chose_is_taken(yard: Yard, tmp_path: Path) -> None:
    with Client(data=yard.data) as owner:
        owner.set_password("newcomer", "chosen-by-an-admin")
    assert login(Dlc(tmp_path / "chosen"), endpoint_of(yard), name="newcomer", password="chosen-by-an-admin").code == 0


def test_keys_of_the_public_cloud_are_not_taken_for_a_login(yard: Yard, tmp_path: Path) -> None:
    done = Dlc(tmp_path / "cloud").run("config", "-a", "id", "-k", "key", "-e", endpoint_of(yard))
    assert "--username and --password" in refusal(done)[1]


def test_a_login_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    done = Dlc(tmp_path / "half").run("config", "--username", "ann")
    assert done.code == 1
    assert 'required flag(s) "password", "endpoint" not set' in done.err


def test_a_login_that_cannot_be_kept_is_given_back(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with Client(data=yard.data) as owner:
        before = len(owner.tokens(words.NAME))
        for place in ("file/config", "folder"):
            done = login(Dlc(tmp_path / "blocked"), endpoint_of(yard), "-c", str(tmp_path / place))
            assert f"write {tmp_path}/{place}" in refusal(done)[1]
        assert len(owner.tokens(words.NAME)) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blocked", "file", "folder"]


# --- help and completion ------------------------------------------------------------------------------------------


def test_help_is_laid_out_as_cobra_lays_it_out(dlc: Dlc) -> None:
    top = dlc.good("--help")
    assert top == dlc.good("help") == dlc.good("-h") == dlc.good()
    assert "Usage:\n  dlc [command]\n\nAvailable Commands:\n" in top
    assert top.rstrip().endswith('Use "dlc [command] --help" for more information about a command.')
    job = dlc.good("get", "job", "--help")
    assert job == dlc.good("help", "get", "job")
    assert "Usage:\n  dlc get job [JOBID] [flags]\n\nAliases:\n  job, jobs\n" in job
    assert "  -n, --display_name string " in job
    assert "Global Flags:\n  -c, --config string   configuration file" in job
    assert dlc.run("help", "nonsense").code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_has_its_completion(dlc: Dlc, shell: str) -> None:
    assert "dlc __complete" in dlc.good("completion", shell).replace("& 'dlc'", "dlc")


def test_completion_in_bash_offers_commands_and_flags(dlc: Dlc) -> None:
    script = (
        'PATH="$PWD:$PATH"\nsource <(dlc completion bash)\nCOMP_WORDS=(dlc get j) COMP_CWORD=2\n_dlc_completion\n'
        'echo "${COMPREPLY[@]}"\nCOMP_WORDS=(dlc create job --worker_c) COMP_CWORD=3\n_dlc_completion\n'
        'echo "${COMPREPLY[@]}"\n'
    )
    (dlc.folder / "try.bash").write_text(script)
    done = Dlc._run(dlc, ["bash", "try.bash"], "")
    assert done.out == "job\n--worker_count --worker_cpu\n"


def test_a_reader_that_leaves_early_is_no_mistake_of_the_program(dlc: Dlc) -> None:
    done = dlc.shell("./dlc create job --help | head -n 1")
    assert (done.out, done.err) == ("Create a job.\n", "")


@pytest.mark.parametrize("typed", ["--help", "get workspace", "completion bash"])
def test_a_full_disk_is_told_in_one_line(dlc: Dlc, typed: str) -> None:
    done = dlc.shell(f"./dlc {typed} > /dev/full")
    assert (done.code, done.err) == (1, "Error: write /dev/stdout: no space left on device\n")
