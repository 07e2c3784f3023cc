// Records API operations in the audit log.
import type { Exchange } from "@platform/kernel/http";
import type { AuditLog } from "../audit/audit-log.ts";
import { nameActor, type Identification, type Principal } from "./principal.ts";

/** Records an action of `principal`; resolves when it is stored. */
export type AuditRecorder = (
  exchange: Exchange<unknown, unknown, unknown>,
  principal: Principal,
  action: string,
  target: string | undefined,
  detail?: Readonly<Record<string, unknown>>,
) => Promise<void>;

/** Creates the recorder of a group of routes. */
export function createAuditRecorder(options: {
  identification: Identification;
  audit: AuditLog;
}): AuditRecorder {
  const { identification, audit } = options;
  return (exchange, principal, action, target, detail) =>
    audit.record({
      action,
      actor: nameActor(principal),
      ...(target === undefined ? {} : { target }),
      ...identification.readOrigin(exchange),
      ...(detail === undefined ? {} : { detail }),
    });
}
