// Results of checks.

/** `unknown`: it could not be made. `problem`: recipients will probably not get or not see the mail. */
export type CheckStatus = "ok" | "warning" | "problem" | "unknown";

/** Values in the sentence of a finding. */
export type FindingParams = Readonly<Record<string, string | number>>;

/** A check and its finding. */
export interface CheckResult {
  id: string;
  status: CheckStatus;
  title: string;
  /** Name of the finding, for programs that have words of their own; `params` are the values of the sentence. */
  code: string;
  params: FindingParams;
  /** The finding as an English sentence. */
  detail: string;
}

/** A result without the members that a group of checks has in common. */
export type Finding = Pick<CheckResult, "status" | "code" | "params" | "detail">;
