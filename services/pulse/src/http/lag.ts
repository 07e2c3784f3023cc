// The lag of a group in a partition, as the API shows it.
import { z } from "zod";

/** The lag of a group in a partition. */
export const partitionLag = z.object({
  topic: z.string(),
  partition: z.int(),
  committed_offset: z.int().describe("Negative without an offset."),
  latest_offset: z.int(),
  lag: z.int(),
});
