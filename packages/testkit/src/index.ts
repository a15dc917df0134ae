export { FakeClock, ProcessClock, pass, settled } from "./fake-clock.ts";
export {
  type Act,
  Given,
  type GivenOptions,
  given,
  type Numbering,
  type Outcome,
  Then,
} from "./given.ts";
export { type NatsCluster, startNatsCluster } from "./nats-cluster.ts";
export {
  freePort,
  type NatsServer,
  type NatsServerOptions,
  startNatsServer,
} from "./nats-server.ts";
export { reachable } from "./reachable.ts";
export { SimRandom } from "./simulator-random.ts";
export { assertTenantsApart } from "./tenants-apart.ts";
