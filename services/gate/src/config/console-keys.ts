// Keys of the web console.
import { addressSchema, ADDRESS_FORMS, key } from "@platform/kernel/config";
import * as z from "zod";
import { unset, unsetOr } from "./value.ts";

const url = z.url({ protocol: /^https?$/ });
const SERVICE = /^(?:auth|vault|pulse|notify|tunnel|runtime)=https?:\/\/[^/?#@\s]+$/;

/** The keys. */
export const consoleKeys = {
  console_addr: key(unset(addressSchema()), {
    description:
      "Listen address of the web console; without it there is none. It is an origin of its own, because routes can serve programs of others. Read only at startup.",
    allowed: `an address such as ${ADDRESS_FORMS}`,
  }),
  console_url: key(unset(url), {
    description: "Address at which browsers open the console. Read only at startup.",
    defaultText: "http://localhost:PORT",
  }),
  console_services: key(unsetOr(z.array(z.string().regex(SERVICE)).max(16).default([])), {
    description:
      "Other services in the console, with the addresses of their APIs (storage: the admin listener). Read only at startup.",
    allowed:
      "SERVICE=URL, such as notify=http://127.0.0.1:8094; services are auth, vault, pulse, notify, tunnel, runtime",
  }),
  console_issuer: key(unset(url), {
    description:
      "Issuer at which users of the console sign in, with console_client_id and console_client_secret; without it they sign in with the services' own credentials. Read only at startup.",
  }),
  console_client_id: key(unsetOr(z.string().min(1).max(256).default("platform-console")), {
    description: "Client of the console at its issuer. Read only at startup.",
  }),
  console_client_secret: key(unset(z.string().min(16).max(1024)), {
    description: "Secret of that client. Read only at startup.",
    secret: true,
  }),
};
