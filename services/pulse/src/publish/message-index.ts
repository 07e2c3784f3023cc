// Adds the index of the failed message to the errors of several.
import { PlatformError } from "@platform/kernel/errors";
import { toPublishError } from "./publish-error.ts";

/** Runs work for one of several messages; errors then have its `index`. */
export function within<T>(all: readonly unknown[], index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw all.length === 1 ? error : withIndex(error, index);
  }
}

/** As `within`, for work that is awaited. */
export async function withinAsync<T>(
  all: readonly unknown[],
  index: number,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw all.length === 1 ? error : withIndex(error, index);
  }
}

/** The error without the index of a message of another call. */
export function withoutIndex(thrown: unknown): PlatformError {
  const { code, detail, headers, fields, cause } = toPublishError(thrown);
  const { index: _, ...others } = fields;
  return new PlatformError(code, detail, { headers, fields: others, cause });
}

/** The error, of the message with this index. */
export function withIndex(thrown: unknown, index: number): PlatformError {
  const error = toPublishError(thrown);
  return new PlatformError(error.code, error.detail, {
    headers: error.headers,
    fields: { ...error.fields, index },
    cause: error.cause,
  });
}
