import type { Envelope } from "@harmovela/envelope";
import { isObject } from "../record.ts";
import { payloadField, payloadText, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import { forgetOld, notOld } from "./forget.ts";

interface Budget {
  /** When it was used last, as far as accepted events say. */
  at: number;
  readonly issuer: string;
  limit: number;
  spent: number;
  isExhausted: boolean;
}

/** Costs against limits: a counter for each budget, in either form of payload (spec 3.2, C22). */
export class BudgetRules {
  readonly #context: TaskContext;
  readonly #budgets = new Map<string, Budget>();

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** What an accepted envelope costs; of one that began a plan when it began. */
  spend({ tenant, envelope, frame }: TaskEvent): void {
    const { budget_id: id, budget_cost: cost } = envelope;
    if (typeof id !== "string" || typeof cost !== "number" || cost === 0) return;
    const budget = this.#get(keyOf(tenant, id), frame.at);
    if (cost < 0) this.#context.sink.add("budget-exceeded", `a cost of ${cost} on ${id}`);
    if (budget === undefined || cost < 0) return;
    this.#use(keyOf(tenant, id), budget, frame.at);
    const { spent, limit, isExhausted } = budget;
    if (isExhausted || sum(spent, cost) > limit) {
      const message = `${cost} of the budget ${id}, of whose ${limit} are spent ${spent}`;
      this.#context.sink.add("budget-exceeded", message);
    }
    budget.spent = sum(spent, cost);
    budget.isExhausted ||= budget.spent >= limit;
  }

  onEvent({ tenant, envelope, frame }: TaskEvent): void {
    const { type, source } = envelope;
    const name = idOf(envelope);
    if (!type.startsWith("adaptation.budget.") || name === undefined) return;
    const key = keyOf(tenant, name);
    const known = this.#get(key, frame.at);
    const limit = limitOf(envelope);
    if (type === "adaptation.budget.established") {
      if (known !== undefined) {
        this.#context.sink.add("budget-owner", `${name} is established already`);
      } else if (limit !== undefined) {
        forgetOld(this.#budgets, frame.at - this.#context.settings.retentionMs);
        const isExhausted = limit <= 0;
        this.#use(key, { at: frame.at, issuer: source, limit, spent: 0, isExhausted }, frame.at);
      }
      return;
    }
    if (known === undefined) return;
    if (type === "adaptation.budget.adjusted" && source !== known.issuer) {
      this.#context.sink.add("budget-owner", `${source} adjusts ${name} of ${known.issuer}`);
    }
    // What others observe of a budget is a fact, and no change of it.
    if (source !== known.issuer) return;
    this.#use(key, known, frame.at);
    if (type === "adaptation.budget.exhausted") known.isExhausted = true;
    else if (type === "adaptation.budget.adjusted" && limit !== undefined) {
      known.limit = limit;
      known.isExhausted = known.spent >= limit;
    }
  }

  /** One that nobody has used for the retention is forgotten (architecture, section 6). */
  #get(key: string, at: number): Budget | undefined {
    return notOld(this.#budgets.get(key), at - this.#context.settings.retentionMs);
  }

  /** The one that was used last stands last. */
  #use(key: string, budget: Budget, at: number): void {
    budget.at = at;
    this.#budgets.delete(key);
    this.#budgets.set(key, budget);
  }
}

/** Costs are decimal: of a sum that is not whole the last digit of a double is rounding, and no cost. */
function sum(spent: number, cost: number): number {
  const whole = spent + cost;
  return Number.isInteger(whole) ? whole : Number(whole.toPrecision(15));
}

/** Its own name, or the scope that it limits. */
function idOf(envelope: Envelope): string | undefined {
  const named = payloadText(envelope, "budget_id");
  if (named !== undefined) return named;
  const type = payloadText(envelope, "scope_type");
  const id = payloadText(envelope, "scope_id");
  return type === undefined || id === undefined ? undefined : `${type}:${id}`;
}

function limitOf(envelope: Envelope): number | undefined {
  const budget = payloadField(envelope, "budget");
  const stated = [
    payloadField(envelope, "limit"),
    payloadField(envelope, "new_limit"),
    isObject(budget) ? budget.max_cost_usd_millicents : undefined,
  ];
  return stated.find((value): value is number => typeof value === "number" && value >= 0);
}

const keyOf = (tenant: string, id: string): string => `${tenant.length}:${tenant}${id}`;
