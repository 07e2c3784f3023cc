// Configuration keys of the console that all services share.
import { key } from "@platform/kernel/config";
import { z } from "zod";

/** Creates the keys of a service. */
export function createConsoleKeys() {
  return {
    console_url: key(z.url({ protocol: /^https?$/ }).optional(), {
      description:
        "Address at which browsers open the web console of this service, if a proxy accepts TLS for it; only pages of this origin may use a session.",
      defaultText: "the address of the request",
    }),
  };
}
