// Keys of the web console.
import { addressSchema, ADDRESS_FORMS, key } from "@platform/kernel/config";
import { z } from "zod";
import { redisUrl, unset, unsetOr } from "./value.ts";

const url = z.url({ protocol: /^https?$/ });
const SERVICE = /^(?:auth|vault|pulse|notify|tunnel|runtime)=https?:\/\/[^/?#@\s]+$/;

export const consoleKeys = {
  console_addr: key(unset(z.union([z.literal("shared"), addressSchema()])), {
    description:
      "Listen address of the web console; without it there is none. It is an origin of its own, because routes can serve programs of others. `shared`: on the gateway's own listener. At the host of console_url, `/` then leads to the console, and of all routes only those with this `host` are served; without console_url it is at the names of this machine beside all routes. Programs of these routes share its origin and can act for the person who is signed in: they must be the operator's own. Read only at startup.",
    allowed: `shared, or an address such as ${ADDRESS_FORMS}`,
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
  console_redis_url: key(unset(redisUrl()), {
    description:
      "Redis that keeps the console's sessions, encrypted, for all gateways with the same console_url and console_encryption_keys; without it they are in memory. While it does not respond, the console answers 503. Read only at startup.",
    env: ["PLATFORM_GATE_CONSOLE_REDIS_URL", "PLATFORM_REDIS_URL"],
    secret: true,
  }),
  console_encryption_keys: key(unset(z.string().max(65_536)), {
    description:
      "Encrypts sessions in Redis: comma-separated 32-byte keys with the prefix hex: or base64:; the first is used for encryption, every key for decryption. Required if several gateways share sessions. Read only at startup.",
    defaultText: "a generated key in data_dir",
    secret: true,
  }),
};
