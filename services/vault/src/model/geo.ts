// Residency: the regions where the bytes of a bucket and of a version may be.

/** The rule of a bucket. */
export interface GeoPlacement {
  /** The name of the rule. */
  readonly region: string;
  /** Regions that bytes may go to; the region of the name if it is absent. */
  readonly allowed?: readonly string[];
  /** False lets replication leave them, and nothing else. */
  readonly deny_replication_outside: boolean;
}

/** The rules under which a version was written, in its row: copies and outputs of guests have it as well. */
export interface GeoMark {
  readonly allowed: readonly string[];
  /** Replication may leave the regions. */
  readonly replicates?: true;
}

/** The ways on which bytes leave the store. Downloads by clients are none of them. */
export type GeoExit = "tier" | "replication" | "backup" | "federation";

/** A destination outside of the store. */
export interface GeoDestination {
  readonly exit: GeoExit;
  /** An unknown region is outside of all rules. */
  readonly region: string | undefined;
}

/** The mark of versions that are written under a rule. */
export function toMark({ region, allowed, deny_replication_outside }: GeoPlacement): GeoMark {
  const regions = allowed ?? [region];
  return deny_replication_outside ? { allowed: regions } : { allowed: regions, replicates: true };
}

/** The mark of bytes that two marks apply to. */
export function joinMarks(one: GeoMark | undefined, other: GeoMark | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  const allowed = one.allowed.filter((region) => other.allowed.includes(region));
  const replicates = one.replicates === true && other.replicates === true;
  return replicates ? ({ allowed, replicates } as const) : { allowed };
}

/**
 * Decides whether a version may go to a region, by its mark and the rule of its bucket: `undefined` if it may, otherwise the
 * reason. Every exit asks it when it is configured, with the rule alone, and when bytes leave.
 */
export function findGeoRefusal(
  mark: GeoMark | undefined,
  rule: GeoPlacement | undefined,
  { exit, region }: GeoDestination,
): string | undefined {
  const isAllowed = ({ allowed, replicates }: GeoMark): boolean =>
    (region !== undefined && allowed.includes(region)) ||
    (exit === "replication" && replicates === true);
  const where = region === undefined ? "an unknown region" : `the region ${region}`;
  if (rule !== undefined && !isAllowed(toMark(rule)))
    return `The geo-placement rule ${rule.region} of the bucket does not allow ${where}.`;
  if (mark !== undefined && !isAllowed(mark))
    return `The geo-placement rule that the version was written under does not allow ${where}.`;
  return undefined;
}

/** True if a new rule, or none, allows something that the one before does not. */
export function isLooser(
  before: GeoPlacement | undefined,
  after: GeoPlacement | undefined,
): boolean {
  if (before === undefined) return false;
  if (after === undefined) return true;
  const [was, is] = [toMark(before), toMark(after)];
  if (is.replicates === true && was.replicates !== true) return true;
  return is.allowed.some((region) => !was.allowed.includes(region));
}
