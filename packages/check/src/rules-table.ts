/**
 * Every rule that a log is held to, one sentence each, with the clause it comes from: "arch" is the
 * architecture, "spec" the protocol.
 */
export const RULES = {
  "record-order": "Stored sequences are contiguous and start at 1 (arch 1.4, 3).",
  "subject-form": "An entry stands on a canonical log or control subject of its domain (arch 3).",
  "cause-form": "Every entry names its cause as in:<sequence> or owed:<id> (arch 3, Hv-Cause).",
  "at-form": "Every entry carries the broker time it was decided at (arch 3, Hv-At).",
  "at-decreases": "The time of an entry is never below that of the one before (arch 5).",
  "seen-form": "Hv-Seen is a list of domain:position pairs (arch 3).",
  "seen-decreases": "The position folded of an observed log never goes back (arch 2, 3).",
  "epoch-position": "An epoch entry carries its own sequence, in header and body (arch 3, 6).",
  "intake-order": "The log records the order of inputs: intake positions never go back (arch 1.5).",
  "intake-twice": "One intake message makes at most one entry (arch 1.3, 6).",
  "control-kind": "A control entry is of a known kind (arch 2, 4, 6).",
  "control-tenant": "Host-wide control entries belong to no tenant, the others to one (arch 3).",
  "control-body": "The body of a control entry has the form of its kind (arch 2, 4, 6).",
  "envelope-invalid": "Every logged event is a valid envelope of a registered type (spec 1, 2).",
  "payload-invalid": "The payload of every logged event keeps the rules of its type (spec 3).",
  "subject-disagrees":
    "Source, target, type and tenant of the body agree with the subject (arch 3).",
  "cursor-wrong": "delivery.cursor names the entry's own stream and sequence (arch 3; spec 9.3).",
  "sequence-gap": "delivery.sequence counts per tenant and domain from 1 without gaps (arch 3).",
  "id-duplicate": "An event id is accepted once per tenant (arch 4; spec 1.1).",
  "id-refused": "An id that a refusal occupies is not accepted afterwards (arch 4).",
  "id-derived-form": "What the service writes by itself has an id of the derived form (arch 2).",
  "id-agent-form": "What an agent sends never has an id of the derived form (arch 2).",
  "owed-source": "Only the service discharges an obligation (arch 2).",
  "owed-type":
    "The service says by itself only what ends, answers or expires (arch 2; spec 4.3, 5.1 to 5.9).",
  "governance-denied":
    "Who names an actor and an action is granted it in the tenant; a proved sender is its own actor (spec 9.8).",
  "authorization-scheme": "An authorization is of a scheme that can be checked (spec 8).",
  "refusal-form": "A refusal names offender, refused event and a whole error (spec 3.2, 9.5).",
  "begun-form": "A begun entry holds the plan and the whole envelope that ends it (arch 2).",
  "begun-twice": "A plan begins once (arch 2).",
  "begun-pointless": "A cascade begins on a live task that has live descendants (spec 5.5).",
  "begun-nested": "No plan begins inside a subtree whose outcome is fixed (arch 2).",
  "plan-outcome": "A plan ends with exactly the envelope that was begun (arch 2).",
  "plan-final-cause": "The event that ends a plan is owed by that plan (arch 2).",
  "plan-open": "In a settled log every begun plan has been discharged (arch 1.3, 2).",
  "plan-spawn": "No task is added to a subtree whose outcome is fixed (arch 2; spec 5.5).",
  "plan-work": "A closed subtree takes planned events and ends of leaves only (arch 2).",
  "plan-timer": "No task in a closed subtree times out, or fails with its session (arch 2).",
  "plan-root-ended": "The root of a begun plan ends with the plan's own event only (arch 2).",
  "plan-step": "A derived cancel is owed by the plan that covers its task (arch 2; spec 5.5).",
  "cascade-causation": "A cascaded cancel names the event that ends its own parent (spec 5.5).",
  "cascade-correlation": "A planned event correlates to the event that its plan is of (spec 5.5).",
  "cascade-reason": 'A cascaded cancel gives the reason "parent task cancelled" (spec 5.5).',
  "gentle-spawn": "A cancel request closes the gate for new tasks in the subtree (spec 5.4, 5.5).",
  "gentle-request": "A derived cancel request is owed by a cancel request at or above (spec 5.4).",
  "gentle-order": "Cancel requests go to running tasks root first, each once (spec 5.4).",
  "gentle-early": "A forced cancel waits for the end of the grace period (spec 5.4; arch 5).",
  "gentle-unforced": "During the grace only tasks without a runner are cancelled (spec 5.4).",
  "gentle-open":
    "In a settled log no cancel request whose grace has passed is unfinished (spec 5.4; arch 2).",
  "task-id":
    "Every event of a task, a delegation, an interruption or a compensation names its task (spec 5.4 to 5.8).",
  "task-state": "payload.state is the state that the event leads to (spec 3.2).",
  "task-transition": "A task moves along the transition table only (spec 5.4).",
  "task-terminal": "Nothing follows the terminal event of a task (spec 5.4).",
  "task-reused": "A task id is submitted once (spec 5.4).",
  "task-unknown": "Only submitted tasks have events (spec 5.4).",
  "task-live-descendants": "No task is terminal while a descendant is live (spec 5.5).",
  "task-target": "A task with a target is accepted or started only by that target (spec 5.4).",
  "task-owner": "Work events come from the one owner of the task (spec 5.4).",
  "task-instance":
    "Who takes a task in its own session has it there while the session lives (spec 5.1, 5.4, 5.6).",
  "orphan-cause":
    "The service fails a task by itself only when the session that has it was lost, and it is not stopped (spec 5.1, 5.7).",
  "orphan-error":
    "A task that fails with its session carries the error session_timeout (spec 9.5).",
  "task-entitlement": "Owner, submitter and those of ancestors may cancel a task (spec 5.4).",
  "parent-unknown": "The parent of a submitted task is known (spec 5.5).",
  "parent-terminal": "The parent of a submitted task is not terminal (spec 5.5).",
  "parent-changed": "The parent of a task never changes (spec 5.5).",
  "parent-cycle": "No task is its own ancestor (spec 5.5).",
  "tree-depth": "The task tree is no deeper than the limit, 1,000 by default (spec 5.5).",
  "timeout-early": "The service times a task out when its deadline has passed (spec 5.4; arch 5).",
  "timeout-undeclared": "The service times out only tasks that declared a deadline (spec 5.4).",
  "timeout-error": "A task that the service times out carries the error task_timeout (spec 5.4).",
  "submission-entitlement":
    "Who submits a task that a delegation has made has a part in it (spec 5.6).",
  "delegation-unknown":
    "Only what was offered is accepted, rejected, escalated or handed off (spec 5.6).",
  "delegation-transition": "A delegation moves along its table only (spec 5.6).",
  "delegation-owner": "A task that there is may be offered by its one owner only (spec 5.6).",
  "delegation-party":
    "The delegate answers, the delegator hands off, either or the owner escalates (spec 5.6).",
  "delegation-tuple": "An event of a delegation speaks of the parties in force (spec 5.6).",
  "delegation-entitlement":
    "With proved senders, who delegates under a parent has a part in it (spec 5.6).",
  "delegation-taken": "Who takes an offered task answers the offer, not the task (spec 5.6).",
  "delegation-closed": "Nothing is delegated in a subtree that is being ended (arch 2; spec 5.5).",
  "delegation-key":
    "The same key of a delegator under the same parent never makes two tasks (spec 5.6).",
  "delegation-retry": "A delegate is not asked again before its retry_after (spec 5.6).",
  "expiry-early": "The service rejects an offer when its deadline has passed (spec 5.6; arch 5).",
  "expiry-reason":
    'An offer that expires is rejected with the reason "deadline_expired" (spec 5.6).',
  "token-entitlement":
    "A token is issued to the delegator of an accepted delegation, for its parties (spec 7).",
  "token-jti": "A jti is issued once (spec 7).",
  "token-lifetime": "A token lives at most 24 h and begins now (spec 7; arch 6).",
  "token-missing":
    "Under coordination.v1 and security.v1 a handoff proves its token (spec 4.2, 7).",
  "token-reused": "A jti proves one handoff (spec 7).",
  "token-void": "A token of an offer that was answered or superseded proves nothing (spec 7).",
  "token-binding": "A token proves the handoff that it was issued for (spec 7).",
  "token-expired": "A token proves nothing at or after its exp (spec 7).",
  "session-closed": "A session that has ended says nothing any more (spec 5.1).",
  "session-reopened": "A live session is not opened again (spec 5.1).",
  "session-owner": "Only its initiator and services speak for a session (spec 5.1).",
  "session-unknown": "Where sessions are strict only opened ones speak (spec 5.1, C4).",
  "session-answer":
    "An opening is answered once: by session.ready or session.error (spec 4.3, 5.1).",
  "session-profiles":
    "session.ready grants every required profile and none that was not asked for (spec 4.3).",
  "session-timeout": "Only a session with heartbeats is lost, after three intervals (spec 5.1).",
  "profile-fields": "The fields that the profiles in force require are there (spec 4.2).",
  "subscription-answer": "A subscription is created once, for its request (spec 5.2).",
  "subscription-cancel":
    "The service cancels a subscription once, when its session has ended (spec 5.1).",
  "subscription-owner":
    "A subscription is cancelled by its own consumer, and stands in no session of another (spec 5.2).",
  "exchange-fields": "A request names target, correlation_id and query_scope (spec 5.9).",
  "exchange-live": "A correlation id belongs to one live request (spec 5.9).",
  "exchange-unknown": "Only a live request is answered, and nothing follows its end (spec 5.9).",
  "exchange-target": "Only the target answers (spec 5.9).",
  "exchange-order": "An accepted command is neither accepted nor rejected again (spec 5.9).",
  "exchange-window":
    "The service refuses an unanswered request when its window has passed (spec 5.9).",
  "exchange-open":
    "In a settled log no request to an agent that never spoke outlives its window (spec 5.9).",
  "query-version": "The snapshot version of a target and scope never goes back (spec 5.9).",
  "call-order": "A tool call that names itself follows its stream (spec 5.10).",
  "call-party": "Caller and tool speak of a call, nobody else (spec 5.10).",
  "budget-exceeded": "No accepted cost passes what is left of a budget (spec 3.2, C22).",
  "budget-owner":
    "Only who established a budget changes it, and once only establishes it (spec 3.2).",
  "window-party":
    "Only who asserts it, or the system that keeps it, changes how long it holds (spec 6.2).",
  "freshness-fields":
    "An expiry names its end in envelope and payload, and was not seen before it (spec 6.2, C26).",
  "freshness-early": "Nothing expires before its time (spec 6.2; arch 5).",
  "freshness-window":
    "What expires is the window in force of the assertion that is named (spec 6.2).",
  "freshness-twice": "A window of a resource expires once (spec 6.2).",
  "freshness-open": "In a settled log every window that has ended has expired (spec 6.2).",
  "conflict-fields": "A detected conflict says that its subject is contradicted (spec 4.2, 6.1).",
  "conflict-claims":
    "A detected conflict lists what its sources claim, each contradicted by another (spec 6.1).",
  "conflict-twice": "The same conflict is detected once (spec 6.1).",
  "conflict-open": "In a settled log every contradiction between sources is detected (spec 6.1).",
  "conflict-resolved":
    "The service calls a conflict resolved once, when its claims no longer contradict (spec 6.1).",
  "mark-fields": "A mark names what is in doubt and what it depends on, status unknown (spec 6.1).",
  "mark-cause": "A mark names the retraction that it follows from (spec 6.1).",
  "mark-unreachable": "Only what rests on what was retracted is marked (spec 6.1).",
  "mark-twice": "A retraction marks each dependent once (spec 6.1).",
  "mark-open": "In a settled log every dependent of what was retracted is marked (spec 6.1).",
  "seen-beyond": "What an entry has seen of another log is there (arch 2, 3).",
  "interruption-task": "Only a task that is known and live is interrupted, or answers (spec 5.7).",
  "interruption-owner":
    "Who runs a task, in the session that has it, acknowledges and saves (spec 5.7).",
  "interruption-entitlement":
    "Who has a part in a task or in an ancestor, or a runtime, interrupts it (spec 5.7).",
  "interruption-open":
    "One interruption of a task is open; only a stronger one replaces it before the task is stopped (spec 5.7).",
  "interruption-order":
    "An interruption is requested, acknowledged, saved, and resumed or cancelled, in turn (spec 5.7).",
  "interruption-superseded": "No answer to an older interruption touches the open one (spec 5.7).",
  "checkpoint-unknown":
    "A task is resumed from a checkpoint of its own whose digest fits (spec 5.7).",
  "checkpoint-form": "A digest is sha-256 in 64 hexadecimal digits (spec 5.7).",
  "checkpoint-changed": "A checkpoint of a task is one thing (spec 5.7).",
  "grace-form": "A grace that expires forces the stop, at once (spec 5.7, C10).",
  "grace-cause": "What expires is the grace of the open interruption, once (spec 5.7, C10).",
  "grace-early": "No grace expires before its time (spec 5.7; arch 5).",
  "grace-open":
    "In a settled log every grace that has passed without a checkpoint has expired (spec 5.7, C10).",
  "closing-cause": "The service closes an interruption when its task has ended (spec 5.5, 5.7).",
  "closing-open": "In settled logs no task that has ended is interrupted (spec 5.5, 5.7).",
  "interrupt-cause":
    "The service interrupts a task when the session that has it has ended, once (spec 5.1, 5.7).",
  "interrupt-open":
    "In settled logs every live task of a closed session has been interrupted (spec 5.1, 5.7).",
  "tree-member":
    "A tree is interrupted as it was when that began, each task once, under one policy (spec 5.7).",
  "tree-order":
    "A tree is interrupted leaves first and root last, and resumed in the opposite order (spec 5.7).",
  "tree-resume":
    "With a tree is resumed what was saved in it, from the newest checkpoint (spec 5.7).",
  "tree-open": "In settled logs everything that was to be resumed with a tree is (spec 5.7).",
  "stopped-work": "Nobody works on a task between saved, or a forced stop, and resumed (spec 5.7).",
  "stopped-spawn": "No task is added below one that is stopped (spec 5.7).",
  "request-reason":
    "What the manager asks of a task follows from the entry that it names (spec 5.7, 5.8; arch 2).",
  "request-error":
    "A task that fails at the manager's request carries the error for it (spec 9.5).",
  "request-open":
    "In settled logs what the manager asks of tasks has come to pass (spec 5.7, 5.8; arch 2).",
  "compensation-original":
    "A compensation undoes a task that is known, has ended or is stopped, and is none itself (spec 5.8).",
  "compensation-task": "A compensation makes a new task (spec 5.8).",
  "compensation-twice":
    "A task is compensated once for a reason, unless that came to nothing (spec 5.8).",
  "compensation-order":
    "A compensation is completed once, after it was asked for, while its task may be (spec 5.8).",
  "compensation-party": "Its owner or who asked for it completes a compensation (spec 5.8).",
  "compensation-apart": "The task that a compensation makes stands below no other (spec 5.8).",
  "chain-repeats": "No event stands twice in its own evidence, nor in it itself (spec 8).",
  "chain-contradicts":
    "Evidence is what it is said to be, of whom and in which order, as far as logs have shown it (spec 8).",
  "attestation-unknown": "An attestation speaks of an event that a log has shown by then (spec 8).",
  "attestation-count":
    "Attestations are counted by distinct sources, not the asserting one, not revoked (spec 8).",
  "attestation-attestor":
    "Under security.v1 an attestation and its revocation are their source's own (spec 4.2, 8).",
  "revocation-unknown": "Only an attestation that there is is revoked (spec 8).",
  "revocation-twice": "An attestation is revoked once (spec 8).",
  "revocation-party": "Who attested revokes it, or an authority (spec 8).",
  "wait-early": "An attestation waits for its event until its time has passed (spec 8; arch 2, 5).",
  "wait-pointless": "An attestation waits only for what no log has shown (spec 8; arch 2).",
  "wait-seen": "What was seen in time is not refused as never seen (spec 8; arch 2).",
  "wait-refusal":
    "A refusal that the service owes ends a begun plan, and is told to its sender (arch 2).",
  "truncation-fields": "A truncation names the assertion and what of it is missing (spec 8).",
  "truncation-twice": "The service tells of the truncation of an assertion once (spec 8).",
  "truncation-party":
    "Of a truncation tells the service, who asserted what it is about, or an authority (spec 8).",
  "truncation-dead":
    "Only of what is still asserted it is told that its evidence is lost (spec 8).",
  "truncation-evidence": "What is told to be missing is evidence of the assertion (spec 8).",
  "truncation-lost": "Lost is what stands before the beginning of its log, nothing else (spec 8).",
  "truncation-open":
    "In settled logs each live assertion whose evidence is lost has been told of (spec 8).",
  "observed-back": "The beginning of a log only moves on (arch 1.5, 6).",
} as const;

export type RuleId = keyof typeof RULES;
