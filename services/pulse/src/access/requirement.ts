// The requirement of a command of a wire protocol.
import type { Right } from "../topic/rights.ts";

/**
 * The requirement of a command:
 *
 * - a right: for each topic that the command names; for at least one topic if it names none
 * - `any`: one of the rights, for each topic that it names
 * - `caller`: an authenticated client, which has at least one right
 * - `operator`: the operator itself, not on behalf of a tenant
 * - `public`: nothing, it comes before authentication
 */
export type Requirement = Right | "any" | "caller" | "operator" | "public";
