import assert from "node:assert/strict";
import { test } from "node:test";
import { isUnderInbox } from "@harmovela/bus";
import { type BusUnderTest, bytes, freshSpec, range, text, Watched, within } from "./support.ts";

export function coreCases(open: () => Promise<BusUnderTest>): void {
  test("a question gets the first answer", async () => {
    await using server = await open();
    const [asker, answerer] = [await server.connect("a"), await server.connect("b")];
    const { name } = freshSpec();
    answerer.subscribe(`${name}.ask.*`, (message) => {
      assert.ok(isUnderInbox(message.reply, "_INBOX."));
      answerer.publish(
        message.reply,
        { answered: message.header("asked") },
        bytes(`${message.subject} ${text(message.data)}`),
      );
      answerer.publish(message.reply, {}, bytes("too late"));
    });
    await answerer.flush();
    const answers = await Promise.all(
      range(1, 20).map((n) =>
        asker.request(`${name}.ask.${n}`, { asked: `q${n}` }, bytes("hello"), 5_000),
      ),
    );
    for (const [index, answer] of answers.entries()) {
      assert.equal(text(answer.data), `${name}.ask.${index + 1} hello`);
      assert.equal(answer.header("answered"), `q${index + 1}`);
    }
  });

  test("a question that nobody hears or answers fails with a typed error", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const { name } = freshSpec();
    await assert.rejects(bus.request(`${name}.nobody`, {}, bytes("?"), 5_000), {
      code: "no_service",
    });
    bus.subscribe(`${name}.silent`, () => {});
    await bus.flush();
    await assert.rejects(bus.request(`${name}.silent`, {}, bytes("?"), 100), { code: "timeout" });
    await assert.rejects(bus.request(`${name}.*`, {}, bytes("?"), 100), {
      code: "invalid_argument",
    });
  });

  test("every plain subscriber hears a message, and one of each queue group", async () => {
    await using server = await open();
    const [a, b] = [await server.connect("a"), await server.connect("b")];
    const { name } = freshSpec();
    const heard = new Watched<string[]>([]);
    const hear = (who: string) => (): void => {
      heard.value.push(who);
      heard.changed();
    };
    a.subscribe(`${name}.>`, hear("plain"));
    a.subscribe(`${name}.*`, hear("queue"), "workers");
    b.subscribe(`${name}.*`, hear("queue"), "workers");
    const closed = b.subscribe(`${name}.>`, hear("closed"));
    closed.close();
    await a.flush();
    await b.flush();
    for (const n of range(1, 10)) b.publish(`${name}.${n}`, {}, bytes(String(n)));
    await heard.until("all", (is) => is.length >= 20);
    await b.flush();
    await a.flush();
    const count = (who: string): number => heard.value.filter((is) => is === who).length;
    assert.deepEqual([count("plain"), count("queue"), count("closed")], [10, 10, 0]);
  });

  test("inboxes are fresh and under the connection's own prefix", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const inboxes = range(1, 50).map(() => bus.newInbox());
    assert.equal(new Set(inboxes).size, 50);
    for (const inbox of inboxes) assert.ok(isUnderInbox(inbox, "_INBOX."));
  });

  test("subscriptions are there again after the server was killed", async () => {
    await using server = await open();
    const [a, b] = [await server.connect("a"), await server.connect("b")];
    const { name } = freshSpec();
    const heard = new Watched<string[]>([]);
    a.subscribe(`${name}.x`, (message) => {
      heard.value.push(text(message.data));
      heard.changed();
    });
    await a.flush();
    await server.restart();
    assert.deepEqual([a.isConnected, b.isConnected], [true, true]);
    await a.flush();
    b.publish(`${name}.x`, {}, bytes("again"));
    await heard.until("heard", (is) => is.length === 1);
    assert.deepEqual(heard.value, ["again"]);
  });

  test("a closed connection refuses", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    assert.equal(bus.isConnected, true);
    await bus.close();
    await bus.close();
    assert.equal(bus.isConnected, false);
    assert.throws(() => bus.publish("x", {}, bytes("x")), { code: "closed" });
    assert.throws(() => bus.subscribe("x", () => {}), { code: "closed" });
    await assert.rejects(within("an answer", bus.request("x", {}, bytes("x"), 1_000)), {
      code: "closed",
    });
    await assert.rejects(within("an answer", bus.streamState("X")), { code: "closed" });
  });
}
