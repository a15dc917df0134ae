/**
 * The bytes of one blob.
 *
 * G1 The client waits for what it was told of, for ever when somebody removes that meanwhile. So while nothing
 *    comes it is looked up whether the content is still there.
 */
import { HarmovelaError } from "@harmovela/failure";
import type { NatsConnection } from "@nats-io/nats-core";
import type { ObjectStore } from "@nats-io/obj";
import { API_ERROR, apiCodeOf } from "../api-error.ts";
import { askApi } from "./api.ts";

/** Nothing has come for so long. */
const LOOK_MS = 500;
/** A blob that is replaced again and again while it is read. */
const ATTEMPTS_MAX = 4;

/** Undefined when there is none, or none any more. Throws when its content is missing or not what was put. */
export async function readBlob(
  nats: NatsConnection,
  bucket: ObjectStore,
  bucketName: string,
  name: string,
): Promise<Uint8Array | undefined> {
  for (let attempt = 1; ; attempt++) {
    const found = await bucket.get(name);
    if (found === null) return undefined;
    // Whatever it rejects with the stream of bytes does too.
    found.error.catch(() => undefined);
    const { nuid } = found.info;
    const bytes = await readAll(found.data, () => isStored(nats, bucketName, nuid));
    if (bytes !== undefined) return bytes;
    const now = await bucket.info(name);
    if (now === null || now.deleted) return undefined;
    if (now.nuid === nuid || attempt >= ATTEMPTS_MAX)
      throw new HarmovelaError("internal_error", "the content of a blob is missing", {
        details: { bucket: bucketName, name },
      });
  }
}

/** Undefined when the rest never comes. */
async function readAll(
  data: ReadableStream<Uint8Array>,
  isThere: () => Promise<boolean>,
): Promise<Uint8Array | undefined> {
  const reader = data.getReader();
  const parts: Uint8Array[] = [];
  for (;;) {
    const next = reader.read();
    next.catch(() => undefined);
    while (!(await isSettled(next))) {
      if (await isThere()) continue;
      await reader.cancel();
      return undefined;
    }
    const { done, value } = await next;
    if (done) return Buffer.concat(parts);
    parts.push(value);
  }
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), LOOK_MS);
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function isStored(nats: NatsConnection, bucketName: string, nuid: string): Promise<boolean> {
  try {
    const last_by_subj = `$O.${bucketName}.C.${nuid}`;
    await askApi(nats, `STREAM.MSG.GET.OBJ_${bucketName}`, { last_by_subj });
    return true;
  } catch (error) {
    if (apiCodeOf(error) === API_ERROR.noMessageFound) return false;
    throw error;
  }
}
