/** Observing: replay and live without gap or duplicate, starts, trimmed logs, bounds. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import type { Gap, Observation, Observed } from "../src/index.ts";
import { type Peer, World } from "./world.ts";

async function ids(world: World, observation: Observation, count: number): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < count; i++) {
    const { value, done } = await world.run(observation.next());
    if (done) break;
    seen.push(value.envelope.id);
  }
  return seen;
}

async function fill(world: World, peer: Peer, count: number): Promise<string[]> {
  const from = peer.logged.length;
  for (let i = 0; i < count; i++) await world.run(peer.append({ type: "task.progress" }));
  return peer.logged.slice(from);
}

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

for (const access of ["streams", "services"] as const) {
  describe(`subscribe, by ${access}`, () => {
    it("replays from the start, then goes on live, with cursors", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const past = await fill(world, peer, 3);
      const { agent } = world.agent();
      const observation = agent.subscribe({ types: "task.*", from: "start" });
      assert.deepEqual(await ids(world, observation, 3), past);
      const next = observation.next();
      const cursor = await world.run(peer.append({ type: "task.started", id: "evt_live" }));
      const { value } = await world.run(next);
      assert.equal(value?.envelope.id, "evt_live");
      assert.equal(value?.cursor, cursor);
      assert.equal(value?.domain, "tasks");
      assert.deepEqual(observation.cursors, [cursor]);
    });

    it("now: nothing of before, everything after `ready`", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      await fill(world, peer, 3);
      const { agent } = world.agent();
      const observation = agent.subscribe({ types: "task.*", from: "now" });
      await world.run(observation.ready);
      const after = await fill(world, peer, 2);
      assert.deepEqual(await ids(world, observation, 2), after);
    });

    it("C18 a cursor is exclusive", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const past = await fill(world, peer, 99);
      const { agent } = world.agent();
      const observation = agent.subscribe({ types: "task.*", from: "HV_LOG_TASKS:42" });
      assert.deepEqual(await ids(world, observation, 57), past.slice(42));
    });

    it("E7 watch, close, five events, watch: by default it goes on after what was handed out", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const { agent } = world.agent();
      const first = agent.subscribe({ types: "task.*" });
      await world.run(first.ready);
      const before = await fill(world, peer, 4);
      assert.deepEqual(await ids(world, first, 2), before.slice(0, 2));
      await world.run(first.close());
      const after = await fill(world, peer, 5);
      const again = agent.subscribe({ types: ["task.*"] });
      assert.deepEqual(await ids(world, again, 7), [...before.slice(2), ...after]);
      const other = agent.subscribe({ types: "task.started" });
      await world.run(other.ready);
      await world.run(peer.append({ type: "task.started", id: "evt_other" }));
      assert.deepEqual(await ids(world, other, 1), ["evt_other"]);
    });

    it("shows what matches and nothing of another tenant or of a foreign writer", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      for (const domain of ["beliefs", "interruptions", "provenance"] as const)
        await world.peer({ domain });
      const { agent } = world.agent({ tenant: "acme" });
      const put = (id: string, more: object, to: object = { tenant: "acme" }) =>
        world.run(peer.append({ id, type: "task.progress", ...more }, to));
      await put("evt_1", { task_id: "t" });
      await put("evt_2", { task_id: "u" });
      await put("evt_3", { task_id: "t" }, { tenant: "other" });
      await put("evt_4", { task_id: "t" }, { tenant: "acme", headers: { "Hv-Epoch": "" } });
      await put("evt_5", { task_id: "t", type: "task.started" });
      await put("evt_6", { task_id: "t", source: "agent:b", target: "agent:c" });
      const seen = (filter: object, count: number) =>
        ids(world, agent.subscribe({ ...filter, from: "start" }), count);
      assert.deepEqual(await seen({ task_id: "t" }, 3), ["evt_1", "evt_5", "evt_6"]);
      assert.deepEqual(await seen({ types: "task.started" }, 1), ["evt_5"]);
      assert.deepEqual(await seen({ source: "agent:b" }, 1), ["evt_6"]);
      assert.deepEqual(await seen({ target: "agent:c" }, 1), ["evt_6"]);
      assert.deepEqual(await seen({}, 4), ["evt_1", "evt_2", "evt_5", "evt_6"]);
    });

    it("E1 the server goes away 50 times while 500 entries arrive: in order, no gap, no duplicate", async () => {
      await using world = new World(1, access);
      const peer = await world.peer();
      const { agent } = world.agent({ agent: "agent:o" });
      const observation = agent.subscribe({ types: "task.*", from: "start", maxBuffered: 16 });
      const seen: string[] = [];
      const reading = (async () => {
        for await (const { envelope } of observation) {
          seen.push(envelope.id);
          if (seen.length === 500) break;
        }
      })();
      for (let i = 0; i < 500; i++) {
        await world.run(peer.append({ type: "task.progress" }));
        if (i % 10 === 0) {
          world.server.faults.partition("agent:o", i % 20 === 0 ? "lost" : "delivered");
          if (i % 30 === 0) await world.pass(500);
          world.server.faults.heal("agent:o");
          agent.onReconnected();
        }
      }
      await world.run(reading);
      assert.deepEqual(seen, peer.logged);
    });

    it("E5 a start that was trimmed: goes on at the first there is and says what is missing", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const past = await fill(world, peer, 30);
      world.server.faults.trim("HV_LOG_TASKS", 21);
      const { agent } = world.agent();
      const gaps: Gap[] = [];
      const observation = agent.subscribe({
        types: "task.*",
        from: "HV_LOG_TASKS:10",
        onGap: (gap) => gaps.push(gap),
      });
      const { value } = await world.run(observation.next());
      const missing = { domain: "tasks", from: 11, to: 20 } as const;
      assert.equal(value?.envelope.id, past[20]);
      assert.deepEqual(value?.gap, missing);
      assert.deepEqual(gaps, [missing]);
      const second = await world.run(observation.next());
      assert.equal(second.value?.gap, undefined);
      assert.equal(second.value?.envelope.id, past[21]);
    });

    it("E5 trimmed while the observer was cut off: the same", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const { agent } = world.agent({ agent: "agent:o" });
      const observation = agent.subscribe({ types: "task.*", from: "start" });
      const first = await fill(world, peer, 5);
      assert.deepEqual(await ids(world, observation, 4), first.slice(0, 4));
      await world.pass(10);
      world.server.faults.partition("agent:o");
      const missed = await fill(world, peer, 20);
      world.server.faults.trim("HV_LOG_TASKS", 16);
      world.server.faults.heal("agent:o");
      agent.onReconnected();
      assert.deepEqual(await ids(world, observation, 1), first.slice(4));
      const { value } = await world.run(observation.next());
      assert.deepEqual(value?.gap, { domain: "tasks", from: 6, to: 15 });
      assert.equal(value?.envelope.id, missed[10]);
    });

    it("a cursor beyond the end of the log, or a log that was made anew, is stream_mismatch", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      await fill(world, peer, 5);
      const { agent } = world.agent({ agent: "agent:o" });
      const beyond = agent.subscribe({ types: "task.*", from: "HV_LOG_TASKS:6" });
      await assert.rejects(world.run(beyond.next()), isCode("stream_mismatch"));
      const observation = agent.subscribe({ types: "task.*", from: "start" });
      await ids(world, observation, 5);
      const next = assert.rejects(observation.next(), isCode("stream_mismatch"));
      world.server.faults.partition("agent:o");
      world.server.faults.deleteStream("HV_LOG_TASKS");
      await world.peer();
      world.server.faults.heal("agent:o");
      agent.onReconnected();
      await world.run(next);
    });

    it("several domains: cursors of each resume each; what none names starts now", async () => {
      await using world = new World(0, access);
      const tasks = await world.peer();
      const beliefs = await world.peer({ domain: "beliefs" });
      await fill(world, tasks, 3);
      await world.run(beliefs.append({ type: "belief.revised", id: "evt_b1" }));
      const { agent } = world.agent();
      const from = ["HV_LOG_TASKS:2"];
      const observation = agent.subscribe({ domains: ["tasks", "beliefs"], from });
      await world.run(observation.ready);
      await world.run(beliefs.append({ type: "belief.revised", id: "evt_b2" }));
      assert.deepEqual((await ids(world, observation, 2)).sort(), ["evt_2", "evt_b2"]);
      assert.deepEqual(observation.cursors, ["HV_LOG_TASKS:3", "HV_LOG_BELIEFS:2"]);
    });

    it("ends when it is closed, when the loop is left, and when the agent is closed", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const { agent } = world.agent();
      const waiting = agent.subscribe({ types: "task.*", from: "now" });
      const next = waiting.next();
      await world.run(waiting.ready);
      await world.run(waiting.close());
      assert.deepEqual(await world.run(next), { done: true, value: undefined });
      assert.deepEqual(await world.run(waiting.next()), { done: true, value: undefined });

      await fill(world, peer, 2);
      const left = agent.subscribe({ types: "task.*", from: "start" });
      const seen: Observed[] = [];
      await world.run(
        (async () => {
          for await (const entry of left) {
            seen.push(entry);
            break;
          }
        })(),
      );
      assert.equal(seen.length, 1);
      assert.equal((await world.run(left.next())).done, true);

      const last = agent.subscribe({ types: "task.started" }).next();
      await world.run(agent.close());
      assert.equal((await world.run(last)).done, true);
    });

    it("an entry that cannot be read hides none of the others and is named as missing", async () => {
      await using world = new World(0, access);
      const peer = await world.peer();
      const frame = { "Hv-Epoch": "1", "Hv-At": "1", "Hv-Cause": "in:1" };
      const subject = "hv.default.log.tasks.agent:a.-.task.progress";
      await world.run(peer.append({ type: "task.progress", id: "evt_1" }));
      await world.run(peer.bus.store(subject, frame, new TextEncoder().encode('{"id":')));
      await world.run(peer.append({ type: "task.progress", id: "evt_3" }));
      const { agent } = world.agent();
      const observation = agent.subscribe({ types: "task.*", from: "start" });
      assert.deepEqual(await ids(world, observation, 1), ["evt_1"]);
      const { value } = await world.run(observation.next());
      assert.equal(value?.envelope.id, "evt_3");
      assert.deepEqual(value?.gap, { domain: "tasks", from: 2, to: 2 });
    });

    it("one that was closed before its start was fixed does not move where the next goes on", async () => {
      await using world = new World(20, access);
      const peer = await world.peer();
      const past = await fill(world, peer, 3);
      const { agent } = world.agent();
      const first = agent.subscribe({ types: "task.*", from: "start" });
      assert.deepEqual(await ids(world, first, 2), past.slice(0, 2));
      await world.run(first.close());
      await world.run(agent.subscribe({ types: "task.*" }).close());
      const again = agent.subscribe({ types: "task.*" });
      assert.deepEqual(await ids(world, again, 1), past.slice(2));
    });

    it("closing while the start is being looked up is no error", async () => {
      await using world = new World(50, access);
      const { agent, bus } = world.agent();
      const observation = agent.subscribe({ types: "task.*" });
      const next = observation.next();
      bus.disconnected("lost");
      await world.run(observation.close());
      assert.equal((await world.run(next)).done, true);
    });

    for (const from of [
      "HV_LOG_TASKS",
      "HV_LOG_TASKS:-1",
      "HV_IN_TASKS:1",
      "x",
      "HV_LOG_BELIEFS:1",
      "",
    ]) {
      it(`refuses the start ${JSON.stringify(from)}`, async () => {
        await using world = new World(0, access);
        const { agent } = world.agent();
        assert.throws(() => agent.subscribe({ types: "task.*", from }), isCode("invalid_argument"));
      });
    }
  });
}

describe("subscribe, by services alone", () => {
  it("a domain that no service answers for is said by name", async () => {
    await using world = new World(0, "services");
    await world.peer();
    const { agent } = world.agent();
    const everything = agent.subscribe({ from: "now" });
    await assert.rejects(world.run(everything.next()), (error) => {
      assert.ok(isCode("no_service")(error));
      assert.match(String((error as HarmovelaError).details?.domain), /beliefs|interr|prov/);
      return true;
    });
  });

  it("a service that is away for a while is waited for, and nothing is missed", async () => {
    await using world = new World(1, "services");
    const peer = await world.peer();
    const { agent } = world.agent();
    const observation = agent.subscribe({ types: "task.*", from: "start" });
    assert.deepEqual(await ids(world, observation, 0), []);
    await world.run(observation.ready);
    const next = ids(world, observation, 30);
    const closed = peer.silence();
    const past = await fill(world, peer, 20);
    await world.pass(20_000);
    closed.speak();
    const more = await fill(world, peer, 10);
    assert.deepEqual(await next, [...past, ...more]);
  });

  it("what is logged while a page is on its way comes right after it", async () => {
    await using world = new World(20, "services");
    const peer = await world.peer();
    const { agent } = world.agent();
    const observation = agent.subscribe({ types: "task.*", from: "start" });
    await world.run(observation.ready);
    for (let offset = 0; offset < 200; offset += 10) {
      await world.pass(1_000);
      const first = await world.run(peer.append({ type: "task.progress" }));
      await world.pass(offset);
      const second = await world.run(peer.append({ type: "task.progress" }));
      const before = world.clock.monotonic();
      const seen = [await world.run(observation.next()), await world.run(observation.next())];
      assert.deepEqual(
        seen.map(({ value }) => value?.cursor),
        [first, second],
      );
      const waited = world.clock.monotonic() - before;
      assert.ok(waited < 1_000, `${waited} ms after ${offset}`);
    }
  });

  it("what is not heard is asked for a few seconds later", async () => {
    await using world = new World(1, "services");
    const peer = await world.peer();
    const { agent, bus } = world.agent();
    const subscribe = bus.subscribe.bind(bus);
    bus.subscribe = (subject, ...rest) =>
      subscribe(subject.includes(".ev.") ? "nothing" : subject, ...rest);
    const observation = agent.subscribe({ types: "task.*", from: "start" });
    await world.run(observation.ready);
    await world.pass(1_000);
    const before = world.clock.monotonic();
    const all = await fill(world, peer, 3);
    assert.deepEqual(await ids(world, observation, 3), all);
    const waited = world.clock.monotonic() - before;
    assert.ok(waited <= 6_000, `${waited} ms`);
  });

  it("a slow observer asks for no more than it may hold, and still gets all", async () => {
    await using world = new World(1, "services");
    const peer = await world.peer();
    const all = await fill(world, peer, 300);
    const { agent, bus } = world.agent();
    const asked: number[] = [];
    const request = bus.request.bind(bus);
    bus.request = (subject, headers, data, ms) => {
      const { max } = JSON.parse(new TextDecoder().decode(data)) as { max: number };
      asked.push(max);
      return request(subject, headers, data, ms);
    };
    const observation = agent.subscribe({ types: "task.*", from: "start", maxBuffered: 8 });
    const seen: string[] = [];
    for (let i = 0; i < 300; i++) {
      if (i % 50 === 0) await world.pass(1_000);
      seen.push(...(await ids(world, observation, 1)));
    }
    assert.deepEqual(seen, all);
    assert.ok(Math.max(...asked) <= 8, `${asked}`);
  });
});

describe("subscribe", () => {
  it("a domain whose log does not exist is silent until it does, and then misses nothing", async () => {
    await using world = new World();
    await world.peer();
    const { agent } = world.agent();
    const observation = agent.subscribe({ from: "now" });
    await world.run(observation.ready);
    const next = observation.next();
    const beliefs = await world.peer({ domain: "beliefs" });
    await world.run(beliefs.append({ type: "belief.revised", id: "evt_b" }));
    const { value } = await world.run(next);
    assert.equal(value?.envelope.id, "evt_b");
    assert.equal(value?.domain, "beliefs");
  });

  it("a slow observer holds a bounded number of entries and still gets all", async () => {
    await using world = new World();
    const peer = await world.peer();
    const all = await fill(world, peer, 300);
    const { agent, bus } = world.agent();
    let largest = 0;
    const open = bus.openReader.bind(bus);
    bus.openReader = (stream, options) => {
      const reader = open(stream, options);
      const take = reader.take.bind(reader);
      reader.take = (max) => {
        largest = Math.max(largest, reader.buffered);
        return take(max);
      };
      return reader;
    };
    const observation = agent.subscribe({ types: "task.*", from: "start", maxBuffered: 8 });
    const seen: string[] = [];
    for (let i = 0; i < 300; i++) {
      if (i % 50 === 0) await world.pass(1_000);
      seen.push(...(await ids(world, observation, 1)));
    }
    assert.deepEqual(seen, all);
    assert.ok(largest > 0 && largest <= 8, `${largest} buffered`);
  });

  it("a log made anew is noticed also when the server answers only later", async () => {
    await using world = new World();
    const peer = await world.peer();
    await fill(world, peer, 5);
    const { agent, bus } = world.agent({ agent: "agent:o" });
    const observation = agent.subscribe({ types: "task.*", from: "start" });
    await ids(world, observation, 5);
    const next = assert.rejects(observation.next(), isCode("stream_mismatch"));
    world.server.faults.deleteStream("HV_LOG_TASKS");
    const streamState = bus.streamState.bind(bus);
    let failures = 0;
    bus.streamState = async (stream) => {
      failures += 1;
      if (failures > 3) return streamState(stream);
      throw new HarmovelaError("timeout", "no answer");
    };
    agent.onReconnected();
    await world.run(next);
    assert.equal(failures, 4);
  });
});
