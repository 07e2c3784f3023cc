// Entries of the access log: requests to the object API, and operations through the admin API.
import type { AuditEntry } from "../audit/audit-log.ts";
import type { FinishedRequest } from "../s3/finished-request.ts";
import type { FinishedCall } from "../s3/inner-operations.ts";

/** The entry of an operation through the admin API. */
export function toCallEntry(call: FinishedCall, timestamp: string): AuditEntry {
  const { id, operation, caller, clientAddress, bucket, key, status, errorCode } = call;
  return {
    request_id: id,
    timestamp,
    requester: caller.kind === "anonymous" ? "anonymous" : caller.accessKey,
    bucket,
    key,
    operation,
    status,
    source_ip: clientAddress,
    error_code: errorCode,
  };
}

/** The entry of a request to the object API. */
export function toAuditEntry(finished: FinishedRequest, timestamp: string): AuditEntry {
  const { request, caller, errorCode } = finished;
  const requester =
    caller === undefined || caller.kind === "anonymous" ? "anonymous" : caller.accessKey;
  return {
    request_id: request.id,
    timestamp,
    requester,
    bucket: finished.bucketName,
    key: finished.key,
    operation: finished.operation,
    source_ip: `${request.clientAddress}:${request.exchange.connection.remotePort}`,
    status: finished.status,
    error_code: errorCode,
  };
}
