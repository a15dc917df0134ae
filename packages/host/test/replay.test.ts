/** Pages of a log: what may be asked, what comes, and how much of it at a time. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Bus,
  controlSubject,
  encodeFrame,
  logStreamSpec,
  logSubject,
  type MemoryBus,
  MemoryServer,
} from "@harmovela/bus";
import type { Domain, Instant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { FakeClock } from "@harmovela/testkit";
import fc from "fast-check";
import { REPLAYS_PER_AGENT_MAX, ReplayDesk } from "../src/index.ts";
import { altered } from "./altered.ts";

const AGENT = { tenant: "acme", source: "agent:a" };
const STEPS_MAX = 1_000_000;
const START = 1_800_000_000_000;

interface Page {
  entries: { seq: number; subject: string; data: string; headers: Record<string, string> }[];
  next: string;
  end: string;
  first: string;
  gap?: { from: number; to: number };
}

class Log {
  readonly clock = new FakeClock();
  readonly server: MemoryServer;
  readonly bus: MemoryBus;
  readonly desk: ReplayDesk;
  #last = 0;

  private constructor() {
    const { clock } = this;
    this.server = new MemoryServer({ clock, now: () => START, latencyMs: 0 });
    this.bus = this.server.connect({ name: "writer" });
    this.desk = new ReplayDesk({ bus: this.bus, clock, domain: "tasks" });
  }

  static async open(): Promise<Log> {
    const log = new Log();
    for (const domain of ["tasks", "beliefs"] as const)
      await log.run(log.bus.provision(logStreamSpec(domain)));
    return log;
  }

  /** Lets things happen until it is settled. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const mark = () => {
      isSettled = true;
    };
    promise.then(mark, mark);
    for (let step = 0; !isSettled; step++) {
      assert.ok(step < STEPS_MAX, "it never settles");
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (!isSettled) this.clock.runNext();
    }
    return promise;
  }

  async put(subject: string, body: unknown = {}): Promise<void> {
    this.#last += 1;
    const at = (START + 1_000 * this.#last) as Instant;
    const headers = encodeFrame({ cause: { in: 1 }, at, epoch: 1, prev: 0, seen: {} });
    await this.run(this.bus.store(subject, headers, Buffer.from(JSON.stringify(body))));
  }

  async event(more: { tenant?: string; domain?: Domain; source?: string; type?: string } = {}) {
    const to = { tenant: "acme", domain: "tasks", source: "agent:a", type: "task.done" } as const;
    await this.put(logSubject({ ...to, ...more }));
  }

  async ask(params: JsonObject, who = AGENT): Promise<Page> {
    return (await this.run(this.desk.answer(who, params))) as unknown as Page;
  }

  /** Everything after a start, page by page. */
  async walk(params: JsonObject, who = AGENT): Promise<number[]> {
    const seen: number[] = [];
    for (let from = params.from; ; ) {
      const page = await this.ask({ ...params, from: from ?? "start" }, who);
      seen.push(...page.entries.map(({ seq }) => seq));
      if (page.next === page.end) return seen;
      assert.notEqual(page.next, from, "a page moves on");
      from = page.next;
    }
  }
}

const cursor = (seq: number): string => `HV_LOG_TASKS:${seq}`;

describe("a page", () => {
  test("holds the tenant's events of the domain as they are stored, and nothing else", async () => {
    const log = await Log.open();
    await log.event();
    await log.event({ tenant: "beta" });
    await log.put(controlSubject("acme", "tasks", "begun"));
    await log.put(controlSubject(undefined, "tasks", "epoch"));
    await log.event({ domain: "beliefs" });
    await log.put(logSubject({ tenant: "acme", domain: "tasks", source: "a" }), { é: "\u0000" });
    const { entries, ...rest } = await log.ask({ from: "start" });
    assert.deepEqual(
      entries.map(({ seq, subject }) => [seq, subject]),
      [
        [1, "hv.acme.log.tasks.agent:a.-.task.done"],
        [5, "hv.acme.log.tasks.a.-.-"],
      ],
    );
    assert.deepEqual(JSON.parse(Buffer.from(entries[1]?.data ?? "", "base64").toString()), {
      é: "\u0000",
    });
    assert.equal(entries[0]?.headers["Hv-Epoch"], "1");
    assert.equal(entries[0]?.headers["Hv-At"], String(START + 1_000));
    assert.deepEqual(rest, { next: cursor(5), end: cursor(5), first: cursor(1) });
  });

  test("an empty one moves on, and says how far the log goes", async () => {
    const log = await Log.open();
    assert.deepEqual(await log.ask({ from: "start" }), {
      entries: [],
      next: cursor(0),
      end: cursor(0),
      first: cursor(1),
    });
    for (let count = 0; count < 5; count++) await log.event({ tenant: "beta" });
    const { entries, next, end } = await log.ask({ from: cursor(2) });
    assert.deepEqual([entries, next, end], [[], cursor(5), cursor(5)]);
    const ahead = await log.ask({ from: "end", max: 0 });
    assert.deepEqual([ahead.next, ahead.end], [cursor(5), cursor(5)]);
  });

  test("begins at the first of a time, wherever that lies", async () => {
    const log = await Log.open();
    for (let count = 0; count < 40; count++) await log.event();
    log.server.faults.trim("HV_LOG_TASKS", 8);
    const firstFrom = async (ms: number) =>
      (await log.ask({ from: new Date(START + ms).toISOString(), max: 1 })).entries[0]?.seq;
    assert.equal(await firstFrom(0), 8);
    assert.equal(await firstFrom(20_000), 20);
    assert.equal(await firstFrom(20_001), 21);
    assert.equal(await firstFrom(40_000), 40);
    assert.equal(await firstFrom(40_001), undefined);
  });

  test("what was trimmed is told, and the page goes on behind it", async () => {
    const log = await Log.open();
    for (let count = 0; count < 30; count++) await log.event();
    log.server.faults.trim("HV_LOG_TASKS", 21);
    const page = await log.ask({ from: cursor(10), max: 2 });
    assert.deepEqual(page.gap, { from: 11, to: 20 });
    assert.deepEqual(
      page.entries.map(({ seq }) => seq),
      [21, 22],
    );
    assert.equal((await log.ask({ from: page.next })).gap, undefined);
    assert.equal((await log.ask({ from: "start" })).gap, undefined, "the start is where it begins");
    assert.equal((await log.ask({ from: cursor(10), max: 0 })).next, cursor(10));
  });

  test("trimmed while it is read: the same", async () => {
    const log = await Log.open();
    for (let count = 0; count < 30; count++) await log.event();
    const next = log.bus.next.bind(log.bus);
    log.bus.next = async (...asked) => {
      const found = await next(...asked);
      log.server.faults.trim("HV_LOG_TASKS", 26);
      return found;
    };
    const page = await log.ask({ from: cursor(10) });
    assert.deepEqual(page.gap, { from: 11, to: 25 });
    assert.deepEqual(
      page.entries.map(({ seq }) => seq),
      [26, 27, 28, 29, 30],
    );
  });

  test("large entries make small pages, the largest one of one", async () => {
    const log = await Log.open();
    const subject = logSubject({ tenant: "acme", domain: "tasks", source: "a", type: "task.done" });
    for (const kib of [600, 100, 100, 100, 100, 100, 639])
      await log.put(subject, "x".repeat(kib * 1_024));
    const sizes: number[] = [];
    for (let from = "start"; from !== cursor(7); ) {
      const page = await log.ask({ from });
      sizes.push(page.entries.length);
      assert.ok(JSON.stringify(page).length < 900_000);
      from = page.next;
    }
    assert.deepEqual(sizes, [1, 3, 2, 1]);
  });

  test("any walk with any filter meets each entry that is meant once, in order", async () => {
    const log = await Log.open();
    const stored: { seq: number; source: string; type: string }[] = [];
    for (let seq = 1; seq <= 700; seq++) {
      const source = `agent:${(seq * 7) % 5}`;
      const type = seq % 3 === 0 ? "task.done" : "tool.call.progress";
      const tenant = seq % 4 === 0 ? "beta" : "acme";
      await log.event({ tenant, source, type });
      if (tenant === "acme") stored.push({ seq, source, type });
    }
    const property = fc.asyncProperty(
      fc.option(fc.nat(5), { nil: undefined }),
      fc.constantFrom(undefined, "*", "task.*", "tool.call.*", "*.done", "*.*.progress"),
      fc.integer({ min: 1, max: 256 }),
      fc.nat(700),
      async (source, type, max, after) => {
        const named = source === undefined ? undefined : `agent:${source}`;
        const filter = {
          ...(named === undefined ? {} : { source: named }),
          ...(type === undefined ? {} : { type }),
        };
        const wanted = stored.filter(
          (one) =>
            one.seq > after &&
            (named === undefined || one.source === named) &&
            (type === undefined || new RegExp(`^${type.replaceAll("*", ".+")}$`).test(one.type)),
        );
        const seen = await log.walk({ filter, max, from: cursor(after) });
        assert.deepEqual(
          seen,
          wanted.map(({ seq }) => seq),
        );
      },
    );
    await fc.assert(property, { numRuns: 40 });
  });
});

describe("a bad question", () => {
  for (const params of [
    {},
    { from: null },
    { from: 1 },
    { from: "now" },
    { from: "HV_LOG_BELIEFS:1" },
    { from: "HV_IN_TASKS:1" },
    { from: "HV_LOG_TASKS:-1" },
    { from: "HV_LOG_TASKS:01" },
    { from: "HV_LOG_TASKS:1e3" },
    { from: "HV_LOG_TASKS:99999999999999999999" },
    { from: "HV_LOG_TASKS:4" },
    { from: "2026-13-01T00:00:00Z" },
    { from: "start", max: -1 },
    { from: "start", max: 257 },
    { from: "start", max: 1.5 },
    { from: "start", max: "1" },
    { from: "start", filter: [] },
    { from: "start", filter: "hv.beta.>" },
    { from: "start", filter: { subject: "hv.>" } },
    { from: "start", filter: { tenant: "beta" } },
    { from: "start", filter: { domain: "beliefs" } },
    { from: "start", filter: { source: "" } },
    { from: "start", filter: { source: ["a"] } },
    { from: "start", filter: { target: "x".repeat(129) } },
    { from: "start", filter: { type: ">" } },
    { from: "start", filter: { type: "task.>" } },
    { from: "start", filter: { type: "task done" } },
    { from: "start", filter: { type: `a${".a".repeat(200)}` } },
  ] as JsonObject[]) {
    test(`${JSON.stringify(params).slice(0, 60)} is refused as that`, async () => {
      const log = await Log.open();
      for (let count = 0; count < 3; count++) await log.event();
      await assert.rejects(log.ask(params), { code: "invalid_query", retry: "never" });
    });
  }

  test("names of wildcards, dots and other tenants find nothing but what is called so", async () => {
    const log = await Log.open();
    await log.event({ tenant: "beta", source: "b" });
    await log.put(controlSubject("acme", "tasks", "begun"));
    await log.event({ source: "*" });
    for (const source of [">", "a.b", "agent:a.>", "-", "beta.log.tasks.b", "%2A"])
      assert.deepEqual(await log.walk({ filter: { source } }), [], source);
    assert.deepEqual(await log.walk({ filter: { source: "*" } }), [3]);
  });
});

describe("what an agent holds", () => {
  const filled = async () => {
    const log = await Log.open();
    for (let seq = 1; seq <= 60; seq++) await log.event({ source: `agent:${seq % 2}` });
    return log;
  };

  test("is eight readers, whatever it asks for; all together hold 64; nobody asking, none", async () => {
    const log = await filled();
    for (let count = 0; count < 500; count++) {
      const filter = { type: count % 2 === 0 ? "task.*" : "*.done", target: `agent:${count}` };
      assert.deepEqual((await log.ask({ from: "start", filter })).entries, []);
      const type = ["*", "*.*", "task.*", "task.done", "*.done"][count % 5] ?? "*";
      const source = `agent:${count % 2}`;
      assert.equal(
        (await log.ask({ from: "start", filter: { type, source }, max: 10 })).entries.length,
        10,
      );
      assert.ok(log.desk.readers <= 8, `${log.desk.readers}`);
    }
    assert.equal(log.desk.readers, 8);
    for (let count = 0; count < 100; count++)
      await log.ask({ from: "start", max: 10 }, { tenant: "acme", source: `agent:${count}` });
    assert.equal(log.desk.readers, 64);
    await log.run(new Promise<void>((resolve) => log.clock.after(31_000, resolve)));
    assert.equal(log.desk.readers, 0);
    const other = { tenant: "acme", source: "agent:other" };
    assert.equal((await log.walk({ max: 7 }, other)).length, 60);
  });

  test("is put together four at a time at most", async () => {
    const log = await filled();
    let underWay = 0;
    let most = 0;
    const bus = altered<Bus>(log.bus, {
      streamState: async (stream) => {
        underWay += 1;
        most = Math.max(most, underWay);
        const state = await log.bus.streamState(stream);
        underWay -= 1;
        return state;
      },
    });
    const desk = new ReplayDesk({ bus, clock: log.clock, domain: "tasks" });
    const asked = Array.from({ length: 40 }, (_, at) =>
      desk.answer({ tenant: "acme", source: `agent:${at}` }, { from: "start" }),
    );
    const pages = await log.run(Promise.all(asked));
    assert.equal(pages.length, 40);
    assert.equal(most, 4);
  });

  test("is so many questions at a time, and others are answered meanwhile", async () => {
    const log = await filled();
    const asked = Array.from({ length: 200 }, () => log.desk.answer(AGENT, { from: "start" }));
    const others = Array.from({ length: 40 }, (_, at) =>
      log.desk.answer({ tenant: "acme", source: `agent:${at}b` }, { from: "start" }),
    );
    const outcomes = await log.run(Promise.allSettled([...asked, ...others]));
    const refused = outcomes.filter(({ status }) => status === "rejected");
    assert.equal(refused.length, 200 - REPLAYS_PER_AGENT_MAX);
    for (const { reason } of refused as PromiseRejectedResult[]) {
      assert.equal(reason.code, "internal_error");
      assert.equal(reason.retry, "now");
    }
    for (const outcome of outcomes.slice(200)) assert.equal(outcome.status, "fulfilled");
    assert.equal((await log.walk({})).length, 60, "and it is asked again");
  });
});
