/** Interruptions of trees that go wrong. */
import { type BadLogs, bad, open } from "./bad-two-logs.ts";
import { BOSS, type TwoLogs, WORKER } from "./stop-log.ts";

const TREE = { payload: { scope: "tree" } };

export const badTrees: BadLogs[] = [
  bad("tree-order", "the root before what is below it", (logs) => {
    tree(logs);
    finishTree(logs, beginTree(logs));
  }),
  bad("tree-order", "a parent before its child", (logs) => {
    tree(logs);
    stepTree(logs, beginTree(logs), "c");
  }),
  bad("tree-member", "a task beside the tree", (logs) => {
    tree(logs);
    logs.tasks.running("u");
    stepTree(logs, beginTree(logs), "u");
  }),
  bad("tree-member", "a task that came later", (logs) => {
    tree(logs);
    const plan = beginTree(logs);
    logs.tasks.running("later", { parent: "p" });
    stepTree(logs, plan, "later");
  }),
  bad("tree-member", "with another policy", (logs) => {
    tree(logs);
    stepTree(logs, beginTree(logs), "g", { interruption_policy: "force_stop" });
  }),
  bad("interruption-open", "what is interrupted already", (logs) => {
    tree(logs);
    logs.interrupt("g");
    stepTree(logs, beginTree(logs), "g");
  }),
  bad("begun-form", "a plan that is of no tree", (logs) => {
    tree(logs);
    logs.stops.begin(logs.stops.draft("interruption.requested", BOSS, { task_id: "p" }));
  }),
  bad("begun-form", "a plan that ends with another event", (logs) => {
    tree(logs);
    const fields = { task_id: "p", checkpoint_id: "ck" };
    logs.stops.begin(logs.stops.draft("interruption.resumed", BOSS, fields));
  }),
  bad("tree-order", "resumed from the leaves", (logs) => {
    const resumed = savedTree(logs);
    resumeStep(logs, resumed, "g");
  }),
  bad("tree-resume", "from an older checkpoint", (logs) => {
    const resumed = savedTree(logs);
    resumeStep(logs, resumed, "c", { checkpoint_id: "ck_g" });
  }),
  bad("tree-resume", "what was interrupted for itself", (logs) => {
    const resumed = savedTree(logs);
    logs.tasks.running("own", { parent: "p" });
    logs.interrupt("own");
    logs.acknowledge("own");
    logs.save("own");
    resumeStep(logs, resumed, "own");
  }),
  bad("tree-resume", "what has not saved anything", (logs) => {
    const resumed = savedTree(logs, ["g", "p"]);
    resumeStep(logs, resumed, "c", { checkpoint_id: undefined });
  }),
  bad("tree-resume", "with a resume of the root alone", (logs) => {
    const resumed = savedTree(logs, ["g", "c", "p"], {});
    resumeStep(logs, resumed, "c");
  }),
  open("tree-open", "the rest of it stays stopped", (logs) => {
    savedTree(logs);
    return logs.stops.last;
  }),
];

/** p with c below it and g below that, all at work. */
function tree({ tasks }: TwoLogs): void {
  tasks.running("p");
  tasks.running("c", { parent: "p", source: WORKER });
  tasks.running("g", { parent: "c", source: WORKER });
}

function beginTree(logs: TwoLogs) {
  const fields = { task_id: "p", interruption_policy: "save_and_stop", ...TREE };
  return logs.stops.begin(logs.stops.draft("interruption.requested", BOSS, fields));
}

type Plan = ReturnType<typeof beginTree>;

function stepTree(logs: TwoLogs, plan: Plan, id: string, fields = {}): void {
  const own = { causation_id: plan.id, interruption_policy: "save_and_stop", ...fields };
  logs.owe(plan.id, "requested", id, own);
}

function finishTree(logs: TwoLogs, plan: Plan): void {
  logs.stops.finish(plan);
}

/** The tree was interrupted, these have saved, and the root is resumed. */
function savedTree(logs: TwoLogs, saved = ["g", "c", "p"], fields: object = TREE) {
  tree(logs);
  const plan = beginTree(logs);
  for (const id of ["g", "c"]) stepTree(logs, plan, id);
  finishTree(logs, plan);
  for (const id of ["g", "c", "p"]) logs.acknowledge(id);
  for (const id of saved) logs.save(id);
  return logs.resume("p", "ck_p", { ...fields });
}

function resumeStep(logs: TwoLogs, resumed: Plan, id: string, fields = {}): void {
  const own = { causation_id: resumed.id, checkpoint_id: `ck_${id}`, ...fields };
  logs.owe(resumed.id, "resumed", id, own);
}
