/** What judging is compared with: reading the intake and appending to the log, and nothing else. */
import { HEADER, intakeStream, type JetStreamBus, logStream } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";

const IN_FLIGHT_MAX = 1_024;

function logSubjectOf(subject: string): string {
  const [root, tenant, , domain, source, ...type] = subject.split(".");
  return [root, tenant, "log", domain, source, "-", ...type].join(".");
}

/** The product's own reader and appender. Resolves with messages a second. */
export async function productRelay(
  bus: JetStreamBus,
  domain: Domain,
  total: number,
): Promise<number> {
  const started = performance.now();
  await new Promise<void>((resolve, fail) => {
    let isScheduled = false;
    const step = () => {
      isScheduled = false;
      for (const message of reader.take(IN_FLIGHT_MAX - appender.inFlight)) {
        appender.append(
          logSubjectOf(message.subject),
          {
            [HEADER.cause]: `in:${message.seq}`,
            [HEADER.at]: String(message.time),
            [HEADER.epoch]: "1",
          },
          message.data,
        );
      }
    };
    const wake = () => {
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(step);
    };
    const reader = bus.openReader(intakeStream(domain), { after: 0, onReady: wake });
    const appender = bus.openAppender({
      stream: logStream(domain),
      last: 0,
      maxInFlight: IN_FLIGHT_MAX,
      onAcked: (acked) => {
        if (acked < total) wake();
        else Promise.all([reader.close(), appender.close()]).then(() => resolve(), fail);
      },
      onFailure: (failure) => fail(new Error(failure.message)),
    });
  });
  return total / ((performance.now() - started) / 1_000);
}

/** The same with nothing but the client: ordered consumer, publish with a reply inbox, chained expectation. */
export async function bareRelay(bus: JetStreamBus, domain: Domain, total: number): Promise<number> {
  const { nats } = bus;
  const stream = logStream(domain);
  const consumer = await jetstream(nats).consumers.get(intakeStream(domain));
  const inbox = bus.newInbox();
  const started = performance.now();
  await new Promise<void>((resolve, fail) => {
    let sent = 0;
    let acked = 0;
    const ready: { subject: string; data: Uint8Array; seq: number }[] = [];
    let head = 0;
    const pump = () => {
      while (head < ready.length && sent - acked < IN_FLIGHT_MAX) {
        const message = ready[head];
        head += 1;
        if (message === undefined) return;
        const header = headers();
        header.set("Nats-Expected-Last-Sequence", String(sent));
        header.set("Nats-Expected-Stream", stream);
        header.set(HEADER.cause, `in:${message.seq}`);
        header.set(HEADER.epoch, "1");
        sent += 1;
        nats.publish(logSubjectOf(message.subject), message.data, {
          headers: header,
          reply: inbox,
        });
      }
    };
    nats.subscribe(inbox, {
      callback: (error, reply) => {
        if (error) return fail(error);
        const ack = JSON.parse(reply.string()) as { error?: { description: string } };
        if (ack.error) return fail(new Error(ack.error.description));
        acked += 1;
        if (acked >= total) resolve();
        else pump();
      },
    });
    consumer
      .consume({
        max_messages: 1_000,
        callback: (message) => {
          ready.push({ subject: message.subject, data: message.data, seq: message.seq });
          pump();
        },
      })
      .catch(fail);
  });
  return total / ((performance.now() - started) / 1_000);
}
