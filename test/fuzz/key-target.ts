/**
 * Tokens, signatures, and the files that keys and rights are read from.
 *
 * K1 Looking at a token or a signature never throws, and nothing counts as signed but what a key of the set
 *    has signed, byte for byte as it means something.
 * K2 A file is used or refused with a typed error, which never quotes a secret.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { authFromFile, systemClock } from "@harmovela/bus";
import { canonicalJson, checkEnvelope, type Envelope, parseJson } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { openAgentKeyFile, openTokenKeyFile } from "@harmovela/host";
import type { SimRandom } from "@harmovela/testkit";
import { CommandFailure } from "../../packages/cli/src/command-failure.ts";
import { readIdentities } from "../../packages/cli/src/identity/identity-file.ts";
import { type Input, ofBytes, toBytes, toText } from "./input.ts";
import {
  KINDS,
  type Kind,
  type Material,
  makeMaterial,
  meaningOf,
  TENANT,
} from "./key-material.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { mutateJson } from "./mutate-json.ts";
import { Broken, type Session, type Target } from "./target.ts";

const TEXT_MAX = 20_000;
/** The same for all sessions of a process. */
let material: Material | undefined;

export const keyTarget: Target = {
  name: "keys",
  batch: 32,
  sessionInputs: 65_536,
  seed: (random) => seedOf(random.pick(KINDS), random),
  mutate: (input, other, random) => mutated(input, other, random),
  open: async () => {
    material ??= await makeMaterial();
    return new KeySession(material);
  },
};

function seedOf(kind: Kind, random: SimRandom): Input {
  return { kind, text: ofBytes(random.pick(material?.texts[kind] ?? []) ?? ""), tenant: TENANT };
}

/** JSON inside of tokens, and JSON as it is, besides the bytes. */
function mutated(input: Input, other: Input, random: SimRandom): Input {
  const text = toText(input.text);
  const from = toText(other.text);
  if (random.chance(0.05)) return { ...input, tenant: random.pick(["beta", "", "acme", "é"]) };
  if (random.chance(0.4))
    return { ...input, text: mutateBytes(input.text ?? "", other.text ?? "", random, TEXT_MAX) };
  if (input.kind === "token") return { ...input, text: ofBytes(inToken(text, from, random)) };
  if (input.kind === "signature" && random.chance(0.4)) {
    const token = /"token":"([^"]*)"/.exec(text)?.[1] ?? "";
    return { ...input, text: ofBytes(text.replace(token, () => inToken(token, from, random))) };
  }
  return { ...input, text: ofBytes(mutateJson(text, from, random).slice(0, TEXT_MAX)) };
}

/** One part changed as JSON, or the parts of two mixed. */
function inToken(token: string, other: string, random: SimRandom): string {
  const parts = token.split(".");
  const at = random.whole(0, Math.min(1, parts.length - 1));
  const json = Buffer.from(parts[at] ?? "", "base64url").toString("utf8");
  const foreign = other.split(".")[random.whole(0, 2)] ?? "";
  parts[at] = random.chance(0.3)
    ? foreign
    : Buffer.from(mutateJson(json, '{"alg":"none","kid":""}', random)).toString("base64url");
  return parts.join(".").slice(0, TEXT_MAX);
}

class KeySession implements Session {
  readonly #material: Material;
  readonly #folder = mkdtempSync(join(tmpdir(), "harmovela-fuzz-"));

  constructor(all: Material) {
    this.#material = all;
  }

  async run(inputs: readonly Input[]): Promise<string[]> {
    const outcomes: string[] = [];
    for (const [index, input] of inputs.entries()) {
      try {
        outcomes.push(`${input.kind} ${await this.#outcomeOf(input)}`);
      } catch (error) {
        if (error instanceof Broken) throw new Broken(`${input.kind}: ${error.message}`, index);
        throw new Broken(`${input.kind}: threw ${String(error).split("\n")[0]}`, index, error);
      }
    }
    return outcomes;
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #outcomeOf({ kind, text = "", tenant = "" }: Input): Promise<string> {
    switch (kind as Kind) {
      case "token":
        return this.#token(toText(text));
      case "signature":
        return this.#signature(toBytes(text), toText(tenant));
      case "tokenKeys":
        return this.#tokenKeys(text);
      case "agentKeys":
        return this.#agentKeys(text);
      case "credentials":
        return this.#credentials(text);
      case "identities":
        return this.#identities(text);
      default:
        return "no kind";
    }
  }

  /** K1. */
  async #token(token: string): Promise<string> {
    const facts = await this.#material.ours.verify(token);
    if (facts.kind !== "verified") return facts.kind;
    if (!this.#material.claims.has(canonicalJson(facts.claims)))
      throw new Broken("claims that nobody has signed are verified");
    return "verified";
  }

  /** K1. Only what could be judged is looked at, as the host does. */
  async #signature(bytes: Uint8Array, tenant: string): Promise<string> {
    const json = parseJson(bytes);
    const checked = json.ok ? checkEnvelope(json.value) : json;
    if (!checked.ok) return "no envelope";
    const facts = await this.#material.agents.look(checked.value, tenant);
    if (facts?.kind !== "verified") return String(facts?.kind);
    if (!this.#material.envelopes.has(meaningOf(checked.value, tenant)))
      throw new Broken("an envelope that nobody has signed is verified");
    return "verified";
  }

  #file(text: string): string {
    const path = join(this.#folder, "file");
    writeFileSync(path, toBytes(text));
    return path;
  }

  /** K2. */
  async #tokenKeys(text: string): Promise<string> {
    const path = this.#file(text);
    const keys = await attempt(text, () => openTokenKeyFile(path));
    if (typeof keys === "string") return keys;
    const facts = await keys.verify(await keys.sign({ a: 1 }));
    if (facts.kind !== "verified") throw new Broken("keys that do not know their own signature");
    for (const key of keys.publicKeys.keys)
      if ("d" in key) throw new Broken("a secret is published");
    return "used";
  }

  /** K2. Whatever a registry says, it makes nothing of ours good that its keys did not sign. */
  async #agentKeys(text: string): Promise<string> {
    const path = this.#file(text);
    const keys = await attempt(text, () => openAgentKeyFile(path, systemClock, () => {}));
    if (typeof keys === "string") return keys;
    const kinds = new Set<string>();
    for (const signed of this.#material.texts.signature.slice(0, 2)) {
      kinds.add(String((await keys.look(JSON.parse(signed) as Envelope, TENANT))?.kind));
    }
    return `used ${[...kinds].sort().join(" ")}`;
  }

  /** K2. */
  async #credentials(text: string): Promise<string> {
    const path = this.#file(text);
    const auth = await attempt(text, async () => authFromFile(path));
    if (typeof auth === "string") return auth;
    return "creds" in auth ? "credentials" : "seed";
  }

  /** K2. What is read is written again in the same words. */
  async #identities(text: string): Promise<string> {
    const path = this.#file(text);
    const known = await attempt(text, async () => readIdentities(path));
    if (typeof known === "string") return known;
    return `${Math.min(3, known.length)} ${[...new Set(known.map(({ kind }) => kind))].join(" ")}`;
  }
}

const SECRETS = /"d"\s*:\s*"([^"]{16,})"|(SU[A-Z2-7]{56})/g;

/** What the work gives, or the code of a typed refusal that tells no secret. */
async function attempt<T>(text: string, work: () => Promise<T>): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    const isTyped = error instanceof HarmovelaError && error.code === "invalid_argument";
    if (!isTyped && !(error instanceof CommandFailure)) throw error;
    for (const [, d, seed] of text.matchAll(SECRETS)) {
      if (error.message.includes(d ?? seed ?? "")) throw new Broken("a refusal tells a secret");
    }
    // The words behind the name of the file are the service's own.
    return error.message.replace(/^.*?[:,] |^\S+ /, "").replace(/\d+/g, "#");
  }
}
