/** A promise that somebody else settles, the first time only; nobody has to wait for it. */
export class Promised<T> {
  readonly promise: Promise<T>;
  #resolve: (value: T) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #isSettled = false;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.promise.catch(() => undefined);
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  resolve(value: T): void {
    this.#isSettled = true;
    this.#resolve(value);
  }

  reject(error: unknown): void {
    this.#isSettled = true;
    this.#reject(error);
  }
}
