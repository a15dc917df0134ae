import { runProcess } from "@harmovela/host";
import { createAttester } from "./service.ts";
import { VERSION } from "./version.ts";

await runProcess(() => createAttester(), VERSION);
