/** Trees of mixed shape: chains, fans, and what is between them. */
import assert from "node:assert/strict";
import { envelope, type Sender } from "./sender.ts";

export interface PlantedTask {
  id: string;
  parent: string | undefined;
  /** The agent that runs it; undefined: submitted only. */
  owner: string | undefined;
}

/** A third of `size` is one chain, a third one fan under the root, the rest hangs on tasks here and there. */
export function shapeTree(root: string, size: number, under?: string): PlantedTask[] {
  const tasks: PlantedTask[] = [{ id: root, parent: under, owner: `agent:${root}` }];
  const third = Math.floor((size - 1) / 3);
  for (let number = 1; number < size; number += 1) {
    const isChain = number <= third;
    const isFan = !isChain && number <= 2 * third;
    const place = isChain ? number - 1 : isFan ? 0 : (number * 31) % number;
    const parent = tasks[place]?.id;
    const owner = number % 4 === 0 ? undefined : `agent:${root}-${number % 5}`;
    tasks.push({ id: `${root}-${number}`, parent, owner });
  }
  return tasks;
}

/** Submits and starts them, and waits until each is acknowledged. */
export async function plant(sender: Sender, tasks: PlantedTask[]): Promise<void> {
  for (const { id, parent } of tasks) {
    const more = parent === undefined ? {} : { parent_task_id: parent };
    const { type } = await sender.send(envelope("agent:planner", "task.submitted", id, more));
    assert.equal(type, "event.acknowledged", id);
  }
  await Promise.all(
    tasks.map(async ({ id, owner }) => {
      if (owner === undefined) return;
      const { type } = await sender.send(envelope(owner, "task.started", id));
      assert.equal(type, "event.acknowledged", id);
    }),
  );
}
