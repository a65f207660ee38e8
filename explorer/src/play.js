// The sliders: a, b, degree, coefficients; the epochs; and what is chosen from lists.

import { byId, h, say, show } from "./dom.js";
import { colourings, signalOf, signals } from "./colours.js";
import { outputOf } from "./why.js";

const MOST = 20; // the highest degree of the slider

// A select with these [key, title] and the chosen one; built anew only when it changed
export function fill(select, options, chosen) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...options.map(([value, title]) => h("option", { value }, title)));
  }
  select.value = String(chosen);
}

export class Controls {
  constructor(state, update) {
    this.state = state;
    this.update = update;
    this.sliders = [];
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on("a", "input", ({ target }) => this.edit((edit) => { edit.a = Number(target.value); }));
    on("b", "input", ({ target }) => this.edit((edit) => { edit.b = Number(target.value); }));
    on("degree", "input", ({ target }) => this.edit((edit) => {
      const alpha = new Float64Array(Number(target.value) + 1);
      alpha.set(edit.alpha.subarray(0, alpha.length));
      edit.alpha = alpha;
    }));
    on("reset", "click", () => { state.edit = null; update(); });
    on("epoch", "input", ({ target }) => this.goTo(Number(target.value)));
    on("run-epochs", "click", () => this.toggle());
    on("best", "click", () => { state.epochIndex = null; state.edit = null; update(); });
    const choose = (id, act) => on(id, "change", ({ target }) => { act(target.value); update(); });
    choose("run", (value) => {
      const { theme, compare } = state;
      state.reset();
      Object.assign(state, { theme, compare, runIndex: Number(value) });
    });
    choose("repeat", (value) => {
      const { theme, compare, runIndex, node, output, colour, signal } = state;
      state.reset();
      Object.assign(state, { theme, compare, runIndex, node, output, colour, signal, repeatIndex: Number(value) });
    });
    choose("model", (value) => {
      Object.assign(state, { modelIndex: Number(value), channel: "mean", epochIndex: null, edit: null });
    });
    choose("channel", (value) => {
      state.channel = value === "mean" ? value : Number(value);
      state.edit = null;
    });
    choose("output", (value) => { state.output = Number(value); });
    choose("colour", (value) => { state.colour = value; });
    choose("signal", (value) => {
      state.signal = value;
      state.colour = state.filter ? "filtered" : "signal";
    });
  }

  edit(change) {
    change(this.state.startEdit());
    this.update();
  }

  goTo(index) {
    this.state.edit = null;
    this.state.epochIndex = index === this.state.bestIndex ? null : index;
    this.update();
  }

  // Run through the epochs, about five seconds in all
  toggle() {
    const { state } = this;
    if (this.running) {
      cancelAnimationFrame(this.running);
      this.running = null;
      this.update();
      return;
    }
    const count = state.history.epoch.length;
    const started = state.epochIndex === null || state.epochIndex >= count - 1 ? 0 : state.epochIndex;
    const begin = performance.now();
    const step = (now) => {
      const index = Math.min(started + Math.floor(((now - begin) / 5000) * count), count - 1);
      this.running = index < count - 1 && state.history ? requestAnimationFrame(step) : null;
      if (state.history) this.goTo(index);
    };
    this.running = requestAnimationFrame(step);
  }

  draw() {
    const { state } = this;
    const { run, graph } = state;
    fill(byId("run"), state.data.runs.map((one, i) => [i, one.name]), state.runIndex);
    byId("run-field").hidden = state.data.runs.length < 2;
    const share = (model) => (run.models.length > 1 ? ` (weight ${(100 * model.share).toFixed(0)} %)` : "");
    const models = run.models.map((one, i) => [i, one.name + share(one)]);
    if (run.whole) models.unshift([-1, run.whole.name]);
    fill(byId("model"), models, state.modelIndex);
    byId("model-field").hidden = !run.whole;
    fill(byId("repeat"), run.views.map((_, i) => [i, `${i + 1} of ${run.repeats}`]), state.repeatIndex);
    byId("repeat-field").hidden = run.views.length < 2;
    fill(byId("output"), graph.outputs.map((name, i) => [i, name]), outputOf(state));
    byId("output-field").hidden = graph.outputs.length < 2;
    fill(byId("colour"), colourings(state), state.colour ?? "label");
    fill(byId("signal"), signals(state), signalOf(state).key);
    byId("play").hidden = !state.filter;
    if (state.filter) this.drawFilter();
  }

  drawFilter() {
    const { state } = this;
    const current = state.current();
    this.drawChannels();
    this.drawEpochs(current);
    this.setSlider("a", current.a);
    this.setSlider("b", current.b);
    const degree = current.alpha.length - 1;
    byId("degree").max = Math.max(MOST, degree);
    byId("degree").value = degree;
    say("degree-value", degree);
    byId("reset").disabled = !current.edited;
    this.drawCoefficients(current);
  }

  drawChannels() {
    const { state } = this;
    const count = state.filter.channels.length;
    byId("channel-field").hidden = count < 2;
    if (count < 2) return;
    const own = count === state.graph.outputs.length;
    const name = (c) => (own ? `filter of ${state.graph.outputs[c]}` : `channel ${c + 1}`);
    const all = Array.from({ length: count }, (_, c) => [c, name(c)]);
    fill(byId("channel"), [["mean", `mean of ${count} filters`], ...all], state.channel);
  }

  drawEpochs() {
    const { history } = this.state;
    const why = this.state.repeatIndex
      ? "The path over the epochs was kept for the first repeat alone."
      : this.state.model.leading
        ? "The run folder has no path of the filter over the epochs."
        : "The path over the epochs was kept for the leading model alone.";
    byId("epochs").hidden = !history;
    byId("no-epochs").hidden = Boolean(history);
    say("no-epochs", why);
    if (!history) return;
    const index = this.state.epochIndex ?? this.state.bestIndex;
    const slider = byId("epoch");
    slider.max = history.epoch.length - 1;
    slider.value = index;
    const number = history.epoch[index];
    slider.setAttribute("aria-valuetext", `epoch ${number}`);
    const loss = history.val_loss ? `, validation loss ${show(history.val_loss[index])}` : "";
    const best = number === history.best ? " (kept)" : "";
    say("epoch-value", `epoch ${number}${best}${loss}`);
    say("run-epochs", this.running ? "Stop" : "Animate");
    byId("best").disabled = this.state.epochIndex === null && !this.state.edit;
  }

  setSlider(id, value) {
    const slider = byId(id);
    slider.max = Math.max(8, Math.ceil(value));
    if (document.activeElement !== slider || Number(slider.value) !== value) slider.value = value;
    say(`${id}-value`, show(value));
  }

  drawCoefficients({ alpha }) {
    const host = byId("coefficients");
    while (this.sliders.length > alpha.length) this.sliders.pop().field.remove();
    while (this.sliders.length < alpha.length) {
      const k = this.sliders.length;
      const slider = h("input", {
        type: "range", step: "any", class: "upright", "aria-label": `coefficient of degree ${k}`,
        oninput: ({ target }) => this.edit((edit) => { edit.alpha[k] = Number(target.value); }),
      });
      const value = h("span", {});
      const field = h("label", { class: "coefficient" }, value, slider, h("span", {}, String(k)));
      host.append(field);
      this.sliders.push({ field, slider, value });
    }
    const size = Math.max(1, ...alpha.map((v) => 1.5 * Math.abs(v)));
    this.sliders.forEach(({ slider, value }, k) => {
      const reach = document.activeElement === slider ? Math.max(Number(slider.max) || 1, Math.abs(alpha[k])) : size;
      slider.min = -reach;
      slider.max = reach;
      slider.value = alpha[k];
      slider.setAttribute("aria-valuetext", show(alpha[k]));
      const text = alpha[k].toFixed(2);
      if (value.textContent !== text) value.textContent = text;
    });
  }
}
