// What an interpreter understood, and how its budget stands, as elements. User's text goes in as text, never as markup.

export function element(name, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children.filter(Boolean));
  return made;
}

const percent = (share) => `${Math.floor(100 * share)}%`; // never "100%" unless it is
const number = (value) => String(Math.round(100 * value) / 100);
const UNSURE = 0.5;

// Taken for no constraint at all.
export const isNone = (reading) => reading.constraint !== null && reading.constraint < UNSURE;

// `who`: "", or "A" / "B" where two are compared.
export function readingCard(reading, truth, who) {
  const none = isNone(reading);
  const card = element("div", { class: none ? "reading none" : "reading" });
  if (who) card.append(element("span", { class: "who", text: who }));
  if (none) {
    card.append(
      element("strong", { text: "⊘ This is not a constraint." }),
      element("span", { text: ` Nothing is forbidden (${percent(1 - reading.constraint)} sure).` }),
    );
    return card;
  }
  const budget = Math.max(0, Math.floor(reading.threshold + 0.5));
  if (reading.kind) card.append(element("span", { class: "kind", text: reading.kind }));
  card.append(
    element("strong", { text: reading.text ?? `Allows ${budget} ${budget === 1 ? "entry" : "entries"} of the hatched cells` }),
  );
  const facts = [`budget ${budget} (read as ${reading.threshold.toFixed(2)})`];
  if (reading.confidence !== null) facts.push(`${percent(reading.confidence)} sure`);
  card.append(element("span", { class: "facts", text: facts.join(" · ") }));
  if (reading.confidence !== null) {
    const meter = element("meter", { min: 0, max: 1, value: reading.confidence, "aria-label": "confidence" });
    card.append(meter);
    if (reading.confidence < UNSURE) card.append(element("span", { class: "doubt", text: "? Unsure: this may be misread." }));
  }
  if (truth && reading.text) {
    card.append(truth === reading.text
      ? element("span", { class: "right", text: "✓ This is what it means." })
      : element("span", { class: "wrong", text: `✗ It means: ${truth}.` }));
  }
  return card;
}

// Full pips are left, rings are spent, crosses are past the budget.
export function budgetLine(clause, reading, index, many) {
  if (isNone(reading)) return element("div", { class: "budget" }, element("span", { text: `${many ? `Budget ${index + 1}` : "Budget"}: none, nothing is forbidden` }));
  const { budget, spent, over } = clause.understood;
  const left = Math.max(0, budget - spent);
  const pips = element("span", { class: "pips", "aria-hidden": "true" });
  for (let i = 0; i < Math.min(8, budget); i++) pips.append(element("i", { class: i < left ? "left" : "spent" }));
  for (let i = 0; i < Math.min(8, over); i++) pips.append(element("i", { class: "over", text: "✕" }));
  const rest = budget > 0 ? `${number(left)} of ${number(budget)} left` : "0: no entry is allowed";
  const words = over > 0 ? `${number(over)} over the budget of ${number(budget)}` : rest;
  const line = element("div", { class: over > 0 ? "budget broken" : "budget" });
  line.append(element("span", { text: many ? `Budget ${index + 1}` : "Budget" }), pips, element("b", { text: words }));
  const truth = clause.truth;
  if (truth && (truth.budget !== budget || truth.spent !== spent)) {
    const told = truth.over > 0 ? `${number(truth.over)} over ${number(truth.budget)}` : `${number(truth.budget - truth.spent)} of ${number(truth.budget)} left`;
    line.append(element("span", { class: "truth", text: `in truth: ${told}` }));
  }
  return line;
}

// How often a budget was broken: in truth where that is known, else as the interpreter counts.
export function violations(clauses) {
  const known = clauses.every((clause) => clause.truth);
  const count = clauses.reduce((sum, clause) => sum + (clause.truth ?? clause.understood).over, 0);
  return { count, known };
}

export function statusLine(walk) {
  const { count, known } = violations(walk.clauses);
  const words = count > 0 ? `⚠ ${number(count)} ${count === 1 ? "violation" : "violations"}` : "No violation";
  const badge = element("span", { class: count > 0 ? "badge bad" : "badge", text: words, title: known ? "in truth" : "as the interpreter counts" });
  const over = { goal: "Finished", time: "Out of time" }[walk.over];
  return element(
    "div", { class: "status" }, badge,
    element("span", {}, "Reward ", element("b", { text: number(walk.reward) })),
    element("span", {}, "Step ", element("b", { text: String(walk.step) }), ` of ${walk.steps}`),
    over && element("span", { class: "over", text: `■ ${over}` }),
  );
}

export function inWords(walk, who) {
  const { count } = violations(walk.clauses);
  const [x, y] = walk.agent;
  return `Map${who ? ` of ${who}` : ""}: agent in column ${x}, row ${y}; reward ${number(walk.reward)}, ${number(count)} violations, step ${walk.step}`;
}
