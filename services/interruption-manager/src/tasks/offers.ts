/** Who gives a task to whom, as far as this service has to know (spec 5.6). Called by the fold alone. */
import { type EventEntry, isHarness, isService } from "@harmovela/envelope";
import { taskIdOf } from "../rules/payload.ts";
import type { ManagerState, Offer, TaskEnd, TaskRecord, TenantState } from "../state.ts";
import { addTask, nameIn } from "./book.ts";
import { giveTo, instanceOf } from "./instances.ts";

/** What a rejected offer left behind: the task, when it goes with it. */
export type OfferOutcome = { removed: TaskRecord; end: TaskEnd } | undefined;

/** Folds an event of the family `delegation` that the coordinator has accepted. */
export function foldOffer(
  state: ManagerState,
  tenant: TenantState,
  entry: EventEntry,
): OfferOutcome {
  const { envelope } = entry;
  const id = taskIdOf(envelope);
  if (id === undefined) return undefined;
  if (envelope.type === "delegation.requested") {
    open(tenant, id, entry);
    return undefined;
  }
  const task = tenant.tasks.get(id);
  const offer = task?.offer;
  if (task === undefined || offer === undefined || task.ended) return undefined;
  switch (envelope.type) {
    case "delegation.accepted":
      accept(state, task, offer, entry);
      return undefined;
    case "delegation.rejected":
      return takeBack(state, task, offer, entry);
    case "delegation.escalated":
      escalate(task, offer, entry);
      return undefined;
    case "delegation.handoff.completed":
      offer.state = "handed_off";
      if (offer.delegatedTo !== undefined) {
        offer.owner = offer.delegatedTo;
        run(state, task, offer);
      }
      return undefined;
    default:
      return undefined;
  }
}

function open(tenant: TenantState, id: string, entry: EventEntry): void {
  const { source, delegated_to: to } = entry.envelope;
  const before = tenant.tasks.get(id);
  const known = before?.ended || before?.isExternal ? undefined : before;
  const task = known ?? addTask(tenant, id, entry, { submitter: source, target: to });
  const delegatedTo = to === undefined ? undefined : nameIn(tenant, to);
  task.offer = {
    state: "requested",
    delegatedBy: nameIn(tenant, source),
    delegatedTo,
    owner: nameIn(tenant, source),
    instance: undefined,
    targetBefore: known?.target,
    hasTaken: false,
  };
  if (task.owner === undefined) task.target = delegatedTo;
}

function accept(
  state: ManagerState,
  task: TaskRecord,
  offer: Offer,
  { envelope }: EventEntry,
): void {
  offer.state = "accepted";
  offer.instance = instanceOf(state, task.tenant, envelope);
  offer.delegatedTo ??= nameIn(task.tenant, envelope.source);
  if (task.owner === undefined) {
    offer.hasTaken = true;
    run(state, task, offer);
  }
  if (task.state === "submitted") task.state = "accepted";
}

/** The delegate works on the task from now on. */
function run(state: ManagerState, task: TaskRecord, offer: Offer): void {
  task.owner = offer.delegatedTo;
  giveTo(state, task, offer.instance);
}

function takeBack(
  state: ManagerState,
  task: TaskRecord,
  offer: Offer,
  { envelope, seq, at }: EventEntry,
): OfferOutcome {
  offer.state = "rejected";
  if (offer.hasTaken && task.owner === offer.delegatedTo) {
    task.owner = undefined;
    offer.hasTaken = false;
    giveTo(state, task, undefined);
  }
  const isNobodys = task.owner === undefined;
  if (isNobodys) task.target = offer.targetBefore;
  // A task that goes on with somebody whom only the delegation put there still is its owner's.
  if (isNobodys || task.owner === offer.owner) task.offer = undefined;
  if (!isNobodys || task.isSubmitted || task.childCount > 0) return undefined;
  const { id, type } = envelope;
  return { removed: task, end: { id, type, seq, at } };
}

function escalate(task: TaskRecord, offer: Offer, { envelope }: EventEntry): void {
  const { delegated_by: by = envelope.source, delegated_to: to = addressee(envelope) } = envelope;
  offer.state = "escalated";
  offer.delegatedBy = nameIn(task.tenant, by);
  offer.delegatedTo = to === undefined ? undefined : nameIn(task.tenant, to);
  offer.hasTaken = false;
  if (task.owner === undefined) task.target = offer.delegatedTo;
}

/** Spoken to a harness or a service it names nobody who could take the task. */
function addressee({ target }: EventEntry["envelope"]): string | undefined {
  return target === undefined || isHarness(target) || isService(target) ? undefined : target;
}
