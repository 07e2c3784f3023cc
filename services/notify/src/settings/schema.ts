// Parts of the schemas of configuration keys.
import { domainToASCII } from "node:url";
import { z } from "zod";

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const MEBIBYTE = 1024 * 1024;

export const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);
export const host = () => z.string().min(1).max(253);
export const port = () => z.int().min(1).max(65_535);
export const domainName = () =>
  z
    .string()
    .refine((text) => domainToASCII(text) !== "", "a domain name")
    .transform((text) => domainToASCII(text));

export const publicUrl = () =>
  z
    .url({ protocol: /^https?$/ })
    .max(512)
    .refine((text) => !/[?#]/.test(text), "a URL without query and fragment")
    .transform((text) => new URL(text).href.replace(/\/+$/, ""));
