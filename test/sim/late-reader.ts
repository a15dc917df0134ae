import type { Clock, Reader, ReaderOptions, StoredMessage } from "@harmovela/bus";

/** A reader whose messages come late, as over a consumer that must be made first: later than answers do. */
export class LateReader implements Reader {
  readonly #after: number;
  #inner: Reader | undefined;
  #isVisible = false;
  #isClosed = false;

  constructor(
    open: (options: ReaderOptions) => Reader,
    options: ReaderOptions,
    clock: Clock,
    lateMs: () => number,
  ) {
    this.#after = options.after;
    const onReady = (): void => {
      clock.after(lateMs(), () => {
        this.#isVisible = true;
        options.onReady();
      });
    };
    clock.after(lateMs(), () => {
      if (!this.#isClosed) this.#inner = open({ ...options, onReady });
    });
  }

  get position(): number {
    return this.#inner?.position ?? this.#after;
  }

  get buffered(): number {
    return this.#isVisible ? (this.#inner?.buffered ?? 0) : 0;
  }

  take(max: number): StoredMessage[] {
    if (!this.#isVisible) return [];
    const taken = this.#inner?.take(max) ?? [];
    if (this.#inner?.buffered === 0) this.#isVisible = false;
    return taken;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#inner?.close();
  }
}
