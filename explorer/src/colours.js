// What a node's colour may mean, and the values behind it.
//
// A colouring is {title, kind, value, legend}: kind "classes" (value: whole numbers, -1 for none),
// "amount" (0 to a largest) or "signed" (around 0).

import { chebyshevTerms, combine, fold, frequency, lift } from "./products.js";
import { show } from "./dom.js";

// Told apart with colour blindness, on white and on black (after Okabe and Ito).
export const CLASSES = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#a3a500",
  "#8c564b", "#7f7f7f",
];
export const NONE = "#b5bcc6";
const RAMP = 24; // shades of a ramp

function mix(from, to, share) {
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  const one = (i) => Math.round(part(from, i) + share * (part(to, i) - part(from, i)));
  return `rgb(${one(0)},${one(1)},${one(2)})`;
}

const ramp = (...stops) =>
  Array.from({ length: RAMP }, (_, i) => {
    const at = (i / (RAMP - 1)) * (stops.length - 1);
    const first = Math.min(Math.floor(at), stops.length - 2);
    return mix(stops[first], stops[first + 1], at - first);
  });

export function ramps(dark) {
  return dark
    ? { amount: ramp("#46525f", "#6fb3e0", "#e8f4ff"), signed: ramp("#f5993d", "#5b6675", "#62b8f5") }
    : { amount: ramp("#cbd5e0", "#6fb3e0", "#12305f"), signed: ramp("#c05000", "#c6ccd4", "#12508f") };
}

// The places of all nodes in a list of colours, and that list
export function shades(colouring, dark) {
  const { kind, value } = colouring;
  const places = new Uint8Array(value.length);
  if (kind === "classes") {
    const colours = [...CLASSES, NONE];
    for (let i = 0; i < value.length; i++) {
      places[i] = value[i] < 0 ? CLASSES.length : value[i] % CLASSES.length;
    }
    return { colours: colouring.colours ?? colours, places: colouring.colours ? value : places };
  }
  const [low, high] = colouring.range;
  const colours = [...ramps(dark)[kind], NONE];
  const scale = (RAMP - 1) / Math.max(high - low, 1e-30);
  for (let i = 0; i < value.length; i++) {
    const at = Math.round((value[i] - low) * scale);
    places[i] = Number.isFinite(at) ? Math.max(0, Math.min(RAMP - 1, at)) : RAMP;
  }
  return { colours, places };
}

function amount(title, value) {
  let high = 0;
  for (const v of value) if (v > high) high = v;
  return { title, kind: "amount", value, range: [0, high || 1] };
}

function signed(title, value) {
  let size = 0;
  for (const v of value) if (Math.abs(v) > size) size = Math.abs(v);
  return { title, kind: "signed", value, range: [-(size || 1), size || 1] };
}

function between(title, value) {
  let [low, high] = [Infinity, -Infinity];
  for (const v of value) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return { title, kind: "amount", value, range: low <= high ? [low, high] : [0, 1] };
}

const column = (table, width, k) =>
  Float64Array.from({ length: table.length / width }, (_, i) => table[i * width + k]);

// The names of the colourings that there are: [key, title]
export function colourings(state) {
  const { task } = state.graph;
  const found = [];
  if (task === "classification") {
    found.push(["label", "class"], ["predicted", "predicted class"], ["confidence", "confidence"]);
    found.push(["error", "right or wrong"]);
  } else if (task === "multilabel") {
    found.push(["label", "label"], ["predicted", "probability"], ["error", "right or wrong"]);
  } else {
    found.push(["label", "true value"], ["predicted", "predicted value"], ["error", "error"]);
  }
  found.push(["set", "training, validation, test"], ["signal", "signal"]);
  if (state.filter) found.push(["filtered", "filtered signal"]);
  if (state.node !== null && (state.model.form || state.filter)) {
    found.push(["contribution", state.model.form ? "contribution to the node" : "weight for the node"]);
  }
  return found;
}

const WRONG = ["#009e73", "#d55e00", NONE];

// Right (0), wrong (1) or unknown (2)
function errors(state, k) {
  const { label, task } = state.graph;
  const { chosen, predicted } = state.run;
  const width = state.graph.outputs.length;
  if (task === "regression") {
    const error = column(label, width, k).map((y, i) => Math.abs(predicted[i * width + k] - y));
    return amount("absolute error", error);
  }
  const value = Uint8Array.from({ length: state.graph.ids.length }, (_, i) => {
    if (task === "classification") return label[i] < 0 ? 2 : Number(label[i] !== chosen[i]);
    const y = label[i * width + k];
    return Number.isNaN(y) ? 2 : Number(y !== chosen[i * width + k]);
  });
  const legend = [["right", WRONG[0]], ["wrong", WRONG[1]], ["no label", WRONG[2]]];
  return { title: "right or wrong", kind: "classes", value, colours: WRONG, legend };
}

function classes(title, value, names) {
  const legend = names.map((name, c) => [name, CLASSES[c % CLASSES.length]]);
  if (value.includes(-1)) legend.push(["no label", NONE]);
  return { title, kind: "classes", value, legend };
}

export function colouring(state, key, contribution) {
  const { graph, run } = state;
  const { outputs, task, label } = graph;
  const width = outputs.length;
  const k = state.output ?? 0;
  switch (key) {
    case "predicted":
      if (task === "classification") return classes("predicted class", run.chosen, outputs);
      return between(`predicted: ${outputs[k]}`, column(run.predicted, width, k));
    case "confidence":
      return amount(
        "probability of the predicted class",
        Float64Array.from(run.chosen, (c, i) => run.predicted[i * width + c]),
      );
    case "error":
      return errors(state, k);
    case "set": {
      const colours = [NONE, CLASSES[0], CLASSES[1], CLASSES[2]];
      const names = ["no set", "training", "validation", "test"];
      const legend = names.map((name, i) => [name, colours[i]]);
      return { title: "set", kind: "classes", value: run.set, colours, legend };
    }
    case "signal": {
      const signal = signalOf(state);
      return signed(`signal: ${signal.title}`, signal.value);
    }
    case "filtered": {
      const signal = signalOf(state);
      return { ...signed(`filtered: ${signal.title}`, filteredSignal(state)), before: signal.value };
    }
    case "contribution":
      if (contribution) return signed(contribution.title, contribution.value);
      break;
    default:
  }
  if (task === "classification") return classes("class", label, outputs);
  return between(`label: ${outputs[k]}`, column(label, width, k));
}

// The signals that can be chosen: [key, title]
export function signals(state) {
  const { outputs, task, features } = state.graph;
  const one = task === "classification" ? "class" : task === "multilabel" ? "label" : "value";
  return [
    ...outputs.map((name, c) => [`label.${c}`, `${one}: ${name}`]),
    ...outputs.map((name, c) => [`prediction.${c}`, `prediction: ${name}`]),
    ...features.map(({ name }, f) => [`feature.${f}`, `feature: ${name}`]),
    ["node.0", "one node: 1 at the selected, 0 elsewhere"],
  ];
}

// A signal on the nodes, the same one until another is chosen
let kept = { name: null, signal: null, terms: null };

export function signalOf(state) {
  const at = state.signal === "node.0" ? state.node : null;
  const name = JSON.stringify([state.shown, state.signal, at]);
  if (kept.name !== name) kept = { name, signal: makeSignal(state), terms: null };
  return kept.signal;
}

// The signal after the filter that is shown, on all copies of the nodes, the same until the filter
// changes. The terms T_j(P) x do not change with a slider.
function filteredCopies(state) {
  const { value } = signalOf(state);
  const { beta } = state.current();
  if (kept.beta && kept.beta.length === beta.length && kept.beta.every((b, j) => b === beta[j])) {
    return kept.after;
  }
  if (!kept.terms || kept.terms.length < beta.length) {
    kept.terms = chebyshevTerms(state.operator, lift(state.operator, value), beta.length - 1);
  }
  kept.beta = beta;
  kept.after = combine(kept.terms, beta);
  kept.folded = null;
  return kept.after;
}

// The same on the nodes: on arcs the mean of the two copies, so that edges both ways change nothing
export function filteredSignal(state) {
  const { operator } = state;
  const after = filteredCopies(state);
  kept.folded ??= operator.copies === 1 ? after : fold(operator, after).map((v) => v / operator.copies);
  return kept.folded;
}

// Mean frequency before and after, and the size after, of that before; null for nothing
export function signalNumbers(state) {
  const { operator } = state;
  const { value } = signalOf(state);
  const norm = (x) => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0));
  if (kept.before === undefined) {
    const both = lift(operator, value);
    kept.before = { size: norm(both), frequency: frequency(operator, both) };
  }
  if (kept.before.size === 0) return null;
  const after = filteredCopies(state);
  return {
    before: kept.before.frequency,
    after: frequency(operator, after),
    size: norm(after) / kept.before.size,
  };
}

// Labels and predictions are centred: a filter acts on differences.
function makeSignal(state) {
  const { graph, run } = state;
  const width = graph.outputs.length;
  const known = new Map(signals(state));
  const key = known.has(state.signal) ? state.signal : "prediction.0";
  const [kind, number] = key.split(".");
  const k = Number(number);
  const title = known.get(key);
  const nodes = graph.ids.length;
  if (kind === "node") {
    const value = new Float64Array(nodes);
    if (state.node !== null) value[state.node] = 1;
    return { key, title, value };
  }
  let value;
  if (kind === "feature") value = Float64Array.from(graph.features[k].value);
  else if (kind === "prediction") value = column(run.predicted, width, k);
  else if (graph.task === "classification") {
    value = Float64Array.from(graph.label, (c) => (c < 0 ? NaN : Number(c === k)));
  } else value = column(graph.label, width, k);
  return { key, title, value: centred(value) };
}

function centred(value) {
  const known = value.filter(Number.isFinite);
  const mean = known.reduce((sum, v) => sum + v, 0) / Math.max(known.length, 1);
  return value.map((v) => (Number.isFinite(v) ? v - mean : 0));
}

export const rangeText = ({ range }) => range.map((v) => show(v));
