// The pages of storage.
import "./storage.css";
import { matchPath, path, queryValue } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { BrowserPage } from "./browser.tsx";
import { BucketsPage } from "./buckets.tsx";
import { DrivesPage } from "./drives.tsx";
import { EncryptionPage } from "./encryption-page.tsx";
import { EventsPage } from "./events.tsx";
import { JobsPage } from "./jobs.tsx";
import { KeysPage } from "./keys.tsx";
import { RemotesPage } from "./remotes-page.tsx";
import { SettingsPage } from "./settings-page.tsx";

/** The page of the current path. */
export default function StoragePages() {
  useTrace({ label: t("Storage"), service: "vault", figure: "requests", errors: "errors" });
  if (path.value === "/storage/users") return <KeysPage />;
  if (path.value === "/storage/events") return <EventsPage />;
  if (path.value === "/storage/jobs") return <JobsPage />;
  if (path.value === "/storage/encryption") return <EncryptionPage />;
  if (path.value === "/storage/remotes") return <RemotesPage />;
  if (path.value === "/storage/drives") return <DrivesPage />;
  const settings =
    matchPath("/storage/buckets/-/:bucket/:tab", path.value) ??
    matchPath("/storage/buckets/-/:bucket", path.value);
  if (settings !== undefined) {
    const { bucket: name = "", tab = "general" } = settings;
    return <SettingsPage key={name} bucket={name} tab={tab} />;
  }
  const found = matchPath("/storage/buckets/:bucket/*", path.value);
  const bucket = found?.["bucket"] ?? matchPath("/storage/buckets/:bucket", path.value)?.["bucket"];
  if (bucket === undefined) return <BucketsPage />;
  const folders = found?.["rest"] ?? "";
  const prefix = queryValue("prefix") || (folders === "" ? "" : `${folders}/`);
  return <BrowserPage key={bucket} bucket={bucket} prefix={prefix} />;
}
