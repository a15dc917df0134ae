export { type Candidate, enrol, keyFile, strike } from "./identity/enrol.ts";
export { grantsFileOf } from "./identity/grants-file.ts";
export { createProgram } from "./program.ts";
