/** What the service owes next. Reads the state alone. */
import type { Instant, Owed } from "@harmovela/envelope";
import { derivedRefusal, derivedTruncated, neverSeen } from "./derived.ts";
import { attestationRefusal } from "./rules/attestation.ts";
import { contradictionRefusal } from "./rules/contradiction.ts";
import type { AttesterSettings } from "./settings.ts";
import type { AttesterState, Wait } from "./state.ts";
import { nextLoss } from "./truncation.ts";

export function owed(
  state: AttesterState,
  settings: AttesterSettings,
  now: Instant,
): Owed | undefined {
  const { service } = settings;
  const late = state.waiting.peek();
  if (late !== undefined && late.due <= now) {
    const event = derivedRefusal(service, late, neverSeen(late, settings));
    return { ...ending(late, "timer"), event, refuses: late.envelope };
  }
  const ready = state.ready.peek();
  if (ready !== undefined) {
    const { tenant, envelope } = ready;
    // Judged as if it had come after its event: the order in which the two came decides nothing.
    const refusal =
      contradictionRefusal(state, tenant, envelope) ??
      attestationRefusal(tenant, settings, envelope);
    if (refusal === undefined) return { ...ending(ready, "step"), event: envelope };
    const event = derivedRefusal(service, ready, refusal);
    return { ...ending(ready, "step"), event, refuses: envelope };
  }
  const loss = nextLoss(state);
  if (loss !== undefined) {
    const event = derivedTruncated(state, service, loss);
    const tenant = loss.assertion.tenant.name;
    return { event, tenant, cause: event.id, urgency: "step", due: 0 };
  }
  return late === undefined ? undefined : { wakeAt: late.due };
}

function ending(wait: Wait, urgency: "timer" | "step") {
  const due = urgency === "timer" ? wait.due : 0;
  return { tenant: wait.tenant.name, cause: wait.id, urgency, due };
}
