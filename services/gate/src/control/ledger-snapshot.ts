// The stored form of the AI ledger.
import { z } from "zod";

const pico = z.string().regex(/^-?\d{1,40}$/);
const count = z.int().min(0);

const sumsSchema = z.object({
  tenant: z.string(),
  route: z.string(),
  model: z.string(),
  requests: count,
  tokens: count,
  pico,
  saved: pico,
});

const daySchema = z.object({ day: count, sums: z.array(sumsSchema) });

const reservedSchema = z.object({
  k: z.literal("reserved"),
  id: z.int().min(1),
  day: count,
  tenant: z.string(),
  route: z.string(),
  model: z.string(),
  pico,
  tokens: count,
});

const instanceSchema = z.object({
  instance: z.string(),
  /** Reservations without a result. */
  open: z.array(reservedSchema),
  /** Files, and how much of them is part of the sums. */
  files: z.array(z.object({ name: z.string(), bytes: count })),
});

/** Schema of the snapshot. */
export const ledgerSnapshotSchema = z.object({
  days: z.array(daySchema),
  instances: z.array(instanceSchema),
});

/** Everything that is not archived, and how far the files of workers are part of it. */
export type LedgerSnapshot = z.infer<typeof ledgerSnapshotSchema>;
/** Sums of one day. */
export type DaySums = z.infer<typeof daySchema>;
/** Sums of a tenant on a route with a model. */
export type LedgerSums = z.infer<typeof sumsSchema>;
