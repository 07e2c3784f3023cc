// The links in mails: tracking and unsubscribing.
import type { Service } from "@platform/chassis";
import type { NotifyConfig } from "../config.ts";
import { readKey } from "../database/secrets.ts";
import { SignedLinks } from "../link/signed-links.ts";
import { sendsMail } from "../relay/create-transport.ts";
import { Tracking } from "../tracking/tracking.ts";
import { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import type { Outcomes } from "./outcomes.ts";
import type { Storage } from "./storage.ts";

/** The parts. */
export interface Links {
  readonly tracking: Tracking;
  readonly unsubscribes: Unsubscribes;
  /** Sets the address of the listener: without a public address, links in the development inbox lead to it. */
  setListenerUrl(url: string): void;
}

/** Creates the parts; their key is generated once. */
export async function openLinks(
  config: NotifyConfig,
  { clock, log }: Service,
  { database, box }: Storage,
  { suppressions, webhooks, metrics }: Outcomes,
): Promise<Links> {
  let listenerUrl: string | undefined;
  const links = new SignedLinks({
    key: await readKey(database, box, "link_key"),
    publicUrl: () => config.public_url ?? (sendsMail(config) ? undefined : listenerUrl),
  });
  const { track_opens: opens, track_clicks: clicks } = config;
  const parts = { database, links, webhooks, metrics };
  return {
    tracking: new Tracking({ ...parts, opens, clicks }),
    unsubscribes: new Unsubscribes({ ...parts, suppressions, clock, log }),
    setListenerUrl: (url) => void (listenerUrl = url),
  };
}
