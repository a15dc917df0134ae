/** What the service owes at once. Called by `evolve` alone. */
import type { BeliefState, Duty } from "./state.ts";

/** Owed from now on, before the next message is judged. */
export function addDuty(state: BeliefState, duty: Duty): void {
  state.duties.set(dutyKey(duty.tenant.name, duty.id), duty);
  if (duty.kind === "mark") duty.claim.due = { id: duty.id, because: duty.because };
  else duty.subject.duty = duty.id;
}

export function findDuty(state: BeliefState, tenant: string, id: string): Duty | undefined {
  return state.duties.get(dutyKey(tenant, id));
}

/** It is done, or has become pointless. */
export function strike(state: BeliefState, tenant: string, id: string): Duty | undefined {
  const duty = findDuty(state, tenant, id);
  if (duty === undefined) return undefined;
  state.duties.delete(dutyKey(tenant, id));
  if (duty.kind === "mark") duty.claim.due = undefined;
  else duty.subject.duty = undefined;
  return duty;
}

function dutyKey(tenant: string, id: string): string {
  return `${tenant} ${id}`;
}
