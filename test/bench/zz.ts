import { beliefFold } from "./belief-fold.ts";

const note = (n: string, v: number, u = "") => console.log(n, Number(v.toPrecision(4)), u);
beliefFold(note, 100_000);
