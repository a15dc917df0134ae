/**
 * Subjects, names in subjects, header blocks and entries made of them.
 *
 * S1 What is read from a subject is spelled that way and no other.
 * S2 Names come back from the subject that is made of them, whatever is in them; nothing of a name acts as a
 *    separator or a wildcard.
 * S3 A header value stays on its line; what lies about itself is read as something harmless.
 * S4 A reply that is allowed lies strictly under the prefix.
 * S5 Permissions of one agent let nobody else speak or listen.
 */
import {
  agentPermissions,
  controlSubject,
  decodeEntry,
  decodeFrame,
  encodeFrame,
  evSubject,
  intakeSubject,
  isPublishable,
  isUnderInbox,
  liveSubject,
  logSubject,
  parseControlSubject,
  parseEvSubject,
  parseIntakeSubject,
  parseLogSubject,
  parseRpcSubject,
  REPLY_LENGTH_MAX,
  rpcSubject,
  type StoredMessage,
  SUBJECT_LENGTH_MAX,
} from "@harmovela/bus";
import { isId } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import {
  decodeBlock,
  headerLines,
  headerText,
  headerValue,
} from "../../packages/bus/src/header-block.ts";
import { capture } from "../../packages/bus/src/memory/match.ts";
import { type Input, toBytes, toText } from "./input.ts";
import { Broken } from "./target.ts";

export const KINDS = [
  "subject",
  "names",
  "reply",
  "headers",
  "block",
  "entry",
  "permissions",
] as const;
export type Kind = (typeof KINDS)[number];

export const HEADERS: readonly (readonly [string, string])[] = [
  ["Hv-Cause", "in:7"],
  ["Hv-Cause", "owed:%20x"],
  ["Hv-At", "1796032800000"],
  ["Hv-Epoch", "1"],
  ["Hv-Prev", "6"],
  ["Hv-Seen", "tasks:5,beliefs:0"],
  ["Hv-Digest", "x"],
  ["Hv-Verdict", '{"pending":true}'],
  ["Hv-Reply-To", "_INBOX.x"],
  ["traceparent", "00-"],
  ["", "x"],
  ["a:b", "x"],
  ["a b", "x"],
];

/** What came of an input. Throws Broken, and what is thrown by what must not throw. */
export function outcomeOf(input: Input): string {
  switch (input.kind as Kind) {
    case "subject":
      return readAndSpell(toText(input.subject));
    case "names":
      return spellAndRead(input);
    case "permissions":
      return permit(toText(input.tenant), toText(input.agent));
    case "reply":
      return reply(toText(input.reply), toText(input.prefix));
    case "headers":
      return header(input);
    case "block":
      return block(decodeBlock(toBytes(input.block)));
    case "entry":
      return entry(input);
    default:
      return "no kind";
  }
}

/** The value, or the code of a typed refusal; anything else is a finding. */
function attempt<T>(work: () => T, code: string): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof HarmovelaError && error.code === code) return undefined;
    throw error;
  }
}

/** S1. */
function readAndSpell(subject: string): string {
  const readers: [string, string | undefined][] = [
    ["in", respelled(subject, parseIntakeSubject, intakeSubject)],
    ["log", respelled(subject, parseLogSubject, logSubject)],
    ["ev", respelled(subject, parseEvSubject, evSubject)],
    ["rpc", respelled(subject, parseRpcSubject, rpcSubject)],
    [
      "ctl",
      respelled(subject, parseControlSubject, (to) =>
        controlSubject(to.tenant, to.domain, to.kind),
      ),
    ],
  ];
  const read = readers.filter(([, spelled]) => spelled !== undefined);
  for (const [name, spelled] of read) {
    if (spelled !== "too long" && spelled !== subject)
      throw new Broken(`${name}: two spellings of one address`);
  }
  if (read.length > 1) throw new Broken("a subject of two kinds");
  return `${read[0]?.[0]} ${read[0]?.[1] === "too long"} ${isPublishable(subject)}`;
}

function respelled<A>(
  subject: string,
  parse: (subject: string) => A | undefined,
  spell: (to: A) => string,
): string | undefined {
  const address = parse(subject);
  if (address === undefined) return undefined;
  return attempt(() => spell(address), "invalid_argument") ?? "too long";
}

/** S2. */
function spellAndRead(input: Input): string {
  const [tenant, source, target, type] = ["tenant", "source", "target", "type"].map((field) =>
    toText(input[field]),
  );
  const to = { tenant: tenant ?? "", domain: "tasks", source, target, type } as const;
  const spelled = [
    attempt(() => intakeSubject(to), "invalid_argument"),
    attempt(() => logSubject(to), "invalid_argument"),
    attempt(
      () => liveSubject({ tenant: to.tenant, source: source ?? "", type: type ?? "" }),
      "invalid_argument",
    ),
    attempt(
      () => rpcSubject({ ...to, source: source ?? "", verb: target ?? "" }),
      "invalid_argument",
    ),
  ];
  for (const subject of spelled) {
    if (subject === undefined) continue;
    if (!isPublishable(subject)) throw new Broken("made a subject that cannot be published on");
    if (subject.length > SUBJECT_LENGTH_MAX) throw new Broken("made a subject that is too long");
  }
  const [asked, logged] = spelled;
  const read = asked === undefined ? undefined : parseIntakeSubject(asked);
  if (
    read !== undefined &&
    (read.tenant !== tenant || read.source !== source || (read.type ?? "") !== type)
  )
    throw new Broken("other names came back from an intake");
  const back = logged === undefined ? undefined : parseLogSubject(logged);
  if (back !== undefined && (back.tenant !== tenant || (back.target ?? "") !== target))
    throw new Broken("other names came back from a log");
  const isComplete = [tenant, source].every((name) => name !== "");
  if (asked !== undefined && isComplete && read === undefined)
    throw new Broken("made a subject that nobody reads");
  return `${asked !== undefined} ${read !== undefined} ${back !== undefined}`;
}

/** S5. */
function permit(tenant: string, agent: string): string {
  if (!isId(tenant) || !isId(agent)) return "no ids";
  const { publish, subscribe } = agentPermissions({ tenant, agent });
  const others = OTHER_SUBJECTS.filter(([owner, name]) => owner !== tenant || name !== agent);
  for (const [owner, name, said] of others) {
    if (publish.some((list) => capture(list, said) !== undefined))
      throw new Broken("may speak as another");
    const heard = `_INBOX.${owner}.${name}.x`;
    if (subscribe.some((list) => capture(list, heard) !== undefined))
      throw new Broken("may hear another's verdicts");
  }
  const own = intakeSubject({ tenant, domain: "tasks", source: agent, type: "task.submitted" });
  if (!publish.some((list) => capture(list, own) !== undefined))
    throw new Broken("may not speak as itself");
  return "ids";
}

/** Somebody else; the names are their own tokens. */
const OTHER_SUBJECTS = [
  ["victim", "agent:v"],
  ["acme", "agent:v"],
  ["victim", "agent:a"],
].flatMap(([tenant = "", agent = ""]) =>
  ["in.tasks", "live", "rpc"].map((space): [string, string, string] => {
    const middle = space === "in.tasks" ? `in.tasks.${agent}` : `${space}.${agent}`;
    return [tenant, agent, `hv.${tenant}.${middle}.task.submitted`];
  }),
);

/** S4. */
function reply(to: string, prefix: string): string {
  const start = prefix.endsWith(".") ? prefix : `${prefix}.`;
  const isAllowed = isUnderInbox(to, prefix);
  if (!isAllowed) return "no";
  const rest = to.slice(start.length);
  if (!to.startsWith(start) || rest === "") throw new Broken("a reply outside of the prefix");
  if (/[\s*>\0]|\.\.|\.$/.test(rest)) throw new Broken("a reply that is no plain subject");
  if (to.length > REPLY_LENGTH_MAX) throw new Broken("a reply that is too long");
  return "yes";
}

/** S3, writing. */
function header(input: Input): string {
  const [name, value, name2, value2] = ["name", "value", "name2", "value2"].map((field) =>
    toText(input[field]),
  );
  const headers = { [name ?? ""]: value ?? "", [name2 ?? ""]: value2 ?? "" };
  const lines = attempt(() => headerLines(headers), "invalid_argument");
  if (lines === undefined) return "refused";
  const text = headerText(lines);
  const count = Object.keys(headers).length;
  if (text.split(/\r\n|\r|\n/).length !== count + 3)
    throw new Broken("a header broke out of its line");
  for (const [key, given] of Object.entries(headers)) {
    if (headerValue(text, key) !== given.trim()) throw new Broken("another header value came back");
  }
  return `${count}`;
}

/** S3, reading. */
function block(text: string): string {
  const found = HEADERS.map(([name]) => headerValue(text, name));
  if (found.some((value) => /\r\n/.test(value))) throw new Broken("a value of two lines");
  return found.map((value) => (value === "" ? 0 : 1)).join("");
}

/** A frame that is read is written the same way again; its numbers are numbers. */
function entry(input: Input): string {
  const text = decodeBlock(toBytes(input.block));
  const message: StoredMessage = {
    seq: 7,
    time: 0,
    subject: toText(input.subject),
    data: toBytes(input.body),
    header: (name) => headerValue(text, name),
  };
  const framed = decodeFrame(message);
  if (framed === undefined) return "foreign";
  const { frame } = framed;
  for (const value of [frame.at, frame.epoch, frame.prev]) {
    if (!Number.isSafeInteger(value) || value < 0) throw new Broken("a number that is none");
  }
  const written = encodeFrame(frame);
  const again = decodeFrame({ ...message, header: (name) => written[name] ?? "" });
  if (JSON.stringify(again?.frame) !== JSON.stringify(frame))
    throw new Broken("another frame came back");
  try {
    return `entry ${decodeEntry(message)?.kind}`;
  } catch {
    // A body that cannot be read stops a fold, which names the entry.
    return "unreadable";
  }
}
