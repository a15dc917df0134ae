/** Every bound of the wire contract, with its reason. */

/** Largest message, bytes. Leaves room for stamps and headers below the broker's 1 MiB. */
export const MESSAGE_BYTES_MAX = 512 * 1024;

/** Deepest nesting of arrays and objects. Serialisers recurse; nothing is accepted that cannot be emitted again. */
export const DEPTH_MAX = 64;

/** Longest id, agent name or tenant, UTF-8 bytes. They become subject tokens and keys. */
export const ID_BYTES_MAX = 128;

/** Longest bearer token on the wire, UTF-16 units. A signed token needs a few hundred. */
export const HANDOFF_TOKEN_MAX = 8192;

/** Longest URI, characters. */
export const URI_MAX = 2048;

/** Most links in one evidence chain; a longer lineage is told by reference. */
export const EVIDENCE_LINKS_MAX = 1024;

/** Most claims in one conflict, and most entries in a list of names. */
export const LIST_MAX = 1024;

/** Longest time span that an event may ask for: 100 years of 365.25 days, milliseconds. */
export const SPAN_MS_MAX = 100 * 365.25 * 86_400_000;

/** Longest `stale_after`, years. */
export const DURATION_YEARS_MAX = 1000;

/** 0001-01-01T00:00:00Z, the first instant that is accepted or emitted. */
export const INSTANT_MIN = -62_135_596_800_000;

/** 9999-12-31T23:59:59.999Z, the last one: what RFC 3339 can write. */
export const INSTANT_MAX = 253_402_300_799_999;

/** Longest date-time text; RFC 3339 puts no bound on the fraction. */
export const INSTANT_TEXT_MAX = 64;

/** Longest path or key that a refusal quotes, UTF-16 units. */
export const PATH_MAX = 128;
