"""Which server is meant, and as whom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuyard.sdk.errors import ServerUnreachable, YardApiError
from gpuyard.sdk.finding import (
    SavedLogin,
    choose_language,
    clean_url,
    find_server,
    forget_login,
    is_loopback,
    login_file,
    read_login,
    save_login,
)


def data_folder(folder: Path, url: str = "http://127.0.0.1:8470", secret: str = "yard_owner") -> Path:
    folder.mkdir(parents=True)
    (folder / "server.json").write_text(json.dumps({"url": url, "pid": 1, "started_at": 0}))
    (folder / "owner.token").write_text(secret + "\n")
    return folder


def test_the_address_in_the_environment_comes_before_everything_else(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "YARD_URL": "http://far:1/", "YARD_TOKEN": "yard_t", "YARD_DATA": "/x"}
    door = find_server(None, None, None, env)
    assert (door.url, door.token) == ("http://far:1", "yard_t")


def test_what_the_caller_gives_comes_before_the_environment(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "YARD_URL": "http://far:1", "YARD_TOKEN": "yard_t"}
    assert find_server("http://near:2", "yard_mine", None, env).token == "yard_mine"
    assert find_server(None, None, data_folder(tmp_path / "d"), env).url == "http://127.0.0.1:8470"


def test_the_owner_of_a_data_folder_speaks_with_its_secret(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "YARD_DATA": str(data_folder(tmp_path / "data"))}
    door = find_server(None, None, None, env)
    assert (door.url, door.token, door.data) == ("http://127.0.0.1:8470", "yard_owner", tmp_path / "data")


def test_a_token_given_for_a_data_folder_is_used_instead_of_its_secret(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "YARD_DATA": str(data_folder(tmp_path / "data")), "YARD_TOKEN": "yard_ana"}
    assert find_server(None, None, None, env).token == "yard_ana"


def test_an_explicit_data_folder_comes_before_a_saved_login(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    save_login(SavedLogin("https://yard.example", "yard_saved"), env)
    assert find_server(None, None, None, env).token == "yard_saved"
    env["YARD_DATA"] = str(data_folder(tmp_path / "data"))
    assert find_server(None, None, None, env).token == "yard_owner"


def test_a_saved_token_goes_only_to_the_server_it_came_from(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    save_login(SavedLogin("https://yard.example", "yard_saved"), env)
    assert find_server("https://yard.example/", None, None, env).token == "yard_saved"
    assert find_server("https://other.example", None, None, env).token is None


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"pid": 3}', "\x00"])
def test_a_folder_without_a_server_is_said_to_have_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "server.json").write_text(content)
    with pytest.raises(ServerUnreachable) as refusal:
        find_server(None, None, tmp_path, {"HOME": str(tmp_path)})
    assert refusal.value.code == "client.no_server"
    assert str(tmp_path) in refusal.value.message


def test_a_saved_login_is_readable_by_its_owner_alone_and_can_be_forgotten(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    file = save_login(SavedLogin("https://yard.example", "yard_saved", "t1"), env)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert read_login(env) == SavedLogin("https://yard.example", "yard_saved", "t1")
    assert forget_login(env)
    assert not forget_login(env)
    assert read_login(env) is None


def test_a_damaged_login_file_counts_as_none(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    login_file(env).parent.mkdir()
    for content in ("", "{", "[]", '"x"', "{}", "null"):
        login_file(env).write_text(content)
        assert read_login(env) is None


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "://", "http:///path", "http://h:port", "http://h:99999", "http://[::1"]
)
def test_a_bad_address_is_refused(url: str) -> None:
    with pytest.raises(YardApiError) as refusal:
        clean_url(url)
    assert refusal.value.code == "client.bad_url"


def test_loopback_is_told_from_other_machines() -> None:
    assert all(is_loopback(url) for url in ("http://127.0.0.1:1", "http://localhost", "http://[::1]:8470"))
    assert not any(is_loopback(url) for url in ("http://127.example.com", "http://10.0.0.1", "http://localhost.evil"))


@pytest.mark.parametrize(
    ("env", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "YARD_LANG": "zh"}, "zh"),
    ],
)
def test_the_language_follows_the_setting_then_the_locale(env: dict[str, str], language: str) -> None:
    assert choose_language(env) == language
