/** One thing that was looked at. */
export interface Finding {
  is: "good" | "note" | "bad";
  what: string;
  /** What to do about it. */
  advice?: string;
}
