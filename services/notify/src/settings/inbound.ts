// Configuration keys of received mail, DMARC and DNS.
import { z } from "zod";
import { key } from "@platform/kernel/config";
import { count, DAY_MS, HOUR_MS, MEBIBYTE } from "./schema.ts";

/** Keys of received mail. */
export const inboundKeys = {
  inbound_port: key(z.int().min(0).max(65_535).optional(), {
    description: "SMTP port for inbound mail. Without it no mail is received.",
  }),
  inbound_host: key(z.string().min(1).max(253).optional(), {
    description: "Address on which inbound mail is received.",
    defaultText: "all addresses",
  }),
  inbound_tls_cert: key(z.string().min(1).max(4096).optional(), {
    description:
      "File with the certificate chain for STARTTLS on the inbound port (PEM), if it is another than tls_cert. Without either STARTTLS is not offered.",
    env: ["PLATFORM_NOTIFY_INBOUND_TLS_CERT", "PLATFORM_NOTIFY_INBOUND_TLS_CERT_FILE"],
    otherNames: ["inbound_tls_cert_file"],
    otherFlags: ["inbound-tls-cert-file"],
  }),
  inbound_tls_key: key(z.string().min(1).max(4096).optional(), {
    description: "File with the unencrypted private key of inbound_tls_cert (PEM).",
    env: ["PLATFORM_NOTIFY_INBOUND_TLS_KEY", "PLATFORM_NOTIFY_INBOUND_TLS_KEY_FILE"],
    otherNames: ["inbound_tls_key_file"],
    otherFlags: ["inbound-tls-key-file"],
    secret: false,
    flag: "inbound-tls-key",
  }),
  inbound_tls_awaited: key(z.boolean().default(false), {
    description:
      "The files of inbound_tls_cert and inbound_tls_key may not exist yet, because another program obtains the certificate: STARTTLS is offered once they do. They may be one file, with chain and key.",
  }),
  inbound_bytes_max: key(count(1_024, 100 * MEBIBYTE, 25 * MEBIBYTE), {
    description: "Maximum size of a received message; larger ones are refused with 552.",
    unit: "bytes",
  }),
  inbound_recipients_max: key(count(1, 1_000, 100), {
    description: "Maximum number of recipients of a received message; further ones get 452.",
    unit: "recipients",
  }),
  inbound_connections_max: key(count(1, 10_000, 200), {
    description: "Maximum number of inbound SMTP connections; further ones get 421.",
    unit: "connections",
  }),
  inbound_connections_per_address_max: key(count(1, 10_000, 20), {
    description: "Maximum number of inbound SMTP connections of a client address.",
    unit: "connections",
  }),
  inbound_rate_per_minute: key(count(0, 10_000_000, 600), {
    description:
      "Received messages per minute and client address; more get 450. 0 means unlimited.",
    unit: "messages/min",
  }),
  inbound_retention_ms: key(count(HOUR_MS, 3650 * DAY_MS, 7 * DAY_MS), {
    description: "Contents of received messages are erased after this time.",
    unit: "ms",
  }),
  dmarc_enabled: key(z.boolean().default(true), {
    description:
      "Enforces DMARC policies on received mail: messages that fail are refused (reject) or kept without being forwarded (quarantine).",
  }),
  dmarc_reports: key(z.boolean().default(true), {
    description:
      "Sends daily aggregate reports about received mail to the domains that ask for them (rua). Requires inbound_port and from_domain.",
  }),
  dmarc_alignment: key(z.enum(["off", "warn", "enforce"]).default("warn"), {
    description:
      "Sending from domains without an active DKIM key, whose mail is not aligned by DKIM: warn logs it once per hour and domain, enforce refuses it with 422.",
  }),
  dns_servers: key(z.array(z.string().min(2).max(64)).min(1).max(8).optional(), {
    description:
      "DNS servers for SPF, DKIM, DMARC, domain checks, mail exchangers and MTA-STS: address or address:port.",
    defaultText: "the servers of the system",
  }),
};
