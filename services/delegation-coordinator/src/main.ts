import { runProcess } from "@harmovela/host";
import { settingsFrom } from "./environment.ts";
import { createCoordinator } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess((env, problems) => createCoordinator(settingsFrom(env, problems)), VERSION);
