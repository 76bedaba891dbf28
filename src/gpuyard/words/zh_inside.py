"""在容器或任务内部遇到的情况：启动之前的检查，以及进入时的问题。"""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

INSIDE: Mapping[Code, Template] = {
    Code.NO_START_FILE: "找不到启动文件[：{path}][（{replica}）]。请检查文件名和所在目录；如果还没有上传，请先上传。",
    Code.NO_SUCH_COMMAND: "找不到命令[：`{name}`][（{replica}）]。请检查拼写，或换一个带有它的镜像。",
    Code.START_FILE_IS_FOLDER: "启动文件是一个目录[：{path}][（{replica}）]，请写明其中的文件。",
    Code.NOT_READABLE: "没有读取权限[：{path}][（{replica}）]。[可以执行：chmod u+r {path}]",
    Code.NOT_EXECUTABLE: "没有执行权限[：{path}][（{replica}）]。[可以执行：chmod +x {path}]",
    Code.NO_INTERPRETER: (
        "启动文件[ {path} ]第一行指定的程序不存在[：{interpreter}][（{replica}）]。请改正这一行，或换一个带有它的镜像。"
    ),
    Code.WINDOWS_LINES: (
        "启动文件[ {path} ]使用了 Windows 换行符，无法运行[（{replica}）]。"
        "请改为 Unix 换行符[，例如：sed -i 's/\\r$//' {path}]。"
    ),
    Code.NO_WORKING_FOLDER: "找不到工作目录[：{path}][（{replica}）]。",
    Code.FOLDER_NOT_WRITABLE: "没有写入工作目录的权限[：{path}][（{replica}）]。",
    Code.UPLOAD_UNDER_WAY: "工作目录[ {path} ]的上传还没有完成[（{replica}）]，请等上传结束后再启动。",
    Code.DOOR_CLOSED: "现在无法进入：它没有在运行，或没有响应[（{detail}）]。",
    Code.NOBODY_LISTENS: "那里还没有程序在监听[：{what:noun}][ {name}]。请先在其中启动程序，然后重试。",
    Code.TOO_MANY_INSIDE: "里面打开的已经太多[：{detail}]。请关闭一些后重试。",
    Code.INSIDE_FAILED: "未能在其中启动[：{detail}]。",
    Code.GATEWAY_AWAY: "网关没有开放，或正在启动，请稍后再试。",
    Code.BROKER_AWAY: "入口正在重启，请稍后再试。",
}

INSIDE_NOUNS: Mapping[str, str] = {"service": "服务", "program": "程序", "terminal": "终端", "port": "端口"}
