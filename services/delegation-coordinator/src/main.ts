import { runProcess } from "@harmovela/host";
import { createCoordinator } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess(createCoordinator(), VERSION);
