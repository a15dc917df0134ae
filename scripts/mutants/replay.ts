/** Faults in replays and in checkpoints that a service keeps: entries get lost, or what is another's is given away. */
import type { Mutant } from "./mutant.ts";

const DESK = "packages/host/src/replay/desk.ts";
const ACTS = "services/interruption-manager/src/store/checkpoint-acts.ts";
const replay = "packages/host/test/replay.test.ts";
const observation = "packages/client/test/observation.test.ts";
const attacks = "test/integration/attacks-replay.int.test.ts";

export const REPLAY_MUTANTS: readonly Mutant[] = [
  {
    name: "replay: what was trimmed while a page was read is not looked at",
    file: DESK,
    find: "const { first } = isWhole ? log : await this.#extent();",
    replace: "const { first } = log;",
    tests: [replay],
  },
  {
    name: "replay: a silent reader means that there is nothing more",
    file: DESK,
    find: "if (found === undefined || found.seq > end) return end;\n      await kept.arrival(ARRIVAL_MS);",
    replace:
      "if (found !== undefined || end >= 0) return end;\n      await kept.arrival(ARRIVAL_MS);",
    tests: [replay],
  },
  {
    name: "replay: a reader that is behind the cursor hands out what was had before",
    file: "packages/host/src/replay/kept-readers.ts",
    find: "if (first === undefined || first.seq > after) return first;",
    replace: "if (first === undefined || first.seq > after - 1) return first;",
    tests: [replay],
  },
  {
    name: "replay: any number of pages is put together at a time",
    file: DESK,
    find: "const PAGES_AT_ONCE = 4;",
    replace: "const PAGES_AT_ONCE = 40;",
    tests: [replay],
  },
  {
    name: "replay: an agent keeps as many readers as it likes",
    file: "packages/host/src/replay/kept-readers.ts",
    find: "if (meant.length < max) return true;",
    replace: "if (meant.length < max || max === READERS_PER_AGENT_MAX) return true;",
    tests: [replay],
  },
  {
    name: "replay: nobody looks by himself whether there is something new",
    file: "packages/client/src/replays.ts",
    find: "this.#cancelLook = this.#source.clock.after(LOOK_MS, () => this.#look());",
    replace: "this.#cancelLook = this.#source.clock.after(LOOK_MS * 1_000, () => this.#look());",
    tests: [observation],
  },
  {
    name: "replay: what is heard while a page is asked for is forgotten",
    file: "packages/client/src/replays.ts",
    find: "    this.#isAsking = false;\n    if (this.#isClosed) return;\n    this.#retryMs = RETRY_MS_MIN;\n",
    replace:
      "    this.#isAsking = false;\n    this.#hasNews = false;\n    if (this.#isClosed) return;\n    this.#retryMs = RETRY_MS_MIN;\n",
    tests: [observation],
  },
  {
    name: "replay: a checkpoint is anybody's of the tenant",
    file: ACTS,
    find: "if (task !== undefined && !task.isExternal && isHolder(task, source)) return task;",
    replace: "if (task !== undefined && !task.isExternal && source !== isHolder.name) return task;",
    tests: [attacks],
  },
  {
    name: "replay: a checkpoint is written over",
    file: ACTS,
    find: "if (digestOf(known) === digest) return;",
    replace: "if (digestOf(known) !== digest) return;",
    tests: [attacks],
  },
  {
    name: "replay: what is registered is removed",
    file: ACTS,
    find: "if (task.ended === undefined && task.checkpoints?.has(id)) return { removed: false };",
    replace:
      "if (task.ended !== undefined && task.checkpoints?.has(id)) return { removed: false };",
    tests: [attacks],
  },
];
