#!/usr/bin/env node
// Loaded first and by itself: what comes in is timed from the first moment.
import "../dist/stdio/standard-input.js";

await import("../dist/main.js");
