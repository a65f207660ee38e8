// From the JSON block of the page to typed arrays.

const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };

// What longnn.explorer.pack wrote, as a typed array with its shape
export function unpack(packed) {
  if (!packed) return null;
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const array = new KINDS[packed.kind](bytes.buffer);
  array.shape = packed.shape;
  return array;
}

function unpackAll(value) {
  if (Array.isArray(value)) return value.map(unpackAll);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.data === "string" && value.kind in KINDS && value.shape) return unpack(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpackAll(item)]));
}

// (K+1, channels) as one series per channel
export function channelsOf(beta, rows, channels, from = 0) {
  return Array.from({ length: channels }, (_, h) =>
    Float64Array.from({ length: rows }, (_, j) => beta[from + j * channels + h]),
  );
}

export function readData() {
  const data = unpackAll(JSON.parse(document.getElementById("data").textContent));
  for (const run of data.runs) {
    run.graph = data.graphs[run.graph];
    const views = [run, ...run.others.map((other) => ({ ...run, ...other }))];
    for (const view of views) {
      view.views = views;
      view.models.forEach(readModel);
      view.whole = view.models.length > 1 ? whole(view) : null;
    }
  }
  return data;
}

function readModel(model) {
  if (!model.filter) return;
  const [rows, channels] = model.filter.beta.shape;
  model.filter.channels = channelsOf(model.filter.beta, rows, channels);
}

// All members of an ensemble as one model, whose filters are those of the members
function whole({ models }) {
  const summed = models.filter(({ form, alone }) => form || alone).length;
  return {
    members: models,
    name: `all ${models.length}, by weight`,
    operator: models[0].operator,
    filter: null,
    form: summed > 0,
    words: "",
    why:
      "None of these models gives a score that is a sum over nodes. So there are no contributions " +
      "to show; longnn explain finds them by integrated gradients.",
  };
}
