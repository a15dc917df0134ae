import { runProcess } from "@harmovela/host";
import { settingsFrom, storeFrom } from "./environment.ts";
import { createManager } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess(
  (env, problems) => createManager(settingsFrom(env, problems), storeFrom(env, problems)),
  VERSION,
);
