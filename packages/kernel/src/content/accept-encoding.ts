// Selection of a content coding by Accept-Encoding (RFC 9110 section 12.5.3).

/** Content codings that can be selected; `identity` is no coding. */
export type ContentCoding = "br" | "zstd" | "gzip";

const HEADER_CHARACTERS_MAX = 1_024;
const ELEMENT = /^([!#$%&'*+.^_`|~0-9a-z-]+)(?:[ \t]*;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/;

/**
 * Selects the coding with the highest weight; among equal weights the first of `offered`. Returns `identity` if the
 * client accepts none of them, prefers none, or sent no usable field.
 */
export function chooseCoding(
  field: string | undefined,
  offered: readonly ContentCoding[],
): ContentCoding | "identity" {
  const weights = field === undefined ? undefined : readWeights(field);
  if (weights === undefined) return "identity";
  const any = weights.get("*");
  // Without an element of its own, identity is acceptable but not preferred to a named coding.
  const identity = weights.get("identity") ?? 0;
  let best: ContentCoding | "identity" = "identity";
  let bestWeight = 0;
  for (const coding of offered) {
    const weight =
      weights.get(coding) ?? (coding === "gzip" ? weights.get("x-gzip") : undefined) ?? any ?? 0;
    if (weight > bestWeight && weight >= identity) {
      best = coding;
      bestWeight = weight;
    }
  }
  return best;
}

/** Weights from 0 to 1 by lower-case coding; undefined if the field is malformed. */
function readWeights(field: string): Map<string, number> | undefined {
  if (field.length > HEADER_CHARACTERS_MAX) return undefined;
  const weights = new Map<string, number>();
  for (const part of field.toLowerCase().split(",")) {
    const element = part.trim();
    if (element === "") continue;
    const [, coding, weight] = ELEMENT.exec(element) ?? [];
    if (coding === undefined) return undefined;
    weights.set(coding, weight === undefined ? 1 : Number(weight));
  }
  return weights;
}
