import { connectBus, logStreamSpec, logSubject } from "@harmovela/bus";
import { headers } from "@nats-io/nats-core";
import { startNatsServer, freePort } from "/work/main/packages/testkit/src/nats-server.ts";
const R = Number(process.argv[2] ?? 1);
let servers: any[] = [];
if (R === 1) servers = [await startNatsServer()];
else {
  const cp = [await freePort(), await freePort(), await freePort()];
  servers = await Promise.all([0,1,2].map((i) => startNatsServer({ config: `server_name: n${i}\ncluster { name: c, listen: "127.0.0.1:${cp[i]}", routes: [${cp.map((p) => `"nats://127.0.0.1:${p}"`).join(",")}] }` })));
}
const bus = await connectBus({ servers: servers[0].url, name: "try" });
const nc = bus.nats;
for (let i = 0; i < 60; i++) { try { await bus.provision(logStreamSpec("tasks", { replicas: R })); break; } catch (e: any) { if (i === 59) throw e; await new Promise((r) => setTimeout(r, 300)); } }
console.log(servers[0].version, "R", R);
const subj = logSubject({ tenant: "acme", domain: "tasks", source: "a", target: "b", type: "task.progress" });
const inbox = bus.newInbox();
const got: any[] = [];
nc.subscribe(inbox + ".*", { callback: (_e: any, m: any) => { got.push([m.subject.split(".").pop(), m.data.length ? m.json() : "503"]); } });
async function chain(who: string, from: number, n: number, ids: boolean) {
  got.length = 0;
  for (let i = 0; i < n; i++) {
    const h = headers();
    h.set("Nats-Expected-Last-Sequence", String(from + i));
    if (ids) { h.set("Nats-Msg-Id", `${who}.${from + i + 1}`); if (i > 0) h.set("Nats-Expected-Last-Msg-Id", `${who}.${from + i}`); }
    nc.publish(subj, new Uint8Array([who.charCodeAt(0)]), { headers: h, reply: `${inbox}.${who}${from + i + 1}` });
  }
  const end = Date.now() + 5000;
  while (got.length < n && Date.now() < end) await new Promise((r) => setTimeout(r, 20));
  return got.map(([k, v]) => `${k}:${v === "503" ? 503 : v.error ? v.error.err_code : "ok" + v.seq}`).join(" ");
}
for (const ids of [false, true]) {
  console.log("ids", ids);
  let last = (await bus.streamState("HV_LOG_TASKS"))!.lastSeq;
  console.log(" A alone:", await chain("A", last, 3, ids));
  last += 3;
  console.log(" B epoch:", await chain("B", last, 1, ids));
  console.log(" A stale:", await chain("A", last, 5, ids));
}
for (const s of servers) console.log("LOG", s.log.split("\n").filter((l:string)=>/WRN|ERR|panic|FTL/.test(l)).slice(-8).join("\n"));
console.log(await bus.streamState("HV_LOG_TASKS").catch((e:any)=>e.message));
// pipelined id chain speed and correctness
let last = (await bus.streamState("HV_LOG_TASKS"))!.lastSeq;
const t = performance.now();
const res = await chain("C", last, 2000, true);
console.log("2000 pipelined ids: ok", (res.match(/ok/g) ?? []).length, "errors", [...new Set(res.match(/:(\d+)/g))].join(), Math.round(2000 / (performance.now() - t) * 1000), "/s");
if (R === 3) {
  // both at once, interleaved from two connections
  const bus2 = await connectBus({ servers: servers[1].url, name: "try2" });
  let bad = 0, foreign = 0;
  for (let round = 0; round < 40; round++) {
    for (const ids of [false, true]) {
    last = (await bus.streamState("HV_LOG_TASKS"))!.lastSeq;
    const start = last;
    const pub = (c: any, who: string, n: number) => { for (let i = 0; i < n; i++) { const h = headers(); h.set("Nats-Expected-Last-Sequence", String(last + i)); if (ids) { h.set("Nats-Msg-Id", `${who}.${round}.${last + i + 1}`); if (i > 0) h.set("Nats-Expected-Last-Msg-Id", `${who}.${round}.${last + i}`);} c.publish(subj, new Uint8Array([who.charCodeAt(0)]), { headers: h, reply: `${inbox}.${who}${i}` }); } };
    pub(bus2.nats, "B", 1 + round % 3); pub(nc, "A", 50);
    await nc.flush(); await bus2.flush(); await new Promise((r) => setTimeout(r, 150));
    const end = (await bus.streamState("HV_LOG_TASKS"))!.lastSeq;
    const who: string[] = []; for (let q = start + 1; q <= end; q++) who.push(String.fromCharCode((await bus.read("HV_LOG_TASKS", q))!.data[0]!));
    const mixed = new Set(who).size > 1;
    if (mixed) { if (ids) bad++; else foreign++; }
    }
  }
  console.log("40 races: mixed without ids", foreign, "with ids", bad);
  await bus2.close();
}
await bus.close(); for (const s of servers) await s[Symbol.asyncDispose]();
