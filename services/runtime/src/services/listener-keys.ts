// Configuration keys of the listeners of all services.
import {
  ADDRESS_FORMS,
  addressKey,
  addressSchema,
  key,
  type ConfigKey,
  type ListenAddress,
} from "@platform/kernel/config";
import { z } from "zod";
import { CONSOLE_KEY } from "./console.ts";
import { SERVICES } from "./index.ts";
import { RUNTIME_LISTENER } from "./runtime.ts";

/** The keys. Flags have the product names; those with the short names of services are accepted as well. */
export const LISTENER_KEYS: Record<
  string,
  ConfigKey<z.ZodType<ListenAddress | "shared">>
> = Object.fromEntries(
  [...SERVICES, { name: "runtime", label: "runtime", listeners: [RUNTIME_LISTENER] }].flatMap(
    ({ name, label, listeners }) =>
      listeners.map(({ key: flag, default: address, description, env }) => {
        const other = flag.replace(new RegExp(`^${label}(?=_)`), name);
        const otherFlags = other === flag ? [] : [other.replaceAll("_", "-")];
        const options = { description, env: [env], otherFlags };
        if (flag !== CONSOLE_KEY) return [flag, addressKey(address, options)];
        const schema = z.union([z.literal("shared"), addressSchema()]).prefault(address);
        const allowed = `shared, or an address: ${ADDRESS_FORMS}`;
        return [flag, key(schema, { ...options, allowed, placeholder: "ADDR|shared" })];
      }),
  ),
);
