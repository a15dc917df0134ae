/** Tokens that are issued between two messages: the entry first, the token after it (spec 7). */
import type { Instant, TokenIssue } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Fold } from "../fold.ts";
import type { LogWriter } from "../log-writer.ts";
import type { HostOptions } from "../options.ts";
import type { DecisionTime } from "./decision-time.ts";

/** Places in the log that are left to entries that others wait for. */
const ROOM_MIN = 4;

export interface TokenRequest {
  tenant: string;
  source: string;
  params: JsonObject;
}

export interface TokenOfficeContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  writer: LogWriter<State>;
  decisionTime: DecisionTime<State>;
  isOpen(): boolean;
  unfrozen(): Promise<void>;
  now(): Instant;
  /** Runs what appends; false when the leadership has ended with it. */
  guard(work: () => void): boolean;
}

export class TokenOffice<State> {
  readonly #context: TokenOfficeContext<State>;

  constructor(context: TokenOfficeContext<State>) {
    this.#context = context;
  }

  /**
   * Its entry is appended at `position`, the token follows. Nobody may get it before the entry is stored.
   * Rejects as retryable while this replica cannot write.
   */
  async issue(request: TokenRequest): Promise<{ position: number; result: JsonObject }> {
    const { options, fold, writer, unfrozen, isOpen, decisionTime, now } = this.#context;
    const { tokens } = options;
    if (tokens === undefined) throw noTokensHere();
    // Whoever would get none need not wait.
    this.#decide(request, now());
    await unfrozen();
    const instant = await decisionTime.wait();
    if (instant === undefined || !isOpen() || writer.room < ROOM_MIN) throw noTokensNow();
    const at = Math.max(instant, fold.at);
    const issue = this.#decide(request, at);
    const { tenant } = request;
    const cause = { owed: `token:${issue.jti}` };
    const isWritten = this.#context.guard(() => {
      writer.control({ kind: "token_issued", body: issue, tenant, cause, at });
    });
    if (!isWritten) throw new HarmovelaError("internal_error", "the token could not be recorded");
    const position = writer.last;
    const result = { token: await tokens.sign(issue), jti: issue.jti, exp: issue.exp };
    return { position, result };
  }

  #decide({ tenant, source: asker, params }: TokenRequest, now: Instant): TokenIssue {
    const { options, fold } = this.#context;
    const { issueToken } = options;
    if (issueToken === undefined) throw noTokensHere();
    const answer = issueToken(fold.state, { tenant, asker, params, now });
    if ("issue" in answer) return answer.issue;
    const { code, message, details = {} } = answer.refused;
    throw new HarmovelaError(code, message, { details });
  }
}

function noTokensHere(): HarmovelaError {
  return new HarmovelaError("invalid_query", "no tokens are issued here");
}

function noTokensNow(): HarmovelaError {
  return new HarmovelaError("internal_error", "no tokens now", { category: "dependency" });
}
