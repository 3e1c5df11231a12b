// Draws one board: tiles, what is forbidden, what was seen, the agent. Knows nothing of sessions.

const SVG = "http://www.w3.org/2000/svg";
const CELL = 24;

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// The pictures of tiles come from the world's plugin: trusted markup, and no user's text.
export function defineTiles(tiles) {
  const symbols = tiles.map((tile) => `<symbol id="tile-${tile.name}" viewBox="0 0 24 24">${tile.svg}</symbol>`).join("");
  const parsed = new DOMParser().parseFromString(`<svg xmlns="${SVG}">${symbols}</svg>`, "image/svg+xml");
  const stripes = (name, tone) => svg(
    "pattern", { id: name, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 3.2, height: 8, class: `${tone}-ink` }), svg("rect", { x: 3.2, width: 1.4, height: 8, class: `${tone}-paper` }),
  );
  const cell = (id, ...parts) => svg("symbol", { id, viewBox: "0 0 24 24" }, ...parts);
  const edge = (tone) => svg("rect", { x: 1, y: 1, width: 22, height: 22, class: `${tone}-edge` });
  const box = { width: CELL, height: CELL };
  const own = svg(
    "svg", { class: "unseen", "aria-hidden": "true" },
    svg("defs", {}, stripes("stripes-now", "now"), stripes("stripes-then", "then")),
    cell("hatch-now", svg("rect", { ...box, fill: "url(#stripes-now)" }), edge("now")),
    cell("hatch-then", svg("rect", { ...box, fill: "url(#stripes-then)" }), edge("then")),
    cell("whole", ...["whole-ground", "whole-edge"].map((name) => svg("rect", { x: 3, y: 3, width: 18, height: 18, class: name }))),
  );
  own.append(...[...parsed.documentElement.children].map((symbol) => document.importNode(symbol, true)));
  document.body.prepend(own);
}

export class Board {
  // `tiles`: by mark. `paint(x, y)` is called for every cell that is drawn on, `done()` when the hand is lifted.
  constructor(tiles, paint, done) {
    this.tiles = tiles;
    this.size = 0;
    this.cursor = null;
    this.node = svg("svg", { class: "board", role: "img", tabindex: "0" });
    this.#draw(paint, done);
  }

  set drawing(on) {
    this.node.classList.toggle("drawing", on);
    if (!on) this.cursor = null;
  }

  // `walk`: a snapshot of the server's. `label`: the same in words.
  show(walk, whole, label) {
    this.size = walk.rows.length;
    const side = this.size * CELL;
    const parts = [svg("rect", { width: side, height: side, class: "floor" })];
    const put = (x, y, href) => parts.push(svg("use", { href, x: x * CELL, y: y * CELL, width: CELL, height: CELL }));
    walk.rows.forEach((row, y) => [...row].forEach((mark, x) => {
      if (this.tiles[mark]?.svg) put(x, y, `#tile-${this.tiles[mark].name}`);
    }));
    parts.push(this.#gridLines(side));
    const [left, top, right, bottom] = walk.view;
    walk.mask.forEach((row, y) => [...row].forEach((seen, x) => {
      const inView = x >= left && x < right && y >= top && y < bottom;
      if (seen === " ") parts.push(svg("rect", { x: x * CELL, y: y * CELL, width: CELL, height: CELL, class: "veil" }));
      if (seen === "x") put(x, y, inView ? "#hatch-now" : "#hatch-then");
      if (seen === " " && whole && walk.whole?.[y][x] === "x") put(x, y, "#whole");
    }));
    const trail = walk.trail.map(([x, y]) => `${(x + 0.5) * CELL},${(y + 0.5) * CELL}`).join(" ");
    parts.push(svg("polyline", { points: trail, class: "trail-edge" }), svg("polyline", { points: trail, class: "trail" }));
    const view = { x: left * CELL, y: top * CELL, width: (right - left) * CELL, height: (bottom - top) * CELL };
    parts.push(svg("rect", { ...view, class: "view-edge" }), svg("rect", { ...view, class: "view" }));
    parts.push(this.#agent(walk));
    if (this.cursor) {
      const [x, y] = this.cursor;
      parts.push(svg("rect", { x: x * CELL + 2, y: y * CELL + 2, width: CELL - 4, height: CELL - 4, class: "cursor" }));
    }
    this.node.setAttribute("viewBox", `0 0 ${side} ${side}`);
    this.node.setAttribute("aria-label", label);
    this.node.replaceChildren(...parts);
  }

  #gridLines(side) {
    const lines = [];
    for (let i = 1; i < this.size; i++) lines.push(`M${i * CELL} 0V${side}M0 ${i * CELL}H${side}`);
    return svg("path", { d: lines.join(""), class: "grid" });
  }

  #agent(walk) {
    const [x, y] = walk.agent;
    const [dx, dy] = walk.heading;
    const turn = (Math.atan2(dy, dx) * 180) / Math.PI;
    const at = `translate(${(x + 0.5) * CELL} ${(y + 0.5) * CELL}) rotate(${turn})`;
    return svg("g", { transform: at, class: "agent" }, svg("circle", { r: 10 }), svg("path", { d: "M7.5 0L-4.5 5.5L-2 0L-4.5 -5.5Z" }));
  }

  #draw(paint, done) {
    const cellAt = (event) => {
      const box = this.node.getBoundingClientRect();
      const place = (at, from, length) => Math.floor(((at - from) / length) * this.size);
      return [place(event.clientX, box.left, box.width), place(event.clientY, box.top, box.height)];
    };
    let down = false;
    this.node.addEventListener("pointerdown", (event) => {
      if (!this.node.classList.contains("drawing") || event.button > 0) return;
      down = true;
      this.node.setPointerCapture(event.pointerId);
      paint(...cellAt(event));
    });
    this.node.addEventListener("pointermove", (event) => down && paint(...cellAt(event)));
    for (const end of ["pointerup", "pointercancel"]) {
      this.node.addEventListener(end, () => { if (down) { down = false; done(); } });
    }
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    this.node.addEventListener("keydown", (event) => {
      if (!this.node.classList.contains("drawing")) return;
      const [x, y] = this.cursor ?? [1, 1];
      if (moves[event.key]) {
        const within = (at) => Math.max(0, Math.min(this.size - 1, at));
        this.cursor = this.cursor ? [within(x + moves[event.key][0]), within(y + moves[event.key][1])] : [1, 1];
        paint(-1, -1); // draws the cursor, changes nothing
      } else if ((event.key === " " || event.key === "Enter") && this.cursor) {
        paint(x, y);
        done();
      } else return;
      event.preventDefault();
    });
  }
}
