import assert from "node:assert/strict";
import { test } from "node:test";
import { type Command, CommanderError } from "commander";
import { allOf, createProgram } from "../src/program.ts";

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

test("there is exactly the set of commands that is promised", () => {
  assert.deepEqual(
    createProgram()
      .commands.map((command) => command.name())
      .toSorted(),
    [
      "agent",
      "audit",
      "beliefs",
      "cancel",
      "check",
      "checkpoints",
      "compensate",
      "conformance",
      "demo",
      "doctor",
      "interrupt",
      "provenance",
      "publish",
      "resume",
      "service",
      "stdio",
      "tail",
      "token",
      "tree",
      "up",
      "why",
    ],
  );
});

test("every command explains itself with an example of its own", () => {
  for (const command of createProgram().commands) {
    const help = helpOf(command);
    assert.match(help, new RegExp(`Example:\\n {2}\\$ harmovela ${command.name()}\\b`));
    assert.notEqual(command.description(), "");
    assert.notEqual(command.summary(), "");
  }
});

test("the program says where to start", () => {
  assert.match(helpOf(createProgram()), /harmovela up[\s\S]*harmovela demo/);
});

test("wrong arguments of every command, also below another, say where help is and end nothing by themselves", () => {
  for (const command of allOf(createProgram())) {
    let said = "";
    command.exitOverride().configureOutput({
      writeErr: (text) => {
        said += text;
      },
    });
    const wrong = () => command.parse(["--no-such-option"], { from: "user" });
    assert.throws(wrong, CommanderError, command.name());
    assert.match(said, /--help shows how it is used/, command.name());
  }
});
