// Configuration keys of delivery by SMTP.
import { hostname } from "node:os";
import { z } from "zod";
import { key } from "@platform/kernel/config";
import { count, host, MINUTE_MS, port, SECOND_MS } from "./schema.ts";

const relay = z.strictObject({
  host: host(),
  port: port().default(587),
  user: z.string().max(1024).optional(),
  pass: z.string().max(8192).optional(),
  tls: z.enum(["auto", "implicit", "required", "opportunistic", "off"]).default("auto"),
  weight: z.int().min(0).max(1_000).default(1),
});

/** Keys `smtp.*`. */
export const smtpKeys = {
  "smtp.mode": key(z.enum(["auto", "relay", "direct", "inbox"]).default("auto"), {
    description:
      "relay: through smtp.host or smtp.relays. direct: to the mail exchangers of each recipient's domain, honouring MTA-STS. inbox: mail stays in the development inbox. auto: relay if one is configured, otherwise inbox.",
  }),
  "smtp.direct_port": key(port().default(25), {
    description: "Port of mail exchangers in direct mode.",
  }),
  mta_sts_ca: key(z.string().min(1).max(4096).optional(), {
    description:
      "File with additional certificate authorities (PEM) for the web servers of MTA-STS policies.",
  }),
  "smtp.host": key(host().optional(), {
    description: "Host of the SMTP relay. Without a relay, mail is kept in the development inbox.",
  }),
  "smtp.port": key(port().default(587), { description: "Port of the SMTP relay." }),
  "smtp.user": key(z.string().min(1).max(1024).optional(), {
    description: "User name at the relay.",
  }),
  "smtp.pass": key(z.string().min(1).max(8192).optional(), {
    description: "Password at the relay.",
    secret: true,
  }),
  "smtp.tls": key(
    z.enum(["auto", "implicit", "required", "opportunistic", "off"]).default("auto"),
    {
      description:
        "TLS to the relay. auto: implicit on port 465, required (STARTTLS with a verified certificate) with a user, otherwise opportunistic.",
    },
  ),
  "smtp.tls_ca_file": key(z.string().min(1).max(4096).optional(), {
    description: "File with additional certificate authorities (PEM) for relays.",
  }),
  "smtp.relays": key(z.array(relay).min(1).max(16).optional(), {
    description:
      "Several relays in place of smtp.host: messages are distributed by weight, and an unreachable relay is replaced by the others. Weight 0 is for fail-over only.",
    secret: true,
  }),
  "smtp.hostname": key(host().default(hostname()), {
    description: "Name of this host in EHLO.",
    defaultText: "the host name of the machine",
  }),
  "smtp.connections_max": key(count(1, 1_000, 20), {
    description: "Maximum number of concurrent deliveries.",
    unit: "connections",
  }),
  "smtp.destination_connections_max": key(count(1, 1_000, 20), {
    description: "Maximum number of concurrent deliveries to one destination.",
    unit: "connections",
  }),
  "smtp.destination_rate": key(z.number().min(0).max(100_000).default(0), {
    description: "Maximum number of deliveries per second to one destination; 0 for no limit.",
    unit: "messages/s",
  }),
  "smtp.messages_per_connection_max": key(count(1, 100_000, 100), {
    description: "Connections are closed after this number of messages.",
    unit: "messages",
  }),
  "smtp.connect_timeout_ms": key(count(100, 5 * MINUTE_MS, 30 * SECOND_MS), {
    description: "Timeout of connections and TLS handshakes.",
    unit: "ms",
  }),
  "smtp.command_timeout_ms": key(count(100, 5 * MINUTE_MS, MINUTE_MS), {
    description: "Maximum wait for the reply to a command.",
    unit: "ms",
  }),
  "smtp.content_timeout_ms": key(count(100, 5 * MINUTE_MS, 5 * MINUTE_MS), {
    description:
      "Maximum wait for the reply to a message's content. After it the message is sent again, with the event duplicate_possible.",
    unit: "ms",
  }),
};
