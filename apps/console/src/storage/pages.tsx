// The pages of storage.
import "./storage.css";
import { matchPath, path, queryValue } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { BrowserPage } from "./browser.tsx";
import { BucketsPage } from "./buckets.tsx";
import { DrivesPage } from "./drives.tsx";
import { KeysPage } from "./keys.tsx";

/** The page of the current path. */
export default function StoragePages() {
  useTrace({ label: t("Storage"), service: "vault", figure: "requests", errors: "errors" });
  if (path.value === "/storage/users") return <KeysPage />;
  if (path.value === "/storage/drives") return <DrivesPage />;
  const found = matchPath("/storage/buckets/:bucket/*", path.value);
  const bucket = found?.["bucket"] ?? matchPath("/storage/buckets/:bucket", path.value)?.["bucket"];
  if (bucket === undefined) return <BucketsPage />;
  const folders = found?.["rest"] ?? "";
  const prefix = queryValue("prefix") || (folders === "" ? "" : `${folders}/`);
  return <BrowserPage key={bucket} bucket={bucket} prefix={prefix} />;
}
