// A small terminal for servers whose console was not built, which has a better one: the screen as a page shows it, and
// what is typed there. It has the face of that one as far as terminal.js uses it.
"use strict";

(() => {
  const KEYS = { Insert: "2~", Delete: "3~", PageUp: "5~", PageDown: "6~", F5: "15~", F6: "17~", F7: "18~", F8: "19~" };
  const MORE_KEYS = { F9: "20~", F10: "21~", F11: "23~", F12: "24~" };
  const CURSOR_KEYS = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
  const BY_LETTER = { F1: "P", F2: "Q", F3: "R", F4: "S" };

  class Terminal {
    constructor(options) {
      this.most = options.scrollback || 1000;
      this.heard = () => {};
      this.screen = new PlainScreen(24, 80, (text) => this.heard(text));
      this.waiting = false;
    }

    get rows() {
      return this.screen.rows;
    }

    get cols() {
      return this.screen.cols;
    }

    loadAddon(addon) {
      addon.terminal = this;
    }

    onData(heard) {
      this.heard = heard;
    }

    onBinary() {} // only mice speak so, and they are not listened to

    open(place) {
      const make = (name, kind = "div") => {
        const element = document.createElement(kind);
        element.className = name;
        return element;
      };
      this.place = place;
      this.view = make("plain-terminal");
      this.past = make("plain-past");
      this.shown = make("plain-rows");
      this.input = make("plain-input", "textarea");
      this.input.setAttribute("autocapitalize", "off");
      this.input.setAttribute("autocomplete", "off");
      this.input.setAttribute("spellcheck", "false");
      this.input.setAttribute("aria-label", "terminal");
      this.view.append(this.past, this.shown);
      place.append(this.view, this.input);
      this.listen();
      this.draw();
    }

    listen() {
      this.view.addEventListener("mouseup", () => {
        if (!String(getSelection())) this.focus();
      });
      this.input.addEventListener("keydown", (event) => {
        const bytes = event.isComposing ? null : this.bytesOf(event);
        if (bytes === null) return;
        event.preventDefault();
        this.say(bytes);
      });
      this.input.addEventListener("input", (event) => {
        if (!event.isComposing) this.say(this.taken());
      });
      this.input.addEventListener("compositionend", () => this.say(this.taken()));
      this.input.addEventListener("paste", (event) => {
        event.preventDefault();
        const text = event.clipboardData.getData("text").replace(/\r?\n/g, "\r").replace(/\x1b/g, "");
        this.say(this.screen.modes.has("2004") ? `\x1b[200~${text}\x1b[201~` : text);
      });
    }

    taken() {
      const text = this.input.value.replace(/\n/g, "\r");
      this.input.value = "";
      return text;
    }

    say(text) {
      if (!text) return;
      this.view.scrollTop = this.view.scrollHeight;
      this.heard(text);
    }

    // What a key says, or null when the page itself is to see to it.
    bytesOf(event) {
      const { key, ctrlKey: ctrl, altKey: alt, metaKey: meta, shiftKey: shift } = event;
      if (meta || (ctrl && shift && "CVcv".includes(key))) return null;
      if (ctrl && key === "c" && String(getSelection())) return null;
      if (ctrl && key === "v") return null;
      const lead = alt ? "\x1b" : "";
      const strength = 1 + (shift ? 1 : 0) + (alt ? 2 : 0) + (ctrl ? 4 : 0);
      if (key in CURSOR_KEYS) {
        if (strength > 1) return `\x1b[1;${strength}${CURSOR_KEYS[key]}`;
        return `\x1b${this.screen.modes.has("1") ? "O" : "["}${CURSOR_KEYS[key]}`;
      }
      if (key in BY_LETTER) return `\x1bO${BY_LETTER[key]}`;
      const numbered = KEYS[key] || MORE_KEYS[key];
      if (numbered) return `\x1b[${numbered}`;
      if (key === "Enter") return `${lead}\r`;
      if (key === "Backspace") return `${lead}${ctrl ? "\b" : "\x7f"}`;
      if (key === "Tab") return shift ? "\x1b[Z" : "\t";
      if (key === "Escape") return "\x1b";
      if (ctrl && !alt && key.length === 1) {
        const code = key.toUpperCase().charCodeAt(0);
        if (code >= 64 && code < 96) return String.fromCharCode(code - 64);
        if (key === " ") return "\0";
        if (key === "/") return "\x1f";
        return null;
      }
      return alt && !ctrl && key.length === 1 ? lead + key : null;
    }

    focus() {
      this.input.focus({ preventScroll: true });
    }

    reset() {
      this.screen.reset();
      this.soon();
    }

    write(bytes) {
      this.screen.write(bytes);
      this.soon();
    }

    resize(rows, cols) {
      if (rows === this.rows && cols === this.cols) return;
      this.screen.size(rows, cols);
      this.soon();
    }

    soon() {
      if (this.waiting || !this.view) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.draw();
      });
    }

    draw() {
      const screen = this.screen;
      const atEnd = this.view.scrollTop + this.view.clientHeight >= this.view.scrollHeight - 4;
      if (screen.forgetPast) this.past.replaceChildren();
      screen.forgetPast = false;
      this.past.append(...screen.past.slice(-this.most).map((line) => this.drawn(line, -1)));
      screen.past = [];
      while (this.past.childElementCount > this.most) this.past.firstChild.remove();
      const cursor = screen.modes.has("25") ? Math.min(screen.x, screen.cols - 1) : -1;
      this.shown.replaceChildren(...screen.lines.map((line, row) => this.drawn(line, row === screen.y ? cursor : -1)));
      this.past.hidden = Boolean(screen.other);
      if (screen.title) document.title = screen.title;
      if (atEnd) this.view.scrollTop = this.view.scrollHeight;
    }

    drawn(line, cursor) {
      const row = document.createElement("div");
      let piece = null;
      line.forEach((cell, place) => {
        if (!cell.text) {
          piece = null; // the second half of a wide sign
          return;
        }
        const alone = cell.wide || place === cursor;
        if (!piece || alone || piece.alone || piece.style !== cell.style) {
          piece = { style: cell.style, alone, span: this.span(cell, place === cursor) };
          row.append(piece.span);
        }
        piece.span.textContent += cell.text;
      });
      return row;
    }

    span(cell, isCursor) {
      const span = document.createElement("span");
      const { fore, back, bold, italic, under, inverse } = cell.style;
      const turned = inverse !== isCursor;
      if (turned || fore) span.style.color = turned ? back || "#000" : fore;
      if (turned || back) span.style.background = turned ? fore || "#e5e5e5" : back;
      if (bold) span.style.fontWeight = "bold";
      if (italic) span.style.fontStyle = "italic";
      if (under) span.style.textDecoration = "underline";
      if (cell.wide) span.className = "wide";
      if (isCursor) span.classList.add("cursor");
      return span;
    }
  }

  class FitAddon {
    fit() {
      const { terminal } = this;
      const ruler = document.createElement("span");
      ruler.textContent = "0".repeat(100);
      ruler.className = "plain-ruler";
      terminal.view.append(ruler);
      const { width, height } = ruler.getBoundingClientRect();
      ruler.remove();
      const room = terminal.view;
      const cols = Math.floor((room.clientWidth - 1) / (width / 100));
      const rows = Math.floor(room.clientHeight / height);
      if (cols > 1 && rows > 0) terminal.resize(rows, cols);
    }
  }

  globalThis.Terminal = Terminal;
  globalThis.FitAddon = { FitAddon };
})();
