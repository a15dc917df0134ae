/** What the logs say of tasks, as it comes: a planner's view of them. */
import { type Bus, logStream } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { within } from "./deadline.ts";

export interface TaskNews {
  isStarted: boolean;
  ended: string | undefined;
  /** Of an interruption that nothing has closed. */
  saved: string | undefined;
  /** Entries about it. */
  count: number;
}

const END = /^task\.(completed|failed|cancelled|timed_out)$/;
const decoder = new TextDecoder();

export class TaskTail implements AsyncDisposable {
  readonly #tasks = new Map<string, TaskNews>();
  readonly #waiting = new Map<string, () => void>();
  readonly #onEvent: (event: Envelope) => void;
  readonly #readers: { close(): Promise<void> }[];

  constructor(bus: Bus, onEvent: (event: Envelope) => void) {
    this.#onEvent = onEvent;
    this.#readers = (["tasks", "interruptions"] as const).map((domain) => {
      const reader = bus.openReader(logStream(domain), {
        after: 0,
        onReady: () => queueMicrotask(read),
      });
      const read = (): void => {
        for (const { subject, data } of reader.take(256)) {
          if (subject.split(".")[2] === "log") this.#fold(JSON.parse(decoder.decode(data)));
        }
        if (reader.buffered > 0) queueMicrotask(read);
      };
      return reader;
    });
  }

  of(id: string): TaskNews {
    let news = this.#tasks.get(id);
    if (news === undefined) {
      news = { isStarted: false, ended: undefined, saved: undefined, count: 0 };
      this.#tasks.set(id, news);
    }
    return news;
  }

  /** Resolves with the next entry about the task; false when there is none for so long. */
  async change(id: string, ms: number): Promise<boolean> {
    const changed = new Promise<void>((resolve) => this.#waiting.set(id, resolve));
    try {
      await within(ms, `something about ${id}`, changed);
      return true;
    } catch {
      return false;
    } finally {
      this.#waiting.delete(id);
    }
  }

  #fold(event: Envelope): void {
    const { type, task_id: id, checkpoint_id: checkpoint } = event;
    this.#onEvent(event);
    if (id === undefined || type.endsWith(".rejected")) return;
    const news = this.of(id);
    news.count += 1;
    if (type === "task.started") news.isStarted = true;
    if (END.test(type)) news.ended = type;
    if (type === "interruption.saved") news.saved = checkpoint;
    if (type === "interruption.resumed" || type === "interruption.cancelled") {
      news.saved = undefined;
    }
    this.#waiting.get(id)?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const reader of this.#readers) await reader.close();
  }
}
