// DKIM and SPF in tests: records of the API in the test's DNS server, and Debian's verifiers.
import { execFileSync } from "node:child_process";
import type { DnsServer } from "./dns-server.ts";

/** A DNS record as the API shows it. */
export interface DnsRecordAnswer {
  purpose: string;
  type: "TXT" | "MX";
  name: string;
  value: string;
  status: string;
}

/** Publishes records. */
export function publish(dns: DnsServer, records: readonly DnsRecordAnswer[]): void {
  for (const { name, type, value } of records) {
    const known = dns.zone[name] ?? {};
    dns.zone[name] = { ...known, [type]: [value] };
  }
}

/** Reason to skip tests with a verifier in Python; undefined if it is installed or required. */
export function findPythonSkip(module: "dkim" | "spf" = "dkim"): string | undefined {
  try {
    execFileSync("/usr/bin/python3", ["-c", `import ${module}`], { stdio: "ignore" });
    return undefined;
  } catch {
    return process.env["PLATFORM_TEST_PEERS"] === "required"
      ? undefined
      : `the Debian package python3-${module} is not installed`;
  }
}
