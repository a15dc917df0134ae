import { runProcess } from "@harmovela/host";
import { settingsIn } from "./environment.ts";
import { createAttester } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess(
  (env, problems, connection) => createAttester({ ...settingsIn(env, problems), ...connection }),
  VERSION,
);
