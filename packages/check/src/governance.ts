import type { Envelope } from "@harmovela/envelope";
import type { FindingSink } from "./finding.ts";

const CROSS_ACCESS = "tenant.cross_access";
const READS = ["query.read"];
const OPERATES = [
  ...READS,
  "event.publish",
  "event.subscribe",
  "task.submit",
  "task.manage",
  "command.execute",
];

/** What each role may do (spec 9.8). */
const GRANTED: ReadonlyMap<string, readonly string[]> = new Map([
  ["viewer", [...READS, "event.subscribe"]],
  ["publisher", [...READS, "event.publish", "task.submit"]],
  ["operator", OPERATES],
  ["tenant-admin", [...OPERATES, "governance.audit.read"]],
  ["cross-tenant-operator", [...OPERATES, CROSS_ACCESS]],
]);

/** What is addressed to somebody, in whatever tenant (spec 5.9). */
const REQUESTS: ReadonlySet<string> = new Set(["command.requested", "query.requested"]);

/**
 * Who names an actor and an action must be granted it, in its own tenant or across (spec 9.8). Where senders
 * are proved, roles are the connection's, which no log tells; then the actor is the sender.
 */
export function checkGovernance(
  sink: FindingSink,
  envelope: Envelope,
  isAuthenticated: boolean,
): void {
  const { actor_id: actor, requested_action: action, roles } = envelope;
  if (isAuthenticated) {
    checkActor(sink, envelope);
    return;
  }
  const { tenant_id: own, target_tenant_id: other } = envelope;
  const granted = (Array.isArray(roles) ? roles : []).flatMap((role) => GRANTED.get(role) ?? []);
  const isWithin = own === other || granted.includes(CROSS_ACCESS);
  if (typeof actor !== "string" || typeof action !== "string") {
    const isCrossing = own !== undefined && other !== undefined && !isWithin;
    if (isCrossing && REQUESTS.has(envelope.type)) {
      sink.add("governance-denied", `${envelope.type} to ${other} from ${own}`, envelope.task_id);
    }
    return;
  }
  if (actor !== "" && own && other && granted.includes(action) && isWithin) return;
  const message = `${actor} asks for ${action} in ${String(other)} with ${granted.length} rights`;
  sink.add("governance-denied", message, envelope.task_id);
}

function checkActor(sink: FindingSink, envelope: Envelope): void {
  const { actor_id: actor, source, task_id } = envelope;
  if (actor === undefined || actor === source || source.startsWith("service:")) return;
  sink.add("governance-denied", `${source} speaks for the actor ${actor}`, task_id);
}
