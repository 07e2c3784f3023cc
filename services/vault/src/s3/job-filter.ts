// The filter of jobs, as documents have it.
import { z } from "zod";
import type { JobFilter } from "../model/job.ts";

const size = z.int().min(0).exactOptional();
const time = z.iso.datetime({ offset: true }).exactOptional();

/** Objects that a job leaves out, in a document. */
export const jobFilterSchema = z.strictObject({
  created_after: time,
  created_before: time,
  size_min: size,
  size_max: size,
  suffix: z.string().min(1).max(1_024).exactOptional(),
  tags: z.record(z.string().min(1).max(128), z.string().max(256)).exactOptional(),
  storage_class: z
    .string()
    .regex(/^[A-Z_]{1,32}$/)
    .exactOptional(),
});

/** Converts the filter of a document. */
export function toJobFilter(filter: z.output<typeof jobFilterSchema> | undefined): JobFilter {
  if (filter === undefined) return {};
  const toMs = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Date.parse(text);
  return {
    createdAfterMs: toMs(filter.created_after),
    createdBeforeMs: toMs(filter.created_before),
    sizeMin: filter.size_min,
    sizeMax: filter.size_max,
    suffix: filter.suffix,
    tags: filter.tags,
    storageClass: filter.storage_class,
  };
}
