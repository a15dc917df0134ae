/**
 * What may reach a terminal. Text of agents is hostile: control characters move the cursor, bidi and
 * zero-width characters make one name look like another. They are shown escaped.
 */

// Controls, format characters (bidi, zero-width, tags), lone surrogates, line separators, and whatever
// is drawn as nothing (fillers, variation selectors).
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

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
