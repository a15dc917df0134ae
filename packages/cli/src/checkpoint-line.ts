/** A checkpoint on one line. */
import type { Checkpoint } from "@harmovela/client";
import pc from "picocolors";
import { cut, plainName, plainText } from "./terminal.ts";

const LOCATION_LENGTH_MAX = 100;

/** Id, time, size, place. All text of agents is escaped. */
export function checkpointLine({ checkpointId, at, bytes, location }: Checkpoint): string {
  const size =
    bytes === undefined ? "size unknown" : bytes === 0 ? "from the start" : `${bytes} bytes`;
  const place =
    location === undefined ? "kept by the agent" : cut(plainText(location), LOCATION_LENGTH_MAX);
  return [pc.bold(plainName(checkpointId)), plainText(at), size, pc.dim(place)].join("  ");
}
