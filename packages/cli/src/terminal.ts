/**
 * What may reach a terminal. Text of agents is hostile: control characters move the cursor, bidi and
 * zero-width characters make one name look like another. They are shown escaped.
 */

// Controls, soft hyphen, Arabic letter mark, zero-width and bidi marks, line separators, invisible
// operators, variation selectors, byte order mark, lone surrogates and tags.
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed.
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;

/** Free text: letters of every script stay, what cannot be seen is `\u{…}`. */
export function plainText(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/**
 * A name (agent, id, tenant): everything beyond printable ASCII is `\u{…}`, because names that look
 * alike are different names.
 */
export function plainName(name: string): string {
  return name.replace(/[^\x20-\x7e]/gu, escaped);
}

/** JSON whose value is the same and that is safe to print: unsafe characters as `\uXXXX`. */
export function plainJson(json: string): string {
  return json.replace(UNSAFE, (char) =>
    [...Array(char.length).keys()]
      .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

function escaped(char: string): string {
  return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Text cut to so many characters. */
export function cut(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
}
