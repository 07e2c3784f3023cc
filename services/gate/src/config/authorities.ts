// Files of certificate authorities.
import { readFileSync } from "node:fs";
import { ConfigError } from "@platform/kernel/config";

/** Reads a file of authorities in PEM. Throws ConfigError with its key. */
export function readAuthorities(file: string, path: string): string {
  const refuse = (message: string): ConfigError =>
    new ConfigError([{ source: "configuration", path, message }]);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw refuse(cause instanceof Error ? cause.message : String(cause));
  }
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw refuse(`${file} has no certificate (PEM)`);
  return text;
}
