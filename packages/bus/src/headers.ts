/** Headers of this system (architecture, section 3). */
export const HEADER = {
  cause: "Hv-Cause",
  at: "Hv-At",
  epoch: "Hv-Epoch",
  prev: "Hv-Prev",
  seen: "Hv-Seen",
  digest: "Hv-Digest",
  verdict: "Hv-Verdict",
  about: "Hv-About",
  replyTo: "Hv-Reply-To",
  traceparent: "traceparent",
} as const;
