/** A NATS client that keeps no rule: subjects, header blocks and bodies go out byte for byte. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface RawMessage {
  /** Latin-1: one character for each byte. */
  subject: string;
  reply?: string;
  /** The whole header block, Latin-1. */
  head?: string;
  body: Uint8Array;
}

const CONNECT = 'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n';

export class RawClient implements Disposable {
  readonly #port: number;
  #socket: Socket | undefined;
  #said = "";
  /** How often the server ended the connection. */
  cuts = 0;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends them and waits until the server has read them all, or has had enough. */
  async send(messages: readonly RawMessage[]): Promise<void> {
    const socket = await this.#connected();
    const { promise: over, resolve: onOver } = promiseOf();
    const onData = (chunk: Buffer): void => {
      this.#said = `${this.#said}${chunk.toString("latin1")}`.slice(-1_024);
      if (this.#said.includes("PONG\r\n")) onOver();
    };
    this.#said = "";
    socket.on("data", onData);
    socket.once("close", onOver);
    for (const message of messages) if (!socket.destroyed) await write(socket, message);
    if (socket.destroyed) onOver();
    else socket.write("PING\r\n");
    await over;
    socket.off("data", onData).off("close", onOver);
  }

  async #connected(): Promise<Socket> {
    const known = this.#socket;
    if (known !== undefined && !known.destroyed) return known;
    if (known !== undefined) this.cuts += 1;
    const socket = connect(this.#port, "127.0.0.1");
    this.#socket = socket;
    socket.on("error", () => {
      // The server cuts what breaks its own rules; `close` follows.
    });
    await once(socket, "data");
    socket.write(CONNECT);
    return socket;
  }

  [Symbol.dispose](): void {
    this.#socket?.destroy();
  }
}

function promiseOf(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

async function write(socket: Socket, { subject, reply, head, body }: RawMessage): Promise<void> {
  const to = reply === undefined ? subject : `${subject} ${reply}`;
  const block = Buffer.from(head ?? "", "latin1");
  const line =
    head === undefined
      ? `PUB ${to} ${body.length}\r\n`
      : `HPUB ${to} ${block.length} ${block.length + body.length}\r\n`;
  socket.write(Buffer.from(line, "latin1"));
  socket.write(block);
  socket.write(body);
  if (socket.write("\r\n")) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      socket.off("drain", go).off("close", go);
      resolve();
    };
    socket.on("drain", go).on("close", go);
    if (socket.destroyed) go();
  });
}
