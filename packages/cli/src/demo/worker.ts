/** A worker of the demo: takes what is given to it, reports, and stops when it is told to. */
import { connect, type WorkerTask } from "@harmovela/client";
import { HarmovelaError } from "@harmovela/failure";

export interface WorkerOptions {
  servers: string[];
  tenant: string;
  agent: string;
  /** Between two reports. */
  paceMs: number;
  /** Reports of one task before it is done. */
  reports: number;
}

export interface Worker {
  /** Rejects when it cannot go on; resolves when it is closed. */
  readonly done: Promise<void>;
  close(): Promise<void>;
}

/** Resolves when nothing that is given to it from now on is missed. */
export async function openWorker(options: WorkerOptions): Promise<Worker> {
  const { servers, tenant, agent: name } = options;
  const agent = await connect({ servers, tenant, agent: name });
  const tasks = agent.tasks({ from: "now" });
  await tasks.ready;
  const take = async (): Promise<void> => {
    const jobs: Promise<void>[] = [];
    for await (const task of tasks) jobs.push(work(task, options));
    await Promise.all(jobs);
  };
  return { done: take(), close: () => agent.close() };
}

async function work(task: WorkerTask, { paceMs, reports }: WorkerOptions): Promise<void> {
  try {
    await task.accept();
    await task.start();
    for (let report = 1; report <= reports; report++) {
      await pause(paceMs, task.signal);
      await task.progress({ message: "working", progress: report / (reports + 1) });
    }
    await pause(paceMs, task.signal);
    await task.complete("done");
  } catch (error) {
    // Told to stop, or overtaken by the end of the task.
    if (!task.signal.aborted && !isOvertaken(error)) throw error;
  }
}

function isOvertaken(error: unknown): boolean {
  return (
    error instanceof HarmovelaError && (error.code === "task_error" || error.code === "closed")
  );
}

/** Rejects as soon as the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
