// The pictures of a filter: response over the spectral density, basis, path of a and b, amplitude
// and waveform. All show the same moment of training, or what the sliders make of it.

import { Chart, extent } from "./chart.js";
import { show } from "./dom.js";
import { evaluateTable, jacobiTable, logMass, meanSeries, response } from "./polynomials.js";
import { GRID } from "./state.js";

// Patterns of the lines of compared filters, one for each of their colours
export const STYLES = ["6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 2", "12 3 3 3", "3 4"];
export const LINE = { "stroke-width": 2.5, "stroke-linejoin": "round" };
const INNER = Float64Array.from({ length: 199 }, (_, i) => (i + 1) / 100);
const COARSE = GRID.filter((_, i) => i % 2 === 0);
const MOST_CHANNELS = 24; // drawn behind their mean

export class FilterPanel {
  constructor(host) {
    this.chart = new Chart(host, {
      height: 300,
      xName: "frequency λ (eigenvalue of the Laplacian)",
      yName: "response g(λ)",
    });
  }

  draw(state) {
    const { chart } = this;
    const cover = state.run.direction !== "none";
    chart.names(
      cover ? "1 − eigenvalue of the operator of arcs" : "frequency λ (eigenvalue of the Laplacian)",
      state.model.members ? "response, largest magnitude 1" : "response g(λ)",
    );
    if (state.model.members) {
      this.drawMembers(state);
      return;
    }
    const current = state.current();
    if (!current) return;
    const curve = response(current.beta, GRID);
    const trained = response(state.series(state.learned(null)), GRID);
    const others = [...state.compare].map((key) => compared(state, key));
    chart.domains([0, 2], extent(curve, trained, ...others.map((one) => one.curve)));
    this.density(state.run.spectrum);
    const learned = state.learned();
    if (learned.channels.length > 1 && !current.edited && state.channel === "mean") {
      learned.channels.slice(0, MOST_CHANNELS).forEach((beta, h) => {
        chart.line(`channel ${h}`, GRID, response(beta, GRID), { class: "faint" });
      });
    }
    this.drawCompared(state, others);
    const moved = current.edited || state.epochIndex !== null;
    if (moved) chart.line("trained", GRID, trained, { class: "trained", "stroke-dasharray": "5 4" });
    chart.line("current", GRID, curve, { class: current.edited ? "edited" : "learned", ...LINE });
    chart.finish(
      `Response of the filter: ${show(curve[0])} at frequency 0, ${show(curve[100])} at 1, ` +
        `${show(curve[200])} at 2.`,
    );
  }

  // The filters of an ensemble over each other, fainter where they have less weight. Members scale
  // their signals as they like: only the shape of a filter says something.
  drawMembers(state) {
    const { chart } = this;
    const found = state.model.members.map((one, m) => ({ ...one, m })).filter(({ filter }) => filter);
    const curves = found.map(({ filter }) => unit(response(meanSeries(filter.channels, GRID), GRID)));
    const others = [...state.compare].map((key) => compared(state, key));
    for (const one of others) one.curve = unit(one.curve);
    chart.domains([0, 2], extent(...curves, ...others.map((one) => one.curve)));
    this.density(state.run.spectrum);
    this.drawCompared(state, others);
    const most = Math.max(...found.map(({ share }) => share));
    found.forEach(({ share, m }, i) => {
      const opacity = (0.12 + (0.88 * share) / most).toFixed(3);
      chart.line(`member ${m}`, GRID, curves[i], { class: "member", "stroke-opacity": opacity });
    });
    const words = found.map(({ name, share }) => `${name} with weight ${(100 * share).toFixed(0)} %`);
    chart.finish(`Responses of the filters of an ensemble: ${words.join(", ")}.`);
  }

  drawCompared(state, others) {
    for (const { key, curve } of others) {
      const i = placeOf(state.data, key) % STYLES.length;
      const look = { class: `compare c${i}`, "stroke-dasharray": STYLES[i] };
      this.chart.line(`compare ${key}`, GRID, curve, look);
    }
  }

  density(spectrum) {
    if (!spectrum) return;
    const { chart } = this;
    const { eigenvalue, density, top: highest, outliers } = spectrum;
    const [bottom, top] = chart.y.range();
    const [y0, y1] = [bottom, top].map((p) => chart.y.invert(p));
    // As in the report: single peaks are cut off, so that the rest can be seen.
    const scaled = Float64Array.from(density, (d) => y0 + (y1 - y0) * Math.min(d / (1.35 * highest), 1));
    chart.area("density", eigenvalue, scaled, { class: "density" });
    (outliers ?? []).forEach((l, i) => chart.tick(`outlier ${i}`, l, { class: "outlier" }));
  }
}

// The place of a model among those of all runs: it has the same colour wherever it is drawn
export function placeOf(data, key) {
  const [run, model] = key.split(".").map(Number);
  return data.runs.slice(0, run).reduce((sum, one) => sum + one.models.length, model);
}

// With largest magnitude 1
function unit(curve) {
  const size = Math.max(...curve.map(Math.abs), 1e-12);
  return curve.map((v) => v / size);
}

function compared(state, key) {
  const [run, model] = key.split(".").map(Number);
  const { filter } = state.data.runs[run].models[model];
  return { key, curve: response(meanSeries(filter.channels, GRID), GRID) };
}

export class BasisPanel {
  constructor(host) {
    this.chart = new Chart(host, { height: 240, xName: "frequency λ", yName: "pₖ(1 − λ)" });
  }

  draw(state) {
    const { chart } = this;
    const current = state.current();
    if (!current) return;
    const { a, b, weight, alpha } = current;
    const K = alpha.length - 1;
    const basis = jacobiTable(K, a, b, weight);
    const values = Array.from(COARSE, (l) => evaluateTable(basis, 1 - l));
    const curves = Array.from({ length: K + 1 }, (_, k) => values.map((p) => p[k]));
    const bound = Math.min(6, Math.max(...curves.flat().map(Math.abs), 1));
    chart.domains([0, 2], [-bound, bound]);
    const log = logMass(a, b);
    const mass = INNER.map((l) => Math.exp(a * Math.log(l) + b * Math.log(2 - l) - log));
    const highest = Math.min(Math.max(...mass), 3);
    const [y0, y1] = chart.y.domain();
    const scaled = mass.map((w) => y0 + (0.9 * (y1 - y0) * Math.min(w, highest)) / highest);
    chart.area("weight", INNER, scaled, { class: "density" });
    const largest = Math.max(...alpha.map(Math.abs), 1e-12);
    curves.forEach((curve, k) => {
      // Terms that the filter uses more stand out.
      const opacity = 0.18 + (0.82 * Math.abs(alpha[k])) / largest;
      const clipped = curve.map((y) => (y < y0 || y > y1 ? NaN : y));
      chart.line(`p${k}`, COARSE, clipped, {
        class: `term t${k % 3}`,
        "stroke-opacity": opacity.toFixed(3),
      });
    });
    chart.finish(
      `Basis polynomials of degree 0 to ${K} for a = ${show(a)}, b = ${show(b)}, over their weight.`,
    );
  }
}

export class PathPanel {
  constructor(host) {
    this.chart = new Chart(host, { height: 220, xName: "a", yName: "b", xTicks: 4 });
  }

  draw(state) {
    const { chart } = this;
    const history = state.history;
    const current = state.current();
    const has = history?.a && history?.b && state.filter.orthonormal;
    if (!current || !has) return false;
    const xs = [...history.a, current.a];
    const ys = [...history.b, current.b];
    const pad = (all) => {
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const room = Math.max(0.08 * (high - low), 0.02);
      return [low - room, high + room];
    };
    chart.domains(pad(xs), pad(ys));
    chart.line("path", history.a, history.b, { class: "soft" });
    chart.dot("start", history.a[0], history.b[0], { class: "open", r: 4 });
    chart.dot("now", current.a, current.b, { class: current.edited ? "editeddot" : "dot" });
    chart.finish(
      `Path of a and b over training: from ${show(history.a[0])}, ${show(history.b[0])}; ` +
        `now ${show(current.a)}, ${show(current.b)}.`,
    );
    return true;
  }
}

// Amplitude against waveform: the norm of the filter, and how far its shape g / |g| is from the last
// one, as a root mean square over the spectrum and the channels; as in the report.
export function amplitudeWaveform(history) {
  const [epochs, rows, channels] = history.beta.shape;
  const terms = Array.from({ length: rows }, (_, j) =>
    GRID.map((l) => Math.cos(j * Math.acos(Math.max(-1, Math.min(1, 1 - l))))),
  );
  const gram = terms.map((p) =>
    terms.map((q) => p.reduce((sum, value, i) => sum + value * q[i], 0) / GRID.length),
  );
  const at = (e, j, c) => history.beta[(e * rows + j) * channels + c];
  const inner = (e, f) => {
    let sum = 0;
    for (let c = 0; c < channels; c++)
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < rows; j++) sum += at(e, i, c) * gram[i][j] * at(f, j, c);
    return sum / channels;
  };
  const last = epochs - 1;
  const end = Math.sqrt(inner(last, last));
  const amplitude = new Float64Array(epochs);
  const distance = new Float64Array(epochs);
  for (let e = 0; e < epochs; e++) {
    amplitude[e] = Math.sqrt(inner(e, e));
    const cosine = inner(e, last) / (amplitude[e] * end);
    distance[e] = Math.sqrt(Math.max(2 - 2 * cosine, 0));
  }
  // The norm that was recorded in training, where it was.
  return { amplitude: history.amplitude ?? amplitude, distance };
}

export class AmplitudePanel {
  constructor(host) {
    this.chart = new Chart(host, {
      height: 220,
      xName: "distance of the waveform from the last",
      yName: "amplitude",
      xTicks: 4,
    });
    this.known = new Map();
  }

  draw(state) {
    const { chart } = this;
    const history = state.history;
    if (!history) return false;
    const key = [state.shown, state.epochIndex, chart.width].join(" ");
    if (key === this.drawn) return true;
    this.drawn = key;
    if (!this.known.has(history)) this.known.set(history, amplitudeWaveform(history));
    const { amplitude, distance } = this.known.get(history);
    chart.domains([0, Math.max(extent(distance)[1], 0.01)], extent(amplitude));
    chart.line("path", distance, amplitude, { class: "soft" });
    const now = state.epochIndex ?? state.bestIndex;
    chart.dot("now", distance[now], amplitude[now], { class: "dot" });
    chart.finish(
      `Amplitude ${show(amplitude[now])} and distance of the waveform ${show(distance[now])} ` +
        `at epoch ${history.epoch[now]}.`,
    );
    return true;
  }
}
