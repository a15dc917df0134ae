/** Things put between a host and its bus or clock, so that a test decides what arrives and when. */
import {
  type Appender,
  type AppenderOptions,
  type AppendFailure,
  type Bus,
  type Clock,
  type Lease,
  type Reader,
  systemClock,
} from "@harmovela/bus";

/** `base` with some of its members replaced. */
export function altered<T extends object>(base: T, changes: Partial<T>): T {
  return new Proxy(base, {
    get(target, key) {
      if (key in changes) return Reflect.get(changes, key);
      const value = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A clock on which everything takes a twentieth of its time. */
export const hurriedClock: Clock = {
  monotonic: () => systemClock.monotonic() * 20,
  after: (ms, fn) => systemClock.after(ms / 20, fn),
  soon: (fn) => systemClock.soon(fn),
};

/** Appends that a leader takes for published and that do not reach the server, until told otherwise. */
export class Gate {
  isHolding = false;
  /** Appends held back by the appender in use. */
  held = 0;
  #lose: () => void = () => {};

  around = (bus: Bus): Bus =>
    altered(bus, { openAppender: (options) => this.#openAppender(bus, options) });

  /** Holds nothing any more; what was held is lost, and the leader is told that nobody answered. */
  lose(): void {
    this.isHolding = false;
    this.#lose();
  }

  #openAppender(bus: Bus, options: AppenderOptions): Appender {
    const appender = bus.openAppender(options);
    this.held = 0;
    let held = 0;
    this.#lose = () => {
      const failure: AppendFailure = {
        reason: "unknown",
        seq: appender.acked + 1,
        apiCode: 0,
        message: "nobody answered",
      };
      void appender.close().then(() => options.onFailure(failure));
    };
    const append: Appender["append"] = (...message) => {
      if (!this.isHolding && held === 0) return appender.append(...message);
      held += 1;
      this.held = held;
      return appender.last + held;
    };
    return altered(appender, {
      append,
      get last() {
        return appender.last + held;
      },
      get inFlight() {
        return appender.inFlight + held;
      },
    });
  }
}

/** A stream whose messages reach the host only when `isOpen`. */
export class Sluice {
  isOpen = false;
  readonly #stream: string;
  #onReady: () => void = () => {};
  /** Where the newest reader of the stream began, exclusive. */
  after = -1;
  /** What has arrived at the newest reader and was not let through. */
  arrived: () => number = () => 0;

  constructor(stream: string) {
    this.#stream = stream;
  }

  open(): void {
    this.isOpen = true;
    this.#onReady();
  }

  around = (bus: Bus): Bus =>
    altered(bus, {
      openReader: (stream, options) => {
        if (stream !== this.#stream) return bus.openReader(stream, options);
        const { onReady } = options;
        this.after = options.after;
        this.#onReady = onReady;
        const reader = bus.openReader(stream, {
          ...options,
          maxBuffered: 8_192,
          onReady: () => {
            if (this.isOpen) onReady();
          },
        });
        this.arrived = () => reader.buffered;
        return this.#through(reader);
      },
    });

  #through(reader: Reader): Reader {
    const isOpen = () => this.isOpen;
    return altered(reader, {
      take: (max) => (isOpen() ? reader.take(max) : []),
      get buffered() {
        return isOpen() ? reader.buffered : 0;
      },
    });
  }
}

/** The lease as the host sees it, which a test can take away. */
export class Taker {
  #lose: () => void = () => {};
  #isTaken = false;

  around = (bus: Bus): Bus =>
    altered(bus, {
      openLease: (options) => {
        const lease = bus.openLease(options);
        this.#lose = options.onLost;
        const isHeld = () => lease.isHeld && !this.#isTaken;
        return altered<Lease>(lease, {
          get isHeld() {
            return isHeld();
          },
        });
      },
    });

  take(): void {
    this.#isTaken = true;
    this.#lose();
  }

  giveBack(): void {
    this.#isTaken = false;
  }
}
