import type { MsgHdrs } from "@nats-io/nats-core";
import { headerBlock, headerLines } from "../header-block.ts";
import type { Headers } from "../port.ts";

/**
 * Headers that are bytes already. The client asks headers that it publishes for nothing but `encode`,
 * and its own header object costs more per message than all the rest.
 */
export function wireHeaders(block: Uint8Array): MsgHdrs {
  return { encode: () => block } as unknown as MsgHdrs;
}

/** Undefined when there are none: then the message is published without a header block. */
export function toWireHeaders(headers: Headers): MsgHdrs | undefined {
  const lines = headerLines(headers);
  return lines === "" ? undefined : wireHeaders(headerBlock(lines));
}
