import { connectBus, intakeStreamSpec, logStreamSpec, logSubject } from "@harmovela/bus";
import { startNatsServer } from "/work/main/packages/testkit/src/nats-server.ts";

const s = await startNatsServer();
console.log(s.version, s.url);
const bus = await connectBus({ servers: s.url, name: "try" });
console.log(await bus.provision(logStreamSpec("tasks")));
console.log(await bus.provision(logStreamSpec("tasks")));
await bus.provision(intakeStreamSpec("tasks"));
const N = Number(process.argv[2] ?? 100000),
  data = new Uint8Array(600).fill(65);
const subj = logSubject({
  tenant: "acme",
  domain: "tasks",
  source: "agent:a",
  target: "agent:b",
  type: "task.progress",
});
let t = performance.now();
for (let round = 0; round < 3; round++) {
  const last = (await bus.streamState("HV_LOG_TASKS"))!.lastSeq;
  t = performance.now();
  await new Promise<void>((resolve, reject) => {
    const a = bus.openAppender({
      stream: "HV_LOG_TASKS",
      last,
      onAcked: (n) => {
        if (n === last + N) {
          void a.close();
          resolve();
        } else pump();
      },
      onFailure: (f) => reject(new Error(JSON.stringify(f))),
    });
    const pump = () => {
      while (a.last < last + N && a.inFlight < 512)
        a.append(subj, { "Hv-Cause": "in:12345", "Hv-At": "1700000000000", "Hv-Epoch": "3" }, data);
    };
    pump();
  });
  console.log("append/s", Math.round((N / (performance.now() - t)) * 1000));
}
for (let round = 0; round < 3; round++) {
  t = performance.now();
  let n = 0,
    h = 0;
  await new Promise<void>((resolve) => {
    let due = false;
    const r = bus.openReader("HV_LOG_TASKS", {
      after: 0,
      onReady: () => {
        if (!due) {
          due = true;
          setImmediate(() => {
            due = false;
            for (const m of r.take(256)) {
              n++;
              if (round > 0) h += m.header("Hv-At").length + m.data.length;
            }
            if (n === 3 * N) {
              void r.close();
              resolve();
            } else if (r.buffered) onR();
          });
        }
      },
    });
    const onR = () => {
      if (!due) {
        due = true;
        setImmediate(() => {
          due = false;
          for (const m of r.take(256)) {
            n++;
            if (round > 0) h += m.header("Hv-At").length + m.data.length;
          }
          if (n === 3 * N) {
            void r.close();
            resolve();
          } else if (r.buffered) onR();
        });
      }
    };
  });
  console.log("read/s", Math.round(((3 * N) / (performance.now() - t)) * 1000), h);
}
t = performance.now();
for (let i = 0; i < 5000; i++) await bus.store(subj, {}, data);
console.log("store/s", Math.round((5000 / (performance.now() - t)) * 1000));
await bus.close();
await s[Symbol.asyncDispose]();
