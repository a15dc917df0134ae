/** The counter service as a process of its own, to be killed. Arguments: server URL, instance, lease in ms, "audit". */
import { AUDIT, openCounter } from "./harness.ts";

const [url = "", instance = "", lease = "1500", more = ""] = process.argv.slice(2);
const counter = await openCounter(url, {
  instance,
  leaseTtlMs: Number(lease),
  ...(more === "audit" ? { audit: AUDIT } : {}),
});
counter.host.untilLeading().then(
  () => process.stdout.write("leading\n"),
  () => process.stdout.write("ended\n"),
);
process.stdout.write("started\n");
