// Names of certificates in the configuration.
import { isServerName, SERVER_NAME_CHARS_MAX } from "../shared-state/index.ts";
import { text } from "./value.ts";

/** A DNS name or a wildcard of one label (`*.example.org`); the result is lower-case. */
export function serverName() {
  return text(SERVER_NAME_CHARS_MAX + 2)
    .overwrite((value) => value.toLowerCase().replace(/\.$/, ""))
    .refine((value) => isServerName(value, true), {
      error: 'expected a DNS name such as "api.example.org", or a wildcard such as "*.example.org"',
    });
}
