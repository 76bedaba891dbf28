/** What the terminal's own page says. It stands alone: neither the console's frame nor its settings are there. */
export const terminalWords = {
  lost: ["The connection is lost; connecting again. Your shell goes on.", "连接已断开，正在重新连接。你的 shell 仍在运行。"],
  refused: ["Not connected: the visit is over, or the work has stopped. It is tried again.", "无法连接：访问已结束，或任务已停止。正在重试。"],
  back: ["Connected again.", "连接已恢复。"],
  fresh: ["The shell from before is gone; this is a new one.", "之前的 shell 已不在，这是一个新的 shell。"],
  ended: ["The shell has ended (exit code {code}). Press Enter for a new one.", "shell 已结束（退出码 {code}）。按回车键打开新的。"],
} as const;
