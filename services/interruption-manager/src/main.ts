import { runProcess } from "@harmovela/host";
import { settingsFrom, storeFrom } from "./environment.ts";
import { createManager } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess(
  (env, problems, connection) =>
    createManager({ ...settingsFrom(env, problems), ...connection }, storeFrom(env, problems)),
  VERSION,
);
