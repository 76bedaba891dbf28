// What is on the screen of the small terminal, and how what a program writes changes it: moving, erasing, scrolling,
// colours, two screens, as shells, editors and pagers write them. Knows nothing of the page.
"use strict";

(() => {
  const WIDE =
    /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
  const COMBINING = /\p{Mn}|\p{Me}|\u200d|\ufe0f/u;
  const COLOURS = ["#000", "#cd3131", "#0dbc79", "#e5e510", "#5c9fee", "#bc3fbc", "#11a8cd", "#e5e5e5"].concat(
    ["#666", "#f14c4c", "#23d18b", "#f5f543", "#7ab8ff", "#d670d6", "#29b8db", "#fff"],
  );
  const PLAIN = Object.freeze({ fore: "", back: "", bold: false, italic: false, under: false, inverse: false });
  const LINES = { j: "┘", k: "┐", l: "┌", m: "└", n: "┼", q: "─", t: "├", u: "┤", v: "┴", w: "┬", x: "│", a: "▒" };
  const colour256 = (index) => {
    if (index < 16) return COLOURS[index];
    if (index > 231) return `rgb(${Array(3).fill(8 + (index - 232) * 10).join()})`;
    const level = (part) => (part ? 55 + part * 40 : 0);
    const rest = index - 16;
    return `rgb(${level(Math.floor(rest / 36))},${level(Math.floor(rest / 6) % 6)},${level(rest % 6)})`;
  };

  class Screen {
    constructor(rows, cols, answer) {
      this.answer = answer;
      this.decoder = new TextDecoder();
      this.size(rows, cols);
      this.reset();
    }

    reset() {
      this.past = []; // lines that have left the screen at its top, and are to be shown above it
      this.lines = Array.from({ length: this.rows }, () => this.blank());
      this.other = null;
      this.x = this.y = 0;
      this.style = PLAIN;
      this.saved = { x: 0, y: 0, style: PLAIN };
      this.top = 0;
      this.bottom = this.rows - 1;
      this.modes = new Set(["7", "25"]);
      this.drawsLines = false;
      this.pending = "";
      this.title = "";
      this.forgetPast = true;
    }

    blank() {
      return Array.from({ length: this.cols }, () => this.space());
    }

    space() {
      return { text: " ", style: this.style && this.style.back ? { ...PLAIN, back: this.style.back } : PLAIN };
    }

    size(rows, cols) {
      const before = this.lines;
      this.rows = rows;
      this.cols = cols;
      if (!before) return;
      const fit = (lines) => {
        const kept = lines.map((line) => line.slice(0, cols).concat(this.blank().slice(line.length)));
        while (kept.length < rows) kept.push(this.blank());
        return kept;
      };
      while (this.lines.length > rows && this.y >= rows) {
        this.leave(this.lines.shift());
        this.y -= 1;
      }
      this.lines = fit(this.lines).slice(0, rows);
      if (this.other) this.other.lines = fit(this.other.lines).slice(0, rows);
      this.x = Math.min(this.x, cols - 1);
      this.y = Math.min(this.y, rows - 1);
      this.top = 0;
      this.bottom = rows - 1;
    }

    write(bytes) {
      let text = this.pending + this.decoder.decode(bytes, { stream: true });
      this.pending = "";
      while (text) {
        const code = text.charCodeAt(0);
        if (code === 0x1b) {
          const used = this.escape(text);
          if (used === 0) {
            this.pending = text.length > 100000 ? "" : text; // the rest of it is still to come
            return;
          }
          text = text.slice(used);
        } else if (code < 0x20 || code === 0x7f) {
          this.control(code);
          text = text.slice(1);
        } else {
          const run = /^[^\x00-\x1f\x7f]+/.exec(text)[0];
          for (const sign of run) this.put(sign);
          text = text.slice(run.length);
        }
      }
    }

    control(code) {
      if (code === 8) this.x = Math.max(0, Math.min(this.x, this.cols - 1) - 1);
      else if (code === 9) this.x = Math.min(this.cols - 1, (Math.floor(this.x / 8) + 1) * 8);
      else if (code === 10 || code === 11 || code === 12) this.down();
      else if (code === 13) this.x = 0;
      else if (code === 14 || code === 15) this.drawsLines = code === 14;
    }

    put(sign) {
      if (COMBINING.test(sign)) {
        const before = this.lines[this.y][Math.max(0, this.x - 1)];
        if (before) before.text += sign;
        return;
      }
      const wide = WIDE.test(sign);
      if (this.x + (wide ? 2 : 1) > this.cols) {
        if (this.modes.has("7")) {
          this.x = 0;
          this.down();
        } else this.x = this.cols - (wide ? 2 : 1);
      }
      const line = this.lines[this.y];
      if (this.modes.has("insert")) {
        line.splice(this.x, 0, ...Array.from({ length: wide ? 2 : 1 }, () => this.space()));
        line.length = this.cols;
      }
      line[this.x] = { text: (this.drawsLines && LINES[sign]) || sign, style: this.style, wide };
      if (wide) line[this.x + 1] = { text: "", style: this.style };
      this.x += wide ? 2 : 1;
    }

    down() {
      if (this.y === this.bottom) this.scroll(1);
      else if (this.y < this.rows - 1) this.y += 1;
    }

    up() {
      if (this.y === this.top) this.scroll(-1);
      else if (this.y > 0) this.y -= 1;
    }

    scroll(count, from = this.top) {
      for (let done = 0; done < Math.min(Math.abs(count), this.rows); done += 1) {
        if (count > 0) {
          const [gone] = this.lines.splice(from, 1);
          if (from === 0 && !this.other) this.leave(gone);
          this.lines.splice(this.bottom, 0, this.blank());
        } else {
          this.lines.splice(this.bottom, 1);
          this.lines.splice(from, 0, this.blank());
        }
      }
    }

    leave(line) {
      this.past.push(line);
    }

    // How many characters of the text the sequence at its beginning takes; 0 when it is not complete.
    escape(text) {
      if (text.length < 2) return 0;
      const kind = text[1];
      if (kind === "[") {
        const found = /^\x1b\[([0-?]*)([ -/]*)([@-~])/.exec(text);
        if (found) {
          if (!found[2]) this.sequence(found[1], found[3]);
          return found[0].length;
        }
        return /^\x1b\[[0-?]*[ -/]*$/.test(text) ? 0 : 2;
      }
      if ("]PX^_".includes(kind)) {
        const found = /^\x1b[\]PX^_]([^\x07\x1b]*)(?:\x07|\x1b\\)/.exec(text);
        if (!found) return /^\x1b[\]PX^_][^\x07\x1b]*\x1b?$/.test(text) ? 0 : 2;
        if (kind === "]" && /^[02];/.test(found[1])) this.title = found[1].slice(2, 200);
        return found[0].length;
      }
      if ("()*+#% ".includes(kind)) {
        if (text.length < 3) return 0;
        if (kind === "(") this.drawsLines = text[2] === "0";
        return 3;
      }
      if (kind === "7") this.saved = { x: this.x, y: this.y, style: this.style };
      else if (kind === "8") ({ x: this.x, y: this.y, style: this.style } = this.saved);
      else if (kind === "D") this.down();
      else if (kind === "M") this.up();
      else if (kind === "E") {
        this.x = 0;
        this.down();
      } else if (kind === "c") this.reset();
      return 2;
    }

    sequence(given, letter) {
      const mark = /^[<-?]/.test(given) ? given[0] : "";
      const numbers = given.slice(mark.length).split(/[;:]/).map((part) => (part ? Math.min(Number(part) || 0, 99999) : 0));
      const count = Math.max(1, numbers[0]);
      if (mark === "?" && "hl".includes(letter)) {
        numbers.forEach((mode) => this.mode(String(mode), letter === "h"));
        return;
      }
      if (mark) return;
      const line = this.lines[this.y];
      const x = Math.min(this.x, this.cols - 1);
      switch (letter) {
        case "A": this.y = Math.max(this.y >= this.top ? this.top : 0, this.y - count); break;
        case "B": case "e": this.y = Math.min(this.y <= this.bottom ? this.bottom : this.rows - 1, this.y + count); break;
        case "C": case "a": this.x = Math.min(this.cols - 1, x + count); break;
        case "D": this.x = Math.max(0, x - count); break;
        case "E": this.x = 0; this.y = Math.min(this.rows - 1, this.y + count); break;
        case "F": this.x = 0; this.y = Math.max(0, this.y - count); break;
        case "G": case "`": this.x = Math.min(this.cols, count) - 1; break;
        case "d": this.y = Math.min(this.rows, count) - 1; break;
        case "H": case "f":
          this.y = Math.min(this.rows, count) - 1;
          this.x = Math.min(this.cols, Math.max(1, numbers[1] || 0)) - 1;
          break;
        case "J": this.eraseScreen(numbers[0]); break;
        case "K": this.erase(line, numbers[0] ? 0 : x, numbers[0] === 1 ? x + 1 : this.cols); break;
        case "X": this.erase(line, x, Math.min(this.cols, x + count)); break;
        case "P": line.splice(x, count); while (line.length < this.cols) line.push(this.space()); break;
        case "@":
          line.splice(x, 0, ...Array.from({ length: Math.min(count, this.cols) }, () => this.space()));
          line.length = this.cols;
          break;
        case "L": case "M":
          if (this.y >= this.top && this.y <= this.bottom) this.moveLines(letter === "L" ? -count : count);
          break;
        case "S": this.scroll(count); break;
        case "T": this.scroll(-count); break;
        case "m": this.colours(numbers); break;
        case "r": {
          const last = Math.min(this.rows, numbers[1] || this.rows) - 1;
          if (count - 1 < last) [this.top, this.bottom] = [count - 1, last];
          this.x = this.y = 0;
          break;
        }
        case "s": this.saved = { x: this.x, y: this.y, style: this.style }; break;
        case "u": ({ x: this.x, y: this.y } = this.saved); break;
        case "h": case "l": if (numbers[0] === 4) this.set("insert", letter === "h"); break;
        case "n":
          if (numbers[0] === 5) this.answer("\x1b[0n");
          if (numbers[0] === 6) this.answer(`\x1b[${this.y + 1};${x + 1}R`);
          break;
        case "c": if (!numbers[0]) this.answer("\x1b[?1;2c"); break;
      }
    }

    // Lines put in or taken out in the middle leave nothing to be shown above the screen.
    moveLines(count) {
      const other = this.other;
      this.other = other || { lines: [] };
      this.scroll(count, this.y);
      this.other = other;
      this.x = 0;
    }

    erase(line, from, to) {
      for (let place = from; place < to; place += 1) line[place] = this.space();
    }

    eraseScreen(what) {
      if (what === 3) {
        this.past = [];
        this.forgetPast = true;
        return;
      }
      const [from, to] = [what ? 0 : this.y + 1, what === 1 ? this.y : this.rows];
      for (let row = from; row < to; row += 1) this.lines[row] = this.blank();
      if (what !== 2) this.erase(this.lines[this.y], what ? 0 : this.x, what === 1 ? this.x + 1 : this.cols);
    }

    set(mode, on) {
      if (on) this.modes.add(mode);
      else this.modes.delete(mode);
    }

    mode(mode, on) {
      if (["47", "1047", "1049"].includes(mode)) {
        if (on === Boolean(this.other)) return;
        if (on) {
          this.other = { lines: this.lines, x: this.x, y: this.y, style: this.style };
          this.lines = Array.from({ length: this.rows }, () => this.blank());
        } else {
          ({ lines: this.lines, x: this.x, y: this.y, style: this.style } = this.other);
          this.other = null;
          this.y = Math.min(this.y, this.rows - 1);
        }
        this.top = 0;
        this.bottom = this.rows - 1;
      } else this.set(mode, on);
    }

    colours(numbers) {
      let style = { ...this.style };
      for (let at = 0; at < numbers.length; at += 1) {
        const number = numbers[at];
        if (number === 0) style = { ...PLAIN };
        else if (number === 1) style.bold = true;
        else if (number === 3) style.italic = true;
        else if (number === 4) style.under = true;
        else if (number === 7) style.inverse = true;
        else if (number === 22) style.bold = false;
        else if (number === 23) style.italic = false;
        else if (number === 24) style.under = false;
        else if (number === 27) style.inverse = false;
        else if (number === 38 || number === 48) {
          const side = number === 38 ? "fore" : "back";
          if (numbers[at + 1] === 5) style[side] = colour256(Math.min(255, numbers[at + 2] || 0));
          else if (numbers[at + 1] === 2) style[side] = `rgb(${numbers.slice(at + 2, at + 5).join()})`;
          at += numbers[at + 1] === 5 ? 2 : 4;
        } else if (number === 39) style.fore = "";
        else if (number === 49) style.back = "";
        else if (number >= 30 && number <= 37) style.fore = COLOURS[number - 30];
        else if (number >= 90 && number <= 97) style.fore = COLOURS[number - 82];
        else if (number >= 40 && number <= 47) style.back = COLOURS[number - 40];
        else if (number >= 100 && number <= 107) style.back = COLOURS[number - 92];
      }
      this.style = Object.freeze(style);
    }
  }

  globalThis.PlainScreen = Screen;
})();
