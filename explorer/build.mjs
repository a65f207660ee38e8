// Bundles the page into one file, with the data left out: node build.mjs [OUTPUT]
//
// Program and style are named by their hashes in the page's Content-Security-Policy, so that
// nothing else can run in it, whatever a user's files say.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "longnn", "explorer", "page.html");

const bundled = (entry, options) =>
  build({
    entryPoints: [join(here, "src", entry)],
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    legalComments: "none",
    target: ["chrome111", "firefox113", "safari16.4"],
    metafile: true,
    ...options,
  });

const script = await bundled("main.js", { format: "iife" });
const style = await bundled("style.css", {});

// The licences of what is bundled, each once, with the packages it is of
function licences() {
  const packages = new Set();
  for (const file of Object.keys(script.metafile.inputs)) {
    const found = file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) packages.add(found[1]);
  }
  const texts = new Map();
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = readFileSync(join(folder, file), "utf8").trim();
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, names]) => `${names.join(", ")}:\n\n${text}`).join("\n\n");
}

const safe = (text) => text.replaceAll("</script", "<\\/script").trim();
const program = safe(script.outputFiles[0].text);
const rules = style.outputFiles[0].text.trim();
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hash(program)}`,
  `style-src ${hash(rules)}`,
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const comment = `<!--\nThis page contains, under their licences:\n\n${licences().replaceAll("--", "- -")}\n-->`;
const page = readFileSync(join(here, "src", "page.html"), "utf8")
  .replace("@POLICY@", () => policy)
  .replace("@STYLE@", () => rules)
  .replace("@SCRIPT@", () => program)
  .replace("</head>", () => `${comment}\n</head>`);
writeFileSync(target, page);
