// The page: one state, drawn by panels; every change goes through `update`.

import {
  AmplitudePanel, amplitudeWaveform, BasisPanel, FilterPanel, PathPanel, placeOf, STYLES,
} from "./filter.js";
import { colouring, ramps, rangeText, signalNumbers, signalOf } from "./colours.js";
import { Controls } from "./play.js";
import { readData } from "./data.js";
import { byId, h, say, show, svg } from "./dom.js";
import { savePng, saveSvg } from "./export.js";
import { Network } from "./network.js";
import { drawNode } from "./node.js";
import * as polynomials from "./polynomials.js";
import * as products from "./products.js";
import { links } from "./products.js";
import { State } from "./state.js";
import { explain } from "./why.js";

const data = readData();
const state = new State(data);
state.fromFragment(location.hash.slice(1));
const panels = {
  filter: new FilterPanel(byId("filter-chart")),
  basis: new BasisPanel(byId("basis-chart")),
  path: new PathPanel(byId("path-chart")),
  amplitude: new AmplitudePanel(byId("amplitude-chart")),
};
const network = new Network(byId("graph"), { onSelect: select });
const controls = new Controls(state, update);
const system = matchMedia("(prefers-color-scheme: dark)");
let waiting = false;
let explained = { key: null, found: null };
let coloured = { key: null, found: null };

function select(node) {
  state.node = node;
  state.output = null;
  if (node === null && state.colour === "contribution") state.colour = null;
  byId("find").value = node === null ? "" : state.graph.ids[node];
  update();
}

// Draw in the next frame, however often it is asked for
function update() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
    if (!performance.getEntriesByName("drawn").length) performance.mark("drawn");
  });
}

let look = {};
let saving = null;
function remember() {
  clearTimeout(saving);
  saving = setTimeout(() => {
    const fragment = state.toFragment();
    if (fragment !== location.hash.slice(1)) {
      history.replaceState(null, "", `${location.pathname}${location.search}${fragment ? `#${fragment}` : ""}`);
    }
  }, 150);
}

function theme() {
  const dark = (state.theme ?? (system.matches ? "dark" : "light")) === "dark";
  if (dark === look.dark) return look;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  say("theme", dark ? "Light" : "Dark");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  look = { dark, edge: colour("--edges"), ink: colour("--ink"), ground: colour("--card") };
  return look;
}

// The numbers behind the selected node are the same until the node, the model or the output changes
function explanation() {
  const key = [state.shown, state.node, state.output].join(" ");
  if (key !== explained.key) {
    explained = { key, found: explain(state) };
    drawNode(state, explained.found, { select });
  }
  return explained.found;
}

// Likewise the colours, but for those that follow the sliders
function colours(found) {
  const name = state.colour === "contribution" && !found ? "label" : state.colour ?? "label";
  const key = [state.shown, state.node, state.output, state.signal, name].join(" ");
  if (key !== coloured.key || name === "filtered") coloured = { key, found: colouring(state, name, found) };
  return coloured.found;
}

function draw() {
  state.kept = null;
  theme();
  header();
  controls.draw();
  const filter = Boolean(state.filter);
  const several = Boolean(state.model.members?.some((one) => one.filter));
  byId("filter-body").hidden = !filter && !several;
  byId("basis-card").hidden = !filter;
  byId("no-filter").hidden = filter || several;
  if (filter || several) panels.filter.draw(state);
  if (filter) panels.basis.draw(state);
  if (several) membersLegend();
  else if (filter) legend();
  byId("path-card").hidden = !panels.path.draw(state);
  byId("amplitude-card").hidden = !panels.amplitude.draw(state);
  byId("pair").hidden = byId("path-card").hidden && byId("amplitude-card").hidden;
  const found = explanation();
  const shown = colours(found);
  network.setGraph(state.graph, links(state.operator));
  network.draw(shown, state.node, look);
  key_(shown);
  signalText();
  remember();
}

function header() {
  const { run, graph } = state;
  const title = `${run.name}: longnn explorer`;
  if (document.title !== title) document.title = title;
  say("title", run.headline);
  const part = graph.ids.length < graph.nodes;
  const shown = part ? `; this page shows ${graph.ids.length.toLocaleString("en")} of them` : "";
  const some = run.views.length < run.repeats && run.views.length > 1 ? `; the page has the first ${run.views.length}` : "";
  const repeats = run.repeats > 1 ? ` Repeat ${state.repeatIndex + 1} of ${run.repeats} is shown${some}.` : "";
  const lines = graph.directed && run.direction !== "none" ? "arcs" : "edges";
  say("about", `Run ${run.name}: ${graph.nodes.toLocaleString("en")} nodes${shown}, ` +
    `${graph.edges.toLocaleString("en")} ${lines}.${repeats}`);
  say("output-name", { classification: "Class", multilabel: "Label" }[graph.task] ?? "Target");
  say("words", state.model.words ? `The filter: ${state.model.words}.` : "");
  say("notes", run.notes.join(" "));
}

function membersLegend() {
  const beside = state.compare.size ? "; coloured and broken: compared filters" : "";
  say("filter-legend", `lines: the filter of each model, fainter where it has less weight${beside}; ` +
    "shaded: how many frequencies the graph has there.");
  for (const id of ["channel-field", "epochs"]) byId(id).hidden = true;
  byId("no-epochs").hidden = false;
  say("no-epochs", "Choose one of the models above to see its basis and its epochs, and to play with it.");
}

function legend() {
  const current = state.current();
  const many = state.filter.channels.length > 1 && state.channel === "mean";
  const text = current.edited
    ? "orange: as the sliders have it; dashed: as trained"
    : state.epochIndex !== null
      ? "line: at this epoch; dashed: as kept"
      : many
        ? "line: mean of the filters, turned to one sign; thin: each of them"
        : "line: the learned filter";
  const few = state.run.spectrum?.outliers?.length ? "; marks: single eigenvalues outside the bulk" : "";
  const beside = state.compare.size ? "; coloured and broken: compared filters" : "";
  say("filter-legend", `${text}${beside}; shaded: how many frequencies the graph has there${few}.`);
  say("basis-note", state.filter.orthonormal
    ? `Shaded: the weight function for a = ${show(current.a)}, b = ${show(current.b)}.`
    : `The model's own basis is ${state.filter.basis}. Here its filter is written in orthonormal ` +
      "Jacobi polynomials, which span the same filters.");
}

// What the colours of the nodes mean
function key_(colours) {
  const host = byId("legend");
  const key = [look.dark, colours.title, colours.kind, colours.range, colours.legend].join("|");
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  if (colours.legend) {
    const many = colours.legend.slice(0, 24);
    host.replaceChildren(
      ...many.map(([name, colour]) => {
        const dot = h("i", {});
        dot.style.background = colour;
        return h("span", { class: "entry" }, dot, name);
      }),
      colours.legend.length > 24 ? `and ${colours.legend.length - 24} more` : "",
    );
  } else {
    const bar = h("i", { class: "ramp" });
    bar.style.background = `linear-gradient(to right, ${ramps(look.dark)[colours.kind].join(",")})`;
    const [low, high] = rangeText(colours);
    host.replaceChildren(h("span", { class: "entry" }, low, bar, high), h("span", {}, colours.title));
  }
  const { ids } = state.graph;
  byId("graph").setAttribute(
    "aria-label",
    `The graph: ${ids.length} nodes, coloured by ${colours.title}. Arrow keys move, plus and minus ` +
      "zoom, 0 shows all, N and P go to the next and the previous node.",
  );
}

function signalText() {
  if (!state.filter) return;
  const found = signalNumbers(state);
  const text = found
    ? `Mean frequency ${show(found.before)} before, ${show(found.after)} after; size ${show(found.size)} of before.`
    : `${signalOf(state).title}: zero everywhere.`;
  say("signal-text", text);
}

// Everything that can be compared: one box for each model of each run
function comparisons() {
  const all = data.runs.flatMap((run, r) => run.models.map((model, m) => ({ run, model, key: `${r}.${m}` })));
  const with_ = all.filter(({ model }) => model.filter);
  byId("compare-card").hidden = all.length < 2;
  const name = ({ run, model }) => (run.models.length > 1 ? `${run.name}, ${model.name}` : run.name);
  byId("compare").replaceChildren(
    ...with_.map((one) => {
      const box = h("input", {
        type: "checkbox", value: one.key,
        onchange: ({ target }) => {
          if (target.checked) state.compare.add(one.key);
          else state.compare.delete(one.key);
          update();
        },
      });
      box.checked = state.compare.has(one.key);
      const colour = h("i", { class: `c${placeOf(data, one.key) % STYLES.length}` });
      return h("label", { class: "check" }, box, colour, `${name(one)}: ${one.model.words}`);
    }),
  );
  const rows = data.runs.map((run) =>
    h("tr", {}, h("th", { scope: "row" }, run.name), h("td", {}, run.graph.name), h("td", {}, `${run.metric} ${run.score || "n/a"}`)),
  );
  byId("scores").replaceChildren(...rows);
  byId("scores-table").hidden = data.runs.length < 2;
}

// Find a node by its id; a served page fetches what lies around a node that it does not have
function find(text) {
  const { ids } = state.graph;
  let place = ids.indexOf(text);
  if (place < 0 && data.served && state.graph.nodes > ids.length) {
    location.assign(`/?node=${encodeURIComponent(text)}`);
    return;
  }
  if (place < 0) place = ids.findIndex((id) => id.toLowerCase().startsWith(text.toLowerCase()));
  const missing = text !== "" && place < 0;
  const rest = state.graph.nodes > ids.length ? " on this page; longnn explore --node shows it" : "";
  say("find-note", missing ? `There is no node ${text}${rest}.` : "");
  if (text !== "" && place >= 0) select(place);
}

function suggest(text) {
  const found = [];
  for (const id of state.graph.ids) {
    if (id.startsWith(text)) found.push(h("option", { value: id }));
    if (found.length === 50) break;
  }
  byId("ids").replaceChildren(...found);
}

// Buttons that save a picture, also those that are made later
function pictures() {
  document.addEventListener("click", ({ target }) => {
    const { save: kind, of } = target.dataset ?? {};
    if (!kind) return;
    const picture = of === "graph" ? onPage(network.toSvg(svg)) : byId(of).querySelector("svg");
    (kind === "svg" ? saveSvg : savePng)(picture, `${state.run.name}-${of.replace("-chart", "")}`);
    if (of === "graph") picture.remove();
  });
}

// Styles are known only of what is on the page
function onPage(picture) {
  picture.classList.add("hidden");
  document.body.append(picture);
  return picture;
}

function resize() {
  for (const panel of Object.values(panels)) panel.chart.resize();
  network.resize();
  update();
}

byId("find").addEventListener("change", ({ target }) => find(target.value.trim()));
byId("find").addEventListener("input", ({ target }) => suggest(target.value.trim()));
byId("theme").addEventListener("click", () => {
  state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  update();
});
system.addEventListener("change", update);
window.addEventListener("hashchange", () => {
  state.fromFragment(location.hash.slice(1));
  comparisons();
  update();
});
new ResizeObserver(resize).observe(byId("filter-chart"));
new ResizeObserver(resize).observe(byId("graph"));
comparisons();
pictures();
if (state.node !== null) byId("find").value = state.graph.ids[state.node];
say("version", `longnn ${data.version}`);
// For the console: the numbers behind the pictures.
window.longnn = { state, network, update, polynomials, products, amplitudeWaveform, explanation: () => explained.found };
resize();
