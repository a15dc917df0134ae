import { runProcess } from "@harmovela/host";
import { createTracker } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess((_env, _problems, connection) => createTracker(connection), VERSION);
