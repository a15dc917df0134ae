export { type Clock, systemClock } from "./clock.ts";
export { HEADER } from "./headers.ts";
export type {
  Appender,
  AppenderOptions,
  AppendFailure,
  Bus,
  CoreMessage,
  Headers,
  Lease,
  LeaseOptions,
  Reader,
  ReaderOptions,
  StoredMessage,
  StreamSpec,
  StreamState,
  Subscription,
} from "./port.ts";
