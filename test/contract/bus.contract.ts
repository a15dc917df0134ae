/** One suite for both adapters of the bus: what is found only in one of them is a fault of the other. */
import { describe } from "node:test";
import { appenderCases } from "./appender.cases.ts";
import { blobCases } from "./blob.cases.ts";
import { coreCases } from "./core.cases.ts";
import { leaseCases } from "./lease.cases.ts";
import { readerCases } from "./reader.cases.ts";
import { streamCases } from "./stream.cases.ts";
import type { BusUnderTest } from "./support.ts";

/** Runs every case; `open` starts the adapter's server once for all of them. */
export function busContract(adapter: string, open: () => Promise<BusUnderTest>): void {
  describe(`bus contract, ${adapter}`, { timeout: 240_000 }, () => {
    streamCases(open);
    appenderCases(open);
    readerCases(open);
    leaseCases(open);
    blobCases(open);
    coreCases(open);
  });
}
