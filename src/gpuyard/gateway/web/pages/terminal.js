// A terminal that finds its shell again: the session's id stays in the tab, the shell with the broker.
"use strict";

(() => {
  const chinese = document.documentElement.lang.startsWith("zh");
  const words = {
    lost: chinese ? "连接已断开，正在重新连接……" : "The connection is lost; connecting again …",
    ended: chinese ? "shell 已结束。按回车键打开新的。" : "The shell has ended. Press Enter for a new one.",
    refused: chinese ? "不能连接：请重新登录，或环境已停止。" : "Not connected: log in again, or it has stopped.",
  };
  const prefix = document.body.dataset.prefix;
  const asked = new URLSearchParams(location.search);
  const kept = "yard-terminal-session";
  const notice = document.getElementById("notice");
  const terminal = new Terminal({ cursorBlink: true, scrollback: 10000, fontFamily: "monospace", allowProposedApi: false });
  const fit = new FitAddon.FitAddon();
  const encoder = new TextEncoder();
  let socket = null;
  let ended = false;
  let failures = 0;

  terminal.loadAddon(fit);
  terminal.open(document.getElementById("terminal"));
  fit.fit();
  terminal.focus();

  const say = (text) => {
    notice.textContent = text;
    notice.hidden = !text;
  };

  const address = () => {
    const url = new URL(`${location.origin}${prefix}/.yard/terminal`);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("rows", terminal.rows);
    url.searchParams.set("cols", terminal.cols);
    if (asked.get("replica")) url.searchParams.set("replica", asked.get("replica"));
    const session = sessionStorage.getItem(kept);
    if (session) url.searchParams.set("session", session);
    return url;
  };

  const told = (message) => {
    if (message.session) {
      sessionStorage.setItem(kept, message.session);
      terminal.reset(); // what was shown so far comes again
      resize();
    } else if ("ended" in message) {
      ended = true;
      sessionStorage.removeItem(kept);
      say(words.ended);
    }
  };

  const connect = () => {
    ended = false;
    let opened = false;
    socket = new WebSocket(address());
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      opened = true;
      failures = 0;
      say("");
    };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") told(JSON.parse(event.data));
      else terminal.write(new Uint8Array(event.data));
    };
    socket.onclose = () => {
      if (ended) return;
      failures += 1;
      // A session that is gone is answered like any refusal: then begin a new one.
      if (!opened && failures > 1 && sessionStorage.getItem(kept)) sessionStorage.removeItem(kept);
      say(failures > 4 ? words.refused : words.lost);
      setTimeout(connect, Math.min(500 * 2 ** Math.min(failures, 5), 10000));
    };
  };

  const resize = () => {
    fit.fit();
    if (socket && socket.readyState === WebSocket.OPEN) {
      socket.send(JSON.stringify({ rows: terminal.rows, cols: terminal.cols }));
    }
  };

  const send = (bytes) => {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(bytes);
  };

  terminal.onData((text) => {
    if (ended) {
      if (text === "\r") {
        terminal.reset();
        connect();
      }
      return;
    }
    send(encoder.encode(text));
  });
  terminal.onBinary((text) => send(Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 255)));
  window.addEventListener("resize", resize);
  connect();
})();
