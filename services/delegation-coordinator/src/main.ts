import { runProcess } from "@harmovela/host";
import { settingsFrom } from "./environment.ts";
import { createCoordinator } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess(
  (env, problems, connection) =>
    createCoordinator({ ...settingsFrom(env, problems), ...connection }),
  VERSION,
);
