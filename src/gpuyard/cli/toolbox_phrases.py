"""Phrases of `yard toolbox`, in English and Chinese."""

from __future__ import annotations

TOOLBOX: dict[str, tuple[str, str]] = {
    "toolbox": (
        "The tools shown in every workload: JupyterLab, VS Code, ssh.",
        "每个任务中可用的工具：JupyterLab、VS Code、ssh。",
    ),
    "toolbox.build": (
        "Build it on the server's machine; minutes the first time.",
        "在服务器所在机器上构建；首次需要几分钟。",
    ),
    "toolbox.show": ("The toolboxes that were built.", "已构建的工具箱。"),
    "toolbox.rm": (
        "Remove old ones; with --all the current one, too.",
        "删除旧的；加 --all 时也删除当前的。",
    ),
    "opt.toolbox_without_ide": (
        "leave out VS Code, which needs compilers to be built",
        "不包含 VS Code（构建它需要编译器）",
    ),
    "opt.toolbox_all": ("also the current one", "包括当前使用的"),
    "toolbox.step.base": ("Python and a shell, from this machine", "本机的 Python 和 shell"),
    "toolbox.step.lab": ("JupyterLab {what} and its libraries", "JupyterLab {what} 及其依赖"),
    "toolbox.step.node": ("node {what}", "node {what}"),
    "toolbox.step.tools": ("ssh server, sftp, scp, rsync", "ssh 服务、sftp、scp、rsync"),
    "toolbox.step.ide": (
        "VS Code (code-server {what}); parts of it are compiled, about three minutes",
        "VS Code（code-server {what}）；部分需要编译，约三分钟",
    ),
    "toolbox.step.assemble": ("put together", "组装"),
    "toolbox.begin": ("... {step}", "…… {step}"),
    "toolbox.done": ("    done in {seconds} s, {size}", "    完成，用时 {seconds} 秒，{size}"),
    "toolbox.kept": ("... {step}: there already", "…… {step}：已有"),
    "toolbox.installing": (
        "    installing with apt-get, as it cannot be compiled without: {packages}",
        "    用 apt-get 安装编译所需的软件包：{packages}",
    ),
    "toolbox.there": ("the toolbox {version} is there already: {path}", "工具箱 {version} 已存在：{path}"),
    "toolbox.built": (
        "the toolbox {version} is shown in workloads that start from now on: {path}",
        "工具箱 {version} 已就绪，之后启动的任务将使用它：{path}",
    ),
    "toolbox.missing": (
        "this machine lacks: {what}. Install it and build again, or leave out VS Code with --without-ide",
        "本机缺少：{what}。请安装后重新构建，或用 --without-ide 不构建 VS Code",
    ),
    "toolbox.failed": (
        "the toolbox could not be built; what was finished is kept, build again to go on.\n{detail}",
        "工具箱构建失败；已完成的部分会保留，重新构建即可继续。\n{detail}",
    ),
    "toolbox.none": ("no toolbox yet; build one: yard toolbox build", "还没有工具箱；构建：yard toolbox build"),
    "toolbox.not_owner": (
        "{data} belongs to somebody else: build the toolbox as the user who runs the server",
        "{data} 属于其他用户：请用运行服务器的用户构建工具箱",
    ),
    "toolbox.removed": ("removed: {versions}", "已删除：{versions}"),
    "toolbox.none_removed": ("nothing to remove: what is there is in use", "没有可删除的：现有的正在使用"),
}
