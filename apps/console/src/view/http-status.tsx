// The status of an HTTP response in a list.

/** A status in the colour of its class; `–` without a response. */
export function HttpStatus({ status }: { status: number }) {
  const kind = status >= 500 || status === 0 ? "bad" : status >= 400 ? "warn" : "ok";
  return <span class={kind}>{status === 0 ? "–" : status}</span>;
}
