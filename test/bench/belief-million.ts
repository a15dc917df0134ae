/** A million live windows in one heap: `npm run bench:million`. Takes about two gigabytes and two minutes. */
import { beliefFold } from "./belief-fold.ts";

beliefFold((name, value, unit = "") => {
  process.stdout.write(`${name.padEnd(40)} ${Number(value.toPrecision(4))} ${unit}\n`);
}, 1_000_000);
