// Alignment of From with the DKIM domain (RFC 7489 section 3.1.1), checked before mail is accepted.
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Domains } from "./domains.ts";

/** Options of {@link createAlignmentCheck}. */
export interface AlignmentOptions {
  mode: "off" | "warn" | "enforce";
  domains: Domains;
  clock: Clock;
  log: Logger;
}

const WARN_EVERY_MS = 3_600_000;
const WARNED_MAX = 1_000;

/** Creates the check of a From domain; with `enforce` it throws `unprocessable`. */
export function createAlignmentCheck(options: AlignmentOptions): (domain: string) => void {
  const { mode, domains, clock, log } = options;
  const warnedAt = new Map<string, number>();
  return (domain) => {
    if (mode === "off" || domains.isSigned(domain)) return;
    if (mode === "enforce") {
      throw new PlatformError(
        "unprocessable",
        `from: the domain ${domain} has no active DKIM key, so its mail is not aligned (DMARC).`,
      );
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - (warnedAt.get(domain) ?? Number.NEGATIVE_INFINITY) < WARN_EVERY_MS) return;
    if (warnedAt.size >= WARNED_MAX) warnedAt.clear();
    warnedAt.set(domain, nowMs);
    log.warn("mail is sent from a domain without an active DKIM key", { domain });
  };
}
