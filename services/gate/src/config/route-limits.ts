// Fields of a route that limit its clients.
import { type LimitFields, limitFields } from "@platform/kernel/route-rules";
import { filePath, unset } from "./value.ts";

/** Fields of {@link RouteLimitFields} with their schemas. */
export const routeLimitFields = {
  ip_allowlist: limitFields.ip_allowlist,
  ip_allowlist_file: unset(filePath()).meta({
    description:
      "file with further entries of ip_allowlist, one per line, `#` starts a comment; read again when it changes",
  }),
  ip_blocklist: limitFields.ip_blocklist,
  ip_blocklist_file: unset(filePath()).meta({
    description: "file with further entries of ip_blocklist, like ip_allowlist_file",
  }),
  rate_limit_rpm: limitFields.rate_limit_rpm,
  rate_limits: limitFields.rate_limits,
  max_concurrent_requests: limitFields.max_concurrent_requests,
  max_queue_size: limitFields.max_queue_size,
  queue_timeout_ms: limitFields.queue_timeout_ms,
};

/** Validated {@link routeLimitFields}. */
export interface RouteLimitFields extends LimitFields {
  readonly ip_allowlist_file?: string;
  readonly ip_blocklist_file?: string;
}
