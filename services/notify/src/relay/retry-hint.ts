// Delays that relays request in the text of temporary replies.

/** Finds the delay that a reply requests, such as "greylisted, try again in 300 seconds", in ms. */
export function findRetryHint(text: string): number | undefined {
  const found =
    /(?:try|retry|again|wait|back|greylist\w*|postgrey)\D{0,40}?(\d{1,5})\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|h)\b/i.exec(
      text,
    );
  if (found === null) return undefined;
  const unit = found[2]!.toLowerCase();
  const factor = unit.startsWith("h") ? 3_600_000 : unit.startsWith("m") ? 60_000 : 1_000;
  return Number(found[1]) * factor;
}
