"use strict";
(() => {
  const CIVIDIS = ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"];
  const EMPTY = "#f2f4f6";
  const data = JSON.parse(document.getElementById("data").textContent);
  document.documentElement.classList.add("script");

  const element = (tag, words, parent) => {
    const made = document.createElement(tag);
    if (words) made.textContent = words;
    if (parent) parent.append(made);
    return made;
  };
  const several = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

  // A colour of the ramp for a part from 0 to 1, and black or white on it.
  function ramp(part) {
    const at = Math.max(0, Math.min(1, part)) * (CIVIDIS.length - 1);
    const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
    const rgb = [0, 2, 4].map((i) => {
      const [a, b] = [CIVIDIS[low], CIVIDIS[low + 1]].map((hex) => parseInt(hex.slice(i, i + 2), 16));
      return Math.round(a + (b - a) * (at - low));
    });
    return `rgb(${rgb.join(",")})`;
  }
  function inkOn(colour) {
    const linear = colour.match(/\d+/g).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 ? "#000" : "#fff";
  }

  // A scatter: the point under the pointer, or the next one by key, is told below.
  function scatter(svg, told, live) {
    const points = [...svg.querySelectorAll("[data-i]")];
    points.sort((a, b) => centre(a) - centre(b));
    let now = points.findIndex((one) => one.classList.contains("star"));
    function centre(one) { return one.getBoundingClientRect().x; }
    function tell(at) {
      points.forEach((one) => one.classList.remove("on"));
      now = Math.max(0, Math.min(points.length - 1, at));
      points[now].classList.add("on");
      const [name, words] = told[points[now].dataset.i];
      live.textContent = `${name}: ${words}`;
    }
    svg.addEventListener("pointermove", (event) => {
      const far = (one) => {
        const box = one.getBoundingClientRect();
        return Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
      };
      const nearest = points.reduce((a, b) => (far(b) < far(a) ? b : a));
      if (far(nearest) < 60) tell(points.indexOf(nearest));
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      tell(now + step);
    });
  }

  // Cells on a canvas that can be zoomed, pointed at and walked by keys.
  // scene: width and height of the world; at(i): box of a cell, null without; hit(x, y): a cell, -1;
  // colour(i); label(i); framed(i): cells in i's group; tell(i); walk(i, dx, dy); over(c, view).
  class Grid {
    constructor(box, scene, name) {
      this.scene = scene;
      this.now = -1;
      this.canvas = element("canvas", "", box);
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", `${name}. Arrow keys go from one to the next, plus and minus zoom.`);
      this.live = element("p", "Point at a square, or tab to the picture and use the arrow keys.", box);
      this.live.className = "live";
      this.live.setAttribute("role", "status");
      this.live.setAttribute("aria-live", "polite");
      this.fit();
      new ResizeObserver(() => { if (this.canvas.parentElement.clientWidth !== this.wide) this.fit(); }).observe(box);
      this.listen();
      addEventListener("beforeprint", () => { this.fit(3); });
      addEventListener("afterprint", () => { this.fit(); });
    }
    fit(scale) {
      this.wide = this.canvas.parentElement.clientWidth || 600;
      this.base = Math.min(this.wide / this.scene.width, this.scene.most || 3);
      this.high = Math.min(Math.max(this.scene.height * this.base, 40) + 2, 900);
      this.ratio = scale || window.devicePixelRatio || 1;
      this.canvas.width = this.wide * this.ratio;
      this.canvas.height = this.high * this.ratio;
      this.canvas.style.width = `${this.wide}px`;
      this.canvas.style.height = scale ? "auto" : `${this.high}px`;
      this.view = { s: this.base, x: 0, y: 0 };
      this.draw();
    }
    zoom(factor, px, py) {
      const view = this.view, s = Math.max(this.base, Math.min(60, view.s * factor));
      const [x, y] = [px ?? this.wide / 2, py ?? this.high / 2];
      view.x += x / view.s - x / s;
      view.y += y / view.s - y / s;
      view.s = s;
      this.bound();
      this.draw();
    }
    bound() {
      const view = this.view;
      view.x = Math.max(0, Math.min(this.scene.width - this.wide / view.s, view.x));
      view.y = Math.max(0, Math.min(this.scene.height - this.high / view.s, view.y));
      if (view.x < 0 || this.wide / view.s > this.scene.width) view.x = 0;
      if (view.y < 0 || this.high / view.s > this.scene.height) view.y = 0;
    }
    show(i, close) {
      const at = this.scene.at(i);
      if (!at) return;
      const view = this.view;
      if (close) view.s = Math.max(view.s, Math.min(60, 18 / at.h));
      const inside = at.x > view.x && at.y > view.y && at.x + at.w < view.x + this.wide / view.s && at.y + at.h < view.y + this.high / view.s;
      if (close || !inside) {
        view.x = at.x - this.wide / view.s / 2;
        view.y = at.y - this.high / view.s / 2;
        this.bound();
      }
      this.choose(i);
    }
    choose(i) {
      this.now = i;
      this.live.textContent = i < 0 ? "" : this.scene.tell(i);
      this.draw();
    }
    draw() {
      if (this.asked) return;
      this.asked = true;
      requestAnimationFrame(() => { this.asked = false; this.paint(); });
    }
    paint() {
      const c = this.canvas.getContext("2d"), scene = this.scene, { s, x, y } = this.view;
      c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      c.fillStyle = "#fff";
      c.fillRect(0, 0, this.wide, this.high);
      const gap = scene.gap(s);
      const names = [];
      for (let i = 0; i < scene.count; i++) {
        const at = scene.at(i);
        if (!at) continue;
        const [px, py, w, h] = [(at.x - x) * s, (at.y - y) * s, at.w * s, at.h * s];
        if (px > this.wide || py > this.high || px + w < 0 || py + h < 0) continue;
        const colour = scene.colour(i);
        c.fillStyle = colour;
        c.fillRect(px, py, Math.max(w - gap, 0.7), Math.max(h - gap, 0.7));
        if (h > 14 && w > 12 && names.length < 4000) names.push([scene.label(i), px, py, w, h, colour]);
      }
      c.textAlign = "center";
      c.textBaseline = "middle";
      for (const [words, px, py, w, h, colour] of names) {
        c.font = `${Math.min(13, h * 0.6)}px system-ui, sans-serif`;
        c.fillStyle = colour[0] === "r" ? inkOn(colour) : "#000";
        if (words !== "" && c.measureText(words).width < w - 2) c.fillText(words, px + w / 2, py + h / 2);
      }
      scene.over(c, this.view, this.wide, this.high);
      if (this.now < 0) return;
      c.strokeStyle = "#f55c3d";
      c.lineWidth = 2;
      for (const i of scene.framed(this.now)) this.frame(c, i, 0);
      c.strokeStyle = "#000";
      c.lineWidth = 3;
      this.frame(c, this.now, 1.5);
    }
    frame(c, i, out) {
      const at = this.scene.at(i), { s, x, y } = this.view;
      if (at) c.strokeRect((at.x - x) * s - out, (at.y - y) * s - out, at.w * s + 2 * out, at.h * s + 2 * out);
    }
    listen() {
      const canvas = this.canvas;
      let drag = null;
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.x, event.clientY - box.y];
      };
      canvas.addEventListener("pointerdown", (event) => { drag = place(event); canvas.setPointerCapture(event.pointerId); });
      canvas.addEventListener("pointerup", () => { drag = null; });
      canvas.addEventListener("pointermove", (event) => {
        const [px, py] = place(event), view = this.view;
        if (drag && (view.s > this.base || this.scene.height * view.s > this.high + 2)) {
          view.x -= (px - drag[0]) / view.s;
          view.y -= (py - drag[1]) / view.s;
          drag = [px, py];
          this.bound();
          return this.draw();
        }
        const i = this.scene.hit(view.x + px / view.s, view.y + py / view.s);
        if (i !== this.now && i >= 0) this.choose(i);
      });
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.25 : 0.8, ...place(event));
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => {
        const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (by) this.show(this.now < 0 ? this.scene.first() : this.scene.walk(this.now, ...by));
        else if (event.key === "+" || event.key === "=") this.zoom(1.5);
        else if (event.key === "-") this.zoom(1 / 1.5);
        else if (event.key === "0") this.fit();
        else return;
        event.preventDefault();
      });
    }
    buttons(tools) {
      const add = (words, act) => element("button", words, tools).addEventListener("click", act);
      add("Zoom in", () => this.zoom(1.5));
      add("Zoom out", () => this.zoom(1 / 1.5));
      add("Fit", () => this.fit());
    }
  }

  // Radio buttons of which one is chosen.
  function choice(tools, name, options, chosen, act) {
    const set = element("fieldset", "", tools);
    set.className = "choice";
    element("legend", name, set);
    options.forEach((words, i) => {
      const label = element("label", "", set), input = element("input", "", label);
      input.type = "radio";
      input.name = `${name}${tools.dataset.of}`;
      input.checked = i === chosen;
      label.append(words);
      input.addEventListener("change", () => act(i));
    });
  }
  function toolbar(box) {
    const tools = element("div", "", box);
    tools.className = "tools";
    tools.dataset.of = box.id;
    return tools;
  }
  // A table that is made when it is first opened: it may have thousands of rows.
  function lazyTable(box, title, heads, rows) {
    const details = element("details", "", box);
    element("summary", title, details);
    details.addEventListener("toggle", () => {
      if (details.children.length > 1) return;
      const wrap = element("div", "", details), table = element("table", "", wrap);
      wrap.className = "scroll";
      wrap.tabIndex = 0;
      const head = element("tr", "", element("thead", "", table)), body = element("tbody", "", table);
      heads.forEach((words) => { element("th", words, head).scope = "col"; });
      for (const row of rows()) {
        const line = element("tr", "", body);
        row.forEach((words) => element("td", words, line));
      }
    });
  }

  // The map of devices.
  function map(box, given) {
    const CELL = 10, GAP = 3, levels = given.levels, named = given.hosts !== null;
    const under = levels.map((_, l) => levels.slice(l + 1).reduce((n, one) => n * one[1], 1));
    const count = levels[0][1] * under[0];
    // From the inside out: width, height and head of the entity of each level.
    const boxes = [];
    let size = { w: CELL, h: CELL };
    for (let l = levels.length - 1; l >= 0; l--) {
      const [, n, columns] = levels[l], rows = Math.ceil(n / columns);
      const gap = l === levels.length - 1 ? 0 : l === given.node ? GAP : 2 * GAP;
      const head = l > given.node ? 0 : l === given.node ? (named ? 6 : 0) : (given.switches[l] ? 9 : 0);
      const pad = l < given.node ? GAP : 0;
      boxes[l] = { w: size.w + 2 * pad, h: size.h + head + 2 * pad, head, pad, gap, columns, n };
      size = { w: columns * boxes[l].w + (columns - 1) * gap, h: rows * boxes[l].h + (rows - 1) * gap };
    }
    const corner = (device, to) => {
      let x = 0, y = 0, left = device;
      for (let l = 0; l <= to; l++) {
        const own = boxes[l], at = Math.floor(left / under[l]);
        left %= under[l];
        x += (at % own.columns) * (own.w + own.gap) + (l < to || l === levels.length - 1 ? own.pad : 0);
        y += Math.floor(at / own.columns) * (own.h + own.gap) + (l < to || l === levels.length - 1 ? own.pad + own.head : 0);
      }
      return [x, y];
    };
    const cells = Array.from({ length: count }, (_, i) => {
      const [x, y] = corner(i, levels.length - 1);
      return { x, y, w: CELL, h: CELL };
    });
    // The rank of each device under each view, and its coordinates.
    const views = given.views.map((one) => {
      const rank = new Int32Array(count).fill(-1), devices = [];
      for (const [start, step, n] of one.ranks) for (let k = 0; k < n; k++) devices.push(start + k * step);
      devices.forEach((device, r) => { rank[device] = r; });
      const strides = one.axes.map((_, a) => one.axes.slice(a + 1).reduce((n, axis) => n * axis[1], 1));
      return { axes: one.axes, rank, devices, strides };
    });
    const axes = [];
    views.forEach((view, v) => view.axes.forEach(([name, n], a) => {
      if (n > 1 && !axes.some((one) => one.name === name)) axes.push({ name, n, v, a });
    }));
    if (!axes.length) axes.push({ name: views[0].axes[0][0], n: 1, v: 0, a: 0 });
    const value = (axis, device) => {
      const view = views[axis.v], r = view.rank[device];
      return r < 0 ? -1 : Math.floor(r / view.strides[axis.a]) % axis.n;
    };
    const node = (device) => Math.floor(device / under[given.node < 0 ? 0 : given.node]);
    const host = (n) => (named ? given.hosts[n] : `${levels[Math.max(given.node, 0)][0]} ${n}`);
    const absent = (device) => named && given.hosts[node(device)] === "";
    let chosen = axes.reduce((best, one, i) => (one.name === "pp" ? i : best), 0);
    let shades = [];
    const group = (device) => {
      const axis = axes[chosen], view = views[axis.v], r = view.rank[device], stride = view.strides[axis.a];
      if (r < 0) return [];
      const first = r - value(axis, device) * stride;
      return Array.from({ length: axis.n }, (_, k) => view.devices[first + k * stride]);
    };
    const places = (device) => axes.map((axis) => `${axis.name} ${value(axis, device)}`).join(", ");
    const scene = {
      width: size.w, height: size.h, count, most: 3.2,
      gap: (s) => (s * CELL < 6 ? 0 : 1),
      at: (i) => (absent(i) ? null : cells[i]),
      colour: (i) => { const v = value(axes[chosen], i); return v < 0 ? EMPTY : shades[v]; },
      label: (i) => { const v = value(axes[chosen], i); return v < 0 ? "\u2013" : String(v); },
      first: () => Math.max(0, views[0].devices[0]),
      framed: group,
      tell(i) {
        if (views[0].rank[i] < 0) return `${host(node(i))}: no rank, left out of the job`;
        const mine = group(i), hosts = [...new Set(mine.map((one) => host(node(one))))];
        const listed = hosts.slice(0, 8).join(", ") + (hosts.length > 8 ? `, .. (${hosts.length})` : "");
        return `${host(node(i))}, device ${i}, rank ${views[0].rank[i]}: ${places(i)}. Its ${axes[chosen].name} group: ${several(mine.length, "device")} on ${listed}`;
      },
      hit(x, y) {
        let device = 0, left = [x, y];
        for (let l = 0; l < levels.length; l++) {
          const own = boxes[l];
          const column = Math.floor(left[0] / (own.w + own.gap)), row = Math.floor(left[1] / (own.h + own.gap));
          const at = row * own.columns + column;
          if (column < 0 || row < 0 || column >= own.columns || at >= own.n) return -1;
          device += at * under[l];
          left = [left[0] - column * (own.w + own.gap) - own.pad, left[1] - row * (own.h + own.gap) - own.pad - own.head];
        }
        return left[0] >= 0 && left[1] >= 0 && left[0] <= CELL && left[1] <= CELL && !absent(device) ? device : -1;
      },
      walk(i, dx, dy) {
        const { x, y } = cells[i];
        for (let step = 1; step < 60; step++) {
          const found = scene.hit(x + CELL / 2 + dx * step * CELL * 0.9, y + CELL / 2 + dy * step * CELL * 0.9);
          if (found >= 0 && found !== i) return found;
        }
        return i;
      },
      over(c, view, wide, high) {
        c.textBaseline = "alphabetic";
        c.textAlign = "left";
        for (let l = 0; l <= given.node; l++) {
          const own = boxes[l], px = Math.min(13, own.head * view.s * 0.72);
          if (l < given.node) { c.strokeStyle = "#4a5563"; c.lineWidth = 1.2; }
          for (let first = 0; first < count; first += under[l]) {
            const [x, y] = corner(first, l).map((at, k) => (at - (k ? view.y : view.x)) * view.s);
            const [w, h] = [own.w * view.s, own.h * view.s];
            if (x > wide || y > high || x + w < 0 || y + h < 0) continue;
            if (l < given.node && w > 20) c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
            if (px < 8) continue;
            const names = l < given.node ? given.switches[l] : given.hosts;
            const text = names && names[first / under[l]];
            if (!text && l < given.node) continue;
            c.font = `${l < given.node ? "600 " : ""}${px}px system-ui, sans-serif`;
            c.fillStyle = "#111820";
            const words = l < given.node && !text.includes(levels[l][0]) ? `${levels[l][0]} ${text}` : text || "\u2013";
            const fits = Math.floor(words.length * Math.min(1, (w - 6) / (c.measureText(words).width || 1)));
            const cut = fits < words.length ? `${words.slice(0, Math.max(fits - 1, 1))}\u2026` : words;
            c.fillText(cut, x + own.pad * view.s, y + own.pad * view.s + px * 1.05);
          }
        }
      },
    };
    const tools = toolbar(box), grid = new Grid(box, scene, given.name);
    const legend = element("ul", "", box);
    legend.className = "legend";
    grid.live.before(legend);
    function colour(i) {
      chosen = i;
      const axis = axes[i];
      shades = Array.from({ length: axis.n }, (_, k) => ramp(axis.n > 1 ? k / (axis.n - 1) : 0));
      legend.replaceChildren();
      const step = Math.ceil(axis.n / 16);
      for (let k = 0; k < axis.n; k += step) {
        const item = element("li", "", legend), swatch = element("canvas", "", item);
        swatch.width = swatch.height = 12;
        swatch.style.display = "inline-block";
        swatch.setAttribute("aria-hidden", "true");
        const c = swatch.getContext("2d");
        c.fillStyle = shades[k];
        c.fillRect(0, 0, 12, 12);
        item.append(` ${axis.name} ${k}`);
      }
      if (grid.now >= 0) grid.live.textContent = scene.tell(grid.now);
      grid.draw();
    }
    choice(tools, "Colour by", axes.map((one) => `${one.name} ${one.n}`), chosen, colour);
    grid.buttons(tools);
    const label = element("label", "Find ", tools), search = element("input", "", label);
    search.type = "search";
    search.placeholder = named ? "host or rank" : "rank";
    search.addEventListener("change", () => {
      const text = search.value.trim();
      const n = named ? given.hosts.indexOf(text) : -1;
      const device = n >= 0 ? n * under[given.node] : /^\d+$/.test(text) ? views[0].devices[Number(text)] : undefined;
      if (device === undefined || device < 0) grid.live.textContent = text ? "No such host or rank." : "";
      else grid.show(device, true);
    });
    colour(chosen);
    const each = under[Math.max(given.node, 0)];
    const range = (from, axis) => {
      const seen = [...new Set(Array.from({ length: each }, (_, k) => value(axis, from + k)))].filter((v) => v >= 0);
      return seen.length > 1 ? `${Math.min(...seen)}\u2013${Math.max(...seen)}` : seen.join("");
    };
    lazyTable(box, "Hosts, ranks and coordinates as a table", [named ? "host" : levels[Math.max(given.node, 0)][0], "ranks", ...axes.map((one) => one.name)], function* rows() {
      for (let from = 0; from < count; from += each) {
        if (absent(from)) continue;
        const ranks = Array.from({ length: each }, (_, k) => views[0].rank[from + k]).filter((r) => r >= 0);
        const row = ranks.length && ranks.every((r, k) => r === ranks[0] + k) && ranks.length > 1 ? `${ranks[0]}\u2013${ranks[ranks.length - 1]}` : ranks.join(", ") || "none";
        yield [host(node(from)), row, ...axes.map((axis) => range(from, axis))];
      }
    });
  }

  // Messages of a schedule: a row a link (or a sender), a column a step; or squares, one a step.
  function heat(box, given) {
    const rows = given.rows.length, columns = given.columns.length;
    const [CW, CH] = given.squares ? [10, 10] : [Math.max(4, Math.min(60, 900 / columns)), Math.max(2, Math.min(10, 720 / rows))];
    const LEFT = given.squares ? 0 : 46, TOP = 14;
    let chunk = -1, sums = new Float64Array(rows * columns), most = 1;
    function count() {
      sums = new Float64Array(rows * columns);
      for (const [row, column, n, chunks] of given.cells) if (chunk < 0 || chunks.includes(chunk)) sums[row * columns + column] += chunk < 0 ? n : 1;
      most = Math.max(1, ...sums);
    }
    count();
    const tall = given.ranks || 0, across = given.squares ? Math.min(given.squares, 4) : 1;
    const at = (i) => {
      const row = Math.floor(i / columns), column = i % columns;
      if (!given.squares) return { x: LEFT + column * CW, y: TOP + row * CH, w: CW, h: CH };
      const [from, to] = given.ends[row], side = tall * CW + 24;
      const x = (column % across) * side, y = Math.floor(column / across) * (side + TOP);
      return { x: x + to * CW, y: TOP + y + from * CH, w: CW, h: CH };
    };
    const side = tall * CW + 24;
    const scene = {
      width: given.squares ? across * side : LEFT + columns * CW,
      height: given.squares ? Math.ceil(columns / across) * (side + TOP) : TOP + rows * CH,
      count: rows * columns, most: 2.2, at,
      gap: (s) => (s * CH < 6 ? 0 : 1),
      colour: (i) => (sums[i] ? ramp(1 - 0.9 * (sums[i] / most)) : EMPTY),
      label: (i) => (sums[i] ? String(sums[i]) : ""),
      first: () => 0,
      framed: () => [],
      tell(i) {
        const row = Math.floor(i / columns), column = i % columns;
        const chunks = given.cells.filter((one) => one[0] === row && one[1] === column).flatMap((one) => one[3]);
        const listed = [...new Set(chunks)].sort((a, b) => a - b);
        const which = listed.length ? `: chunk ${listed.slice(0, 20).join(", ")}${listed.length > 20 ? ", .." : ""}` : "";
        return `${given.rows[row]}, ${given.columns[column]}: ${several(sums[i], "message")}${which}`;
      },
      hit(x, y) {
        if (!given.squares) {
          const column = Math.floor((x - LEFT) / CW), row = Math.floor((y - TOP) / CH);
          return column >= 0 && column < columns && row >= 0 && row < rows ? row * columns + column : -1;
        }
        for (let i = 0; i < rows * columns; i++) { const b = at(i); if (x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h) return i; }
        return -1;
      },
      walk(i, dx, dy) {
        const b = at(i), found = scene.hit(b.x + CW / 2 + dx * CW, b.y + CH / 2 + dy * CH);
        if (found >= 0) return found;
        return Math.max(0, Math.min(rows * columns - 1, i + (dx + dy)));
      },
      over(c, view) {
        c.textAlign = "left";
        c.textBaseline = "alphabetic";
        c.fillStyle = "#111820";
        const px = Math.max(9, Math.min(13, 8 * view.s));
        c.font = `${px}px system-ui, sans-serif`;
        if (given.squares) {
          c.strokeStyle = "#d9dee4";
          c.lineWidth = 1;
          given.columns.forEach((words, k) => {
            const x = ((k % across) * side - view.x) * view.s;
            const y = (Math.floor(k / across) * (side + TOP) - view.y) * view.s;
            const edge = tall * CW * view.s;
            c.fillText(words, x, y + 10 * view.s);
            c.strokeRect(x + 0.5, y + TOP * view.s + 0.5, edge, edge);
          });
          return;
        }
        for (let k = 0, last = -1e9; k < columns; k++) {
          const x = (LEFT + k * CW - view.x) * view.s;
          if (x - last > 60) { c.fillText(given.columns[k], x, Math.max(px, (TOP - 3 - view.y) * view.s)); last = x; }
        }
        for (let k = 0, last = -1e9; k < rows; k++) {
          const y = (TOP + (k + 1) * CH - view.y) * view.s - 2;
          if (y - last >= px + 1) { c.fillText(given.rows[k], (1 - view.x) * view.s, y); last = y; }
        }
      },
    };
    const tools = toolbar(box), grid = new Grid(box, scene, given.name);
    grid.buttons(tools);
    const label = element("label", "Chunk ", tools), select = element("select", "", label);
    for (const words of ["all", ...given.chunks.map(String)]) element("option", words, select);
    select.addEventListener("change", () => {
      chunk = select.selectedIndex ? given.chunks[select.selectedIndex - 1] : -1;
      count();
      grid.draw();
    });
    lazyTable(box, "Messages as a table", [given.what, "step", "messages", "chunks"], function* lines() {
      for (const [row, column, n, chunks] of given.cells) yield [given.rows[row], given.columns[column], String(n), chunks.join(", ")];
    });
  }

  for (const [name, given] of Object.entries(data)) {
    const box = document.getElementById(name);
    if (given.kind === "scatter") scatter(box, given.told, document.getElementById(`${name}-told`));
    if (given.kind === "map") map(box, given);
    if (given.kind === "heat") heat(box, given);
  }
})();
