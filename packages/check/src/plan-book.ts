import type { Envelope } from "@harmovela/envelope";
import { sameEvent } from "./compare.ts";
import type { FindingSink } from "./finding.ts";
import type { Frame } from "./frame.ts";

/** A begun plan whose own event is not logged yet. */
export interface OpenPlan {
  id: string;
  tenant: string;
  envelope: Envelope;
  /** Sequence and subject of its begun entry. */
  seq: number;
  subject: string;
  /** An obligation of it failed: nobody need finish it, and its subtree is not held closed. */
  isAbandoned: boolean;
}

/** The plans under way (architecture, section 2, `begin`), whatever their domain. */
export class PlanBook {
  readonly #sink: FindingSink;
  readonly #open = new Map<string, Map<string, OpenPlan>>();
  begun = 0;
  discharged = 0;

  constructor(sink: FindingSink) {
    this.#sink = sink;
  }

  begin(plan: OpenPlan): void {
    let ofTenant = this.#open.get(plan.tenant);
    if (ofTenant === undefined) {
      ofTenant = new Map();
      this.#open.set(plan.tenant, ofTenant);
    }
    this.begun += 1;
    if (ofTenant.has(plan.id)) this.#sink.add("begun-twice", `plan ${plan.id} is under way`);
    else ofTenant.set(plan.id, plan);
  }

  get(tenant: string, id: string): OpenPlan | undefined {
    return this.#open.get(tenant)?.get(id);
  }

  /** The plan that this event ends, held to what was begun, and from here on no longer open. */
  discharge(tenant: string, frame: Frame, envelope: Envelope): OpenPlan | undefined {
    const plan = this.get(tenant, envelope.id);
    if (plan === undefined) return undefined;
    const { cause } = frame;
    if (cause === undefined || !("owed" in cause) || cause.owed !== plan.id) {
      this.#sink.add("plan-final-cause", `the event that ends plan ${plan.id} has another cause`);
    }
    if (!sameEvent(plan.envelope, envelope)) {
      this.#sink.add("plan-outcome", `plan ${plan.id} ends with another content than was begun`);
    }
    this.#close(plan);
    this.discharged += 1;
    return plan;
  }

  /** The plan that a refusal of its envelope ends. */
  refuse(tenant: string, id: string): OpenPlan | undefined {
    const plan = this.get(tenant, id);
    if (plan === undefined) return undefined;
    this.#close(plan);
    this.discharged += 1;
    return plan;
  }

  /** An obligation that failed is settled with an alarm: its plan may stay as it is. */
  abandon(tenant: string, id: string): void {
    const plan = this.get(tenant, id);
    if (plan !== undefined) plan.isAbandoned = true;
  }

  #close(plan: OpenPlan): void {
    const ofTenant = this.#open.get(plan.tenant);
    ofTenant?.delete(plan.id);
    if (ofTenant?.size === 0) this.#open.delete(plan.tenant);
  }

  /** Plans that are still owed. */
  open(): OpenPlan[] {
    const plans: OpenPlan[] = [];
    for (const ofTenant of this.#open.values()) {
      for (const plan of ofTenant.values()) if (!plan.isAbandoned) plans.push(plan);
    }
    return plans;
  }
}
