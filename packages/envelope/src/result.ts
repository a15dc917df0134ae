import {
  boundedText,
  type ErrorCode,
  type ErrorPayload,
  reject,
  type Stage,
} from "@harmovela/failure";
import { PATH_MAX } from "./limits.ts";

/** A value, or why there is none. */
export type Result<T> = { ok: true; value: T } | { ok: false; error: ErrorPayload };

/** Where a refusal was found and where it points. */
export interface Refusal {
  code: ErrorCode;
  message: string;
  stage: Stage;
  path?: string;
  details?: Readonly<Record<string, unknown>>;
}

/** A refused Result; `details.path` names the field. */
export function refuse(refusal: Refusal): { ok: false; error: ErrorPayload } {
  const details: Record<string, unknown> = { ...refusal.details };
  if (refusal.path !== undefined) details.path = boundedPath(refusal.path);
  return {
    ok: false,
    error: reject(refusal.code, refusal.message, details, { stage: refusal.stage }),
  };
}

/** A path that may be quoted: bounded, and cut at its end. */
export function boundedPath(path: string): string {
  return boundedText(path, PATH_MAX);
}
