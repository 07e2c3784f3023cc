// The versions of the protocol, and how they differ in the form of headers.

/*
 *                              1.0    1.1         1.2
 *     escapes in headers       none   \n \c \\    \r \n \c \\
 *     spaces around a header   cut    kept        kept
 *     line ends                LF     LF          LF or CR LF
 */

/** A version of STOMP. */
export type StompVersion = "1.0" | "1.1" | "1.2";

/** All versions, the newest first. */
export const STOMP_VERSIONS: readonly StompVersion[] = ["1.2", "1.1", "1.0"];

/**
 * The newest version of an `accept-version` header that the broker speaks; undefined if there is none. A client without
 * the header speaks 1.0.
 */
export function chooseVersion(accepted: string | undefined): StompVersion | undefined {
  if (accepted === undefined) return "1.0";
  const offered = accepted.split(",").map((text) => text.trim());
  return STOMP_VERSIONS.find((version) => offered.includes(version));
}
