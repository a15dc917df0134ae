/** Messages to an intake: the body, the subject that goes with it, and headers. */
import { encodeToken } from "@harmovela/bus";
import { domainOf } from "@harmovela/envelope";
import type { SimRandom } from "@harmovela/testkit";
import { allTricks } from "../integration/hostile/headers.ts";
import type { Fields } from "./envelopes.ts";
import { type Input, ofBytes, toText } from "./input.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { mutateJson } from "./mutate-json.ts";

const BODY_MAX = 600_000;
const SUBJECT_MAX = 4_000;
const HEAD_MAX = 65_000;
/** Longer ones make every further change of them slow; they are tried, and then cut. */
const BODY_KEPT_MAX = 100_000;

/** The envelope under the subject that fits it. */
export function addressed(envelope: Fields, tenant: string, source: string): Input {
  const sent: Fields = { ...envelope, source };
  if (sent.tenant_id !== undefined) sent.tenant_id = tenant;
  return { subject: subjectOf(sent, tenant), body: ofBytes(JSON.stringify(sent)) };
}

function subjectOf({ type, source }: Fields, tenant: string): string {
  const name = typeof type === "string" ? type : "-";
  const tokens = name.split(".").map(token);
  return ofBytes(`hv.${token(tenant)}.in.${domainOf(name)}.${token(source)}.${tokens.join(".")}`);
}

function token(name: unknown): string {
  try {
    return encodeToken(typeof name === "string" ? name : undefined);
  } catch {
    // Half a surrogate pair has no token.
    return "-";
  }
}

/** Lines that no honest agent sends. */
export function anyHead(random: SimRandom): string {
  const tricks = allTricks().filter(({ lines }) => lines.length < 2_000);
  return ofBytes(random.pick(tricks)?.lines ?? "");
}

/** Mostly the body, with the subject and a fresh id after it, so that more than the first check is met. */
export function mutateMessage(input: Input, other: Input, random: SimRandom): Input {
  const { subject = "", head = "", body = "" } = input;
  switch (random.weighted({ json: 12, raw: 2, subject: 2, head: 1, tenant: 1, wait: 1 })) {
    case "raw":
      return { ...input, body: mutateBytes(cut(body), other.body ?? "", random, BODY_MAX) };
    case "subject":
      return { ...input, subject: mutateBytes(subject, other.subject ?? "", random, SUBJECT_MAX) };
    case "head":
      return { ...input, head: mutateBytes(head, other.head ?? "", random, HEAD_MAX) };
    case "tenant":
      return repaired(
        { ...input, body: cut(body) },
        random,
        random.pick(["acme", "beta", "-", "é"]),
      );
    case "wait":
      return { ...input, wait: String(random.pick([0, 1, 1_000, 30_000])) };
    default: {
      const text = mutateJson(toText(cut(body)), toText(other.body), random).slice(0, BODY_MAX);
      const changed = { ...input, body: ofBytes(text) };
      return random.chance(0.9) ? repaired(changed, random) : changed;
    }
  }
}

const cut = (body: string): string => (body.length > BODY_KEPT_MAX ? "{}" : body);

/** The subject says again what the body says, and the id is another. */
function repaired(input: Input, random: SimRandom, tenant?: string): Input {
  const body = toText(input.body);
  let sent: unknown;
  try {
    sent = JSON.parse(body);
  } catch {
    return input;
  }
  if (typeof sent !== "object" || sent === null || Array.isArray(sent)) return input;
  const owner = tenant ?? toText(input.subject).split(".")[1] ?? "acme";
  const text = random.chance(0.8)
    ? body.replace(/"id":"e\d+"/, () => `"id":"e${random.whole(0, 1_000_000)}"`)
    : body;
  return { ...input, subject: subjectOf(sent as Fields, owner), body: ofBytes(text) };
}
