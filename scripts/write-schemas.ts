/**
 * Writes the JSON Schemas of the wire contract to schemas/. With `--check` it writes nothing and
 * exits 1 when a file differs from what the zod schemas say.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { jsonSchemas } from "@harmovela/envelope";

const folder = new URL("../schemas/", import.meta.url);
const isCheck = process.argv.includes("--check");

let drifted = 0;
mkdirSync(folder, { recursive: true });
for (const [name, schema] of Object.entries(jsonSchemas())) {
  const file = new URL(name, folder);
  const text = `${JSON.stringify(schema, null, 2)}\n`;
  if (isCheck) {
    if (read(file) === text) continue;
    drifted++;
    console.error(`${fileURLToPath(file)} is not what the schemas say; run: npm run schemas`);
  } else {
    writeFileSync(file, text);
    console.log(fileURLToPath(file));
  }
}
process.exitCode = drifted === 0 ? 0 : 1;

function read(file: URL): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // A file that is not there has drifted as well.
    return undefined;
  }
}
