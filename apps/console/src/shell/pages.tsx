// Loads the module of a page when it is opened, and shows it.
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import type { ServiceId } from "@platform/console/contract";
import { ApiFailure } from "../api/api.ts";
import { path } from "../router/router.ts";
import { services } from "../session/session.ts";
import { t } from "../words/words.ts";
import { useCrumbs, useTrace } from "../stage/stage.ts";
import { Empty } from "../view/pane.tsx";
import { Problem } from "../view/problem.tsx";
import { StartPage } from "../overview/first-run.tsx";
import { OverviewPage } from "../overview/overview.tsx";
import { findArea } from "./navigation.ts";

interface Module {
  default: ComponentType;
}

/** Pages that belong to no service. */
type OwnPage = "access" | "settings" | "projects";

const MODULES: Partial<Record<ServiceId | OwnPage, () => Promise<Module>>> = {
  gate: () => import("../gateway/pages.tsx"),
  auth: () => import("../identity/pages.tsx"),
  vault: () => import("../storage/pages.tsx"),
  notify: () => import("../mail/pages.tsx"),
  tunnel: () => import("../tunnels/pages.tsx"),
  pulse: () => import("../messaging/pages.tsx"),
  runtime: () => import("../runtime/pages.tsx"),
  projects: () => import("../projects/pages.tsx"),
  access: () => import("../access/pages.tsx"),
  settings: () => import("../settings/pages.tsx"),
};

const OWN_PAGES: Readonly<Record<string, OwnPage>> = {
  "/access": "access",
  "/access/applications": "access",
  "/settings": "settings",
};

/** Time until the module of a page is loaded again. */
const RETRY_MS = 3_000;

const loaded = signal<ReadonlyMap<string, ComponentType>>(new Map());
/** Epoch ms since which the module of the page cannot be loaded. */
const failedMs = signal<number | undefined>(undefined);

/** The page of the current path. */
export function CurrentPage() {
  const area = findArea(path.value);
  const name = moduleOf(path.value);
  useEffect(() => {
    if (name !== undefined) void load(name);
  }, [name]);
  if (path.value === "/") return <OverviewPage />;
  if (path.value === "/start") return <StartPage />;
  if (name === undefined) return <NotFound />;
  if (area !== undefined && !services.value.some(({ id }) => id === area.id)) {
    return (
      <Empty title={t("{name} is not part of this console", { name: area.label })}>
        <p>{t("This session has no access to the service, or it does not run here.")}</p>
      </Empty>
    );
  }
  if (failedMs.value !== undefined) {
    return (
      <Problem
        failure={new ApiFailure(0, { detail: t("A part of the console could not be loaded.") })}
        retry={() => location.reload()}
        sinceMs={failedMs.value}
      />
    );
  }
  const Page = loaded.value.get(name);
  if (Page === undefined) {
    return (
      <p class="loading" role="status">
        {t("Loading …")}
      </p>
    );
  }
  return <Page />;
}

/** Loads the module of the current path while the session is still read. */
export function preloadPage(): void {
  const name = moduleOf(path.value);
  if (name !== undefined) void load(name);
}

async function load(name: ServiceId | OwnPage): Promise<void> {
  const read = MODULES[name];
  if (read === undefined || loaded.value.has(name)) {
    failedMs.value = undefined;
    return;
  }
  try {
    const found = await read();
    loaded.value = new Map(loaded.value).set(name, found.default);
    failedMs.value = undefined;
  } catch {
    failedMs.value ??= Date.now();
    // A newer console may have replaced its files: then only a reload of the page helps.
    if (isOpen(name)) setTimeout(() => void load(name), RETRY_MS);
  }
}

function isOpen(name: ServiceId | OwnPage): boolean {
  return moduleOf(path.value) === name;
}

function moduleOf(current: string): ServiceId | OwnPage | undefined {
  const area = findArea(current);
  return area?.page ?? area?.id ?? OWN_PAGES[current];
}

function NotFound() {
  useCrumbs([{ label: t("Not found") }]);
  useTrace(undefined);
  return (
    <Empty title={t("Not found")}>
      <h1 class="hidden">{t("Not found")}</h1>
      <p>{t("This address has no page.")}</p>
      <a class="link" href="/ui/">
        {t("Overview")}
      </a>
    </Empty>
  );
}
