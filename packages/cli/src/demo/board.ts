/** The demo on the terminal: what happens line by line and, on a real terminal, the tree below it, live. */
import type { Observed } from "@harmovela/client";
import type { Envelope } from "@harmovela/envelope";
import pc from "picocolors";
import { eventLine } from "../event-line.ts";
import { type TreeNode, treeLines } from "../tree-lines.ts";

const STATES: Readonly<Record<string, string>> = {
  "task.submitted": "submitted",
  "task.accepted": "accepted",
  "task.started": "started",
  "task.blocked": "blocked",
  "task.progress": "progress",
  "task.output": "output",
  "task.completed": "completed",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
  "task.timed_out": "timed_out",
};

export interface Screen {
  write(text: string): void;
  /** Whether lines can be taken back. */
  isTerminal: boolean;
}

export class Board {
  readonly #screen: Screen;
  readonly #nodes = new Map<string, TreeNode>();
  #drawn = 0;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** What the demo itself says. */
  tell(text: string): void {
    this.#print(`\n${pc.bold(text)}\n`);
  }

  /** An event of the log. */
  show({ envelope, cursor }: Observed): void {
    this.#apply(envelope);
    this.#print(`  ${eventLine(envelope, cursor)}\n`);
  }

  /** The tree as it stands, for good. */
  finish(): void {
    this.#erase();
    this.#screen.write(`\n${this.#tree()}`);
    this.#drawn = 0;
  }

  #apply(envelope: Envelope): void {
    const { type, task_id: id } = envelope;
    const state = STATES[type];
    if (id === undefined || state === undefined) return;
    const known = this.#nodes.get(id);
    const node: TreeNode = known ?? {
      id,
      parent: envelope.parent_task_id,
      state,
      who: envelope.target,
      note: "",
    };
    node.note = noteOf(envelope);
    node.state = state;
    this.#nodes.set(id, node);
  }

  #print(text: string): void {
    this.#erase();
    this.#screen.write(text);
    if (!this.#screen.isTerminal || this.#nodes.size === 0) return;
    const tree = `\n${this.#tree()}`;
    this.#screen.write(tree);
    this.#drawn = tree.split("\n").length - 1;
  }

  #erase(): void {
    if (this.#drawn > 0) this.#screen.write(`\u001b[${this.#drawn}A\u001b[J`);
    this.#drawn = 0;
  }

  #tree(): string {
    return treeLines([...this.#nodes.values()])
      .map((line) => `  ${line}\n`)
      .join("");
  }
}

/** What the event says in words. */
function noteOf({ payload }: Envelope): string {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return "";
  const { reason, message, result, description } = payload;
  const said = reason ?? message ?? result ?? description;
  return typeof said === "string" ? said : "";
}
