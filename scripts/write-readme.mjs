/** Puts the files of `examples/` into the README; a test compares them. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(`${root}README.md`, "utf8");
const written = readme.replace(
  /(<!-- example: (\S+) -->\n```\w+\n)[\s\S]*?(```\n)/g,
  (_, open, path, close) => open + readFileSync(root + path, "utf8") + close,
);
writeFileSync(`${root}README.md`, written);
