/** P4: a full fold, and a snapshot taken anywhere plus the tail, are the same to the last byte. */
import assert from "node:assert/strict";
import type { StoredMessage } from "@harmovela/bus";
import type { TaskState } from "@harmovela/delegation-coordinator";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import type { SimRandom } from "@harmovela/testkit";
import { type Oracle, observeUpTo } from "./oracle.ts";

const CUTS = 3;

export async function assertSnapshots(oracle: Oracle, random: SimRandom): Promise<void> {
  const { decider, messages } = oracle;
  const read = (fold: Fold<TaskState>, some: readonly StoredMessage[]): Fold<TaskState> => {
    for (const message of some) {
      const entry = fold.look(message)?.entry();
      if (entry !== undefined) observeUpTo(fold, oracle.interruptions, entry);
      fold.read(message);
    }
    return fold;
  };
  const { snapshots } = decider;
  assert.ok(snapshots);
  const written = async (fold: Fold<TaskState>): Promise<Buffer> => {
    const taken = await cut("tasks", fold, snapshots, async () => true);
    assert.ok(taken);
    return taken.text;
  };
  const full = await written(read(new Fold(decider), messages));
  for (let count = 0; count < CUTS; count += 1) {
    const at = random.whole(0, messages.length);
    const before = read(new Fold(decider), messages.slice(0, at));
    const data = await instantPacking.pack(await written(before));
    const { record } = await readSnapshot(data, snapshots, instantPacking);
    const after = read(new Fold(decider, record), messages.slice(at));
    assert.ok(
      full.equals(await written(after)),
      `a snapshot at ${at} and the tail give another state`,
    );
  }
}
