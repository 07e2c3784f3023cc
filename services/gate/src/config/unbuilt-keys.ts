// Keys of the specification that are not available yet.
import { key } from "@platform/kernel/config";
import type { z } from "zod";
import { later, text } from "./value.ts";

/** Keys that are refused by name rather than ignored. */
export const unbuiltKeys = {
  discovery: unbuilt(text(), "Service discovery.", "PLATFORM_DISCOVERY"),
};

function unbuilt<T extends z.ZodType>(schema: T, description: string, env?: string) {
  return key(later(schema), {
    description: `${description} Not available yet.`,
    env: env === undefined ? [] : [env],
    flag: false,
  });
}
