/** Intake subjects of every shape: each named by whether it names a sender (architecture, section 3). */

/** One spelling of one sender: whatever the body says, a verdict is owed. */
export const CANONICAL: readonly string[] = [
  "hv.acme.in.tasks.agent:a.task.submitted",
  "hv.acme.in.tasks.agent:a.task.completed",
  "hv.acme.in.tasks.agent:a.-",
  "hv.acme.in.tasks.agent:a.task",
  "hv.acme.in.tasks.agent:a.__proto__",
  "hv.acme.in.tasks.agent:a.task.-.submitted",
  "hv.acme.in.tasks.agent:a.belief.revised",
  "hv.acme.in.tasks.agent:a.%2A",
  "hv.acme.in.tasks.agent:a.%3E",
  `hv.acme.in.tasks.agent:a.${"x".repeat(1_500)}`,
  `hv.acme.in.tasks.agent:a.${"x.".repeat(700)}x`,
  "hv.acme.in.tasks.%2A.task.submitted",
  "hv.acme.in.tasks.%3E.task.submitted",
  "hv.acme.in.tasks.%C3%A9.task.submitted",
  "hv.acme.in.tasks.__proto__.task.submitted",
  "hv.acme.in.tasks.service:delegation-coordinator.task.cancelled",
  "hv.__proto__.in.tasks.constructor.task.submitted",
  "hv.other.in.tasks.agent:a.task.submitted",
  "hv.%2A.in.tasks.agent:a.task.submitted",
  "hv.in.in.tasks.in.in",
];

/** No canonical spelling, or nobody who could be answered. */
export const OTHERS: readonly string[] = [
  "hv.acme.in.tasks.agent:a",
  "hv.acme.in.tasks.agent%3Aa.task.submitted",
  "hv.acme.in.tasks.agent:a.task%2Esubmitted",
  "hv.acme.in.tasks.%2a.task.submitted",
  "hv.acme.in.tasks.%FF.task.submitted",
  "hv.acme.in.tasks.%C3.task.submitted",
  "hv.acme.in.tasks.%00.task.submitted",
  "hv.acme.in.tasks.%.task.submitted",
  "hv.acme.in.tasks.-.task.submitted",
  "hv.acme.in.tasks.agent:a.task%C0%AEsubmitted",
  "hv.-.in.tasks.agent:a.task.submitted",
  "hv.%2D.in.tasks.agent:a.task.submitted",
  "hv.a!b.in.tasks.agent:a.task.submitted",
  "hv.\xc3\xa9.in.tasks.agent:a.task.submitted",
  "hv.acme.in.tasks.\xff\xfe.task.submitted",
  "hv.acme.in.tasks.\x01.task.submitted",
  "hv.acme.in.tasks.a>.task.submitted",
  `hv.acme.in.tasks.${"a".repeat(129)}.task.submitted`,
  `hv.${"a".repeat(129)}.in.tasks.agent:a.task.submitted`,
  `hv.acme.in.tasks.agent:a.${"x".repeat(2_100)}`,
];

/** What the server may refuse to route or to store, or may end the connection for. */
export const UNROUTABLE: readonly string[] = [
  "hv.*.in.tasks.agent:a.task.submitted",
  "hv.acme.in.tasks.*.task.submitted",
  "hv.acme.in.tasks.>",
  "hv..in.tasks.agent:a.task.submitted",
  "hv.acme.in.tasks.agent:a..submitted",
  "hv.acme.in.tasks.agent:a.task.",
  `hv.acme.in.tasks.agent:a.${"x".repeat(3_900)}`,
  `hv.acme.in.tasks.agent:a.${"x".repeat(5_000)}`,
];
