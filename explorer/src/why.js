// Why a node is predicted as it is, in numbers: what each node, each ring and each degree adds.

import { joint } from "./joint.js";
import { meanSeries } from "./polynomials.js";
import { byRing, chebyshevTerms, combine, contributions, distances, fold, lift, links } from "./products.js";
import { GRID } from "./state.js";

// The output that is explained: the chosen one, else what `longnn explain` takes, too: the predicted
// class, the most probable label, the first target
export function outputOf({ output, node, graph: { task, outputs }, run }) {
  if (output !== null) return output;
  if (task === "regression" || node === null) return 0;
  if (task === "classification") return run.chosen[node];
  const p = run.predicted.subarray(node * outputs.length, (node + 1) * outputs.length);
  return p.indexOf(Math.max(...p));
}

// All numbers behind the panel, or null where there are none:
// {exact, title, value, weight, says, ring, rings, degrees, base, opaque, sum, score, rest, output}.
// score = base + sum of value + opaque + rest: opaque is what members give whose scores are no sums
// over nodes, rest what passes through nodes that are not on the page.
export function explain(state) {
  const { node, model, operator, filter } = state;
  if (node === null || (!filter && !model.form)) return null;
  const ring = distances(links(operator), node);
  const output = outputOf(state);
  if (!model.form) return { ...weights(state, ring), ring, output };
  const found = model.members ? explainWhole(state, output) : explainOne(state, output);
  const sum = found.value.reduce((total, v) => total + v, found.base + found.opaque);
  const rings = byRing(ring, found.value, found.reach);
  const title = `contribution to the score of ${state.graph.outputs[output]}`;
  return { exact: true, title, ring, rings, output, sum, rest: found.score - sum, ...found };
}

// The row of the filter, where nothing more holds; on arcs the mean over the copies
function weights({ node, operator, filter, graph }, ring) {
  const unit = new Float64Array(graph.ids.length);
  unit[node] = 1;
  const beta = meanSeries(filter.channels, GRID);
  const row = combine(chebyshevTerms(operator, lift(operator, unit), filter.degree), beta);
  const value = fold(operator, row).map((v) => v / operator.copies);
  return { exact: false, title: "weight of the filter", value, rings: byRing(ring, value, filter.degree) };
}

function explainOne({ node, model, operator, filter, graph, run }, output) {
  const q = graph.outputs.map((_, k) => Number(k === output));
  const found = contributions(operator, filter, model.form, node, q);
  // A regression's score is in units of the spread of its labels.
  const numbers = graph.task === "regression";
  const scale = numbers ? run.scale[output] : 1;
  const offset = numbers ? run.offset[output] : 0;
  const scaled = (values) => values && values.map((v) => v * scale);
  return {
    value: scaled(found.contribution),
    weight: found.weight,
    says: scaled(found.says),
    degrees: found.terms
      ? { name: "polynomials of its basis", values: scaled(found.terms) }
      : { name: "Chebyshev polynomials", values: scaled(found.chebyshev) },
    chebyshev: scaled(found.chebyshev),
    base: offset + scale * found.base,
    opaque: 0,
    reach: filter.degree,
    score: offset + scale * model.scores[node * graph.outputs.length + output],
  };
}

// Every member is asked for the sum of its scores, weighed as they count in the average
function explainWhole({ node, graph, run }, output) {
  const width = graph.outputs.length;
  const members = run.models;
  const z = members.map(({ scores }) => Array.from(scores.subarray(node * width, (node + 1) * width)));
  const { number, atZero, A } = joint(members, z, output, { task: graph.task, ...run });
  const value = new Float64Array(graph.ids.length);
  const chebyshev = [];
  const add = (series) => series.forEach((v, j) => { chebyshev[j] = (chebyshev[j] ?? 0) + v; });
  const given = members.map((_, m) => z[m].reduce((sum, s, k) => sum + A[m][k] * s, 0));
  let [base, opaque, unknown, reach] = [atZero, 0, 0, 0];
  members.forEach((model, m) => {
    if (model.alone) {
      const own = given[m] - model.alone.reduce((sum, v, k) => sum + A[m][k] * v, 0);
      value[node] += own;
      add([own]);
      base += given[m] - own;
    } else if (model.form) {
      const found = contributions(graph.operators[model.operator], model.filter, model.form, node, A[m]);
      found.contribution.forEach((v, i) => { value[i] += v; });
      add(found.chebyshev);
      base += found.base;
      reach = Math.max(reach, model.filter.degree);
    } else {
      opaque += given[m];
      unknown += 1;
    }
  });
  const degrees = unknown ? null : { name: "Chebyshev polynomials", values: Float64Array.from(chebyshev) };
  return {
    value, weight: null, says: null, degrees, base, opaque, unknown, reach, score: number, given,
    chebyshev: degrees?.values ?? null,
  };
}
