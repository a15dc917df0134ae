/**
 * The story that the demo tells, and checks as it goes: a parent that is kept open by its child, and a
 * cancellation that reaches the leaves first.
 */
import { type Agent, connect, type Settled, type TaskHandle } from "@harmovela/client";
import { type Envelope, newId } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { CommandFailure } from "../command-failure.ts";
import type { Board } from "./board.ts";
import { openWitness, type Witness } from "./witness.ts";
import { openWorker, type Worker } from "./worker.ts";

export interface StoryOptions {
  servers: string[];
  tenant: string;
  /** Between two reports of a worker, milliseconds. */
  paceMs: number;
  board: Board;
  /** Ends it in the middle; then it rejects with the signal's reason. */
  signal: AbortSignal;
}

const PLANNER = "agent:planner";
const WRITER = "agent:writer";
const RESEARCHER = "agent:researcher";
/** Does not get done before it is cancelled. */
const REPORTS_OF_THE_SLOW = 1_000;

/** Tells it; throws a CommandFailure where it goes otherwise than told. */
export async function tellStory(options: StoryOptions): Promise<void> {
  const { servers, tenant, paceMs, board, signal } = options;
  const suffix = newId("x").slice(-4).toLowerCase();
  const planner = await connect({ servers, tenant, agent: PLANNER });
  const workers: Worker[] = [];
  try {
    const witness = await openWitness(planner, suffix, board);
    for (const [agent, reports] of [
      [WRITER, 4],
      [RESEARCHER, 2],
      ["agent:crawler", REPORTS_OF_THE_SLOW],
    ] as const) {
      workers.push(await openWorker({ servers, tenant, agent, paceMs, reports }));
    }
    const failed = Promise.race(workers.map((worker) => worker.done)).then(
      () => new Promise<never>(() => {}),
    );
    const play = async (): Promise<void> => {
      await keptOpen(planner, suffix, board, witness);
      await cascade(planner, suffix, board, witness);
    };
    await Promise.race([play(), failed, untilAborted(signal)]);
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await planner.close();
  }
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function keptOpen(
  planner: Agent,
  suffix: string,
  board: Board,
  witness: Witness,
): Promise<void> {
  board.tell("A planner takes on a report and gives two parts of it to workers.");
  const report = await begin(planner, `report_${suffix}`, "write the report");
  const parts = [
    await report.child({
      task_id: `research_${suffix}`,
      target: RESEARCHER,
      description: "collect the facts",
    }),
    await report.child({
      task_id: `draft_${suffix}`,
      target: WRITER,
      description: "write a draft",
    }),
  ];
  board.tell(
    "It wants to be done early. A task with live children cannot end, so this is refused:",
  );
  const error = await refusalOf(report.complete("all done"));
  expect(error.code === "task_error", `completing too early was refused as ${error.code}`);
  expect(
    error.details?.active_children !== undefined,
    "the refusal does not name the children that are still at work",
  );
  for (const part of parts) expectState(await witness.end(part), "completed");
  board.tell("The children are done, so now the report may be.");
  await report.complete("the report");
  expectState(await witness.end(report), "completed");
}

async function cascade(
  planner: Agent,
  suffix: string,
  board: Board,
  witness: Witness,
): Promise<void> {
  board.tell("A larger piece of work: an index of three sites, one of them with pages of its own.");
  const index = await begin(planner, `index_${suffix}`, "index three sites");
  const crawler = "agent:crawler";
  const sites: TaskHandle[] = [];
  for (const site of ["north", "south"]) {
    const task_id = `${site}_${suffix}`;
    sites.push(await index.child({ task_id, target: crawler, description: `crawl ${site}` }));
  }
  const east = await index.child({ task_id: `east_${suffix}`, target: PLANNER });
  await east.accept();
  await east.start();
  const pages = [
    await east.child({ task_id: `pages1_${suffix}`, target: crawler }),
    await east.child({ task_id: `pages2_${suffix}`, target: crawler }),
  ];
  const all = [...pages, ...sites, east, index];
  const atWork = [...pages, ...sites].map(({ id }) =>
    witness.until(({ type, task_id: task }) => type === "task.progress" && task === id),
  );
  await Promise.all(atWork);
  board.tell("Nobody needs it any more: one cancellation ends all of it, leaves first.");
  await index.cancel({ now: true, reason: "nobody needs it any more" });
  const ends = await Promise.all(all.map((task) => witness.end(task)));
  for (const end of ends) expectState(end, "cancelled");
  const order = cancelledIn(witness.entries);
  const place = (task: TaskHandle): number => order.indexOf(task.id);
  expect(
    pages.every((page) => place(page) < place(east)) &&
      all.every((task) => task === index || place(task) < place(index)),
    `the order was ${order.join(", ")}`,
  );
}

/** A task that the planner gives to itself, under way. */
async function begin(planner: Agent, taskId: string, description: string): Promise<TaskHandle> {
  const task = await planner.submit({ task_id: taskId, target: PLANNER, description });
  await task.accept();
  await task.start();
  return task;
}

/** The ids of cancelled tasks, in log order. */
function cancelledIn(entries: readonly Envelope[]): string[] {
  return entries.filter(({ type }) => type === "task.cancelled").map(({ task_id: id }) => id ?? "");
}

async function refusalOf(attempt: Promise<unknown>): Promise<HarmovelaError> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof HarmovelaError) return error;
    throw error;
  }
  throw new CommandFailure("the demo went otherwise than told: ending too early was accepted");
}

function expectState({ taskId, state }: Settled, wanted: Settled["state"]): void {
  expect(state === wanted, `${taskId} ended as ${state}`);
}

function expect(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new CommandFailure(`the demo went otherwise than told: ${otherwise}`);
}
