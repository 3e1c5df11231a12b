// The page: asks the server, keeps what was chosen, and puts the pieces together.

import { Board, defineTiles, svg } from "./board.js";
import { budgetLine, element, inWords, readingCard, statusLine } from "./readings.js";

const $ = (id) => document.getElementById(id);
const MOST_SENTENCES = 3;
const LONGEST = 300;
const PAUSE = 300; // milliseconds after the last key before a sentence is read

let choices;
let tiles = {}; // by mark
let session = null; // what the server last said about it
let walks = [];
let layout = null; // a map that was drawn; null: the one of the seed
let tool = null; // mark that is painted with
let playing = false;
let asked = 0; // number of the latest start: answers to earlier ones are dropped
let boards = [];
let timer;

async function ask(path, body) {
  const request = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("The server does not answer. Is python -m framework.play still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.error ?? `The server answered ${answer.status}.`);
  return content;
}

function tell(error) {
  $("error").hidden = !error;
  $("error").textContent = error ? error.message : "";
  if (error) pause();
}

// Sentences.

function sentences() {
  return [...document.querySelectorAll("#sentences textarea")].map((box) => box.value.trim());
}

function addSentence(text = "") {
  const count = $("sentences").children.length + 1;
  const box = element("textarea", { rows: 2, maxlength: LONGEST, "aria-label": `Sentence ${count}`, spellcheck: "false",
    placeholder: "Don't step on the water more than twice" });
  box.value = text;
  box.addEventListener("input", () => later(start));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); start(); }
  });
  const remove = element("button", { type: "button", class: "quiet remove", text: "✕", "aria-label": "Remove this sentence" });
  const item = element("li", {}, element("div", { class: "said" }, box, remove), element("div", { class: "readings", "aria-live": "polite" }));
  remove.addEventListener("click", () => { item.remove(); tidySentences(); start(); });
  $("sentences").append(item);
  tidySentences();
  return box;
}

function tidySentences() {
  const items = [...$("sentences").children];
  for (const item of items) item.querySelector(".remove").hidden = items.length === 1;
  $("add").hidden = items.length >= MOST_SENTENCES;
  $("rules-title").textContent = items.length === 1 ? "The rule" : "The rules";
}

function later(action) {
  clearTimeout(timer);
  timer = setTimeout(action, PAUSE);
}

// A session: everything that was chosen goes to the server, and the walk is at its first step.

function walkers() {
  return (($("compare").checked) ? [0, 1] : [0]).map((i) => ({
    agent: $(`agent-${i}`).value, interpreter: $(`reader-${i}`).value || null,
  }));
}

async function start() {
  clearTimeout(timer);
  pause();
  const mine = ++asked;
  const said = sentences();
  const used = said.filter(Boolean);
  if (!used.length) return;
  const wish = { sentences: used, walkers: walkers(), seed: Number($("seed").value) || 0, greedy: $("greedy").checked, layout };
  document.body.classList.add("busy");
  try {
    const answer = await ask("api/sessions", wish);
    if (mine !== asked) return;
    session = answer;
    walks = answer.walks;
    tell(null);
    showReadings(said);
    show();
  } catch (error) {
    if (mine === asked) tell(error);
  } finally {
    if (mine === asked) document.body.classList.remove("busy");
  }
}

function showReadings(said) {
  let used = 0;
  const two = session.walkers.length > 1;
  [...$("sentences").children].forEach((item, i) => {
    const k = said[i] ? used++ : null;
    const cards = k === null ? [] : session.walkers.map((walker, w) => readingCard(walker.readings[k], session.truths[k], two ? "AB"[w] : ""));
    item.querySelector(".readings").replaceChildren(...cards);
  });
}

// Walking.

async function advance() {
  if (!session || walks.every((walk) => walk.over)) return pause();
  const mine = asked;
  try {
    const { frames } = await ask(`api/sessions/${session.session}/steps`, { count: 1 });
    if (mine !== asked) return;
    walks = frames.at(-1);
    show();
    if (walks.every((walk) => walk.over)) {
      pause();
      $("said").textContent = walks.map((walk, i) => inWords(walk, walks.length > 1 ? "AB"[i] : "")).join(". ");
    }
  } catch (error) {
    if (mine === asked) tell(error);
  }
}

async function loop() {
  while (playing) {
    const begun = performance.now();
    await advance();
    const rest = 1000 / Number($("speed").value) - (performance.now() - begun);
    await new Promise((go) => setTimeout(go, Math.max(0, rest)));
  }
}

function pause() {
  playing = false;
  $("play").textContent = "▶ Walk";
}

async function play() {
  if (playing) return pause();
  if (!session) return;
  if (walks.every((walk) => walk.over)) await start();
  playing = true;
  $("play").textContent = "❚❚ Pause";
  loop();
}

// Showing.

function show() {
  const two = walks.length > 1;
  if (boards.length !== walks.length) {
    boards = walks.map(() => new Board(tiles, paint, () => start()));
    for (const board of boards) board.drawing = tool !== null;
    $("boards").replaceChildren(...boards.map((board) => element("figure", {}, element("figcaption"), board.node)));
    $("boards").classList.toggle("two", two);
  }
  walks.forEach((walk, i) => {
    const who = two ? "AB"[i] : "";
    const caption = boards[i].node.parentNode.querySelector("figcaption");
    const name = two && element("div", { class: "name" }, element("span", { class: "who", text: who }),
      ` ${session.walkers[i].agent}; read by ${session.walkers[i].interpreter}`);
    caption.replaceChildren(...[name, statusLine(walk), ...walk.clauses.map((c, k) => budgetLine(c, session.walkers[i].readings[k], k, walk.clauses.length > 1))].filter(Boolean));
    boards[i].show(walk, $("show-whole").checked, inWords(walk, who));
  });
  $("step").disabled = $("play").disabled = !session;
}

// Drawing: the map of the start is changed, shown at once, and walked anew when the hand is lifted.

function paint(x, y) {
  if (!session) return;
  const rows = (layout ?? session.layout).split("\n").map((row) => [...row]);
  const inside = x > 0 && y > 0 && x < rows.length - 1 && y < rows.length - 1;
  const old = inside ? tiles[rows[y][x]] : undefined; // agent and things to collect stay where they are
  if (old?.paintable && rows[y][x] !== tool) {
    rows[y][x] = tool;
    layout = rows.map((row) => row.join("")).join("\n");
    $("seed").classList.add("drawn");
  }
  const drawn = rows.map((row) => row.map((mark) => (tiles[mark] ? mark : ".")).join(""));
  walks = walks.map((walk) => ({ ...walk, rows: layout === null ? walk.rows : drawn }));
  show();
}

function choose(mark) {
  tool = mark;
  pause();
  for (const button of document.querySelectorAll("#tools [role=radio]")) {
    const on = (button.dataset.mark || null) === mark;
    button.setAttribute("aria-checked", String(on));
    button.tabIndex = on ? 0 : -1;
  }
  for (const board of boards) board.drawing = mark !== null;
}

function makeTools() {
  const buttons = [["", "Off"], ...choices.tiles.filter((t) => t.paintable).map((t) => [t.mark, t.name])].map(([mark, name]) => {
    const button = element("button", { type: "button", role: "radio", "data-mark": mark });
    if (mark) button.append(picture(name));
    button.append(mark === "." ? "erase" : name);
    button.addEventListener("click", () => choose(mark || null));
    return button;
  });
  $("tools").append(...buttons);
  $("tools").addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(document.activeElement) + move + buttons.length) % buttons.length];
    next.click();
    next.focus();
  });
  $("things").append(...choices.tiles.filter((tile) => tile.note).map((tile) => element("span", {}, picture(tile.name), `${tile.name}: ${tile.note}`)));
  choose(null);
}

function picture(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "key", "aria-hidden": "true" },
    svg("rect", { width: 24, height: 24, class: "floor" }), svg("use", { href: `#tile-${name}` }));
}

function newMap() {
  layout = null;
  $("seed").classList.remove("drawn");
  start();
}

// Choices.

function makeChoices() {
  for (const i of [0, 1]) {
    $(`agent-${i}`).replaceChildren(...choices.agents.map((a) => element("option", { value: a.id, text: a.label })));
    $(`reader-${i}`).replaceChildren(element("option", { value: "", text: "the agent's own" }),
      ...choices.interpreters.map((r) => element("option", { value: r.id, text: r.label })));
    $(`agent-${i}`).addEventListener("change", () => { notes(); start(); });
    $(`reader-${i}`).addEventListener("change", start);
  }
  $("reader-1").value = "none"; // for B: the same agent, told nothing
  notes();
  for (const [kind, lines] of Object.entries(choices.examples)) {
    const chips = lines.map((line) => {
      const chip = element("button", { type: "button", class: "chip", text: line });
      chip.addEventListener("click", () => example(line, kind));
      return chip;
    });
    $("examples").append(element("dt", { text: kind }), element("dd", {}, ...chips));
  }
  $("problems").replaceChildren(...(choices.problems.length
    ? [element("details", {}, element("summary", { text: `${choices.problems.length} not offered` }),
      element("ul", {}, ...choices.problems.map((p) => element("li", { text: p }))))] : []));
}

function notes() {
  for (const i of [0, 1]) {
    const agent = choices.agents.find((a) => a.id === $(`agent-${i}`).value);
    $(`note-${i}`).textContent = agent ? [agent.kind && `Reads ${agent.kind} rules`, agent.note].filter(Boolean).join("; ") : "";
  }
}

// Into the sentence that has or had the focus, or else the last.
// An agent reads the kind of sentence it was trained on: if this is another, choose one who was trained on it.
let lastBox = null;
function example(line, kind) {
  const current = choices.agents.find((agent) => agent.id === $("agent-0").value);
  const expert = choices.agents.find((agent) => agent.kind === kind);
  if (expert && current && ![kind, "mixed"].includes(current.kind)) {
    $("agent-0").value = $("agent-1").value = expert.id;
    notes();
  }
  const boxes = [...document.querySelectorAll("#sentences textarea")];
  const box = boxes.includes(lastBox) ? lastBox : boxes.at(-1);
  box.value = line;
  start();
}

async function begin() {
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  $("sentences").addEventListener("focusin", (event) => { if (event.target.matches("textarea")) lastBox = event.target; });
  $("add").addEventListener("click", () => { lastBox = addSentence(); lastBox.focus(); });
  $("play").addEventListener("click", play);
  $("step").addEventListener("click", () => { pause(); advance(); });
  $("restart").addEventListener("click", start);
  $("fresh").addEventListener("click", () => { $("seed").value = (Number($("seed").value) + 1) % 2147483648; newMap(); });
  $("seed").addEventListener("change", newMap);
  $("greedy").addEventListener("change", start);
  $("show-whole").addEventListener("change", () => walks.length && show());
  $("compare").addEventListener("change", () => { $("second").hidden = !$("compare").checked; start(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    const button = { p: "play", s: "step", r: "restart", n: "fresh" }[event.key];
    if (button) { event.preventDefault(); $(button).click(); }
  });
  addSentence();
  try {
    choices = await ask("api/choices");
  } catch (error) {
    return tell(error);
  }
  tiles = Object.fromEntries(choices.tiles.map((tile) => [tile.mark, tile]));
  defineTiles(choices.tiles);
  makeTools();
  makeChoices();
  const [[kind, [line]]] = Object.entries(choices.examples);
  example(line, kind);
}

begin();
