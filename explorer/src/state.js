// What is chosen on the page, and the same as the fragment of its address.

import { basisMatrix, fromChebyshev, meanSeries, toChebyshev } from "./polynomials.js";
import { channelsOf } from "./data.js";

export const GRID = Float64Array.from({ length: 201 }, (_, i) => i / 100);

export class State {
  constructor(data) {
    this.data = data;
    this.reset();
  }

  reset() {
    this.runIndex = 0;
    this.repeatIndex = 0;
    this.modelIndex = -1; // -1: the only one, or the whole of an ensemble
    this.channel = "mean";
    this.epochIndex = null; // null: the best epoch, whose weights were kept
    this.edit = null; // {a, b, alpha} once a slider was moved
    this.output = null; // null: the predicted one of the node
    this.signal = null;
    this.colour = null;
    this.node = null; // place on the page
    this.compare = new Set();
    this.theme = null; // null: as the system has it
  }

  get run() { return this.data.runs[this.runIndex].views[this.repeatIndex]; }
  get graph() { return this.run.graph; }
  get model() { return this.run.models[this.modelIndex] ?? this.run.whole ?? this.run.models[0]; }
  // What is shown, as text: numbers are kept for it
  get shown() { return [this.runIndex, this.repeatIndex, this.modelIndex].join(" "); }
  get filter() { return this.model.filter; }
  get operator() { return this.graph.operators[this.model.operator]; }

  // The history, where it is that of the chosen model and has the filter of each epoch
  get history() {
    const history = this.run.history;
    return history && history.beta && this.model.leading && this.filter ? history : null;
  }

  get bestIndex() {
    return this.history ? Math.max(this.history.epoch.indexOf(this.history.best), 0) : 0;
  }

  // The filter of an epoch, or the trained one: {a, b, weight, channels}
  learned(index = this.epochIndex) {
    const { filter, history } = this;
    if (!filter) return null;
    const { weight } = filter;
    if (!history || index === null || index === this.bestIndex) {
      return { a: filter.a, b: filter.b, weight, channels: filter.channels };
    }
    const [, rows, channels] = history.beta.shape;
    const a = history.a && filter.orthonormal ? history.a[index] : filter.a;
    const b = history.b && filter.orthonormal ? history.b[index] : filter.b;
    const from = index * rows * channels;
    return { a, b, weight, channels: channelsOf(history.beta, rows, channels, from) };
  }

  // One series of it: that of the chosen channel, or the mean
  series(learned) {
    if (this.channel === "mean") return meanSeries(learned.channels, GRID);
    return learned.channels[this.channel] ?? learned.channels[0];
  }

  // The filter that is shown and applied: {a, b, weight, alpha, beta, edited}; kept until the
  // page is drawn anew
  current() {
    this.kept ??= this.compute();
    return this.kept;
  }

  compute() {
    const learned = this.learned();
    if (!learned) return null;
    if (this.edit) {
      const { a, b, alpha } = this.edit;
      const C = basisMatrix(alpha.length - 1, a, b, learned.weight);
      const beta = toChebyshev(alpha, C);
      return { a, b, weight: learned.weight, alpha, beta, edited: true };
    }
    const beta = this.series(learned);
    const C = basisMatrix(beta.length - 1, learned.a, learned.b, learned.weight);
    return { ...learned, alpha: fromChebyshev(beta, C), beta, edited: false };
  }

  // Start to edit from what is shown
  startEdit() {
    if (this.edit) return this.edit;
    this.kept = null;
    const { a, b, alpha } = this.current();
    this.edit = { a, b, alpha: Float64Array.from(alpha) };
    return this.edit;
  }

  toFragment() {
    const text = {};
    const short = (value) => Number(value.toPrecision(6)).toString();
    if (this.runIndex) text.run = this.runIndex;
    if (this.repeatIndex) text.repeat = this.repeatIndex;
    if (this.modelIndex >= 0) text.model = this.modelIndex;
    if (this.channel !== "mean") text.channel = this.channel;
    if (this.epochIndex !== null && this.history) text.epoch = this.history.epoch[this.epochIndex];
    if (this.edit) {
      text.a = short(this.edit.a);
      text.b = short(this.edit.b);
      text.alpha = Array.from(this.edit.alpha, short).join(",");
    }
    if (this.output !== null) text.output = this.output;
    if (this.signal) text.signal = this.signal;
    if (this.colour) text.colour = this.colour;
    if (this.node !== null) text.node = this.graph.ids[this.node];
    if (this.compare.size) text.compare = [...this.compare].join(",");
    if (this.theme) text.theme = this.theme;
    return new URLSearchParams(text).toString();
  }

  // What cannot be is left as it was: an address may come from anywhere
  fromFragment(fragment) {
    const text = new URLSearchParams(fragment);
    this.reset();
    const whole = (name, below) => {
      const value = Number(text.get(name));
      return text.has(name) && Number.isInteger(value) && value >= 0 && value < below ? value : null;
    };
    this.runIndex = whole("run", this.data.runs.length) ?? 0;
    this.repeatIndex = whole("repeat", this.run.views.length) ?? 0;
    this.modelIndex = whole("model", this.run.models.length) ?? -1;
    if (this.filter) this.channel = whole("channel", this.filter.channels.length) ?? "mean";
    if (this.history && text.has("epoch")) {
      const index = this.history.epoch.indexOf(Number(text.get("epoch")));
      this.epochIndex = index < 0 ? null : index;
    }
    this.edit = this.filter ? readEdit(text) : null;
    this.output = whole("output", this.graph.outputs.length);
    this.signal = text.get("signal");
    this.colour = text.get("colour");
    const place = this.graph.ids.indexOf(text.get("node") ?? this.data.node ?? "");
    this.node = place < 0 ? null : place;
    for (const key of (text.get("compare") ?? "").split(",")) {
      const [run, model] = key.split(".").map(Number);
      if (this.data.runs[run]?.models[model]?.filter) this.compare.add(key);
    }
    this.theme = ["light", "dark"].includes(text.get("theme")) ? text.get("theme") : null;
  }
}

function readEdit(text) {
  if (!["a", "b", "alpha"].every((name) => text.has(name))) return null;
  const [a, b] = [Number(text.get("a")), Number(text.get("b"))];
  const alpha = Float64Array.from(text.get("alpha").split(","), Number);
  const sound = a > -1 && b > -1 && a < 100 && b < 100 && alpha.length <= 31;
  return sound && alpha.every(Number.isFinite) ? { a, b, alpha } : null;
}
