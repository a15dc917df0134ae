/**
 * A snapshot as bytes: gzip of one line that says what it is, then the graph of what the fold knows.
 * Its name and notes say the same, so that a store can be looked through without reading it.
 */
import { promisify } from "node:util";
import { gunzip, gunzipSync, gzip, gzipSync } from "node:zlib";
import type { BlobInfo } from "@harmovela/bus";
import type { Domain, Instant, SnapshotSpec } from "@harmovela/envelope";
import type { Fold, FoldRecord } from "../fold.ts";
import { decodeGraph, encodeGraph } from "./graph.ts";

/** Of the host's own part; a snapshot of another one is not used. */
const FORMAT = 1;
/** Unpacked; a snapshot that would be larger is not used (a Buffer's own limit is 4 GiB on Node 20). */
const BYTES_MAX = 2 ** 31;

/** Some milliseconds of work: a line holds a thousand values. */
const LINES_PER_PIECE = 64;

/** How snapshots are made small. */
export interface Packing {
  pack(text: Buffer): Promise<Uint8Array>;
  unpack(data: Uint8Array): Promise<Buffer>;
}

const PACK = { level: 1 };
const UNPACK = { maxOutputLength: BYTES_MAX };

/** In a thread of its own, while the service goes on. */
export const threadPacking: Packing = {
  pack: (text) => promisify(gzip)(text, PACK),
  unpack: (data) => promisify(gunzip)(data, UNPACK),
};

/** At once, for simulations: the same calls, the same run. */
export const instantPacking: Packing = {
  pack: async (text) => gzipSync(text, PACK),
  unpack: async (data) => gunzipSync(data, UNPACK),
};

/** What a snapshot says about itself. */
export interface SnapshotTitle {
  domain: Domain;
  /** Everything of the log up to here is in it. */
  position: number;
  /** `Hv-At` of the last entry in it. */
  at: Instant;
  /** How far the observed logs are in it. */
  seen: Readonly<Partial<Record<Domain, number>>>;
  format: number;
  /** Of the decider's state. */
  version: number;
}

/** A consistent cut, written down; not yet packed. */
export interface Cut {
  title: SnapshotTitle;
  text: Buffer;
}

/**
 * Writes down what a fold knows, which must not change until it is done. Takes time in proportion to the
 * state: `breathe` is awaited between pieces, so that the process goes on with everything else; when it
 * answers false there is no cut.
 */
export async function cut<State>(
  domain: Domain,
  fold: Fold<State>,
  { version, classes }: SnapshotSpec<State>,
  breathe: () => Promise<boolean>,
): Promise<Cut | undefined> {
  const { position, at, seen } = fold;
  const title: SnapshotTitle = { domain, position, at, seen, format: FORMAT, version };
  const parts: Buffer[] = [];
  let lines = [JSON.stringify(title)];
  for (const line of encodeGraph(fold.record, classes)) {
    if (lines.push(line) < LINES_PER_PIECE) continue;
    parts.push(Buffer.from(`${lines.join("\n")}\n`));
    lines = [];
    if (!(await breathe())) return undefined;
  }
  parts.push(Buffer.from(lines.join("\n")));
  return { title, text: Buffer.concat(parts) };
}

/** What was written down. Throws when it is something else, or of another version. */
export async function readSnapshot<State>(
  data: Uint8Array,
  { version, classes }: SnapshotSpec<State>,
  { unpack }: Packing,
): Promise<{ title: SnapshotTitle; record: FoldRecord }> {
  const text = await unpack(data);
  const lines = linesOf(text);
  const title = JSON.parse(String(lines.next().value)) as SnapshotTitle;
  if (!isReadable(title, { version })) {
    throw new Error(`it is of version ${title.format}.${title.version}, not ${FORMAT}.${version}`);
  }
  const record = decodeGraph(lines, classes) as FoldRecord;
  if (record.position !== title.position) throw new Error("it is not what its title says");
  return { title, record };
}

export function isReadable(title: SnapshotTitle, { version }: { version: number }): boolean {
  return title.format === FORMAT && title.version === version;
}

function* linesOf(text: Buffer): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const found = text.indexOf(10, from);
    const end = found === -1 ? text.length : found;
    yield text.toString("utf8", from, end);
    from = end + 1;
  }
}

const DIGITS = 16;

/** Names in the order of positions. */
export function snapshotName({ domain, position }: SnapshotTitle): string {
  return `${domain}.${String(position).padStart(DIGITS, "0")}`;
}

export function snapshotNotes(title: SnapshotTitle): Record<string, string> {
  return { title: JSON.stringify(title) };
}

/** The title of a stored snapshot of a domain; undefined when the blob is something else. */
export function titleOf(domain: Domain, { name, notes }: BlobInfo): SnapshotTitle | undefined {
  if (notes.title === undefined) return undefined;
  try {
    const title = JSON.parse(notes.title) as SnapshotTitle;
    return title.domain === domain && snapshotName(title) === name ? title : undefined;
  } catch {
    return undefined;
  }
}
