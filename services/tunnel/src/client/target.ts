// Targets of a client: a port, host:port, an http(s) URL, or a folder.
import { statSync } from "node:fs";
import { resolve } from "node:path";

/** A local service. */
export interface ServiceTarget {
  readonly kind: "service";
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Authority as sent in Host, without the scheme's default port. */
  readonly authority: string;
  /** Verify the certificate (TLS). */
  readonly verify: boolean;
}

/** A folder that is served as files. */
interface FolderTarget {
  readonly kind: "folder";
  readonly path: string;
}

export type Target = ServiceTarget | FolderTarget;

/** Thrown for text that is no target; the message says what is allowed. */
export class TargetError extends Error {}

/**
 * Reads a target as typed. `verifyTls` applies to hosts other than this machine, whose own certificates are usually
 * self-signed and whose traffic does not leave it.
 */
export function parseTarget(text: string, verifyTls: boolean): Target {
  const url = toUrl(text);
  if (url === undefined) return parseFolder(text);
  const isPlain =
    url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
  if (!isPlain) throw new TargetError(`${text}: a target URL has no path, query or user`);
  const secure = url.protocol === "https:";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isLocal = host === "localhost" || host === "::1" || host.startsWith("127.");
  return {
    kind: "service",
    host,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    secure,
    authority: url.host,
    verify: verifyTls && !isLocal,
  };
}

function toUrl(text: string): URL | undefined {
  if (/^\d{1,5}$/.test(text)) {
    const port = Number(text);
    if (port < 1 || port > 65_535) throw new TargetError(`${text}: a port is within 1 to 65535`);
    return new URL(`http://localhost:${port}`);
  }
  if (/^https?:\/\//.test(text)) return URL.parse(text) ?? undefined;
  if (/^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+):\d{1,5}$/i.test(text)) {
    return URL.parse(`http://${text}`) ?? undefined;
  }
  return undefined;
}

function parseFolder(text: string): FolderTarget {
  const path = resolve(text);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    return { kind: "folder", path };
  }
  throw new TargetError(
    `${text}: not a target; expected a port, host:port, an http:// or https:// URL, or a folder`,
  );
}
