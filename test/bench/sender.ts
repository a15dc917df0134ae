/** A sender that is nothing but a plain client: publishes, and times its verdicts. */
import { HEADER, intakeSubject, type JetStreamBus } from "@harmovela/bus";
import { domainOf, type Envelope } from "@harmovela/envelope";
import { TENANT } from "./load.ts";

const encoder = new TextEncoder();
const VERDICT_MS_MAX = 60_000;

export interface TimedSender {
  /** Milliseconds from publish to verdict; throws when it was refused. */
  send(envelope: Envelope, tenant?: string): Promise<number>;
}

export function timedSender(bus: JetStreamBus): TimedSender {
  const inbox = bus.newInbox();
  const waiting = new Map<string, (verdict: string) => void>();
  let count = 0;
  bus.subscribe(`${inbox}.*`, ({ subject, data }) => {
    waiting.get(subject)?.(Buffer.from(data).toString());
    waiting.delete(subject);
  });
  return {
    async send(envelope, tenant = TENANT) {
      count += 1;
      const reply = `${inbox}.${count}`;
      const { source, type } = envelope;
      const started = performance.now();
      const verdict = new Promise<string>((resolve, fail) => {
        const timer = setTimeout(() => fail(new Error("no verdict")), VERDICT_MS_MAX);
        waiting.set(reply, (text) => {
          clearTimeout(timer);
          resolve(text);
        });
      });
      bus.publish(
        intakeSubject({ tenant, domain: domainOf(type), source, type }),
        { [HEADER.replyTo]: reply },
        encoder.encode(JSON.stringify(envelope)),
      );
      const text = await verdict;
      const elapsed = performance.now() - started;
      if (!text.includes('"event.acknowledged"')) throw new Error(text);
      return elapsed;
    },
  };
}

export function percentile(numbers: number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
