import assert from "node:assert/strict";
import { test } from "node:test";
import { RejectedError } from "@harmovela/client";
import { HarmovelaError, reject } from "@harmovela/failure";
import { describeFailure } from "../src/command-failure.ts";

test("whoever cannot connect is told what to do; whom a service refuses is told its reason alone", () => {
  const server = new HarmovelaError("unauthorized", "the server does not accept the credentials");
  assert.match(describeFailure(server), /HARMOVELA_KEY/);
  const refused = new RejectedError(reject("unauthorized", "agent:x may not do that"));
  assert.doesNotMatch(describeFailure(refused), /HARMOVELA_KEY/);
  assert.match(describeFailure(refused), /^unauthorized: agent:x may not do that/);
});

test("an error is one line that is safe to print", () => {
  assert.equal(describeFailure(new Error("a\nb\u001b[2J")), "a\\u{a}b\\u{1b}[2J");
});
