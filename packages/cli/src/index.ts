export { type Candidate, enrol, keyFile, strike } from "./identity/enrol.ts";
export { createProgram } from "./program.ts";
