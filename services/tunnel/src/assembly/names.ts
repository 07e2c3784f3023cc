// Names, subjects and share links, with the database that holds them.
import type { Service } from "@platform/chassis";
import { clearDatabaseCopies, type DatabaseState } from "@platform/kernel/database-backup";
import type { RelayConfig } from "../config.ts";
import { openRelayDatabase } from "../database/open.ts";
import { migrateAll, type TunnelDatabase } from "../database/schema.ts";
import { loadSecret } from "../database/secrets.ts";
import { describeState } from "../database/state.ts";
import { CustomDomains, type CustomDomainsOptions } from "../name/custom-domains.ts";
import { classifyHost } from "../name/hosts.ts";
import { PublicUrls } from "../name/public-urls.ts";
import { Subjects } from "../name/subjects.ts";
import { TunnelStore } from "../name/tunnel-store.ts";
import { ShareLinks } from "../share/share-links.ts";

/** The parts. */
export interface Names {
  readonly database: TunnelDatabase;
  readonly state: DatabaseState;
  readonly store: TunnelStore;
  readonly domains: CustomDomains;
  readonly subjects: Subjects;
  readonly links: ShareLinks;
  readonly urls: PublicUrls;
}

/** True for the relay's domain, and the names of tunnels. */
export function hasName(
  domain: string,
  { store, domains }: Pick<Names, "store" | "domains">,
  name: string,
): boolean {
  const kind = classifyHost(name, domain);
  if (kind.kind === "label") return store.findLabel(kind.label) !== undefined;
  if (kind.kind === "custom") return domains.find(kind.domain) !== undefined;
  return name === domain;
}

/** Opens the database and loads everything. Tests pass their own lookup of TXT records. */
export async function openNames(
  config: RelayConfig,
  { clock, ids, log, lifecycle, health }: Service,
  lookUpTxt: CustomDomainsOptions["lookUp"] | undefined,
): Promise<Names> {
  const { data_dir: dataDir, database_url: url, domain } = config;
  const database = openRelayDatabase({ url, dataDir, acceptLoss: config.accept_loss, log });
  lifecycle.onDrain("database", () => database.close(), "database");
  await migrateAll(database, clock.now());
  health.addCheck("database", () => database.check());
  const state = describeState(config);
  await clearDatabaseCopies(state);
  const store = new TunnelStore({
    database,
    clock,
    ids,
    namesPerSubjectMax: config.names_per_subject_max,
    retentionMs: config.name_retention_ms,
    tcpPorts: config.tcp_ports,
  });
  const secret = await loadSecret(database, "domain-proofs");
  const lookUp = lookUpTxt === undefined ? {} : { lookUp: lookUpTxt };
  const domains = new CustomDomains({ database, clock, secret, domain, ...lookUp });
  const subjects = new Subjects(database, clock);
  const linkSecret = await loadSecret(database, "share-links");
  const links = new ShareLinks({ database, clock, ids, secret: linkSecret });
  await Promise.all([store.load(), domains.load(), subjects.load(), links.load()]);
  return { database, state, store, domains, subjects, links, urls: new PublicUrls(config) };
}
