"""How the toolbox's services are started inside a workload, and what its shells are told. Pure: nothing is started.

A service listens on a unix socket in the replica's door folder: no port, and nobody but the porter's owner reaches it.
It asks for no password of its own; who may come is decided before a connection is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuyard.images.toolbox.base import AT, python_command


@dataclass(frozen=True, slots=True)
class Service:
    """What the porter is asked to start under a name."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    socket: str = ""  # where it will answer


def shell_environment(toolbox: str = AT) -> dict[str, str]:
    """For every shell, service and command inside. Interactive shells read the toolbox's profile once: bash before its
    first prompt, others (sh, dash, busybox) by ENV. So nothing is written to homes or images, and the profile is read
    in Lab's and the editor's terminals, over ssh and in shells within shells alike."""
    profile = f"{toolbox}/rc/profile.sh"
    once = '[ -n "${YARD_READY-}" ] || { YARD_READY=1; [ -r ' + profile + " ] && . " + profile + "; }"
    return {"ENV": profile, "PROMPT_COMMAND": once}


def lab(base_url: str, toolbox: str, home: str, door: str) -> Service:
    """JupyterLab. Its files begin at / so that shared folders can be reached, and it opens in the home."""
    socket = f"{door}/lab.sock"
    options = {
        "ServerApp.sock": socket,
        "ServerApp.base_url": base_url,
        "ServerApp.root_dir": "/",
        "FileContentsManager.preferred_dir": home.strip("/"),  # as seen from the root
        "ServerApp.allow_remote_access": True,  # it is reached by the public name; Origin must still equal Host
        "ServerApp.allow_root": True,
        "ServerApp.open_browser": False,
        "ServerApp.quit_button": False,
        "ServerApp.terminals_enabled": True,
        "ServerApp.kernel_manager_class": "yard_inside.kernels.StartsKernels",
        "ServerApp.kernel_spec_manager_class": "yard_inside.kernels.FoundKernels",
        "KernelSpecManager.ensure_native_kernel": False,
        "KernelManager.transport": "ipc",  # no port either
        "IdentityProvider.token": "",
        "PasswordIdentityProvider.hashed_password": "",
        "ContentsManager.allow_hidden": True,
        "FileContentsManager.delete_to_trash": False,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.news_url": "",
        "LabApp.extension_manager": "readonly",
    }
    argv = (
        *python_command(toolbox),
        *("-I", "-m", "yard_inside.lab"),
        *(f"--{name}={value}" for name, value in options.items()),
    )
    return Service("lab", argv, {"YARD_TOOLBOX": toolbox, **shell_environment(toolbox)}, home, socket)


def ide(base_url: str, toolbox: str, home: str, door: str) -> Service:
    """VS Code in the browser. Its links are relative: whatever stands before its paths (`base_url`) is taken off before
    it is asked, and it need not know. What people install and set stays in the home."""
    socket = f"{door}/ide.sock"
    kept = f"{home}/.local/share/code-server"
    argv = (
        *python_command(toolbox),
        *("-I", "-m", "yard_inside.ide"),
        *("--socket", socket, "--socket-mode", "600", "--session-socket", f"{door}/ide-session.sock"),
        *("--auth", "none", "--config", f"{door}/ide.yaml"),
        *("--user-data-dir", kept, "--extensions-dir", f"{kept}/extensions"),
        *("--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--disable-proxy"),
        *("--disable-getting-started-override", "--ignore-last-opened"),
        home,
    )
    return Service("ide", argv, {"YARD_TOOLBOX": toolbox, **shell_environment(toolbox)}, home, socket)


RECIPES = {"lab": lab, "ide": ide}
