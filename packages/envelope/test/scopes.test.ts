/** Scopes and what the connection says of a sender (spec 9.7, 9.8). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Envelope } from "../src/envelope.ts";
import {
  covers,
  EVENT_TYPES,
  type Grants,
  mayRead,
  mayWrite,
  rightsRefusal,
  scopeProblem,
  subscriptionGap,
} from "../src/index.ts";

/** Spec 5.3, as a reader of events would write it. */
function matches(pattern: string, type: string): boolean {
  if (pattern === "*") return true;
  const wanted = pattern.split(".");
  const is = type.split(".");
  const isOpen = wanted.at(-1) === "*";
  if (isOpen ? is.length < wanted.length : is.length !== wanted.length) return false;
  return wanted.every((segment, at) => segment === "*" || segment === is[at]);
}

const segment = fc.constantFrom("task", "cancel", "requested", "*", "*");
const pattern = fc.array(segment, { minLength: 1, maxLength: 4 }).map((all) => all.join("."));
/** Every type of up to five segments from three words, one of which stands in no pattern. */
const TYPES = [1, 2, 3, 4, 5].flatMap((length) =>
  Array.from({ length: 4 ** length }, (_, number) =>
    Array.from(
      { length },
      (_unused, at) => ["task", "cancel", "requested", "other"][Math.floor(number / 4 ** at) % 4],
    ).join("."),
  ),
);

describe("a pattern is covered", () => {
  test("exactly when the scope matches everything that it can match", () => {
    fc.assert(
      fc.property(pattern, pattern, (wide, narrow) => {
        const isCovered = TYPES.filter((type) => matches(narrow, type)).every((type) =>
          matches(wide, type),
        );
        assert.equal(covers(wide, narrow), isCovered, `${wide} ${narrow}`);
      }),
      { numRuns: 400 },
    );
  });

  for (const narrow of [
    "*",
    "task.>",
    "task",
    "tasks.*",
    "Task.*",
    "",
    "*.cancel.*",
    "task.*.*.x y",
  ]) {
    test(`task.* does not cover "${narrow}"`, () => assert.equal(covers("task.*", narrow), false));
  }
  for (const narrow of ["task.*", "task.started", "task.cancel.requested", "task.*.requested"]) {
    test(`task.* covers ${narrow}`, () => assert.ok(covers("task.*", narrow)));
  }
});

describe("scopes", () => {
  test("what is none says why", () => {
    for (const scope of ["read:tasks", "write:*", "subscribe:task.*", "read:agent:a", "deploy:x"]) {
      assert.equal(scopeProblem(scope), undefined, scope);
    }
    for (const scope of [
      "",
      "tasks",
      "read:",
      "read:task",
      "write:everything",
      "subscribe:task.>",
    ]) {
      assert.equal(typeof scopeProblem(scope), "string", scope);
    }
    assert.equal(typeof scopeProblem(`deploy:${"x".repeat(200)}`), "string");
  });

  test("none named is everything, an empty list is nothing", () => {
    assert.ok(mayRead({}, "beliefs") && mayWrite({}, "beliefs"));
    assert.equal(mayRead({ scopes: [] }, "beliefs") || mayWrite({ scopes: [] }, "beliefs"), false);
  });

  test("who hears some participants only asks for no answers, which tell what everybody said", () => {
    const scopes = ["read:tasks", "read:agent:a", "subscribe:*"];
    assert.equal(mayRead({ scopes }, "tasks"), false);
    const types = ["task.*"];
    assert.equal(subscriptionGap({ scopes }, { types, sources: ["agent:a"] }), undefined);
    assert.equal(subscriptionGap({ scopes }, { types, sources: ["agent:b"] }), "read:agent:b");
    assert.equal(subscriptionGap({ scopes }, { types, sources: [] }), "read:*");
  });

  test("a subscription needs the right to read where its types can be logged", () => {
    const scopes = ["subscribe:*", "read:tasks", "read:beliefs"];
    const gap = (...types: string[]) => subscriptionGap({ scopes }, { types, sources: [] });
    assert.equal(gap("task.*", "memory.fact.added"), undefined);
    assert.equal(gap("interruption.*"), "read:interruptions");
    for (const wide of [[], ["*"], ["*.requested"], ["event.rejected"]]) {
      assert.match(gap(...wide) ?? "", /^read:(?:interruptions|provenance)$/);
    }
  });
});

describe("rights of a proved sender", () => {
  const base: Envelope = {
    spec_version: "0.2",
    id: "evt_1",
    type: "task.submitted",
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    payload: {},
  };
  const asks = (more: Partial<Envelope>, grants: Grants) =>
    rightsRefusal({
      envelope: { ...base, ...more },
      tenant: "acme",
      source: "agent:a",
      intake: 1,
      grants,
    })?.details;
  const operator: Grants = { roles: ["operator"] };

  test("claims that are the connection's own are fine, and fewer roles than it has", () => {
    assert.equal(asks({ actor_id: "agent:a", roles: [], tenant_id: "acme" }, operator), undefined);
    assert.equal(asks({ roles: ["operator"] }, operator), undefined);
  });

  test("invented roles, another's actor", () => {
    assert.equal(asks({ roles: ["operator", "tenant-admin"] }, operator)?.check, "roles");
    assert.equal(asks({ roles: ["publisher"] }, operator)?.check, "roles");
    assert.equal(asks({ actor_id: "agent:b" }, operator)?.check, "actor");
    assert.equal(asks({ actor_id: "" }, operator)?.check, "actor");
  });

  test("the governance decision takes actor, tenant and roles from the connection", () => {
    const asked = { requested_action: "task.manage", target_tenant_id: "acme" };
    assert.equal(asks(asked, operator), undefined);
    assert.equal(asks(asked, { roles: ["viewer"] })?.reason, "missing_role");
    assert.equal(asks({ requested_action: "task.manage" }, operator)?.reason, "missing_tenant");
    const across = { ...asked, target_tenant_id: "beta" };
    assert.equal(asks(across, operator)?.reason, "tenant_access_denied");
    const crossing: Grants = { roles: ["cross-tenant-operator"] };
    assert.equal(asks(across, crossing), undefined);
    assert.equal(asks({ target_tenant_id: "beta" }, operator)?.reason, "tenant_access_denied");
    assert.equal(asks({ target_tenant_id: "beta" }, crossing), undefined);
  });

  test("without a proof the body is taken at its word", () => {
    const said = { actor_id: "someone", roles: ["operator"], tenant_id: "acme" };
    const asked = { ...said, requested_action: "task.manage", target_tenant_id: "acme" };
    const judged = {
      envelope: { ...base, ...asked },
      tenant: "acme",
      source: "agent:a",
      intake: 1,
    };
    assert.equal(rightsRefusal(judged), undefined);
  });

  test("a domain that may not be written, a target that may not be addressed", () => {
    const scopes = ["write:beliefs", "write:tasks", "write:agent:lead"];
    assert.equal(
      asks({ type: "interruption.requested" }, { roles: [], scopes })?.scope,
      "write:interruptions",
    );
    assert.equal(asks({ target: "agent:b" }, { roles: [], scopes })?.scope, "write:agent:b");
    const offered = { type: "delegation.requested", delegated_to: "agent:b" };
    assert.equal(asks(offered, { roles: [], scopes })?.scope, "write:agent:b");
    for (const target of ["agent:lead", "agent:a", "service:x", "harness:x"]) {
      assert.equal(asks({ target }, { roles: [], scopes }), undefined, target);
    }
    assert.equal(asks({ target: "agent:b" }, { roles: [], scopes: ["write:tasks"] }), undefined);
  });

  test("a subscription beyond its scopes", () => {
    const grants: Grants = { roles: [], scopes: ["write:tasks", "read:tasks", "subscribe:task.*"] };
    const wants = (types: unknown) =>
      asks({ type: "subscription.requested", payload: { types } as never }, grants);
    assert.equal(wants("task.*"), undefined);
    assert.equal(wants(["task.started", "task.cancel.requested"]), undefined);
    for (const wide of ["*", "task.>", ["task.*", "delegation.*"], "*.started"]) {
      assert.equal(wants(wide)?.check, "scope", JSON.stringify(wide));
    }
    assert.equal(wants(undefined)?.scope, "subscribe:*");
  });

  test("scopes that a command or an opening claims and the connection lacks", () => {
    const grants: Grants = {
      roles: [],
      scopes: ["write:*", "read:tasks", "subscribe:task.*", "deploy:web"],
    };
    const command = (...authorization_scope: string[]) =>
      asks({ type: "command.requested", payload: { authorization_scope } }, grants);
    assert.equal(command("write:tasks", "deploy:web", "subscribe:task.started"), undefined);
    for (const beyond of ["read:beliefs", "deploy:db", "subscribe:*", "root"]) {
      const found = command("deploy:web", beyond);
      assert.deepEqual([found?.check, found?.scope], ["authorization_scope", beyond]);
    }
    const opening = (scopes: string[]) =>
      asks({ type: "session.opened", payload: { capabilities: { auth: { scopes } } } }, grants);
    assert.equal(opening(["read:tasks"]), undefined);
    assert.equal(opening(["read:*"])?.scope, "read:*");
  });
});

test("every registered type is matched by the pattern of its family", () => {
  for (const type of EVENT_TYPES) {
    assert.ok(covers(`${type.slice(0, type.indexOf("."))}.*`, type), type);
  }
});
