// Keys that are whole numbers between two bounds.
import { key } from "@platform/kernel/config";
import { unsetOr, wholeNumber } from "./value.ts";

/** A key from `min`, by default 1, to `max`. */
export function bound(
  description: string,
  options: { default: number; min?: number; max: number; unit?: string },
) {
  return key(unsetOr(wholeNumber(options.min ?? 1, options.max).default(options.default)), {
    description,
    ...(options.unit === undefined ? {} : { unit: options.unit }),
  });
}
