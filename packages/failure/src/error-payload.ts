import type { ErrorCode } from "./codes.ts";

/** JSON as it travels on the wire. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | JsonValue[]
  | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** The error object of the protocol (spec 9.5). */
export interface ErrorPayload {
  code: ErrorCode;
  message: string;
  retryable: boolean;
  details?: JsonObject;
}
