/** Bodies: valid envelopes, what becomes of them when somebody alters them, and noise. */
import { EVENT_TYPES } from "@harmovela/envelope";
import type { SimRandom } from "@harmovela/testkit";
import { FULL_PAYLOADS } from "../../../packages/envelope/test/full-payloads.ts";

const encoder = new TextEncoder();

/** What stands where something else is expected. */
const NASTY: readonly unknown[] = [
  null,
  true,
  "",
  "-",
  "__proto__",
  "constructor",
  "toString",
  "hv_00000000000000000000000000",
  "a".repeat(129),
  "\u0000",
  "\u202e\ufeff",
  "a\r\nHv-Epoch: 1",
  "hv.acme.log.tasks.>",
  0,
  -1,
  1.5,
  -0,
  1e300,
  2 ** 53,
  [],
  {},
  [[[]]],
  Array(2_000).fill("x"),
  { __proto__: null, constructor: { prototype: 1 } },
  "9999-12-31T23:59:59.999999999Z",
  "P9999999Y",
];
const ENVELOPE_FIELDS = [
  ...["spec_version", "id", "type", "source", "created_at", "payload", "target", "topic"],
  ...["session_id", "conversation_id", "task_id", "correlation_id", "causation_id", "expires_at"],
  ...["delivery", "delegated_by", "delegated_to", "parent_task_id", "handoff_token", "tenant_id"],
  ...["authorization", "actor_id", "roles", "requested_action", "target_tenant_id", "budget_id"],
  ...["budget_cost", "evidence_chain", "handoff_proof", "aep_version", "__proto__", "toString"],
];
const PAYLOAD_FIELDS = [
  ...["task_id", "state", "timeout_ms", "deadline_ms", "grace_period_ms", "error", "deadline"],
  ...["retry_after", "key", "session_id", "capabilities", "types", "filter", "from_cursor"],
  ...["query_scope", "negotiation_window_ms", "snapshot_version", "budget_id", "limit", "budget"],
  ...["call_id", "correlation_id", "reason", "parent_task_id", "subscription_id", "__proto__"],
];

let made = 0;

/** A whole envelope of `agent:a`; valid as it stands. */
export function envelopeOf(type: string): Record<string, unknown> {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_p6_${made}`,
    type,
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    task_id: `task_${made % 50}`,
    payload: { ...FULL_PAYLOADS.get(type), task_id: `task_${made % 50}` },
  };
}

export function bytesOf(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** Any of the registered types. */
export function anyType(random: SimRandom): string {
  return random.pick(EVENT_TYPES) ?? "task.submitted";
}

/** A body for a subject that ends with `type`; now and then one that belongs there. */
export function bodyFor(type: string, random: SimRandom): Uint8Array {
  switch (random.whole(0, 7)) {
    case 0:
      return bytesOf(envelopeOf(type));
    case 1:
      return Uint8Array.from({ length: random.whole(0, 400) }, () => random.whole(0, 255));
    case 2:
      return encoder.encode(nested(random));
    case 3:
      return garbled(bytesOf(envelopeOf(type)), random);
    case 4:
      return large(type, random);
    default:
      return bytesOf(altered(envelopeOf(type), random));
  }
}

/** One to four fields say something else. */
function altered(envelope: Record<string, unknown>, random: SimRandom): Record<string, unknown> {
  const payload = envelope.payload as Record<string, unknown>;
  for (let left = random.whole(1, 4); left > 0; left -= 1) {
    const value = random.pick(NASTY);
    const [of, fields] = random.chance(0.5)
      ? ([payload, PAYLOAD_FIELDS] as const)
      : ([envelope, ENVELOPE_FIELDS] as const);
    const field = random.pick(fields) ?? "id";
    if (random.chance(0.15)) delete of[field];
    else Object.defineProperty(of, field, { value, enumerable: true, configurable: true });
  }
  return envelope;
}

/** Bytes changed, cut out, or said twice. */
function garbled(bytes: Uint8Array, random: SimRandom): Uint8Array {
  const at = random.whole(0, bytes.length - 1);
  switch (random.whole(0, 3)) {
    case 0:
      return bytes.map((byte, place) => (place === at ? random.whole(0, 255) : byte));
    case 1:
      return bytes.slice(0, at);
    case 2:
      return Buffer.concat([bytes, bytes]);
    default:
      return Buffer.concat([
        bytes.subarray(0, 1),
        encoder.encode('"id":"evt_1",'),
        bytes.subarray(1),
      ]);
  }
}

/** Deeper than anything that is taken. */
function nested(random: SimRandom): string {
  const depth = random.pick([63, 64, 65, 1_000, 100_000]) ?? 64;
  const [open, close] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
  ]) ?? ["[", "]"];
  return `${open.repeat(depth)}1${random.chance(0.5) ? close.repeat(depth) : ""}`;
}

/** About as large as the stream takes, and beyond. */
export function large(type: string, random: SimRandom): Uint8Array {
  const size = random.pick([400_000, 500_000, 530_000, 600_000]) ?? 0;
  return filled(type, JSON.stringify("x".repeat(size)));
}

/** As much work as one message can make: many members, many numbers that grow when written anew. */
export function laborious(type: string): Uint8Array[] {
  const members = Array.from({ length: 30_000 }, (_, key) => `"k${key}":0`).join(",");
  return [
    `[${Array(100_000).fill("1e20").join(",")}]`,
    `[${Array(170_000).fill("[]").join(",")}]`,
    `{${members}}`,
    `{${members},"k0":0}`,
    `"${"\\ud800".repeat(60_000)}"`,
    `"${"\\n".repeat(240_000)}"`,
  ].map((filling) => filled(type, filling));
}

function filled(type: string, filling: string): Uint8Array {
  const envelope = envelopeOf(type);
  const text = JSON.stringify({ ...envelope, payload: { task_id: envelope.task_id, result: "@" } });
  return encoder.encode(text.replace('"@"', () => filling));
}
