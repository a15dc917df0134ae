/**
 * When a leader looks and what it does then.
 *
 * T1 Messages are judged in intake order; before one is judged, every timer due at or before its
 *    store time has been written (architecture, section 5).
 * T2 A timer due while the intake is silent is written only after the intake was seen to hold
 *    nothing that was stored before.
 * T3 One turn: due timers, at most 64 steps of plans, at most 256 messages (section 2, fairness).
 * T4 A leader that was displaced notices within a third of the lease even when it has nothing to write.
 */
import { intakeStream } from "@harmovela/bus";
import type { Owed } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { BrokerTime } from "../broker-time.ts";
import type { IntakeQueue } from "../intake-queue.ts";
import { EvolveError, type LogWriter } from "../log-writer.ts";
import type { Obligations } from "../obligations.ts";
import type { ObservationKeeper } from "../observation-keeper.ts";
import type { ObservedLog } from "../observed-log.ts";
import type { HostOptions } from "../options.ts";
import type { PositionKeeper } from "../position-keeper.ts";
import type { Requests } from "../requests.ts";
import type { DisplacementWatch } from "./displacement.ts";
import { type IntakeJudge, MESSAGES_PER_TURN } from "./intake-judge.ts";
import type { LogRoom } from "./log-room.ts";
import type { ObservedLooks } from "./observed-looks.ts";

const STEPS_PER_TURN = 64;
/** A single wait; longer ones are made of several (timers beyond 2^31-1 ms fire at once). */
const WAIT_MS_MAX = 3_600_000;
/** Pause before another turn when the bus does not answer. */
const RETRY_MS = 500;

export interface TurnLoopContext<State> {
  options: HostOptions<State>;
  time: BrokerTime;
  writer: LogWriter<State>;
  requests: Requests;
  obligations: Obligations<State>;
  observed: readonly ObservedLog<State>[];
  looks: ObservedLooks<State>;
  judge: IntakeJudge<State>;
  keeper: PositionKeeper<State>;
  observations: ObservationKeeper<State>;
  displacement: DisplacementWatch<State>;
  room: LogRoom<State>;
  /** Undefined while nothing is judged. */
  intake(): IntakeQueue | undefined;
  isOpen(): boolean;
  /** Runs a piece of a turn that may end the leadership. */
  guard(work: () => void): void;
  takeSnapshot(): Promise<void>;
  /** Another leads. */
  onDisplaced(): void;
  /** The service must stop. */
  onFatal(error: unknown): void;
}

export class TurnLoop<State> {
  readonly #context: TurnLoopContext<State>;
  #isTurning = false;
  #isScheduled = false;
  #cancelWait: () => void = () => {};

  constructor(context: TurnLoopContext<State>) {
    this.#context = context;
  }

  /** Something may have changed: look soon. */
  wake(): void {
    const { options, isOpen } = this.#context;
    if (this.#isScheduled || !isOpen()) return;
    this.#isScheduled = true;
    options.clock.soon(() => {
      this.#isScheduled = false;
      const intake = this.#context.intake();
      if (this.#isTurning || intake === undefined) return;
      this.#isTurning = true;
      this.#turn(intake).then(
        () => this.#afterTurn(intake),
        (error) => this.#onError(error),
      );
    });
  }

  /** No further look by itself. */
  stop(): void {
    this.#cancelWait();
  }

  async #turn(intake: IntakeQueue): Promise<void> {
    const { time, writer, looks, judge, obligations, keeper, observations } = this.#context;
    const { room, isOpen, guard, takeSnapshot } = this.#context;
    // Fetched first: what was acknowledged elsewhere before these were stored is folded before they are judged.
    const max = Math.min(MESSAGES_PER_TURN, writer.room);
    intake.fetch(max);
    // Under way while they are validated.
    const look = looks.ask(intake);
    intake.validate(max);
    if (look !== undefined) judge.isBlind = !(await looks.catchUp(look));
    if (!isOpen()) return;
    await room.look();
    if (!isOpen()) return;
    await this.#workOffIdleTimers(intake);
    if (!isOpen()) return;
    guard(() => obligations.workOffSteps(STEPS_PER_TURN));
    if (!isOpen()) return;
    obligations.sendDue(time.now());
    await judge.judge(intake);
    if (!isOpen()) return;
    if (writer.room >= 4) keeper.keep(intake.judged);
    await observations.keep();
    if (!isOpen()) return;
    await takeSnapshot();
    if (!isOpen()) return;
    await this.#noticeDisplacement(intake);
  }

  /** T2. */
  async #workOffIdleTimers(intake: IntakeQueue): Promise<void> {
    const { options, time, obligations, isOpen, guard } = this.#context;
    if (!intake.isEmpty) return;
    const now = time.now();
    if (!isStepOrTimer(obligations.next(now), "timer")) return;
    const state = await options.writer.streamState(intakeStream(options.domain));
    if (!isOpen()) return;
    if (state === undefined) throw new HarmovelaError("internal_error", "the intake is gone");
    if (intake.isDrained(state)) guard(() => obligations.workOffTimers(now));
  }

  /** T4. */
  async #noticeDisplacement(intake: IntakeQueue): Promise<void> {
    const { displacement, judge, isOpen, onDisplaced } = this.#context;
    const found = await displacement.look(intake);
    if (found === undefined || !isOpen()) return;
    if (found === "displaced") onDisplaced();
    else judge.recordGap(intake, found.missingUpTo);
  }

  /** Looks again at once when there is work and room, else at the next due time. */
  #afterTurn(intake: IntakeQueue): void {
    this.#isTurning = false;
    const { time, writer, observed, obligations, requests, isOpen } = this.#context;
    if (!isOpen() || writer.room < 2) return;
    const hasInput = !intake.isEmpty || observed.some((log) => log.hasNews);
    const now = time.now();
    const owed = obligations.next(now);
    const hasRequest = owed !== undefined && "request" in owed && !requests.isFull;
    if (hasInput || isStepOrTimer(owed, "step") || hasRequest) this.wake();
    else this.#wait(this.#pauseMs(intake, owed, now));
  }

  /** Until the first of what may be due. */
  #pauseMs(intake: IntakeQueue, owed: Owed | undefined, now: number): number {
    const { displacement, keeper, observations, obligations } = this.#context;
    const waits = [WAIT_MS_MAX, displacement.everyMs, ...keeper.waits, ...observations.waits];
    if (obligations.pauseMs > 0) waits.push(obligations.pauseMs);
    if (owed !== undefined && "wakeAt" in owed) waits.push(Math.max(1, owed.wakeAt - now));
    else if (owed !== undefined && "urgency" in owed) {
      waits.push(intake.isUncertain ? RETRY_MS : 1);
    }
    return Math.min(...waits);
  }

  #onError(error: unknown): void {
    this.#isTurning = false;
    const { options, isOpen, onFatal } = this.#context;
    if (!isOpen()) return;
    if (error instanceof HarmovelaError && error.category === "dependency") {
      options.logger.warn({ err: error }, "the bus does not answer");
      this.#wait(RETRY_MS);
    } else if (!(error instanceof EvolveError)) {
      onFatal(error);
    }
  }

  #wait(ms: number): void {
    this.#cancelWait();
    this.#cancelWait = this.#context.options.clock.after(ms, () => this.wake());
  }
}

function isStepOrTimer(owed: Owed | undefined, urgency: "step" | "timer"): boolean {
  return owed !== undefined && "urgency" in owed && owed.urgency === urgency;
}
