/**
 * Checkpoints for agents that have no right to the bucket: stored, read and removed by whoever leads.
 *
 * A1 Who has a task stores and reads its checkpoints, as only who has it says `interruption.saved`. That is
 *    looked up again when all of it has arrived. Nobody else is told even whether there are any.
 * A2 An id stands for one content: what is stored is never written over.
 * A3 It is answered as stored when the bucket has it.
 * A4 What the registry names of a live task stays, whoever wants it removed.
 * A5 A tenant stores no more than its quota. Who may write to the bucket itself can go round that: it claims room
 *    here before it stores, as the SDK does, and what lies in the bucket is counted whoever put it there.
 */
import { createHash } from "node:crypto";
import {
  type Blobs,
  CHECKPOINT_BUCKET,
  CHECKPOINT_BYTES_MAX,
  checkpointName,
  checkpointPrefix,
  decodeToken,
} from "@harmovela/bus";
import { isId, isInstant, textParam, wholeParam } from "@harmovela/envelope";
import {
  HarmovelaError,
  type JsonObject,
  type JsonValue,
  toHarmovelaError,
} from "@harmovela/failure";
import type { Act, Acts, CompanionContext } from "@harmovela/host";
import { isHolder } from "../rules/authority.ts";
import { findTask, type ManagerState, type TaskRecord } from "../state.ts";
import { type CheckpointStoreOptions, mayGiveWay, tenantBytesOf } from "./checkpoint-store.ts";
import { RecentBlobs } from "./recent-blobs.ts";
import { type Claim, TenantRoom, type TenantUse } from "./tenant-room.ts";
import { Uploads } from "./uploads.ts";

/** One answer's part of a checkpoint, before base64. */
const PART_BYTES = 256 * 1024;
/** Checkpoints looked at in one question. */
const PAGE = 256;
const DIGEST = /^sha-256:[0-9a-f]{64}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

type Who = Parameters<Act>[0];

interface Shelf {
  blobs: Blobs;
  uploads: Uploads;
  recent: RecentBlobs;
  room: TenantRoom;
  leading: CompanionContext<ManagerState>["leading"];
}

/** `checkpoint_put`, `checkpoint_get`, `checkpoint_newest`, `checkpoint_remove`, `checkpoint_room`, `checkpoint_use`. */
export function openCheckpointActs(
  context: CompanionContext<ManagerState>,
  { maxBytes, tenantBytes, unknownMs }: CheckpointStoreOptions,
): Acts {
  const { bus, clock, replicas, leading } = context;
  const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas, mayCreate: false });
  const room = new TenantRoom({
    blobs,
    clock,
    quotaBytes: tenantBytes ?? tenantBytesOf(maxBytes),
    mayGiveWay: (blob) => {
      const view = leading();
      return view !== undefined && mayGiveWay(view, blob, unknownMs);
    },
  });
  const uploads = new Uploads(clock);
  const shelf: Shelf = { blobs, leading, uploads, recent: new RecentBlobs(clock), room };
  return {
    verbs: {
      checkpoint_put: (who, params) => put(shelf, who, params),
      checkpoint_get: (who, params) => get(shelf, who, params),
      checkpoint_newest: (who, params) => newest(shelf, who, params),
      checkpoint_remove: (who, params) => remove(shelf, who, params),
      checkpoint_room: (who, params) => claim(shelf, who, params),
      checkpoint_use: (who) => use(shelf, who),
    },
    close: () => {
      shelf.uploads.close();
      shelf.recent.close();
    },
  };
}

async function put(shelf: Shelf, who: Who, params: JsonObject): Promise<JsonValue> {
  const taskId = textParam(params, "task_id");
  assertLive(heldTask(shelf, who, taskId));
  const id = idParam(params);
  const bytes = wholeParam(params, "bytes", { min: 0, max: CHECKPOINT_BYTES_MAX, fallback: -1 });
  const at = wholeParam(params, "at", { min: 0, max: CHECKPOINT_BYTES_MAX, fallback: -1 });
  const digest = textParam(params, "digest");
  const madeAt = textParam(params, "made_at");
  const part = partIn(params);
  const isGood = bytes >= 0 && at >= 0 && DIGEST.test(digest) && isInstant(madeAt);
  if (!isGood || at + part.length > bytes || (part.length === 0 && bytes > 0))
    throw bad("a part names bytes, at, digest and made_at of its checkpoint, and lies in it");
  const name = checkpointName(who.tenant, taskId, id);
  // What cannot be stored need not be sent.
  if (at === 0 && part.length < bytes)
    await shelf.room.assertRoom(claimOf(shelf, who, name, bytes));
  const upload = { name, tenant: who.tenant, agent: who.source, bytes, digest };
  const whole = shelf.uploads.take(upload, at, part);
  if (!(whole instanceof Uint8Array)) return whole;
  if (digestOf(whole) !== digest) throw bad("the bytes are not those of the digest");
  await orFull(() => store(shelf, who, { taskId, name, whole, digest, madeAt }));
  return { stored: true };
}

async function store(
  shelf: Shelf,
  who: Who,
  {
    taskId,
    name,
    whole,
    digest,
    madeAt,
  }: { taskId: string; name: string; whole: Uint8Array; digest: string; madeAt: string },
): Promise<void> {
  // Said again because the answer was lost: it is the same then (A2).
  const known = await shelf.blobs.get(name);
  if (known !== undefined) {
    if (digestOf(known) === digest) return;
    throw new HarmovelaError("invalid_query", "another checkpoint is stored under that id");
  }
  assertLive(heldTask(shelf, who, taskId));
  await shelf.room.claim(claimOf(shelf, who, name, whole.length));
  assertLive(heldTask(shelf, who, taskId));
  const notes = { task_id: taskId, at: madeAt, digest, by: who.source };
  try {
    await shelf.blobs.put(name, whole, notes);
  } catch (error) {
    // Whether anything else has stored it is found by the next count.
    if (toHarmovelaError(error).code === "store_full") shelf.room.removed(name);
    throw error;
  }
}

/** A5. Nothing is known of whether it is stored then, so the claim stands until the next count. */
async function claim(shelf: Shelf, who: Who, params: JsonObject): Promise<JsonValue> {
  const taskId = textParam(params, "task_id");
  assertLive(heldTask(shelf, who, taskId));
  const id = idParam(params);
  const bytes = wholeParam(params, "bytes", { min: 0, max: CHECKPOINT_BYTES_MAX, fallback: -1 });
  if (bytes < 0) throw bad("bytes must be a whole number");
  const name = checkpointName(who.tenant, taskId, id);
  await shelf.room.claim(claimOf(shelf, who, name, bytes));
  return { claimed: true };
}

/** Of the asker's tenant, and of no other. */
async function use(shelf: Shelf, { tenant }: Who): Promise<JsonValue> {
  const { checkpoints, used_bytes, quota_bytes }: TenantUse = await shelf.room.use({
    tenant,
    epoch: viewOf(shelf).epoch,
  });
  return { checkpoints, used_bytes, quota_bytes };
}

function claimOf(shelf: Shelf, { tenant }: Who, name: string, bytes: number): Claim {
  const { epoch, now } = viewOf(shelf);
  return { tenant, name, bytes, epoch, now };
}

async function get(shelf: Shelf, who: Who, params: JsonObject): Promise<JsonValue> {
  const taskId = textParam(params, "task_id");
  heldTask(shelf, who, taskId);
  const name = checkpointName(who.tenant, taskId, idParam(params));
  const at = wholeParam(params, "at", { min: 0, max: CHECKPOINT_BYTES_MAX, fallback: 0 });
  const bytes = await shelf.recent.get(who.tenant, name, () => shelf.blobs.get(name));
  heldTask(shelf, who, taskId);
  if (bytes === undefined) return null;
  const part = bytes.subarray(at, at + PART_BYTES);
  if (at + part.length >= bytes.length) shelf.recent.forget(name);
  return { bytes: bytes.length, data: Buffer.from(part).toString("base64") };
}

async function newest(shelf: Shelf, who: Who, params: JsonObject): Promise<JsonValue> {
  const taskId = textParam(params, "task_id");
  heldTask(shelf, who, taskId);
  const prefix = checkpointPrefix(who.tenant, taskId);
  let found: JsonObject | null = null;
  for (let from: number | undefined = 0; from !== undefined; ) {
    const { blobs, next } = await shelf.blobs.page(from, PAGE);
    for (const { name, bytes, notes } of blobs) {
      const id = name.startsWith(prefix) ? decodeToken(name.slice(prefix.length)) : undefined;
      if (id === undefined) continue;
      const { at = "", digest = "" } = notes;
      found = { checkpoint_id: id, made_at: at, bytes, digest };
    }
    from = next;
  }
  return found;
}

async function remove(shelf: Shelf, who: Who, params: JsonObject): Promise<JsonValue> {
  const task = heldTask(shelf, who, textParam(params, "task_id"));
  const id = idParam(params);
  if (task.ended === undefined && task.checkpoints?.has(id)) return { removed: false };
  const name = checkpointName(who.tenant, task.id, id);
  await shelf.recent.remove(name, () => shelf.blobs.remove(name));
  shelf.room.removed(name);
  return { removed: true };
}

/** A1. An external task is nobody's, so nothing is kept for it here. */
function heldTask(shelf: Shelf, { tenant, source }: Who, taskId: string): TaskRecord {
  const task = findTask(viewOf(shelf).state, tenant, taskId);
  if (task !== undefined && !task.isExternal && isHolder(task, source)) return task;
  throw new HarmovelaError("unauthorized", `${source} does not have that task`, {
    details: { task_id: taskId },
  });
}

function viewOf({ leading }: Shelf): NonNullable<ReturnType<Shelf["leading"]>> {
  const view = leading();
  if (view !== undefined) return view;
  throw new HarmovelaError("internal_error", "ask again", { category: "dependency" });
}

function assertLive({ ended, id }: TaskRecord): void {
  if (ended === undefined) return;
  throw new HarmovelaError("task_error", "the task has ended", { details: { task_id: id } });
}

function idParam(params: JsonObject): string {
  const id = textParam(params, "checkpoint_id");
  if (isId(id)) return id;
  throw bad("checkpoint_id must be an id");
}

function partIn({ data }: JsonObject): Uint8Array {
  if (typeof data === "string" && BASE64.test(data)) return Buffer.from(data, "base64");
  throw bad("data must be base64");
}

/** A store without room is not trouble that passes. */
async function orFull<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    const error = toHarmovelaError(caught);
    if (error.code !== "store_full") throw error;
    throw new HarmovelaError("internal_error", "there is no room for checkpoints", {
      retry: "never",
      details: { is_full: true },
      cause: caught,
    });
  }
}

function digestOf(bytes: Uint8Array): string {
  return `sha-256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function bad(message: string): HarmovelaError {
  return new HarmovelaError("invalid_query", message);
}
