// The whole of an ensemble: the number that its weighted average gives a node, and how much of it
// each score of each member makes up; as longnn.explain has it.
//
//   f(z) = log sum_m w_m softmax(z_m / T_m)_c,   f(z) = f(0) + sum_mk A_mk z_mk,
//   A = int_0^1 grad f(tau z) dtau
//
// For several labels f is the logit of the averaged probability, for values the average itself.

const POINTS = 256;
let rule = null;

// Points and weights of Gauss and Legendre on [0, 1], by Newton's method
export function gauss(count = POINTS) {
  const points = new Float64Array(count);
  const weights = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (count + 0.5));
    let slope = 1;
    for (let step = 0; step < 100; step++) {
      let [p, before] = [1, 0];
      for (let n = 1; n <= count; n++) [p, before] = [((2 * n - 1) * x * p - (n - 1) * before) / n, p];
      slope = (count * (x * p - before)) / (x * x - 1);
      const move = p / slope;
      x -= move;
      if (Math.abs(move) < 1e-15) break;
    }
    points[i] = (1 + x) / 2;
    weights[i] = 1 / ((1 - x * x) * slope * slope);
  }
  return { points, weights };
}

function softmax(z, temperature, tau) {
  const top = Math.max(...z) / temperature;
  const e = z.map((v) => Math.exp(tau * (v / temperature - top)));
  const sum = e.reduce((total, v) => total + v, 0);
  return e.map((v) => v / sum);
}

const sigmoid = (v) => 1 / (1 + Math.exp(-v));

// f(tau z) and its gradient, one array per member
function classes(members, z, c, tau) {
  const p = members.map(({ temperature }, m) => softmax(z[m], temperature, tau));
  const sum = members.reduce((total, { share }, m) => total + share * p[m][c], 0);
  const gradient = members.map(({ share, temperature }, m) =>
    p[m].map((v, k) => (share * p[m][c] * (Number(k === c) - v)) / (temperature * sum)),
  );
  return { value: Math.log(sum), gradient };
}

function labels(members, z, c, tau) {
  const p = members.map(({ temperature }, m) => sigmoid((tau * z[m][c]) / temperature));
  const yes = members.reduce((total, { share }, m) => total + share * p[m], 0);
  const no = members.reduce((total, { share }, m) => total + share * (1 - p[m]), 0);
  const gradient = members.map(({ share, temperature }, m) =>
    z[m].map((_, k) => (k === c ? (share * p[m] * (1 - p[m])) / (temperature * yes * no) : 0)),
  );
  return { value: Math.log(yes / no), gradient };
}

// The number of output c, its value at zero, and A[m][k], of the scores z[m][k] of one node
export function joint(members, z, c, { task, offset, scale }) {
  if (task === "regression") {
    const A = members.map(({ share }, m) => z[m].map((_, k) => (k === c ? scale[c] * share : 0)));
    const value = members.reduce((sum, { share }, m) => sum + share * z[m][c], 0);
    return { number: offset[c] + scale[c] * value, atZero: offset[c], A };
  }
  const f = task === "classification" ? classes : labels;
  rule ??= gauss();
  const A = z.map((one) => one.map(() => 0));
  rule.points.forEach((tau, i) => {
    f(members, z, c, tau).gradient.forEach((row, m) => {
      row.forEach((v, k) => { A[m][k] += rule.weights[i] * v; });
    });
  });
  return { number: f(members, z, c, 1).value, atZero: f(members, z, c, 0).value, A };
}
