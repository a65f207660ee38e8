// Why a node is predicted as it is, drawn: its prediction, and what each node and each ring adds.

import { outputOf } from "./why.js";
import { byId, h, percent, show, svg } from "./dom.js";
import { links, nodesOf } from "./products.js";

const ROWS = 12; // of the table of nodes
const DRAWN = 40; // nodes of the drawing
const SETS = ["none", "training", "validation", "test"];

export function drawNode(state, found, { select }) {
  const host = byId("node-body");
  const { node, graph } = state;
  if (node === null) {
    const text = "Click a node, or find it by its id, to see its prediction and what it rests on.";
    host.replaceChildren(h("p", { class: "soft" }, text));
    return;
  }
  host.replaceChildren(
    h("h3", { id: "node-title" }, `Node ${graph.ids[node]}`),
    h("p", {}, verdict(state)),
    ...shiftText(state),
    ...knownText(state),
    ...predictionTables(state),
    ...intervalText(state),
    ...explanation(state, found, select),
  );
}

function verdict(state) {
  const { node, graph, run } = state;
  const { task, outputs, label } = graph;
  const set = SETS[run.set[node]];
  const where = set === "none" ? "In no set." : `In the ${set} set.`;
  if (task !== "classification") return where;
  const chosen = run.chosen[node];
  const p = run.predicted[node * outputs.length + chosen];
  const truth =
    label[node] < 0 ? "It has no label." : label[node] === chosen ? "That is right." : `Its class is ${outputs[label[node]]}: that is wrong.`;
  return `Predicted: ${outputs[chosen]} (${percent(p)}). ${truth} ${where}`;
}

// What the shift towards the class frequencies of the validation nodes changes, if there is one
function shiftText({ node, graph, run }) {
  if (!run.without) return [];
  const [ours, other] = [run.chosen[node], run.without[node]];
  const [name, against] = [graph.outputs[ours], graph.outputs[other]];
  const towards = "the shift towards the class frequencies of the validation nodes";
  const odds = (run.shift[ours] - run.shift[other]).toFixed(2);
  const text =
    ours === other
      ? `Probabilities include ${towards}; scores do not.`
      : `The scores alone would say ${against}: ${towards} adds ${odds} to the log-odds of ${name} against ${against}.`;
  return [h("p", { id: "shift", class: "soft" }, text)];
}

// What known answers nearby add to what the models say, if the run uses them
function knownText(state) {
  const { node, graph, run } = state;
  if (!run.change) return [];
  const k = outputOf(state);
  const value = run.change[node * graph.outputs.length + k];
  const signed = `${value > 0 ? "+" : ""}${show(value)}`;
  const what = graph.task === "regression" ? "the prediction" : `the logarithm of the probability of ${graph.outputs[k]}`;
  const text =
    `What the models left unexplained at known answers adds ${signed} to ${what}. The scores below are those of ` +
    `the models alone; longnn explain says which answers these are.`;
  return [h("p", { id: "known", class: "soft" }, text)];
}

// How sure the run is: what its intervals, or its sets of plausible classes, promise
function intervalText({ node, graph, run }) {
  if (!run.interval) return [];
  const { coverage, plausible } = run.interval;
  const { task, outputs } = graph;
  const nodes = `for about ${+(100 * coverage).toFixed(2)} % of nodes like those of the validation set`;
  const names = outputs.filter((_, k) => task === "classification" && plausible[node * outputs.length + k]);
  const text = {
    classification: `Plausible: ${names.join(", ")}. The true class is among the plausible ones ${nodes}.`,
    multilabel: `The truth is plausible ${nodes}, for each label.`,
    regression: `The true value lies between low and high ${nodes}.`,
  }[task];
  return [h("p", { id: "interval", class: "soft" }, text)];
}

function table(caption, head, rows, attributes = {}) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      attributes,
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((name, k) => h("th", { scope: "col", class: k ? "number" : null }, name)))),
      h(
        "tbody",
        {},
        rows.map(([first, ...cells]) =>
          h("tr", {}, h("th", { scope: "row" }, first), cells.map((cell) => h("td", { class: "number" }, cell))),
        ),
      ),
    ),
  );
}

// Columns of the table of predictions: the interval of a number, what is plausible of a label
function sureness({ node, graph: { outputs, task }, run: { interval } }) {
  const at = (k) => node * outputs.length + k;
  if (interval && task === "regression")
    return [["low", "high"], (k) => [interval.low, interval.high].map((ends) => show(ends[at(k)], 4))];
  if (interval && task === "multilabel")
    return [["plausible"], (k) => [["no", "yes"].filter((_, yes) => interval.plausible[2 * at(k) + yes]).join(" or ")]];
  return [[], () => []];
}

function predictionTables(state) {
  const { node, graph, run } = state;
  const { outputs, task } = graph;
  const at = (k) => run.predicted[node * outputs.length + k];
  const order = outputs.map((_, k) => k);
  if (task === "classification") order.sort((i, j) => at(j) - at(i));
  const text = task === "regression" ? (k) => show(at(k), 4) : (k) => percent(at(k));
  const truth = (k) => {
    if (task === "classification") return graph.label[node] === k ? "yes" : "";
    const y = graph.label[node * outputs.length + k];
    return Number.isNaN(y) ? "unknown" : task === "regression" ? show(y, 4) : y ? "yes" : "no";
  };
  const [extra, sure] = sureness(state);
  const rows = order.slice(0, 8).map((k) => [outputs[k], text(k), ...sure(k), truth(k)]);
  const kind = { classification: "class", multilabel: "label" }[task] ?? "target";
  const what = [kind, task === "regression" ? "predicted" : "probability", ...extra, "true"];
  const found = [table("Prediction", what, rows)];
  if (run.models.length > 1 && task === "classification") {
    const each = run.models.map((model) => {
      const s = outputs.map((_, k) => model.scores[node * outputs.length + k] / model.temperature);
      const top = Math.max(...s);
      const weights = s.map((v) => Math.exp(v - top));
      const sum = weights.reduce((total, w) => total + w, 0);
      const best = s.indexOf(top);
      return [model.name, percent(model.share), outputs[best], percent(weights[best] / sum)];
    });
    found.push(table(run.without ? "What each model says, before the shift" : "What each model says", ["model", "weight", "class", "probability"], each));
  }
  return found;
}

function explanation(state, found, select) {
  const { model, graph } = state;
  if (!found) return [h("p", { class: "alert", role: "note" }, model.why)];
  const { exact, value, weight, says, ring, rings, base, opaque, score, rest } = found;
  const name = graph.outputs[found.output];
  const parts = [];
  if (!exact) parts.push(h("p", { class: "alert", role: "note" }, model.why));
  else parts.push(h("p", { id: "sum" }, ...sumText(state, found, name)));
  const distance = exact ? "Contributions by distance" : "Filter weights by distance";
  const far = rings.map(({ ring: d, nodes, plus, minus }) => ({ key: d, name: `${d} (${nodes})`, plus, minus }));
  parts.push(figure("rings", distance, bars(far, "distance", exact)));
  if (exact && found.degrees) {
    const terms = Array.from(found.degrees.values, (v, j) => ({ key: j, name: String(j), plus: Math.max(v, 0), minus: Math.min(v, 0) }));
    const caption = `Contributions by degree of the filter: ${found.degrees.name}`;
    parts.push(figure("degrees", caption, bars(terms, "degree", exact)));
  }
  const order = Array.from(value.keys())
    .filter((v) => value[v] !== 0)
    .sort((u, v) => Math.abs(value[v]) - Math.abs(value[u]));
  const drawing = ego(state, found, order.slice(0, DRAWN), select);
  parts.push(figure("neighbourhood", "The nodes that count most, by distance", drawing));
  const rows = order.slice(0, ROWS).map((v) => [
    h("button", { type: "button", class: "link", onclick: () => select(v) }, graph.ids[v]),
    String(ring[v]),
    ...(weight ? [show(weight[v]), show(says[v])] : []),
    show(value[v]),
  ]);
  const head = ["node", "distance", ...(weight ? ["weight", "it says"] : []), exact ? "contribution" : "weight"];
  const left = order.slice(ROWS).reduce((sum, v) => sum + value[v], 0);
  if (order.length > ROWS) rows.push([`${order.length - ROWS} more`, "", ...(weight ? ["", ""] : []), show(left)]);
  if (exact && base !== 0) rows.push(["constant", "", ...(weight ? ["", ""] : []), show(base)]);
  if (exact && found.unknown) {
    const of = found.unknown === 1 ? "one model" : `${found.unknown} models`;
    rows.push([`${of} whose scores are no sums over nodes`, "", show(opaque)]);
  }
  if (exact && Math.abs(rest) > 1e-4 * Math.max(1, Math.abs(score)))
    rows.push(["paths outside the page", "", ...(weight ? ["", ""] : []), show(rest)]);
  const caption = exact ? `What adds up to the score of ${name}` : "What the filter takes from each node";
  parts.push(table(caption, head, rows, { id: "contributions" }));
  return parts;
}

function figure(id, caption, picture) {
  const button = (kind) =>
    h("button", { type: "button", "data-save": kind, "data-of": id, "aria-label": `Save as ${kind.toUpperCase()}: ${caption}` }, kind.toUpperCase());
  const save = h("span", { class: "save" }, button("svg"), button("png"));
  return h("figure", { id }, h("figcaption", { class: "head" }, caption, save), picture);
}

function sumText(state, { score, sum, rest, unknown }, name) {
  const { model, graph, run } = state;
  const cut = Math.abs(rest) > 1e-4 * Math.max(1, Math.abs(score));
  const of = run.models.length > 1 && !model.members ? ` by the model "${model.name}"` : "";
  const what = {
    classification: `The log of the averaged probability of ${name}, before calibration, is `,
    multilabel: `The logit of the averaged probability of ${name}, before calibration, is `,
    regression: `The average of ${name} is `,
  }[graph.task];
  const first = model.members ? what : `The score of ${name}${of} is `;
  const most = "what all nodes within reach contribute";
  const end = cut
    ? `. Paths on this page add up to ${show(sum, 5)}; the rest passes through nodes that are not on it.`
    : unknown
      ? `. It is the sum of ${most} to ${model.members.length - unknown} of the models, and of what the others give.`
      : `. It is exactly the sum of ${most}.`;
  return [first, h("b", { id: "score", "data-value": score, "data-sum": sum }, show(score, 5)), end];
}

// The width of a drawing, so that its text is as large on a phone
const room = () => Math.max(280, Math.min(460, byId("node-body").clientWidth || 460));

// One bar to the right for what speaks for it, one to the left for what speaks against
function bars(rows, what, exact) {
  const [width, row, left] = [room(), 20, 78];
  const height = rows.length * row + 22;
  const size = Math.max(...rows.map((one) => Math.max(one.plus, -one.minus)), 1e-12);
  const middle = left + (width - left - 60) / 2;
  const scale = (width - left - 60) / 2 / size;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "bars", role: "img", "font-size": 12 });
  root.setAttribute(
    "aria-label",
    rows.map((one) => `${what} ${one.key}: ${show(one.plus + one.minus)}`).join("; "),
  );
  const data = what === "distance" ? "data-ring" : "data-degree";
  rows.forEach((one, i) => {
    const y = i * row + 3;
    const net = one.plus + one.minus;
    root.append(
      svg("text", { x: left - 8, y: y + 12, "text-anchor": "end", class: "tick" }, one.name),
      svg("rect", { class: "plus", x: middle, y, height: row - 6, width: one.plus * scale }),
      svg("rect", { class: "minus", x: middle + one.minus * scale, y, height: row - 6, width: -one.minus * scale }),
      svg("text", { x: width - 4, y: y + 12, "text-anchor": "end", class: "tick", [data]: one.key, "data-value": net }, show(net)),
    );
  });
  root.append(
    svg("line", { class: "mark", x1: middle, x2: middle, y1: 0, y2: height - 20 }),
    svg("text", { x: left - 8, y: height - 4, "text-anchor": "end", class: "name" }, what),
    svg("text", { x: middle, y: height - 4, "text-anchor": "middle", class: "name" }, exact ? "against  |  for" : "weight"),
    svg("text", { x: width - 4, y: height - 4, "text-anchor": "end", class: "name" }, "sum"),
  );
  return root;
}

// The node in the middle, those that count most around it by distance
function ego(state, { value, ring }, order, select) {
  const { graph, node } = state;
  const near = links(state.operator);
  const [size, middle] = [room(), room() / 2];
  const shown = new Set([node, ...order]);
  const most = Math.max(1, ...[...shown].map((v) => ring[v]));
  const radius = (d) => ((middle - 25) * (d + 0.6)) / (most + 0.6); // room for the first ring
  const largest = Math.max(...[...shown].map((v) => Math.abs(value[v])), 1e-12);
  const places = new Map([[node, [middle, middle]]]);
  for (let d = 1; d <= most; d++) {
    const here = [...shown].filter((v) => ring[v] === d);
    here.sort((u, v) => angle(graph, node, u) - angle(graph, node, v));
    here.forEach((v, i) => {
      const turn = (2 * Math.PI * (i + 0.5 * (d % 2))) / here.length - Math.PI / 2;
      places.set(v, [middle + radius(d) * Math.cos(turn), middle + radius(d) * Math.sin(turn)]);
    });
  }
  const root = svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "ego", role: "group", "font-size": 11 });
  root.setAttribute("aria-label", `Node ${graph.ids[node]} and the ${shown.size - 1} nodes that count most`);
  for (let d = 1; d <= most; d++) root.append(svg("circle", { class: "ring", cx: middle, cy: middle, r: radius(d) }));
  for (const v of shown)
    for (let e = near.start[v]; e < near.start[v + 1]; e++) {
      const u = near.column[e];
      if (u >= v || !shown.has(u)) continue;
      const [[x1, y1], [x2, y2]] = [places.get(u), places.get(v)];
      root.append(svg("line", { class: "edge", x1, y1, x2, y2 }));
    }
  root.append(...arrows(state.operator, shown, places));
  const names = [];
  for (const v of [...shown].reverse()) {
    const [cx, cy] = places.get(v);
    const r = (size / 460) * (3 + 11 * Math.sqrt(Math.abs(value[v]) / largest));
    const mark = svg("circle", {
      cx, cy, r, "data-node": v, class: `${value[v] < 0 ? "minus" : "plus"}${v === node ? " self" : ""}`,
      onclick: () => select(v),
    });
    mark.append(svg("title", {}, `${graph.ids[v]}: ${show(value[v])}`));
    root.append(mark);
    if (shown.size <= 14 || order.indexOf(v) < 6 || v === node) {
      const name = graph.ids[v].length > 14 ? `${graph.ids[v].slice(0, 13)}…` : graph.ids[v];
      const below = cy + r + 11 < size ? cy + r + 11 : cy - r - 4;
      const x = Math.max(3.2 * name.length, Math.min(size - 3.2 * name.length, cx));
      names.push(svg("text", { x, y: below, "text-anchor": "middle", class: "tick halo" }, name));
    }
  }
  root.append(...names);
  return root;
}

// Heads in the middle of the arcs of a double cover, whose rows of sources have columns of targets
function arrows(operator, shown, places) {
  if (operator.direction !== "cover") return [];
  const nodes = nodesOf(operator);
  const found = [];
  for (const u of shown)
    for (let e = operator.start[u]; e < operator.start[u + 1]; e++) {
      const v = operator.column[e] - nodes;
      if (v === u || !shown.has(v)) continue;
      const [[x1, y1], [x2, y2]] = [places.get(u), places.get(v)];
      const turn = (180 / Math.PI) * Math.atan2(y2 - y1, x2 - x1);
      const [x, y] = [x1 + 0.6 * (x2 - x1), y1 + 0.6 * (y2 - y1)];
      const at = `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${turn.toFixed(1)})`;
      found.push(svg("path", { class: "arrow", d: "M-4 -3L4 0L-4 3Z", transform: at }));
    }
  return found;
}

function angle(graph, from, to) {
  const [x, y] = [0, 1].map((k) => graph.position[2 * to + k] - graph.position[2 * from + k]);
  return Math.atan2(y, x);
}
