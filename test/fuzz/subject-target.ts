/** What subjects, names, header blocks and entries are fuzzed with. */
import type { SimRandom } from "@harmovela/testkit";
import { allTricks } from "../integration/hostile/headers.ts";
import { CANONICAL, OTHERS, UNROUTABLE } from "../integration/hostile/subjects.ts";
import { type Input, ofBytes } from "./input.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { HEADERS, KINDS, type Kind, outcomeOf } from "./subject-promises.ts";
import { Broken, type Session, type Target } from "./target.ts";

const TEXT_MAX = 8_000;
const NAMES: readonly string[] = [
  ...["acme", "agent:a", "service:x", "-", "", "*", ">", ".", "a.b", "a b", "é", "\u0000", "%2D"],
  ...["__proto__", "hv", "in", "x".repeat(4_096), "a".repeat(128), "\r\nX: y", "😀", "%", "~"],
];
const TYPES: readonly string[] = [
  "task.submitted",
  "",
  ".",
  "..",
  "a.",
  "-",
  "-.-",
  "*",
  "x.>",
  "é.é",
];
const ENTRY_SUBJECTS: readonly string[] = [
  "hv.acme.log.tasks.agent:a.-.task.completed",
  "hv.-.ctl.tasks.epoch",
  "hv.acme.ctl.tasks.begun",
  "hv.acme.ctl.tasks.token_issued",
  "hv.acme.ctl.tasks.__proto__",
];

export const subjectTarget: Target = {
  name: "subjects",
  batch: 256,
  sessionInputs: 65_536,
  seed: (random) => seedOf(random.pick(KINDS), random),
  mutate: (input, other, random) => {
    const fields = Object.keys(input).filter((field) => field !== "kind");
    const field = random.pick(fields) ?? "subject";
    const from = random.pick(Object.values(other)) ?? "";
    return { ...input, [field]: mutateBytes(input[field] ?? "", from, random, TEXT_MAX) };
  },
  open: async (): Promise<Session> => ({
    run: async (inputs) =>
      inputs.map((input, index) => {
        try {
          return `${input.kind} ${outcomeOf(input)}`;
        } catch (error) {
          if (error instanceof Broken) throw new Broken(`${input.kind}: ${error.message}`, index);
          throw new Broken(`${input.kind}: threw ${String(error).split("\n")[0]}`, index, error);
        }
      }),
    check: async () => {},
    close: async () => {},
  }),
};

function seedOf(kind: Kind, random: SimRandom): Input {
  const name = (): string => ofBytes(random.pick(NAMES) ?? "");
  const lines = (): string =>
    HEADERS.filter(() => random.chance(0.6))
      .map(([key, value]) => `${key}: ${value}\r\n`)
      .join("") +
    (random.chance(0.3) ? (random.pick(allTricks())?.lines.slice(0, 2_000) ?? "") : "");
  switch (kind) {
    case "subject": {
      const rpc = ["hv.acme.rpc.agent:a.tasks.status", "hv.acme.ev.tasks.agent:a.-.task.completed"];
      const all = [...CANONICAL, ...OTHERS, ...UNROUTABLE, ...ENTRY_SUBJECTS, ...rpc];
      return { kind, subject: ofBytes(random.pick(all) ?? "") };
    }
    case "names":
      return {
        kind,
        tenant: name(),
        source: name(),
        target: name(),
        type: random.pick(TYPES) ?? "",
      };
    case "permissions":
      return { kind, tenant: name(), agent: name() };
    case "reply":
      return {
        kind,
        reply: random.pick(["_INBOX.a.b.c", "_INBOX.", "_INBOX.x", "_R_.x"]),
        prefix: random.pick(["_INBOX.", "_INBOX.a.b.", "_R_."]),
      };
    case "headers": {
      const [key = "", value = ""] = random.pick(HEADERS) ?? [];
      const [key2 = "", value2 = ""] = random.pick(HEADERS) ?? [];
      return { kind, name: key, value, name2: key2, value2 };
    }
    case "block":
      return {
        kind,
        block: ofBytes(`NATS/1.0${random.pick(["", " 503", " 100 x"])}\r\n${lines()}\r\n`),
      };
    case "entry": {
      const body = random.pick([
        '{"plan":{"id":"p","kind":"k","envelope":{}}}',
        "{}",
        "null",
        '{"first":{}}',
      ]);
      return {
        kind,
        subject: random.pick(ENTRY_SUBJECTS) ?? "",
        block: ofBytes(`NATS/1.0\r\n${lines()}\r\n`),
        body,
      };
    }
  }
}
