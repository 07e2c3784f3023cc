// Access of programs: one place to create a key for storage, for routes of the gateway, or at identity.
import { useState } from "preact/hooks";
import type { ComponentType } from "preact";
import type { ServiceId } from "@platform/console/contract";
import { NewApiKey } from "../gateway/api-keys.tsx";
import { CHANGE } from "../gateway/routes.ts";
import { NewClient } from "../identity/clients.tsx";
import { href, path } from "../router/router.ts";
import { hasFeature, services } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { NewStorageKey } from "../storage/new-key.tsx";
import { ADMINISTER } from "../storage/permission.ts";
import { Action } from "../view/controls.tsx";
import { ServiceMark } from "../view/icon.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { t } from "../words/words.ts";
import { ApplicationsPage } from "./applications.tsx";
import { NewApplication } from "./new-application.tsx";
import { ADD_APPLICATION } from "./permission.ts";

const APPLICATIONS = "/access/applications";

interface Kind {
  service: ServiceId;
  title: string;
  text: string;
  /** Label of the button and of the command. */
  action: string;
  key: string;
  /** Page with all of them. */
  to: string;
  needs: string;
  /** Part of the service's API that it needs. */
  feature?: string;
  Dialog: ComponentType<{ onClose: () => void }>;
}

/** The page of the current path. */
export default function AccessPages() {
  return path.value === APPLICATIONS ? <ApplicationsPage /> : <AccessPage />;
}

function AccessPage() {
  useCrumbs([{ label: t("Access") }]);
  const [open, setOpen] = useState<Kind | undefined>(undefined);
  const kinds = listKinds().filter(
    ({ service, feature }) =>
      services.value.some(({ id }) => id === service) &&
      (feature === undefined || hasFeature(service, feature)),
  );
  useCommands(
    kinds.map((kind) => ({
      label: kind.action,
      key: kind.key,
      icon: "plus",
      needs: kind.needs,
      run: () => setOpen(kind),
    })),
  );
  return (
    <Split>
      <Title>{t("Access")}</Title>
      <p class="lead access-lead">{t("Keys with which programs call the services.")}</p>
      {kinds.length === 0 && <Empty title={t("No service here has keys for programs")} />}
      {kinds.map((kind) => (
        <section key={kind.service} class="sec access">
          <ServiceMark id={kind.service} size={18} />
          <div>
            <h2>{kind.title}</h2>
            <p class="i2">{kind.text}</p>
            <a class="link" href={href(kind.to)}>
              {t("Show all")}
            </a>
          </div>
          <Action
            onClick={() => setOpen(kind)}
            needs={kind.needs}
            kind="primary"
            icon="plus"
            shortcut={kind.key}
          >
            {kind.action}
          </Action>
        </section>
      ))}
      {open !== undefined && <open.Dialog onClose={() => setOpen(undefined)} />}
    </Split>
  );
}

function listKinds(): Kind[] {
  return [
    {
      service: "runtime",
      title: t("Application"),
      text: t("A program with a client, a bucket, topics and mail of its own, and its variables."),
      action: t("Add application"),
      key: "n",
      to: APPLICATIONS,
      needs: ADD_APPLICATION,
      feature: "applications",
      Dialog: NewApplication,
    },
    {
      service: "vault",
      title: t("Storage: S3"),
      text: t("An access key and a secret of a user of storage, for any S3 client."),
      action: t("New S3 key"),
      key: "s",
      to: "/storage/users",
      needs: ADMINISTER,
      Dialog: NewStorageKey,
    },
    {
      service: "gate",
      title: t("Gateway: API key"),
      text: t("Opens routes that require a key, for one tenant."),
      action: t("New API key"),
      key: "a",
      to: "/gateway/keys",
      needs: CHANGE,
      Dialog: NewApiKey,
    },
    {
      service: "auth",
      title: t("Identity: OAuth client"),
      text: t("Signs users in, or gets tokens of its own for all services."),
      action: t("New client"),
      key: "o",
      to: "/identity/clients",
      needs: "clients:write",
      Dialog: NewClient,
    },
  ];
}
