// Certificates of clients: their field for upstreams (RFC 9440), and their names.
import { X509Certificate } from "node:crypto";
import type { ConnectionInfo, HeadWriter } from "@platform/http1";
import { type AlternativeName, listAlternativeNames } from "@platform/kernel/tls";
import type { GateExchange } from "../../exchange/exchange.ts";

/** Larger certificates are treated as missing: upstreams refuse their field. */
const CERTIFICATE_BYTES_MAX = 16_384;

interface Known {
  line: Buffer | undefined;
  names: readonly AlternativeName[] | undefined;
}

/** Certificates of the connections of one worker; each is read once. */
export class ClientCertificates {
  readonly #known = new WeakMap<ConnectionInfo, Known>();

  /** Writes the field `Client-Cert`, if the client has a certificate. */
  write({ connection }: GateExchange, writer: HeadWriter): void {
    const raw = readRaw(connection);
    if (raw === undefined) return;
    const known = this.#find(connection);
    known.line ??= Buffer.from(`Client-Cert: :${raw.toString("base64")}:\r\n`, "latin1");
    writer.raw(known.line);
  }

  /** Names of the certificate of a client; undefined without a certificate. */
  listNames({ connection }: GateExchange): readonly AlternativeName[] | undefined {
    const raw = readRaw(connection);
    if (raw === undefined) return undefined;
    const known = this.#find(connection);
    known.names ??= listAlternativeNames(new X509Certificate(raw));
    return known.names;
  }

  #find(connection: ConnectionInfo): Known {
    let known = this.#known.get(connection);
    if (known === undefined) {
      known = { line: undefined, names: undefined };
      this.#known.set(connection, known);
    }
    return known;
  }
}

function readRaw({ tls }: ConnectionInfo): Buffer | undefined {
  const raw = tls?.clientCertificate?.raw;
  return raw !== undefined && raw.length <= CERTIFICATE_BYTES_MAX ? raw : undefined;
}
