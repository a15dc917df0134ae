/** Whether a subject lies in a filter: `*` is one token, a last `>` is one or more. */
export function matchesSubject(filter: string, subject: string): boolean {
  // Most filters are inboxes of one question each; hundreds may be open at once.
  if (!filter.includes("*") && !filter.includes(">")) return filter === subject;
  return capture(filter, subject) !== undefined;
}

/** What the wildcards of a filter stand for in a subject; undefined when it does not match. */
export function capture(filter: string, subject: string): string[] | undefined {
  const wanted = filter.split(".");
  const tokens = subject.split(".");
  const captured: string[] = [];
  for (const [index, token] of wanted.entries()) {
    if (token === ">" && index === wanted.length - 1) {
      if (tokens.length <= index) return undefined;
      captured.push(tokens.slice(index).join("."));
      return captured;
    }
    const is = tokens[index];
    if (is === undefined || (token !== "*" && token !== is)) return undefined;
    if (token === "*") captured.push(is);
  }
  return tokens.length === wanted.length ? captured : undefined;
}

/** The subject under which a stored message goes out again; undefined when it does not. */
export function republished(
  rule: { src: string; dest: string },
  subject: string,
): string | undefined {
  const captured = capture(rule.src, subject);
  if (!captured) return undefined;
  const rest = rule.src.endsWith(">") ? (captured.at(-1) ?? "") : "";
  return rule.dest
    .replace(
      /\{\{wildcard\((\d+)\)\}\}/g,
      (_, number: string) => captured[Number(number) - 1] ?? "",
    )
    .replace(/>$/, rest);
}
