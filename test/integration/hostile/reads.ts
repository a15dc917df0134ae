/** Questions to the service that nobody who means it asks. */
import type { SimRandom } from "@harmovela/testkit";
import { ELSEWHERE } from "./headers.ts";

const encoder = new TextEncoder();

const VERBS = [
  ...["task", "tree", "history", "why", "delegation", "owner", "children", "list", "session"],
  ...[
    "token",
    "status",
    "replay",
    "nothing",
    "__proto__",
    "constructor",
    "toString",
    "%2A",
    "%C3%A9",
  ],
];
const IDS: readonly unknown[] = [
  ...["task_1", "task_2", "", "-", "__proto__", "constructor", "toString", "hasOwnProperty"],
  ...["\u0000", "\ud800", "x".repeat(60_000), 0, -1, 1.5, null, true, [], {}, ["task_1"]],
];
const OTHERS: readonly unknown[] = [
  ...[0, 1, -1, 1e9, 1.5, 2 ** 53, "1", "", "live", "submitted", "__proto__", null, [], {}, false],
  ...["start", "end", "HV_LOG_TASKS:1", "HV_LOG_TASKS:-1", "1970-01-01T00:00:00Z"],
  ...[{ source: "*" }, { type: "task.>" }, { type: "task.*" }, { __proto__: null, target: {} }],
];
const FIELDS = [
  "task_id",
  "session_id",
  "limit",
  "after",
  "state",
  "agent",
  "silent_ms",
  "from",
  "filter",
  "max",
];

/** What becomes of a question: it is answered once, or counted as dropped or as answered to nobody. */
export interface Question {
  subject: string;
  body: Uint8Array;
  fate: "answered" | "dropped" | "replies_dropped";
  /** Where it asks the answer to go, unless that is an inbox of the asker's; "" for nowhere. */
  reply: string | undefined;
  /** It waits for what may never come. */
  isWaiting: boolean;
}

const DISCOVERY = ["PING", "INFO", "STATS"].flatMap((verb) => [
  `$SRV.${verb}`,
  `$SRV.${verb}.harmovela-delegation-coordinator`,
]);

/** Subjects of reads that name no asker. */
const NAMELESS = [
  "hv.acme.rpc.agent%3Aa.tasks.task",
  "hv.-.rpc.agent:a.tasks.task",
  "hv.acme.rpc.-.tasks.task",
  "hv.acme.rpc.%FF.tasks.task",
  "hv.acme.rpc.\xff.tasks.task",
  "hv.acme.rpc.agent:a.tasks.-",
];

export function question(random: SimRandom): Question {
  const isDiscovery = random.chance(0.15);
  const verb = random.pick(VERBS) ?? "task";
  const known = isDiscovery
    ? (random.pick(DISCOVERY) ?? "$SRV.PING")
    : `hv.${random.pick(["acme", "other", "__proto__"])}.rpc.agent:a.tasks.${verb}`;
  const isNameless = !isDiscovery && random.chance(0.1);
  const subject = isNameless ? (random.pick(NAMELESS) ?? "") : known;
  const params = paramsOf(random);
  const body = encoder.encode(params.text);
  const replies = { ours: 7, elsewhere: 2, none: 1 };
  const asks = random.weighted(replies);
  const reply = { ours: undefined, elsewhere: random.pick(MISLEADING), none: "" }[asks];
  const isDropped = isNameless || asks === "none";
  const fate = isDropped ? "dropped" : asks === "elsewhere" ? "replies_dropped" : "answered";
  return { subject, body, fate, reply, isWaiting: params.isWaiting && !isDiscovery };
}

/** In the command line of the protocol a reply subject has no white space and no wildcard. */
const MISLEADING = ELSEWHERE.filter(
  (reply) => /^[$A-Za-z]/.test(reply) && !/[\s*>]|\.\.|\.$/.test(reply),
);

function paramsOf(random: SimRandom): { text: string; isWaiting: boolean } {
  switch (random.whole(0, 5)) {
    case 0:
      return {
        text: random.pick(["", "{", "null", "[]", "1", "\ufeff{}"]) ?? "",
        isWaiting: false,
      };
    case 1:
      return { text: `${"[".repeat(30_000)}`, isWaiting: false };
    case 2:
      return { text: `{"task_id":"${"x".repeat(70_000)}"}`, isWaiting: false };
    case 3: {
      const cursor = random.pick(["HV_LOG_TASKS:999999999", "HV_LOG_TASKS:x", "x", 7, null]);
      return { text: JSON.stringify({ task_id: "task_1", cursor }), isWaiting: true };
    }
    default: {
      const params: [string, unknown][] = FIELDS.filter(() => random.chance(0.4)).map((field) => [
        field,
        random.pick(field.endsWith("_id") ? IDS : OTHERS),
      ]);
      return { text: JSON.stringify(Object.fromEntries(params)), isWaiting: false };
    }
  }
}
