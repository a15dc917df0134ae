/**
 * A lineage in the W3C's PROV-JSON: events and attestations are entities, whoever sent them agents; what
 * takes one back is an activity that invalidates it.
 */
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { LineageGraph } from "./provenance-lines.ts";

const PREFIXES: JsonObject = {
  event: "urn:harmovela:event:",
  agent: "urn:harmovela:agent:",
  act: "urn:harmovela:act:",
  hv: "urn:harmovela:vocabulary:",
};

/** Attributes of a node that an entity keeps, by the names of the protocol. */
const KEPT = ["digest", "source_trust", "signed_by", "domain", "seq", "attestation_count"] as const;

export function provJson({ nodes, edges }: LineageGraph): JsonObject {
  const document = new ProvDocument();
  for (const node of nodes) {
    document.addEvent(node);
    for (const attestation of (node.attestations ?? []) as JsonObject[]) {
      document.addAttestation(String(node.id), attestation);
    }
  }
  for (const { from, to } of edges) document.addDerivation(String(from), String(to));
  return document.toJson();
}

class ProvDocument {
  readonly #elements = new Map<string, Map<string, JsonObject>>();
  #relations = 0;

  addEvent(node: JsonObject): void {
    const id = String(node.id);
    const entity: JsonObject = { "prov:label": id };
    if (typeof node.type === "string") entity["prov:type"] = vocabulary(node.type);
    if (typeof node.created_at === "string") entity["hv:created_at"] = time(node.created_at);
    for (const name of KEPT) {
      const value = node[name];
      if (value !== undefined) entity[`hv:${name}`] = value;
    }
    const { chain, withdrawn } = node;
    if (chain !== undefined) entity["hv:chain"] = String((chain as JsonObject).result);
    if (node.is_known !== true) entity["hv:chain"] = "unknown_link";
    this.#set("entity", name("event", id), entity);
    if (typeof node.source === "string") this.#attribute(id, node.source);
    if (withdrawn === undefined) return;
    const { event_id: by_event, by } = withdrawn as JsonObject;
    this.#invalidate(id, { event_id: by_event ?? "", by: by ?? "" });
  }

  addAttestation(of: string, attestation: JsonObject): void {
    const { event_id, source, method, result, at, counts, revoked } = attestation;
    const id = String(event_id);
    this.#set("entity", name("event", id), {
      "prov:label": id,
      "prov:type": vocabulary("provenance.attestation.added"),
      "hv:method": String(method),
      "hv:counts": counts === true,
      "hv:logged_at": time(String(at)),
      ...(result === undefined ? {} : { "hv:result": String(result) }),
    });
    this.#attribute(id, String(source));
    this.addDerivation(id, of);
    if (revoked !== undefined) this.#invalidate(id, revoked as JsonObject);
  }

  addDerivation(from: string, to: string): void {
    this.#relate("wasDerivedFrom", {
      "prov:generatedEntity": name("event", from),
      "prov:usedEntity": name("event", to),
    });
  }

  #attribute(id: string, source: string): void {
    this.#addAgent(source);
    this.#relate("wasAttributedTo", {
      "prov:entity": name("event", id),
      "prov:agent": name("agent", source),
    });
  }

  #invalidate(id: string, { event_id, by, at, reason }: JsonObject): void {
    const activity = name("act", String(event_id));
    this.#set("activity", activity, {
      "prov:label": String(event_id),
      ...(reason === undefined ? {} : { "hv:reason": String(reason) }),
    });
    this.#addAgent(String(by));
    this.#relate("wasInvalidatedBy", {
      "prov:entity": name("event", id),
      "prov:activity": activity,
      ...(at === undefined ? {} : { "prov:time": String(at) }),
    });
    this.#relate("wasAssociatedWith", {
      "prov:activity": activity,
      "prov:agent": name("agent", String(by)),
    });
  }

  #addAgent(source: string): void {
    this.#set("agent", name("agent", source), {
      "prov:label": source,
      "prov:type": { $: "prov:SoftwareAgent", type: "prov:QUALIFIED_NAME" },
    });
  }

  /** What is said of a thing for the second time adds nothing. */
  #set(kind: string, id: string, attributes: JsonObject): void {
    let elements = this.#elements.get(kind);
    if (elements === undefined) {
      elements = new Map();
      this.#elements.set(kind, elements);
    }
    if (!elements.has(id)) elements.set(id, attributes);
  }

  #relate(kind: string, relation: JsonObject): void {
    this.#relations += 1;
    this.#set(kind, `_:r${this.#relations}`, relation);
  }

  toJson(): JsonObject {
    const json: JsonObject = { prefix: { ...PREFIXES } };
    for (const [kind, elements] of this.#elements) json[kind] = Object.fromEntries(elements);
    return json;
  }
}

/** A qualified name; everything that a local part may not hold as `%XX`. */
function name(prefix: string, local: string): string {
  const safe = encodeURIComponent(local).replace(
    /[!'()*~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${prefix}:${safe.replaceAll("%3A", ":")}`;
}

function vocabulary(type: string): JsonValue {
  return { $: `hv:${type}`, type: "prov:QUALIFIED_NAME" };
}

function time(at: string): JsonValue {
  return { $: at, type: "xsd:dateTime" };
}
