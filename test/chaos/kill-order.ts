/**
 * When a process kills itself: a wrapper around its two buses, so that the product needs no hook.
 *
 * before     the n-th such append is not published, everything before it is
 * published  the n-th such append has reached the server, its acknowledgement is never looked at
 * acked      it is acknowledged, nothing that waited for that has left
 * released   it is acknowledged and what waited for that has left
 * later      it is acknowledged, and `more` further entries are, or some time has passed
 * verdict    the n-th verdict or answer is about to leave
 * request    the n-th request to another domain is about to leave
 * requested  it is stored there, and nobody here knows
 */
import type { Appender, AppenderOptions, Bus, Headers } from "@harmovela/bus";
import type { Decider, Owed } from "@harmovela/envelope";
import { withOverrides } from "./overrides.ts";

export interface KillOrder {
  point:
    | "before"
    | "published"
    | "acked"
    | "released"
    | "later"
    | "verdict"
    | "request"
    | "requested";
  /** Which appends count: steps of plans and timers, the entry `begun`, or all but `epoch`. */
  of?: "step" | "begun" | "entry";
  n: number;
  more?: number;
  /** Only events of this type count. */
  type?: string;
  /** Only entries of this tenant count. */
  tenant?: string;
}

/** A process with a `later` order and no other traffic ends after this long. */
const LATER_MS = 250;

export class Doom {
  readonly #order: KillOrder;
  #count = 0;
  #seq = Number.POSITIVE_INFINITY;
  #verdicts = 0;
  #requests = 0;
  #isDying = false;
  #isLater = false;
  #flush: () => Promise<void> = () => Promise.resolve();

  constructor(order: KillOrder) {
    this.#order = order;
  }

  writer(bus: Bus): Bus {
    return withOverrides(bus, {
      openAppender: (options: AppenderOptions) => this.#wrapAppender(bus, options),
      store: (...request: Parameters<Bus["store"]>) => this.#store(bus, request),
    });
  }

  async #store(bus: Bus, request: Parameters<Bus["store"]>): ReturnType<Bus["store"]> {
    const { point, n } = this.#order;
    const isRequest = point === "request" || point === "requested";
    if (!isRequest || ++this.#requests !== n) return bus.store(...request);
    if (point === "requested") await bus.store(...request);
    die();
    return new Promise(() => undefined);
  }

  answerer(bus: Bus): Bus {
    this.#flush = () => bus.flush();
    return withOverrides(bus, {
      publish: (subject: string, headers: Headers, data: Uint8Array) => {
        this.#verdicts += 1;
        if (this.#order.point === "verdict" && this.#verdicts === this.#order.n) die();
        bus.publish(subject, headers, data);
      },
    });
  }

  /** After the ordered number of steps it owes no further one: a life of exactly so many. */
  decider<State>(decider: Decider<State>): Decider<State> {
    const { of, point, n } = this.#order;
    if (of !== "step" || point === "before") return decider;
    const isOver = (owed: Owed | undefined) =>
      this.#count >= n && owed !== undefined && "urgency" in owed && owed.urgency === "step";
    return {
      ...decider,
      owed: (state, now, underWay) => {
        const owed = decider.owed(state, now, underWay);
        return isOver(owed) ? undefined : owed;
      },
    };
  }

  #wrapAppender(bus: Bus, options: AppenderOptions): Appender {
    if (!options.stream.startsWith("HV_LOG_")) return bus.openAppender(options);
    const appender = bus.openAppender({
      ...options,
      onAcked: (acked) => this.#onAcked(acked, options.onAcked),
    });
    let last = appender.last;
    return withOverrides(appender, {
      /** Also of what was not published: what rests on it must wait for ever. */
      get last() {
        return Math.max(last, appender.last);
      },
      append: (subject: string, headers: Headers, data: Uint8Array) => {
        last = this.#append(bus, appender, subject, headers, data) ?? last + 1;
        return last;
      },
    });
  }

  /** Undefined: not published, the process is about to end. */
  #append(
    bus: Bus,
    appender: Appender,
    subject: string,
    headers: Headers,
    data: Uint8Array,
  ): number | undefined {
    if (this.#isDying) return undefined;
    const isIt = this.#isCounted(subject, headers) && ++this.#count === this.#order.n;
    if (isIt && this.#order.point === "before") {
      this.#dieWhen(Promise.all([bus.flush(), this.#flush()]));
      return undefined;
    }
    const seq = appender.append(subject, headers, data);
    if (isIt) this.#seq = seq;
    if (isIt && this.#order.point === "published")
      this.#dieWhen(Promise.all([bus.flush(), this.#flush()]));
    return seq;
  }

  #isCounted(subject: string, headers: Headers): boolean {
    const { of = "entry", tenant, type } = this.#order;
    if (type !== undefined && !subject.endsWith(`.${type}`)) return false;
    if (tenant !== undefined && !subject.startsWith(`hv.${tenant}.`)) return false;
    if (of === "step") return headers["Hv-Cause"]?.startsWith("owed:") === true;
    if (of === "begun") return /^hv\.[^.]+\.ctl\.[^.]+\.begun$/.test(subject);
    return !/^hv\.[^.]+\.ctl\.[^.]+\.epoch$/.test(subject);
  }

  #onAcked(acked: number, pass: (acked: number) => void): void {
    if (this.#isDying) return;
    const { point, more = 0 } = this.#order;
    if (acked >= this.#seq && point === "acked") die();
    pass(acked);
    if (acked < this.#seq) return;
    if (point === "released") this.#dieWhen(this.#flush());
    if (point !== "later") return;
    if (acked >= this.#seq + more) die();
    if (!this.#isLater) setTimeout(die, LATER_MS);
    this.#isLater = true;
  }

  #dieWhen(reached: Promise<unknown>): void {
    this.#isDying = true;
    reached.then(die, die);
  }
}

/** Not even a handler of the process runs any more. */
function die(): void {
  process.kill(process.pid, "SIGKILL");
}
